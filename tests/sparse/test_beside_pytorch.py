"""Small programs with sparse tensors, whose results print as PyTorch's do, and whose errors say the same."""
import warnings

import pytest
from support import cpu_only

import tensorgrad

pytestmark = cpu_only
SETUP = """
F = torch.nn.functional
u = torch.sparse_coo_tensor([[1, 0, 1, 1], [2, 1, 0, 2]], [3., 4, 5, 6], (2, 3))      # one place twice
c, d = u.coalesce(), torch.arange(6.).reshape(2, 3) + 1
r, k = c.to_sparse_csr(), c.to_sparse_csc()
h = torch.sparse_coo_tensor([[0, 2]], torch.arange(6.).reshape(2, 3), (4, 3))          # a dense dimension
"""

PARTS = r"""
u ; c ; r ; k ; h ; u.is_coalesced(), c.is_coalesced(), u._nnz(), c._nnz(), r._nnz() ; u.type(torch.float64)
u.is_contiguous() ; u.is_same_size(c)
u.element_size(), u.numel(), u.ndim, u.dim(), u.size(), u.shape, u.dtype, u.device, u.layout, u.size(1)
u._indices() ; u._values() ; c.indices() ; c.values() ; r.values() ; r.crow_indices() ; r.col_indices()
k.ccol_indices() ; k.row_indices() ; d.sparse_dim(), d.dense_dim()
c.sparse_dim(),c.dense_dim(),r.sparse_dim(),r.dense_dim(),h.sparse_dim(),h.dense_dim()
c.is_sparse, r.is_sparse, r.is_sparse_csr, k.is_sparse_csr, d.is_sparse, d.layout, r.layout
u.is_floating_point(), u.is_complex(), u.is_signed() ; u.requires_grad, u.is_leaf, u.grad_fn ; u.type()
torch.sparse.sum(c,dtype=torch.float64) ; torch.sparse.sum(c,1,dtype=torch.float64)
torch.sparse.softmax(c,1,dtype=torch.float64) ; torch.zeros_like(torch.eye(2),layout=torch.sparse_coo)
torch.zeros_like(c,layout=torch.strided) ; u.requires_grad_().coalesce().values()
__import__('copy').deepcopy(c) ; __import__('copy').copy(r)
__import__('pickle').loads(__import__('pickle').dumps(c))
__import__('pickle').loads(__import__('pickle').dumps(r))
torch.sparse.check_sparse_tensor_invariants.is_enabled() ; c.is_pinned() ; c.type(torch.sparse.DoubleTensor)
c.type_as(c.double()) ; c.sum(dtype=torch.float64) ; torch.ones(2,3,dtype=torch.int64)+c ; c.is_leaf
"""

