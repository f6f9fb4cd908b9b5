"""Nested tensors of the layout torch.strided, whose components are of any sizes, beside PyTorch's."""
import io
import warnings

import pytest
from side_by_side import attempt, same
from support import cpu_only

import tensorgrad

pytestmark = cpu_only


def shown(value):
    """A result as numbers and text; a nested one with its sizes, and its steps in the buffer."""
    if getattr(value, "is_nested", False):
        places = [value._nested_tensor_size(), value._nested_tensor_strides(), value._nested_tensor_storage_offsets()]
        return ["nested", *(part.tolist() for part in places), value.is_contiguous(),
                [part.tolist() for part in value.detach().unbind()]]
    if hasattr(value, "tolist"):
        return [tuple(value.shape), value.tolist()]
    return [shown(part) for part in value] if isinstance(value, (list, tuple)) else value


def beside(text):
    """Compare what expressions, apart by ` ; `, come to with both libraries."""
    def program(torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            a, b = torch.arange(6.).reshape(2, 3), torch.arange(20.).reshape(4, 5) - 7

            def nested(*parts, **options):
                return torch.nested.nested_tensor([*parts], **options)

            def grad(function):
                leaves = [a.clone().requires_grad_(), b.clone().requires_grad_()]
                out = function(torch.nested.as_nested_tensor(leaves))
                out = out.to_padded_tensor(0.) if out.is_nested else out
                out.backward(torch.arange(1., out.numel() + 1).reshape(out.shape))
                return [leaf.grad for leaf in leaves]
            n = nested(a, b)
            names = {"torch": torch, "F": torch.nn.functional, "N": nested, "grad": grad, "a": a, "b": b, "n": n,
                     "c": n.transpose(1, 2), "m": nested(a, a.flip(0) * 2, torch.ones(1, 3)), "w": a + 1,
                     "e": torch.nested.nested_tensor([]), "q": nested(torch.tensor(1.), torch.tensor(2.)),
                     "h": nested(torch.ones(2, 2, 3), torch.ones(2, 4, 3))}
            found = []
            for part in text.split(" ; "):
                error = attempt(lambda part=part: found.append(shown(eval(part, names))))
                if error is not None:
                    line = error[1].split("\n")[0].split(". This could")[0]
                    found.append([error[0], line])
            return found
    same(program, rtol=1e-5, atol=1e-6)


PARTS = """
n ; c ; c.contiguous() ; c.clone() ; n[0] ; n[1, 2] ; n[0, 1, 1] ; n[2] ; n[-3] ; n[:] ; n[...] ; n[:, 1] ; n[None] ;
n.select(1, 1) ; n.select(2, -1) ; n.select(1, 3) ; c.select(1, 1) ; n.narrow(0, 1, 1) ; n.narrow(1, 0, 1) ;
n.narrow(0, 0, 3) ; n.size(0) ; n.size(1) ; m.size(-1) ; n.size(3) ; n.size() ; n.stride() ; len(n) ; e.dim() ;
e.numel() ; q ; n.numel() ; str(n.layout) ; repr(n) ; repr(e) ; repr(N(a, requires_grad=True)) ; n.unbind(1) ;
n.values() ; n.is_same_size(n * 2) ; n.is_same_size(m) ; n.is_same_size(torch.ones(2)) ;
torch.ones(2).is_same_size(n) ; n.narrow(0, 0, 1)._base is n ; n.transpose(1, 2)._base is n ;
n.tolist() ; torch.nested.as_nested_tensor(torch.ones(2, 3)).unbind() ; N(a, a[0]) ; N([[1.], [2., 3.]], [[4., 5.]]) ;
N(3, 4) ; torch.nested.as_nested_tensor(w)._base is w ; torch.nested.narrow(w, 0, 0, 1) ; torch.nested.narrow(w, 1, 0,
1)
"""
ELEMENTS = """
n.abs() ; c.abs() ; n > 1 ; c > 1 ; n * 2 ; c / 2 ; n + n ; c + c ; n + c ; n + m ; n * m ; n * torch.ones(2) ; c / c
; torch.ones(2) * n ; n + torch.tensor(1.) ; n.clone().add_(n) ; n.clone().mul_(2) ; n.clone().mul_(torch.ones(2)) ; c
- c ; n.clone().fill_(3) ; n.clone().fill_(torch.ones(1)) ; n.clone().copy_(m) ; n.clone().copy_(n * 2) ; n.mT ; n.T ;
torch.zeros_like(n) ; torch.ones_like(c) ; torch.empty_like(c).is_contiguous() ; n.to(torch.float64) ; n.cpu() is n ;
n.sum(-1, keepdim=True) ; n.sum(-1) ; n.sum(1, keepdim=True) ; n.sum((1, 2), keepdim=True) ; c.sum(-1, keepdim=True) ;
n.masked_fill(n > 2, 0.) ; n.clone(memory_format=torch.channels_last) ; F.dropout(c, 0.) ; n.cumsum(1) ;
n.half().dtype is n
"""
LAYERS = """
n.softmax(-1) ; n.softmax(1) ; n.softmax(0) ; n.softmax(3) ; c.softmax(1) ; F.linear(m, w) ; F.linear(m, w,
torch.ones(2)) ; F.linear(n, w) ; F.linear(m.transpose(1, 2), w) ; F.linear(m, torch.ones(2, 4)) ; F.linear(e, w) ;
F.linear(m, m) ; F.layer_norm(m, (3,), torch.ones(3), torch.zeros(3)) ; F.layer_norm(n, (3,), torch.ones(3),
torch.zeros(3)) ; F.layer_norm(m, (4,), torch.ones(4), torch.zeros(4)) ; n @ c ; torch.bmm(n, c) ; torch.bmm(n, n) ; n
@ n ; m @ w ; w @ m ; torch.bmm(n, torch.ones(2, 3, 2)) ; torch.bmm(e, e) ; torch.bmm(m, c) ; e @ e ; n @ N(a.t()) ;
torch.bmm(n, a) ; F.embedding(N(torch.tensor([1, 0]), torch.tensor([1])), w) ; F.scaled_dot_product_attention(m, m, m)
; F.scaled_dot_product_attention(h, h, h) ; F.scaled_dot_product_attention(h, h, h, is_causal=True) ;
F.scaled_dot_product_attention(c, c, c) ; N(torch.ones(2, 1, 3), torch.ones(1, 1, 3)) @ w.t()
"""
MOVES = """
m.chunk(3, -1) ; m.chunk(2, -1) ; m.chunk(3, 1) ; c.chunk(1, -1) ; m.split([1, 2], -1) ; m.split([1, 1], -1) ;
m.split([1, 2], 1) ; m.chunk(3, -1)[1].contiguous() ; m.chunk(3, -1)[0] / m.chunk(3, -1)[1] ; m.chunk(3, -1)[1] * 2 ;
n.transpose(0, 1) ; n.transpose(1, 5) ; n.squeeze(0) ; n.squeeze(1) ; N(w[:1], b[:1]).squeeze(1) ; n.unsqueeze(0) ;
n.unsqueeze(1) ; n.unsqueeze(-1) ; c.unsqueeze(1) ; n.unsqueeze(9) ; m.view(3, -1, 3, 1) ; m.view(3, -1, -1) ;
m.view(2, -1, 3) ; m.reshape(3, -1) ; c.reshape(2, -1, -1) ; m.view(3, -1, 3, -1) ; m.reshape(3, -1, -1, -1) ;
m.view(3, 6) ; e.view(0) ; N(a, a + 1).transpose(1, 2).reshape(2, 1, 6) ; N(a, a + 1).transpose(1, 2).view(2, 1, 6) ;
torch.cat([n, m]) ; torch.cat([m, m * 2], -1) ; torch.cat([m, w], -1) ; torch.cat([n, n], -1) ; torch.cat([m, n], -1)
; torch.cat([c, c]) ; n.to_padded_tensor(9.) ; torch.nested.to_padded_tensor(n, 9., (2, 4, 6)) ;
c.to_padded_tensor(0.) ; h.to_padded_tensor(7.) ; torch.nested.to_padded_tensor(n, 9., (2, 4, 4)) ;
torch.nested.to_padded_tensor(n, 0., (4, 6)) ; N(a[:0]).to_padded_tensor(0.) ; torch._nested_tensor_from_mask(h[0],
torch.tensor([[True, False], [True, True]])) ; torch._nested_tensor_from_mask(h[0], torch.tensor([[False, True],
[True, True]])) ; torch._nested_from_padded(torch.arange(12.).reshape(2, 3, 2), torch.tensor([[1, 2], [3, 1]])) ;
torch._nested_view_from_buffer(a.view(-1), torch.tensor([[1, 2], [2, 2]]), torch.tensor([[2, 1], [1, 2]]),
torch.tensor([0, 2]))
"""
GRADIENTS = """
grad(lambda x: x * x) ; grad(lambda x: x.transpose(1, 2).contiguous()) ; grad(lambda x: x.softmax(1)) ; grad(lambda x:
x[1]) ; grad(lambda x: x @ x.transpose(1, 2)) ; grad(lambda x: x.sum(-1, keepdim=True)) ; grad(lambda x: x.values()) ;
grad(lambda x: x.masked_fill(x > 2, 0.)) ; grad(lambda x: x.transpose(1, 2).unbind()[0]) ; grad(lambda x: x.abs() - x
/ 2)
"""


@pytest.mark.parametrize("text", [PARTS, ELEMENTS, LAYERS, MOVES, GRADIENTS],
                         ids="parts elements layers moves gradients".split())
def test_expressions(text):
    beside(" ".join(text.split()))


def test_modules_and_gradients():
    """Attention and encoder layers give the results of single components; gradients of nested tensors are nested."""
    torch = tensorgrad
    torch.manual_seed(0)
    parts, layer = [torch.randn(n, 4) for n in (2, 5)], torch.nn.TransformerEncoderLayer(4, 2, 8, 0., batch_first=True)
    x = torch.nested.nested_tensor(parts)
    with pytest.raises(AssertionError, match="outside of its fast path.*training is enabled"):
        layer(x)
    layer.eval()
    with torch.no_grad():
        for module in (layer, lambda t: layer.self_attn(t, t, t, need_weights=False)[0]):
            for part, out in zip(parts, module(x).unbind(), strict=True):
                torch.testing.assert_close(out, module(part.unsqueeze(0)).squeeze(0), atol=1e-5, rtol=1e-5)
    for layout in (torch.strided, torch.jagged):
        x = torch.nested.nested_tensor(parts, layout=layout, requires_grad=True)
        (found,) = torch.autograd.grad((x * x).to_padded_tensor(0.).sum(), x)
        for part, gradient in zip(parts, found.unbind(), strict=True):
            assert torch.equal(gradient, part * 2)
        assert f"{x}" == repr(x)
    torch.testing.assert_close(x, x)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_files_go_both_ways():
    torch = pytest.importorskip("torch")
    for source, target in ((torch, tensorgrad), (tensorgrad, torch)):
        x = source.nested.nested_tensor([source.arange(6.).reshape(2, 3), source.ones(1, 4)]).transpose(1, 2)
        file = io.BytesIO()
        source.save({"x": x, "y": source.ones(2)}, file)
        file.seek(0)
        assert shown(target.load(file)["x"]) == shown(x)


def test_components_stay_inside_of_the_buffer():
    """A file cannot describe components that reach beyond it."""
    sizes, steps = tensorgrad.tensor([[2, 3]]), tensorgrad.tensor([[3, 1]])
    for start, count in ((1, 6), (-1, 9), (0, 5)):
        with pytest.raises(RuntimeError, match="inside of its buffer"):
            tensorgrad._nested_view_from_buffer(tensorgrad.zeros(count), sizes, steps, tensorgrad.tensor([start]))
    x = tensorgrad.nested.nested_tensor([tensorgrad.ones(2, 3)])
    x._starts = x._starts + 4
    file = io.BytesIO()
    tensorgrad.save(x, file)
    file.seek(0)
    with pytest.raises(Exception, match="inside of its buffer"):
        tensorgrad.load(file)
