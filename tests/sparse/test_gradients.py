"""Gradients through sparse tensors: against central differences, against PyTorch's, and of gradients."""
import warnings

import numpy as np
import pytest
from support import cpu_only

import tensorgrad

pytestmark = [cpu_only, pytest.mark.filterwarnings("ignore:Sparse")]
check = tensorgrad.sparse.as_sparse_gradcheck(tensorgrad.autograd.gradcheck)
check_second = tensorgrad.sparse.as_sparse_gradcheck(tensorgrad.autograd.gradgradcheck)
OF_SPARSE = """
s * 2 ; s / 3 ; -s ; s + s ; s - s * 2 ; s * s ; s * d ; d + s ; s.abs() ; s.sin() ; s.tanh() ; s ** 2 ; s.sum()
s.sum(0)
s.sum(1) ; s.norm() ; s.t() ; s @ m ; s.t() @ m4 ; m4.t() @ s ; s @ s.t() ; s @ m[:, 0] ; s.coalesce().values() * 2
s[1]
torch.cat([s, s], 1) ; torch.stack([s, s]) ; s.index_select(0, i) ; s.index_select(1, i) ; s.unsqueeze(0)
s.to_sparse_csr()
s.to_sparse_csc() ; s.to_sparse_bsr((2, 3)) ; s.to_sparse_csr() @ m ; s.clone() ; s.narrow_copy(1, 1, 2)
s.sparse_mask(mask)
torch.sparse.softmax(s, 1) ; torch.sparse.log_softmax(s, 0) ; torch.sparse.mm(s.to_sparse_csr(), m, 'mean')
torch.smm(s, m)
torch.sparse.mm(s.to_sparse_csr(), m, 'amax') ; torch.bmm(torch.stack([s, s * 2]), torch.stack([m, m]))
s.to_dense() ** 2
torch.sparse.sampled_addmm(s.to_sparse_csr(), m4, m.t(), beta=0.5, alpha=3) ; torch.addmm(m4, s, m, beta=2, alpha=3)
"""
OF_DENSE = """
d.to_sparse() ; d.to_sparse_csr() ; d.to_sparse(1) ; d.to_sparse_bsr((2, 3)) ; d.sparse_mask(mask) ; fixed * d
fixed @ m
m4.t() @ fixed ; fixed.to_sparse_csr() @ m ; d + fixed ; torch.sparse.sampled_addmm(fixed.to_sparse_csr(), m4, m.t())
torch.sparse.mm(fixed.to_sparse_csr(), m, 'amin')
torch.sparse_coo_tensor([[0, 2, 0], [1, 1, 1]], v, (3, 2)) @ m4.t()[:2]
torch.sparse_coo_tensor([[0, 2, 0], [1, 1, 1]], v, (3, 2)).coalesce().values() ** 2 ; torch.hspmm(fixed, m)
torch.sparse_csr_tensor([0, 1, 3], [2, 0, 2], v, (2, 3)) @ m
torch.sparse.spdiags(m.t(), torch.tensor([0, 1, -1]), (3, 3))
torch.sparse_csr_tensor([0, 3], [2, 0, 2], v, (1, 3)) @ m ; torch.nn.functional.linear(fixed, d[:2], m[:2, 0])
"""


def programs(text):
    return [p.strip() for line in text.strip().splitlines() for p in line.split(" ; ")]


def operands(torch, places=((3, 0, 0, 1, 0), (0, 2, 0, 1, 2))):
    rng = np.random.default_rng(3)
    def numbers(*shape): return torch.tensor(rng.uniform(0.4, 1.6, shape))
    s = torch.sparse_coo_tensor(places, numbers(len(places[0])), (4, 3))
    mask = torch.sparse_coo_tensor([[0, 1, 3], [0, 1, 1]], torch.ones(3).double(), (4, 3)).coalesce()
    return {"torch": torch, "s": s, "d": numbers(4, 3), "m": numbers(3, 3), "m4": numbers(4, 3), "v": numbers(3),
            "mask": mask, "i": torch.tensor([2, 0, 0]), "fixed": s.detach()}


@pytest.mark.parametrize("program", programs(OF_SPARSE))
def test_with_respect_to_values(program):
    """The values that there are vary, of a tensor that is coalesced, and of one that is not."""
    for coalesced in (True, False):
        names = operands(tensorgrad)
        def f(s, m, m4, d, names=names): return eval(program, names | {"s": s, "m": m, "m4": m4, "d": d})
        s = names["s"].coalesce() if coalesced else names["s"]
        inputs = s.requires_grad_(), *(names[n].requires_grad_() for n in ("m", "m4", "d"))
        assert check(f, inputs, masked=True, fast_mode=coalesced)
        assert coalesced or check_second(f, inputs, masked=True, fast_mode=True)