MAKING = r"""
torch.is_tensor(u), isinstance(u, torch.Tensor), type(u) is torch.Tensor
torch.sparse.spdiags(torch.arange(9.).reshape(3,3),torch.tensor([0,-1,1]),(3,3))
torch.sparse.spdiags(torch.arange(9.).reshape(3,3),torch.tensor([0,-1,1]),(3,3),layout=torch.sparse_csr)
torch.sparse.spdiags(torch.arange(9.).reshape(3,3),torch.tensor([0,-1,1]),(3,3),layout=torch.sparse_csc)
torch.sparse.spdiags(torch.arange(8.).reshape(2,4),torch.tensor([0,-1]),(3,5))
torch.sparse.spdiags(torch.arange(4.),torch.tensor([1]),(3,5))
torch.sparse.spdiags(torch.arange(4.),torch.tensor(1),(3,5)) ; torch.sparse_coo_tensor([[0],[1]],[1.])
torch.sparse_coo_tensor((2,3)) ; torch.sparse_coo_tensor(size=(2,3))
torch.sparse_coo_tensor([[0.5]],[1.],(2,)) ; torch.sparse_coo_tensor(torch.zeros(0,1,dtype=torch.long),[3.],())
torch.sparse_coo_tensor(torch.zeros(0,2,dtype=torch.long),[3.,4],()).to_dense()
torch.sparse_coo_tensor(torch.zeros(0,2,dtype=torch.long),[3.,4],()).coalesce()
torch.sparse_coo_tensor(torch.zeros(2,0,dtype=torch.long),torch.zeros(0,3)) ; torch.sparse_coo_tensor([[]],[])
torch.sparse_coo_tensor([[0,1]],[1,2]) ; torch.sparse_coo_tensor([[0,1]],[1,2],dtype=torch.float16)
torch.sparse_coo_tensor([[0,1],[1,0]],[1+2j,3.]) ; torch.sparse_coo_tensor([[0,1]],torch.zeros(2,2,2))
torch.sparse_coo_tensor([[0,1]],[1.,2],(2,),is_coalesced=True).is_coalesced()
torch.sparse_coo_tensor([[0,1]],[1.,2],(2,),requires_grad=True)
torch.sparse_coo_tensor([[0,1]],torch.ones(2,requires_grad=True),(2,))
torch.sparse_csr_tensor([0,2],[1,0],[1.,2],(1,3)) ; torch.sparse_csr_tensor([0,1],[1],[1.])
torch.sparse_csr_tensor([0,1],[0],[[1.]],(1,3,1)) ; torch.sparse_bsr_tensor([0,1],[0],[[[1.,2],[3,4]]],(2,4))
torch.sparse_bsr_tensor([0,1],[1],[[[1.,2],[3,4]]]) ; torch.sparse_bsc_tensor([0,1],[1],[[[1.,2],[3,4]]])
torch.sparse_compressed_tensor([0,1],[0],[1.],(3,1),layout=torch.sparse_csc)
torch.sparse_csr_tensor(torch.tensor([0,1],dtype=torch.int32),torch.tensor([0],dtype=torch.int32),[1.],(1,3))
torch.sparse_csr_tensor(torch.tensor([0,1],dtype=torch.int32),torch.tensor([0],dtype=torch.int32),[1.],(1,3)).t().to_dense()
torch.sparse_csr_tensor(torch.tensor([0,1],dtype=torch.int32),torch.tensor([0],dtype=torch.int32),[1.],(1,3))@torch.ones(3,1)
torch.zeros(2,3,layout=torch.sparse_coo) ; torch.zeros(2,2,layout=torch.sparse_csr)
torch.zeros(2,2,layout=torch.sparse_csc) ; c.new_tensor([1.]) ; torch.as_tensor(c).layout
torch.sparse.FloatTensor(torch.tensor([[0,1]]),torch.tensor([1.,2]),torch.Size([3]))
torch.sparse.FloatTensor(2,3) ; torch.sparse.FloatTensor
torch.sparse.FloatTensor(torch.tensor([[0,1]]),torch.tensor([1,2]))
isinstance(torch.eye(2).to_sparse(), torch.sparse.FloatTensor) ; torch.sparse.FloatTensor()
torch.zeros(2,3).to_sparse() ; torch.zeros(2,3).to_sparse_csr() ; torch.zeros(0,3).to_sparse()
torch.zeros(0,3).to_sparse_csr() ; torch.zeros(0,3).to_sparse()@torch.ones(3,2)
torch.zeros(2,3).to_sparse()@torch.ones(3,2) ; torch.zeros(2,3).to_sparse_csr()@torch.ones(3,2)
torch.zeros(2,3).to_sparse()+c ; torch.zeros(2,3).to_sparse()*c ; torch.zeros(2,3).to_sparse().sum(0)
torch.sparse.softmax(torch.zeros(2,3).to_sparse(),1)
torch.zeros(2,3).to_sparse().t()@torch.zeros(2,3).to_sparse() ; torch.zeros(2,3).to_sparse().to_sparse_csc()
torch.cat([torch.zeros(2,3).to_sparse(),c])
"""

