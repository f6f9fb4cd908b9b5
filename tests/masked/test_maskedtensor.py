"""MaskedTensor: results, masks, gradients, printing and errors, beside PyTorch's."""
import warnings

import pytest
from side_by_side import attempt, same
from support import fresh_process

VALID = [True, False, True]


def shown(value):
    """The text of a result, with each plain tensor as a list."""
    if isinstance(value, (list, tuple)):
        return [shown(part) for part in value]
    return repr(value) if type(value).__name__ == "MaskedTensor" else str(value.tolist() if hasattr(value, "tolist")
                                                                           else value)


def beside(function):
    """Compare what `function(torch, x, mask)` returns or raises for a MaskedTensor x."""
    def program(torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mask = torch.tensor(VALID)
            x = torch.masked.masked_tensor(torch.tensor([1., 2., 3.]), mask)
            return attempt(lambda: shown(function(torch, x, mask)))
    same(program)


UNARY = """abs acos angle asin asinh atan atanh ceil conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2
expm1 fix floor frac lgamma log log10 log1p log2 logit isnan nan_to_num neg positive reciprocal round rsqrt sigmoid sign
sgn signbit sin sinc sinh sqrt square tan tanh trunc""".split()
BINARY = """add atan2 div floor_divide fmod logaddexp mul nextafter remainder sub eq ne le ge gt lt maximum minimum fmax
fmin""".split()


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_each_element(name):
    beside(lambda torch, x, mask: getattr(torch, name)(x / 4))
    if name not in ("angle", "isnan", "signbit", "positive"):
        beside(lambda torch, x, mask: [y := x / 4, getattr(y, f"{name}_")() is y, y])


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two(name):
    beside(lambda torch, x, mask: [getattr(torch, name)(x, other) for other in (x * x, torch.tensor([2., 2., 2.]))])


@pytest.mark.parametrize("name", "sum mean amin amax argmin argmax prod all var std".split())
def test_reductions(name):
    def table(torch):
        return torch.masked.masked_tensor(torch.arange(1., 13).reshape(3, 4),
                                          torch.tensor([[1, 0, 1, 1], [0, 0, 0, 0], [0, 1, 1, 0]]).bool())
    beside(lambda torch, x, mask: [getattr(torch, name)(table(torch)), getattr(table(torch), name)(1),
                                   getattr(table(torch), name)(dim=0, keepdim=True)])


FORMS = {
    "operators": lambda torch, x, mask: [1 + x, x - 1, 2 / x, x ** 2, -x, abs(x), x < 2, x == x, x // 2, x % 2],
    "views": lambda torch, x, mask: [x.reshape(3, 1), x[0], x[:2], x[mask], x.unsqueeze(0), x.narrow(0, 0, 2),
                                     x.chunk(2), x.expand(2, 3), x.view(1, 3), x.split(2), x.unfold(0, 2, 1),
                                     x.reshape(3, 1).t(),
                                     torch.cat([x, x]), torch.stack([x, x]), torch.vstack([x, x]), x.transpose(0, 0),
                                     torch.flatten(x), torch.meshgrid(x, x, indexing="ij"),
                                     torch.broadcast_to(x, (2, 3)),
                                     torch.nn.functional.unfold(x.reshape(1, 1, 1, 3), (1, 2))],
    "copies": lambda torch, x, mask: [x.double(), x.to(torch.int64), x.bool(), x.clone(), torch.ones_like(x), x.data],
    "a detached copy": lambda torch, x, mask: [x.detach().exp_(), x],
    "facts": lambda torch, x, mask: [x.shape, len(x), x.ndim, str(x.dtype)[6:], x.stride(), x.is_contiguous(),
                                     x.is_leaf, x.requires_grad, torch.masked.is_masked_tensor(x),
                                     torch.masked.is_masked_tensor(mask)],
    "values": lambda torch, x, mask: [x.get_data(), x.get_mask(), x.to_tensor(-1), x[0].item(), float(x.sum())],
    "softmax": lambda torch, x, mask: [torch.softmax(x, 0), x.softmax(-1), torch.nn.functional.softmax(x, dim=0)],
    "where": lambda torch, x, mask: [torch.where(mask, x, -x), torch.where(x.get_data() > 2, x, torch.zeros(3))],
    "copy_": lambda torch, x, mask: x.clone().copy_(x + 1),
    "functions of torch.masked": lambda torch, x, mask: [torch.masked.sum(x), torch.masked.softmax(x, 0),
                                                         torch.masked.amax(x, 0), torch.masked.median(x),
                                                         torch.masked.norm(x), torch.masked.cumsum(x, 0)],
    "printing": lambda torch, x, mask: [torch.masked.masked_tensor(torch.arange(24).reshape(2, 3, 4),
                                                                   torch.arange(24).reshape(2, 3, 4) % 2 == 0),
                                        torch.masked.masked_tensor(torch.tensor([True, False]), mask[1:]),
                                        torch.masked.masked_tensor(torch.tensor(1), torch.tensor(False))],
    "masks differ": lambda torch, x, mask: x + torch.masked.masked_tensor(torch.ones(3), ~mask),
    "copy_ of another mask": lambda torch, x, mask: x.copy_(torch.masked.masked_tensor(torch.ones(3), ~mask)),
    "tolist": lambda torch, x, mask: x.tolist(),
    "numpy": lambda torch, x, mask: x.numpy(),
    "item": lambda torch, x, mask: x.item(),
    "no tensor": lambda torch, x, mask: torch.masked.masked_tensor([1.], mask),
    "no mask": lambda torch, x, mask: torch.masked.masked_tensor(torch.ones(3), VALID),
    "masked twice": lambda torch, x, mask: torch.masked.masked_tensor(x, mask),
    "mask of numbers": lambda torch, x, mask: torch.masked.masked_tensor(torch.ones(3), torch.ones(3)),
    "shapes differ": lambda torch, x, mask: torch.masked.masked_tensor(torch.ones(3), mask[:2]),
    "axes differ": lambda torch, x, mask: torch.masked.as_masked_tensor(torch.ones(3), mask[None]),
    "complex": lambda torch, x, mask: torch.masked.masked_tensor(torch.ones(3) * 1j, mask),
    "bfloat16": lambda torch, x, mask: x.to(torch.bfloat16),
    "three of where": lambda torch, x, mask: torch.where(x),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form):
    beside(FORMS[form])


@pytest.mark.parametrize("name", ["relu", "cumsum", "squeeze", "max"])
def test_functions_without_a_rule_are_refused(name):
    def program(torch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            x = torch.masked.masked_tensor(torch.tensor([1., 2., 3.]), torch.tensor(VALID))
            error = attempt(lambda: getattr(torch, name)(x, *[0] * (name == "cumsum")))
            says = "is not implemented in __torch_dispatch__ for MaskedTensor"
            return error[0], error[1].partition(".default'")[0], any(says in str(w.message) for w in caught)
    same(program)


def test_invalid_element_has_no_number():
    beside(lambda torch, x, mask: attempt(x[1].item)[0])
    beside(lambda torch, x, mask: attempt(lambda: bool(x[1]))[0])


def test_warnings():
    def program(torch):
        x = torch.ones(3, requires_grad=True)
        return torch.masked.masked_tensor(x, torch.tensor(VALID)).get_mask()
    same(program)


def test_gradients():
    """Gradients are MaskedTensors with the input's mask; valid elements have PyTorch's values."""
    def program(torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = torch.masked.masked_tensor(torch.tensor([1., float("nan"), 3.]), torch.tensor(VALID), True)
            (x * x).sum().backward()
            y = torch.masked.masked_tensor(torch.tensor([1., 2., 3.]), torch.tensor(VALID), requires_grad=True)
            (torch.softmax(y, 0) * torch.tensor([1., 2., 5.])).sum().backward()
            w = torch.tensor([1., 2., 3.], requires_grad=True)
            torch.masked.as_masked_tensor(w * 2, torch.tensor(VALID)).mean().backward()
            plain = w.grad.get_data() if torch.masked.is_masked_tensor(w.grad) else w.grad      # PyTorch masks it
            return [shown(g) for g in (x.grad, y.grad)], plain[torch.tensor(VALID)].tolist()
    same(program)


def test_methods_do_not_ask_before_the_class_is_used():
    """`torch.masked` and `torch.nested` alone cost the methods of other tensors nothing."""
    assert fresh_process("import tensorgrad as torch\n"
                         "torch.nested\n"
                         "torch.masked.sum(torch.ones(3), mask=torch.tensor([True, False, True]))\n"
                         "print(type(vars(torch.Tensor)['sum']).__name__)\n"
                         "torch.masked.MaskedTensor\n"
                         "print(type(vars(torch.Tensor)['sum']).__name__)").split()[1] == "AskingMethod"


def test_operators_of_aten_ask_the_class_once():
    import tensorgrad
    from tensorgrad._ops import ops
    with warnings.catch_warnings(action="ignore"):
        x = tensorgrad.masked.masked_tensor(tensorgrad.tensor([1., -2.]), tensorgrad.tensor([True, False]))
        assert repr(ops.aten.abs(x)) == repr(ops.aten.abs.default(x)) == repr(x)
        assert ops.aten.neg_(x) is x and x[0].item() == -1


def test_sparse_values():
    """Sparse values keep their indices, and the mask has an element for each value."""
    def program(torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data, valid = torch.tensor([[1., 2, 0], [3, 4, 5]]), torch.tensor([[1, 0, 1], [0, 1, 1]]).bool()
            found = []
            for convert in ("to_sparse", "to_sparse_csr"):
                mask = getattr(valid, convert)()
                x = torch.masked.masked_tensor(data.sparse_mask(mask), mask)
                for function in (lambda x: x, torch.exp, lambda x: x + x, lambda x: 2 * x, lambda x: x == x, torch.sum,
                                 torch.mean, torch.amax, lambda x: torch.sum(x, 0), lambda x: x.to_dense(),
                                 lambda x: x.clone(), lambda x: x.is_sparse, lambda x: x + x.get_data()):
                    found.append(attempt(lambda x=x, f=function: found.append(repr(f(x)))))
                w = data.clone().requires_grad_()
                dense = getattr(torch.masked.as_masked_tensor(w, valid), convert)().exp().to_dense()
                dense.sum().backward()
                plain = w.grad.get_data() if torch.masked.is_masked_tensor(w.grad) else w.grad      # PyTorch masks it
                found.append(plain[valid].tolist())
            found.append(attempt(lambda: torch.masked.masked_tensor(data.to_sparse_csc(), valid.to_sparse_csc())))
            found.append(attempt(lambda: torch.masked.masked_tensor(data.to_sparse(), valid)))
            return found
    same(program)
