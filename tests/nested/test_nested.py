"""Nested tensors: results, gradients, printing and errors, beside PyTorch's."""
import re
import warnings

import pytest
from side_by_side import attempt, same
from support import cpu_only

import tensorgrad

pytestmark = cpu_only


def shown(value):
    """A result as numbers and text; ragged axes are all called j."""
    if hasattr(value, "unbind") and getattr(value, "is_nested", False):
        parts = [part.tolist() for part in value.detach().unbind()]
        ragged_idx = value._ragged_idx if "jagged" in str(value.layout) else 0
        return ["nested", str(value.layout), value.ndim, ragged_idx, parts]
    if hasattr(value, "tolist"):
        return [tuple(value.shape), value.tolist()]
    if isinstance(value, (list, tuple)) and "Size" not in type(value).__name__:
        return [shown(part) for part in value]
    return re.sub(r"j\d+", "j", str(value)) if not isinstance(value, (bool, int, float)) else value


def beside(text, layout="jagged"):
    """Compare what expressions, apart by ` ; `, come to with both libraries."""
    def program(torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            names = {"torch": torch, "F": torch.nn.functional, "w": torch.arange(6.).reshape(2, 3) / 4}

            def make(**more):
                parts = [torch.arange(6.).reshape(2, 3), torch.arange(6., 15.).reshape(3, 3)]
                return torch.nested.nested_tensor(parts, layout=getattr(torch, layout), **more)

            def grad(function):
                leaf = make(requires_grad=True)
                function(leaf).backward()
                return leaf.grad
            names |= {"make": make, "x": make(), "grad": grad}
            found = []
            for part in text.split(" ; "):
                error = attempt(lambda part=part: found.append(shown(eval(part, names))))
                if error is not None:
                    found.append([error[0], re.sub(r"j\d+", "j", error[1])])
            return found
    same(program)


PARTS = """
x.shape ; x.size(0), x.size(2), x.size(-1) ; x.dim(), x.numel(), x.dtype, x.layout, x.is_nested, len(x) ; x.values() ;
x.offsets() ; x.lengths() ; x.unbind() ; x[0] ; x[-1] ; x[2] ; x[0, 1] ; [t for t in x] ; x.is_contiguous() ; repr(x)
; repr(make(requires_grad=True)) ; x.to_padded_tensor(7.) ; torch.nested.to_padded_tensor(x, 0., (2, 4, 3)) ;
x.is_same_size(torch.ones(2)) ; torch.ones(2).is_same_size(x) ;
x.unbind(1) ; x.tolist() ; x.item() ; x.shape == (x * 2).shape, x.shape[1] == 3, x.shape[1] > 1, x.shape[1] < 2 ;
x.size(3)
"""
ELEMENTS = """
x + x ; 1 - x ; x * torch.tensor([1., 2., 3.]) ; x * torch.tensor([[[1.]], [[2.]]]) ; x + torch.ones(2, 3, 3) ; x > 3
; x ** 2 ; x / x.size(0) ; torch.where(x > 3, x, 0.) ; x.masked_fill(x > 3, 0.) ; x.clone().add_(1) ;
x.clone().mul_(x) ; x.clamp(2, 5) ; torch.relu(x) ; F.gelu(x) ; F.dropout(x, 0.) ; x.to(torch.float64) ; x.int() ;
torch.full_like(x, 3.) ; torch.zeros_like(x) ; x + make() ; torch.tensor([1., 2., 3.]) - x ; x.nonzero() ;
x.clone().fill_(2) ; torch.isnan(x)
"""
LAYERS = """
F.linear(x, w) ; F.linear(x, w, torch.tensor([1., 2.])) ; x @ w.t() ; torch.matmul(x, torch.ones(2, 3, 4)) ;
torch.matmul(x.transpose(1, 2), x) ; F.layer_norm(x, (3,)) ; F.layer_norm(x, (2, 3)) ; torch.softmax(x, 2) ;
torch.softmax(x, 1) ; F.layer_norm(x, x.shape[1:]) ; F.layer_norm(x, x.shape) ; torch.softmax(x.transpose(1, 2), 2) ;
torch.bmm(x, x.unsqueeze(1)) ; F.scaled_dot_product_attention(x, x, w) ; F.rms_norm(x, x.shape[1:]) ; x * x.size(1) ;
x + torch.nested.nested_tensor_from_jagged(x.values(), x.offsets()) ; torch.softmax(x, 0) ; torch.log_softmax(x, -1) ;
F.rms_norm(x, (3,)) ; torch.nn.Linear(3, 2)(x).shape ; torch.nn.LayerNorm(3)(x) ;
F.embedding(torch.nested.nested_tensor([torch.tensor([1]), torch.tensor([0, 1])], layout=torch.jagged), w)
"""
MOVES = """
x.transpose(1, 2) ; x.transpose(0, 1) ; x.unsqueeze(1) ; x.unsqueeze(-1).squeeze(-1) ; x.unsqueeze(0) ; x.view(2, -1,
3, 1) ; x.reshape(2, -1, 1, 3) ; x.unflatten(-1, (1, 3)) ; x.unsqueeze(-1).flatten(2) ; x.flatten(0, 1) ; x.view(6, 5)
; x.permute(0, 2, 1) ; x.unsqueeze(-1).expand(-1, -1, -1, 2) ; x.chunk(3, -1) ; x.chunk(2, 0) ; x.split([1, 2], -1) ;
x.select(2, 1) ; x.select(1, 1) ; x[..., 0:2] ; x[0:1] ; torch.cat([x, x], -1) ; torch.cat([x, x], 0) ;
torch.stack([x, x], -1) ; x.T ; x.narrow(2, 0, 2) ; x.mT ; x.reshape(-1, -1, 1, 3) ; x.view(-1, -1, 3, 1) ;
x.transpose(1, 2).view(2, 3, -1) ; x.transpose(1, 2).reshape(2, 3, x.size(1)) ; x.split([1, 2], 1) ; x.permute(0, 2) ;
x.permute(0, 1, 1) ; str(x.stride()) ; str(x.transpose(1, 2).stride()) ; x.transpose(1, 2).clone().is_contiguous() ;
x.to(torch.float32) is x ; x.type()
"""
GRADIENTS = """
grad(lambda y: (y * y).sum()) ; grad(lambda y: (y.to_padded_tensor(3.) * torch.arange(18.).reshape(2, 3, 3)).sum()) ;
grad(lambda y: F.linear(y, w).to_padded_tensor(0.).pow(2).sum()) ; grad(lambda y: y.unbind()[1].pow(2).sum()) ;
grad(lambda y: (torch.softmax(y, -1) * y).to_padded_tensor(0.).pow(2).sum())
"""


@pytest.mark.parametrize("text", [PARTS, ELEMENTS, LAYERS, MOVES, GRADIENTS],
                         ids="parts elements layers moves gradients".split())
def test_expressions(text):
    beside(" ".join(text.split()))


def test_reductions():
    for name in "sum mean amax any all max argmin".split():
        dims = ["", ", 2", ", 2, keepdim=True", ", 1", ", 1, keepdim=True", ", 0"]
        dims += [", (0, 1)", ", (0, 1, 2)"] if name in ("sum", "mean", "amax") else []
        beside(" ; ".join(f"torch.{name}(x{dim})" for dim in dims))
    beside("torch.sum(x, (1, 2)) ; torch.amax(x, (1, 2))")


def test_strided_layout():
    """Strided nested tensors have no shape, and another repr."""
    beside("x.shape ; x.size(0), x.size(2) ; x.size(1) ; x.dim() ; repr(x) ; repr(make(requires_grad=True)) ; x * 2 ; "
           "x + make() ; x.to_padded_tensor(0., (2, 4, 4)) ; x.to_padded_tensor(0., (2, 1, 3)) ; F.linear(x, w) ; "
           "torch.softmax(x, -1) ; x.unbind(1) ; len(x) ; grad(lambda y: y.to_padded_tensor(0.).pow(2).sum()) ; x[1]",
           "strided")


MAKING = """
torch.nested.nested_tensor_from_jagged(v, torch.tensor([0, 2, 6])) ; torch.nested.nested_tensor_from_jagged(v,
torch.tensor([0, 2, 6]), torch.tensor([1, 3])) ; torch.nested.nested_tensor_from_jagged(v, lengths=torch.tensor([2,
4])) ; torch.nested.nested_tensor_from_jagged(v) ; torch.nested.nested_tensor_from_jagged(v.t(), torch.tensor([0, 2,
6]), jagged_dim=2) ; torch.nested.nested_tensor([[1., 2.], [3.]], layout=torch.jagged) ;
torch.nested.nested_tensor(3.) ; torch.nested.nested_tensor([torch.ones(2), torch.ones(2, 2)], layout=torch.jagged) ;
torch.nested.nested_tensor([torch.ones(2), torch.ones(2).int()], layout=torch.jagged) ;
torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(2, 4)], layout=torch.jagged) ;
torch.nested.as_nested_tensor(5.) ; torch.nested.nested_tensor([torch.ones(2)], layout=torch.sparse_coo) ;
torch.nested.as_nested_tensor(holes) is holes ; torch.nested.as_nested_tensor(torch.ones(2, 3, 4),
layout=torch.jagged) ; repr(holes) ; holes.contiguous() ; holes * 2 ; holes.to_padded_tensor(0.) ; holes.sum(1) ;
holes.numel() ; torch.softmax(holes, 1) ; torch.nested.narrow(v.reshape(2, 3, 2), 1, torch.tensor([0, 1]),
torch.tensor([1, 2]), layout=torch.jagged) ; torch.nested.narrow(v.reshape(2, 3, 2), 1, 0, 2) ;
torch.nested.masked_select(v, v > 2) ; [p._is_view() and p._base is u for u in [torch.ones(3, 2)] for p in
[torch.nested.as_nested_tensor(u, layout=torch.jagged), torch.nested.nested_tensor_from_jagged(u, torch.tensor([0,
3]))]] ; torch.nested.nested_tensor_from_jagged(v, torch.tensor([0, 2, 6]), max_seqlen=5).to_padded_tensor(0.) ;
sorted(torch.nested.nested_tensor_from_jagged(v, torch.tensor([0, 2, 6]), max_seqlen=5)._metadata_cache) ;
torch.nested.narrow(v.reshape(2, 3, 2), 1, torch.tensor([1, 0]), torch.tensor([2, 2]),
layout=torch.jagged).is_contiguous() ; torch.nested.nested_tensor_from_jagged(v * 1., torch.tensor([0, 2,
6])).transpose(1, 2)._is_view()
"""


def test_making():
    names = "v := torch.arange(12.).reshape(6, 2)", \
        "holes := torch.nested.nested_tensor_from_jagged(v, torch.tensor([0, 2, 6]), torch.tensor([1, 3]))"
    beside(" ; ".join([*(f"[{name}] and None" for name in names), " ".join(MAKING.split())]))


def test_history_of_parts():
    def program(torch):
        a, b = (torch.ones(n, 3, requires_grad=True) for n in (2, 1))
        x = torch.nested.as_nested_tensor([a, b * 2], layout=torch.jagged)
        (x * x * torch.tensor([1., 2., 3.])).values().pow(2).sum().backward()
        return a.grad, b.grad
    same(program)


def test_gradients_of_reductions_along_components():
    """PyTorch has none."""
    torch = tensorgrad
    a, b = torch.tensor([[1., 2.], [3., 5.]], requires_grad=True), torch.tensor([[4., 7.]], requires_grad=True)
    for name in ("sum", "mean", "amax"):
        x = torch.nested.as_nested_tensor([a, b], layout=torch.jagged)
        ours = torch.autograd.grad(getattr(x, name)(dim=1).pow(2).sum(), (a, b))
        each = [getattr(part, name)(dim=0) for part in (a, b)]
        for one, other in zip(ours, torch.autograd.grad(torch.stack(each).pow(2).sum(), (a, b)), strict=True):
            assert torch.equal(one, other), name


def test_attention_has_no_padding():
    """Attention within components has the results of attention on each component alone."""
    torch = tensorgrad
    torch.manual_seed(0)
    parts = [torch.randn(n, 8) for n in (3, 5)]
    leaf = torch.nested.nested_tensor(parts, layout=torch.jagged, requires_grad=True)

    def attended(x, causal):
        h = x.unflatten(-1, (2, 4)).transpose(-2, -3)
        out = torch.nn.functional.scaled_dot_product_attention(h, h * 2, h, is_causal=causal)
        return out.transpose(-2, -3).flatten(-2)
    for causal in (False, True):
        leaf.grad = None
        found = attended(leaf, causal)
        found.pow(2).sum().backward()
        for part, out, gradient in zip(parts, found.unbind(), leaf.grad.unbind(), strict=True):
            part = part.clone().requires_grad_()
            expected = attended(part, causal)
            expected.pow(2).sum().backward()
            assert torch.allclose(out, expected, atol=1e-6) and torch.allclose(gradient, part.grad, atol=1e-5)


def test_copies_and_files(tmp_path):
    import copy
    x = tensorgrad.nested.nested_tensor([[1., 2.], [3.]], layout=tensorgrad.jagged, requires_grad=True)
    tensorgrad.save(x, tmp_path / "x.pt")
    for other in (copy.deepcopy(x), tensorgrad.load(tmp_path / "x.pt", weights_only=False)):
        assert other.requires_grad and shown(other) == shown(x)