CONVERTING = r"""
h.to_dense() ; u.to(torch.float64) ; u.to(torch.int32) ; r.to_sparse() ; r.to_dense() ; k.to_dense()
r.to(torch.float64) ; r*r.to_sparse_csr() ; torch.sparse.mm(c.to_sparse_csr(),torch.ones(3,2),'mean')
torch.sparse.mm(c.to_sparse_csr(),torch.ones(3,2),'sum')
torch.sparse.mm(c.to_sparse_csr(),torch.arange(6.).reshape(3,2),'amax')
torch.sparse.mm(c.to_sparse_csr(),torch.arange(6.).reshape(3,2)-3,'amin') ; c.sparse_mask(c) ; d.sparse_mask(u)
u.sparse_mask(c) ; d.sparse_mask(r) ; c.sparse_mask(r) ; c.to_sparse() ; d.to_sparse() ; d.to_sparse(1)
d.to_sparse(2) ; torch.tensor(3.).to_sparse() ; torch.tensor(0.).to_sparse()
d.to_sparse(layout=torch.sparse_csr) ; d.to_sparse(layout=torch.sparse_csc)
d.to_sparse(layout=torch.sparse_coo) ; d.to_sparse(layout=torch.strided) ; c.to_sparse(layout=torch.sparse_csr)
c.to_sparse_csc() ; c.to_sparse_csr() ; u.to_sparse_csr() ; torch.eye(4).to_sparse_bsr((2,2))
torch.eye(4).to_sparse_bsc((2,2)) ; torch.eye(4).to_sparse_bsr((2,4))
torch.eye(4).to_sparse_csr().to_sparse_bsr((2,2)) ; torch.eye(4).to_sparse().to_sparse_bsr((2,2)).to_dense()
torch.eye(4).to_sparse_bsr((2,2)).to_sparse_bsc((2,2)) ; torch.eye(4).to_sparse_bsr((2,2)).to_sparse()
torch.eye(4).to_sparse_bsr((2,2)).t() ; torch.ones(2,2,3).to_sparse_csr()
torch.ones(2,2,3).to_sparse_csr().to_dense() ; torch.ones(2,2,3).to_sparse_csr().values().shape
torch.ones(2,2,3).to_sparse_csr(dense_dim=1) ; torch.ones(2,2,3).to_sparse_csr(dense_dim=1).to_dense()
torch.ones(2,2,3).to_sparse_csc(dense_dim=1) ; torch.ones(2,4,4).to_sparse_bsr((2,2)).to_dense()
torch.eye(6).reshape(2,3,6).to_sparse_csr() ; r.to_sparse_csc() ; k.to_sparse_csr() ; d.to_dense()
d.to_dense(torch.float64) ; c.sparse_resize_((3,4),2,0) ; c.sparse_resize_and_clear_((5,1,2),2,1)
torch.eye(60).to_sparse() ; torch.eye(60).to_sparse_csr() ; (torch.eye(2,requires_grad=True)*2).to_sparse()
(torch.eye(2,requires_grad=True)*2).to_sparse_csr() ; (torch.eye(2,requires_grad=True)*2).to_sparse().to_dense()
torch.nn.Parameter(torch.eye(2).to_sparse()) ; torch.testing.assert_close(c, c.to_dense(), check_layout=False)
c.to(torch.device('cpu')) is c ; c.to(c) is c
"""