@pytest.mark.parametrize("program", programs(OF_DENSE))
def test_with_respect_to_dense_operands(program):
    names = operands(tensorgrad)
    wanted = ["d", "m", "m4", "v"]
    def f(*dense): return eval(program, names | dict(zip(wanted, dense, strict=True)))
    assert check(f, [names[n].requires_grad_() for n in wanted])
    assert check_second(f, [names[n].requires_grad_() for n in wanted], fast_mode=True)


def test_csr_leaves():
    x = tensorgrad.sparse_csr_tensor([0, 2, 2, 3], [2, 0, 1], tensorgrad.tensor([1., 2., 3.]).double(), (3, 3))
    m = tensorgrad.arange(6.).double().reshape(3, 2).requires_grad_()
    for f in (lambda x, m: x @ m, lambda x, m: x.t() @ m, lambda x, m: (x * 2).values(), lambda x, m: x @ x):
        assert check(f, (x.requires_grad_(), m), masked=True) and check_second(f, (x, m), masked=True)


@pytest.mark.parametrize("program", programs("""
s @ m ; s.to_dense() ; s * 2 ; -s ; s * d ; s + s ; torch.sparse.sum(s, 0) ; torch.sparse.softmax(s, 1)
torch.sparse.mm(s, m)
s @ s.t() ; s.t() ; s.coalesce().values() ; s.to_sparse_csr() ; s.to_sparse_csc().to_dense() ; s.abs() ; s ** 2
torch.sparse.addmm(m4, s, m, beta=2, alpha=3) ; m4.t() @ s ; s.mv(m[:, 0]) ; s.clone() ; torch.sparse.sum(s)
"""))
def test_beside_pytorch(program):
    """At the places of the tensor, gradients are PyTorch's; some of those are dense, ours never are."""
    oracle = pytest.importorskip("torch")
    found = []
    for torch in (tensorgrad, oracle):
        names = operands(torch, ((0, 0, 1, 3), (0, 2, 1, 0)))
        leaves = [names[n].requires_grad_() for n in ("m", "m4", "d")]
        s = names["s"] = names["s"].coalesce().requires_grad_()
        out = eval(program, names)
        out = out if out.layout is torch.strided else out.to_dense()
        (out * torch.arange(out.numel()).reshape(tuple(out.shape)).double().cos()).sum().backward()
        gradient = s.grad.sparse_mask(s.detach()).to_dense()
        found.append([np.array(gradient.tolist()),
                      *(np.array(t.grad.to_dense().tolist()) for t in leaves if t.grad is not None)])
        if torch is tensorgrad:
            assert s.grad.layout is torch.sparse_coo
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_gradients_at_all_places_if_asked_for():
    x = tensorgrad.tensor([[0., 2.], [3., 0.]]).to_sparse().requires_grad_()
    weights = tensorgrad.tensor([[1., 2.], [0., 4.]])
    (x.to_dense(masked_grad=False) * weights).sum().backward()
    assert x.grad.to_dense().tolist() == [[1., 2.], [0., 4.]] and x.grad._nnz() == 3
    x.grad = None
    (x.to_dense() * weights).sum().backward()
    assert x.grad.to_dense().tolist() == [[0., 2.], [0., 0.]] and x.grad._nnz() == 2


def test_a_write_to_a_saved_tensor_is_noticed():
    x = tensorgrad.eye(2).to_sparse()
    m = tensorgrad.ones(2, 2, requires_grad=True)
    y = x * 2 @ m
    x.mul_(3)
    y.sum().backward()          # the product keeps its own values
    assert m.grad.tolist() == [[2., 2.], [2., 2.]]
    leaf = tensorgrad.eye(2).to_sparse().requires_grad_()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        leaf.mul_(2)


def test_hooks_get_sparse_gradients():
    seen = []
    x = tensorgrad.eye(2).to_sparse().requires_grad_()
    x.register_hook(lambda g: seen.append(g.layout) or g * 3)
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    assert seen == [tensorgrad.sparse_coo]
    assert x.grad.to_dense().tolist() == [[6., 0.], [0., 6.]] and y.grad.layout is tensorgrad.sparse_coo
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = tensorgrad.autograd.grad((x * x).to_dense().sum(), x, create_graph=True)
    assert found.layout is tensorgrad.sparse_coo and found.requires_grad