COMPUTING = r"""
u*2 ; 2*u ; u/2 ; u*torch.tensor(2.) ; u*torch.tensor(2) ; u.long()*2.5 ; u.long()/2 ; u+u ; c+c ; c-c ; -u
c*u ; u*u ; c*c ; c**2 ; c**0.5 ; c**-1 ; c*d ; d*c ; u*d ; d+u ; d-u ; c*torch.ones(3) ; c*torch.ones(4,2,3)
h*torch.ones(4,3) ; h+h ; h*2 ; h.coalesce() ; c.sum() ; u.sum() ; u.sum(0) ; c.sum(1) ; c.sum((0,1))
c.sum(0,keepdim=True) ; c.norm() ; c.norm(1) ; c.t() ; u.t() ; u.transpose(0,1) ; u.permute(1,0)
u.permute(0,1) ; torch.cat([u,u]) ; torch.cat([u,u],1) ; torch.stack([u,u]) ; torch.stack([u,u],1)
torch.cat([h,h],1) ; c.index_select(0,torch.tensor([1])) ; c.index_select(1,torch.tensor([2,0,2])) ; c[0] ; c[1]
c[-1] ; c[0,1] ; c[:,1] ; c[1,:] ; c.select(1,2) ; c.unsqueeze(0) ; u.unsqueeze(2) ; h.unsqueeze(2) ; u.any()
u.zero_() ; torch.zeros_like(c) ; u.bool() ; u.int() ; u.half() ; u.float() ; len(u) ; u//2
u.div(2,rounding_mode='floor') ; u.div(2,rounding_mode='trunc') ; u.narrow_copy(0,0,1) ; c.narrow_copy(1,1,2)
torch.narrow_copy(c,1,1,2) ; c.index_select(1,torch.tensor([-1,0]))
(torch.tensor(2.,dtype=torch.float64).to_sparse()*torch.tensor(1.).to_sparse()).dtype
(lambda x: ((x*2).backward(u), x.grad.to_dense())[1])(u.clone().requires_grad_())
u.copy_(c) ; u.clone() ; u.detach() ; u.neg_() ; u.mul_(2) ; c.mul_(c) ; u.add_(u) ; c.add_(c) ; c.sub_(c)
c.div_(2) ; d.add_(c) ; d.sub_(c) ; d.mul_(c) ; c.sqrt_() ; u.coalesce() ; u.isnan() ; u.isinf() ; torch.sgn(u)
u.nan_to_num() ; u.relu() ; torch.nn.functional.relu(u) ; u.real ; u.conj() ; u.get_device() ; u.positive()
u.square() ; u.T ; c.mT ; c.H ; u.cpu() ; r+r ; r*2 ; r*r ; r+d ; d+r ; r*d ; r.sum() ; r.sum(1,keepdim=True)
r.sum(0,keepdim=True) ; r.t() ; r.transpose(0,1) ; k.t() ; r[0] ; r[0,2] ; r.abs() ; r.abs_() ; r.neg()
r.sin() ; r.clone() ; r.select(0,1) ; r.int() ; r.zero_() ; torch.zeros_like(r) ; torch.sparse.sum(c)
torch.sparse.sum(c,0) ; torch.sparse.sum(c,1) ; torch.sparse.sum(c,(0,1)) ; torch.sparse.sum(h,1)
torch.sparse.sum(h,0) ; torch.sparse.sum(h,(0,1)) ; torch.sparse.sum(h) ; torch.sparse.softmax(c,1)
torch.sparse.softmax(c,0) ; torch.sparse.softmax(c,-1) ; torch.sparse.softmax(h,0) ; torch.sparse.softmax(h,1)
torch.sparse.log_softmax(c,0) ; torch.sparse.log_softmax(c,1) ; torch.sparse.log_softmax(u,1)
c.requires_grad_() ; c.requires_grad_().clone() ; c.requires_grad_()*2 ; c.requires_grad_().sum()
c.requires_grad_().coalesce() ; u.requires_grad_().coalesce() ; -c.requires_grad_() ; c.requires_grad_().t()
c.requires_grad_().abs() ; torch.sparse.softmax(c.requires_grad_(),1) ; torch.sparse.sum(c.requires_grad_(),1)
torch.testing.assert_close(c, c.clone()) ; torch.testing.assert_close(c, torch.cat([c[:,0:0] if 0 else c]))
c.data ; c.new_zeros(2) ; c.add(c,alpha=3) ; c.sub(c,alpha=3) ; d.add(c,alpha=2) ; d.add_(c,alpha=2)
d.sub_(c,alpha=2) ; d.addmm_(c,torch.ones(3,3)) ; c.requires_grad_().sum().backward() ; list(c)
c.floor_divide(2) ; c//2 ; torch.tensor(c) ; c.swapaxes(0,1) ; c.movedim(0,1) ; c.storage_offset()
torch.norm(c,p=1) ; c.dist(c) ; c.bool().any() ; c._version ; c.grad ; c.cpu() is c ; c.float() is c
c.clone() is c ; c.coalesce() is c ; c.mul_(2) ; c.mul_(d) ; c.zero_() ; c.copy_(u) ; r.copy_(r*2) ; r.mul_(2)
r.add_(r)
(lambda m: (m.register_buffer("a", c.clone()), m.load_state_dict({"a": c * 3}), m.a)[2])(torch.nn.Module())
(lambda m: (m.register_buffer("a",c.clone()),m.double(),m.a)[2])(torch.nn.Module())
torch.nn.Embedding.from_pretrained(torch.eye(3),sparse=True)
"""

PRODUCTS = r"""
r@d.t() ; d.t()@r ; r@r.t() ; c@torch.ones(3,2) ; u@torch.ones(3,2) ; c@torch.ones(3) ; c.mv(torch.ones(3))
u.mv(torch.ones(3)) ; r@torch.ones(3) ; torch.mm(c,torch.ones(3,2)) ; torch.sparse.mm(c,torch.ones(3,2))
torch.sparse.mm(c,c.t()) ; torch.mm(c,c.t()) ; u@u.t() ; torch.ones(2,2)@c ; torch.sparse.mm(torch.ones(2,2),c)
torch.addmm(torch.ones(2,2),c,torch.ones(3,2),beta=2,alpha=3)
torch.addmm(torch.ones(2,2),r,torch.ones(3,2),beta=2,alpha=3) ; torch.addmm(torch.ones(2),c,torch.ones(3,2))
torch.sparse.addmm(torch.ones(2,2),c,torch.ones(3,2),beta=0.5) ; torch.bmm(torch.stack([c,c]),torch.ones(2,3,2))
torch.bmm(torch.stack([c,u*2]),torch.arange(12.).reshape(2,3,2)) ; c.long()@torch.ones(3,2).long()
torch.sspaddmm(c.t()@c,c.t(),torch.ones(2,3)) ; torch.hspmm(c,torch.ones(3,2)) ; torch.smm(c,torch.ones(3,2))
torch.hsmm(c,torch.ones(3,2)) ; torch.sparse.sampled_addmm(r,torch.ones(2,4),torch.ones(4,3))
torch.sparse.sampled_addmm(r,torch.ones(2,4),torch.ones(4,3),beta=0.5,alpha=2)
c.requires_grad_()@torch.ones(3,1) ; torch.sparse.mm(c.requires_grad_(),torch.ones(3,2)) ; F.linear(c,d)
F.linear(c,d,torch.ones(2)) ; F.linear(r,d) ; F.linear(d,c) ; torch.sspaddmm(c.t()@c,c.t(),d,beta=2,alpha=3)
torch.smm(c,d.t()) ; torch.hspmm(c,d.t()) ; torch.spmm(c,d.t()) ; torch.dsmm(c,d.t()) ; c.smm(d.t())
d.addmm(c,torch.ones(3,3)) ; torch.addmm(r,torch.eye(2).to_sparse_csr(),r,beta=0) ; (k@k.t()).layout
torch.sparse.mm(r.bfloat16(),(d-3).t().bfloat16(),'mean') ; torch.sparse.mm(r.bfloat16(),(d-3).t().bfloat16(),'amax')
torch.sparse.sampled_addmm(torch.stack([d,d]).to_sparse_csr(),torch.ones(2,2,1),torch.stack([d,-d])[:,:1],alpha=2)
torch.sparse.sampled_addmm(r,torch.arange(16.).reshape(2,2,4),torch.ones(2,4,3)).to_dense()
torch.triangular_solve(d.t(),(torch.eye(3)+torch.ones(3,3).triu()).to_sparse_csr(),transpose=True)
torch.triangular_solve(d.t(),(torch.eye(3)*2).to_sparse_csr(),upper=False,unitriangular=True).solution
torch.triangular_solve(d.t(),(torch.eye(3)+torch.ones(3,3).triu()).to_sparse_bsr((3,3))).solution
torch.triangular_solve(d.t(),torch.zeros(3,3).to_sparse_csr()).solution
"""

REFUSING = r"""
c**0 ; u+d ; u-d ; u+1 ; u-1 ; c*c.t() ; c+c.t() ; h.t() ; c.norm(2,0) ; torch.cat([u,d]) ; c[0:1] ; u.squeeze()
u.reshape(3,2) ; u.flatten() ; u.mean() ; u.max() ; torch.ones_like(c) ; u.tolist() ; u.numpy() ; u.item()
u.data_ptr() ; u.narrow(0,0,1) ; u.fill_(0) ; u.fill_(1) ; torch.equal(u,c) ; torch.allclose(u,c) ; u==u ; u==0
u>0 ; u!=c ; u.expand(2,2,3) ; u.softmax(1) ; u.log_softmax(1) ; u.exp() ; torch.cos(u) ; u.nbytes ; bool(u)
c.add_(d) ; u.indices() ; u.values() ; r.ccol_indices() ; c.crow_indices() ; r.coalesce() ; r.indices()
r.is_coalesced() ; r._indices() ; r._values() ; d.indices() ; d.values() ; d.coalesce() ; d.is_coalesced()
d.crow_indices() ; d._nnz() ; u.round(decimals=1) ; u.angle() ; u.reciprocal() ; u.sigmoid() ; u.is_nonzero()
r.sum(0) ; r.norm() ; r.index_select(0,torch.tensor([1])) ; torch.cat([r,r]) ; r.unsqueeze(0) ; r.exp() ; r==r
h@torch.ones(3,2) ; c@torch.ones(2,2) ; torch.mm(c,torch.ones(2,2)) ; torch.sparse.mm(c,c.t(),'sum')
torch.sparse.sampled_addmm(c,torch.ones(2,4),torch.ones(4,3))
torch.sparse.sampled_addmm(r,torch.ones(2,4),torch.ones(3,3))
torch.sparse.spdiags(torch.arange(8.).reshape(2,4),torch.tensor([0,0]),(3,5))
torch.sparse.spdiags(torch.arange(8.).reshape(2,4),torch.tensor([0]),(3,5))
torch.sparse.spdiags(torch.arange(8.).reshape(2,4),torch.tensor([0,1]),(3,5,1))
torch.sparse.spdiags(torch.arange(8.).reshape(2,4),torch.tensor([0,1]),(3,5),torch.sparse_bsr)
torch.sparse.softmax(c,5) ; d.sparse_mask(torch.eye(3).to_sparse()) ; d.sparse_mask(d) ; c.to_sparse(1)
d.to_sparse(3) ; d.to_sparse(0) ; d.to_sparse(layout=torch.sparse_bsr) ; d.to_sparse(2,layout=torch.sparse_csr)
d.to_sparse(blocksize=(1,1)) ; h.to_sparse_csr() ; torch.eye(4).to_sparse_bsr((2,2)).to_sparse_csr()
torch.eye(3).to_sparse_bsr((2,2)) ; torch.tensor([[[1.,0],[0,0]],[[1,1],[0,0]]]).to_sparse_csr()
r.to_dense(torch.float64) ; c.to_dense(torch.float64) ; c.sparse_resize_((1,1),2,0)
c.sparse_resize_((2,3,1),2,1) ; d.sparse_resize_((1,1),2,0) ; torch.sparse_coo_tensor([[0,1]],[1.],(2,))
torch.sparse_coo_tensor([0],[1.],(2,)) ; torch.sparse_coo_tensor([[0]],[1.],(2,3))
torch.sparse_coo_tensor([[0,1]],3.,(2,)) ; torch.sparse_coo_tensor([[0,1]],torch.zeros(2,2,2),(3,2,3))
torch.sparse_coo_tensor([[5]],[1.],(2,),check_invariants=True)
torch.sparse_coo_tensor([[-1]],[1.],(2,),check_invariants=True)
torch.sparse_coo_tensor([[1,0]],[1.,2],(2,),is_coalesced=True,check_invariants=True)
torch.sparse_coo_tensor([[0,1]],[1,2],(2,),requires_grad=True)
torch.sparse_csr_tensor([0,1],[5],[1.],(1,3),check_invariants=True)
torch.sparse_csr_tensor([0,2],[1],[1.],(1,3),check_invariants=True)
torch.sparse_csr_tensor([1,1],[1],[1.],(1,3),check_invariants=True)
torch.sparse_csr_tensor([0,2],[1,0],[1.,2],(1,3),check_invariants=True)
torch.sparse_csc_tensor([0,2],[1,0],[1.,2],(3,1),check_invariants=True)
torch.sparse_csr_tensor([0,1],[0],[1.,2],(1,3),check_invariants=True)
torch.sparse_csr_tensor([0,1,1],[0],[1.],(1,3),check_invariants=True)
torch.sparse_csr_tensor([[0,1]],[0],[1.],(1,3),check_invariants=True)
torch.sparse_csr_tensor([0,1],[0],[1.],(3,),check_invariants=True)
torch.sparse_csr_tensor([0,1],[0],[[1.]],(1,3),check_invariants=True)
torch.sparse_bsr_tensor([0,1],[0],[[[1.,2],[3,4]]],(3,4),check_invariants=True)
torch.sparse_bsr_tensor([0,1],[0],[1.],(2,4),check_invariants=True)
torch.sparse_compressed_tensor([0,1],[0],[1.],(1,3))
torch.sparse_compressed_tensor([0,1],[0],[1.],(1,3),layout=torch.sparse_coo)
torch.ones(2,2,layout=torch.sparse_coo) ; torch.testing.assert_close(c, c*2) ; torch.testing.assert_close(c, r)
torch.testing.assert_close(r, r*1.1) ; torch.testing.assert_close(c, c.to_dense())
torch.testing.assert_close(c, torch.sparse_coo_tensor(c.indices()[:,:2], c.values()[:2],(2,3))) ; torch.smm(d,d)
torch.hspmm(d,d) ; torch.isclose(c,c) ; c.share_memory_() ; c.untyped_storage() ; c.storage()
torch.broadcast_to(c,(2,2,3)) ; c.div(c) ; torch.ones(3,3).add_(c) ; c.trace() ; c.tril() ; c.argmax()
c.prod() ; c.amax() ; c.flip(0) ; c.clamp(0,1) ; ~c.bool() ; c.numpy(force=True) ; c.__array__()
c.bool().all() ; c.data_ptr() ; torch.sparse.spsolve(torch.eye(2).to_sparse_csr(),torch.ones(2)) ; c.copy_(d)
d.copy_(c) ; r@torch.ones(2) ; c@torch.ones(2) ; r+torch.eye(2).to_sparse_csr() ; k.is_contiguous()
r[0:1] ; k.unsqueeze(0) ; torch.cat([k,k]) ; k.sum(0,keepdim=True) ; r.mean() ; torch.triangular_solve(d.t(),c)
torch.triangular_solve(d.t(),torch.eye(3).to_sparse_csc())
torch.triangular_solve(d,torch.eye(2).half().to_sparse_csr())
torch.triangular_solve(d.int(),torch.eye(2).int().to_sparse_csr())
torch.triangular_solve(d,torch.eye(2).to_sparse_bsr((2,1))) ; torch.sparse.sampled_addmm(k,d[:,:1],d[:1])
torch.sparse.sampled_addmm(r,d[:,:1],d[None,:1]) ; torch.sparse.sampled_addmm(r,d[:,:1].double(),d[:1])
torch.sparse.sampled_addmm(r,d[0],d[:1]) ; torch.sparse.sampled_addmm(r,r,d)
torch.sparse.sampled_addmm(r,d[:1,:1],d[:1])
c.index_select(1,torch.tensor([-4])) ; c.norm(keepdim=True) ; c.norm(0,dtype=torch.double) ; c.norm(dtype=torch.double)
torch.sparse.mm(c.double(),c.t()) ; c.double()@torch.ones(3,2) ; torch.ones(2,2)@c.double() ; r.double()@r.t()
torch.addmm(torch.ones(2,2).double(),c,torch.ones(3,2)) ; torch.sparse.addmm(torch.ones(2,2),c.double(),torch.ones(3,2))
torch.sparse_csr_tensor(torch.tensor([0,9,1])[::2],torch.tensor([1]),[1.],(1,3),check_invariants=True)
torch.sparse_csr_tensor(torch.tensor([0,1],dtype=torch.int32),torch.tensor([1]),[1.],(1,3),check_invariants=True)
torch.sparse_csc_tensor(torch.tensor([0,1.]),torch.tensor([1.]),[1.],(3,1),check_invariants=True)
torch.sparse_csr_tensor([[0,1]],[[0]],[[1.]],(2,1,3),check_invariants=True)
torch.sparse_bsr_tensor([0,1],[2],torch.ones(1,1,1),(1,2),check_invariants=True)
"""


def outcome(torch, program):
    """Return how the last expression of a program prints, or its error's type and first line."""
    names = {"torch": torch}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(SETUP, names)
        try:
            return repr(eval(program, names))
        except Exception as error:
            kind = NotImplementedError if isinstance(error, NotImplementedError) else type(error)
            return kind.__name__, str(error).split("\n")[0].split(". This could be")[0]


def programs(text):
    return [program.strip() for line in text.strip().splitlines() for program in line.split(" ; ")]


@pytest.mark.parametrize("text", [PARTS, MAKING, CONVERTING, COMPUTING, PRODUCTS, REFUSING],
                         ids="parts making converting computing products refusing".split())
def test_programs(text):
    oracle = pytest.importorskip("torch")
    for program in programs(text):
        assert outcome(tensorgrad, program) == outcome(oracle, program), program
