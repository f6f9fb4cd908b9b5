"""x[index], x[index] = value and index_put_, beside PyTorch: parts of every kind mixed by chance, and what goes
wrong.
"""
import random
import warnings

import numpy as np
import pytest
from side_by_side import same
from support import cpu_only

import tensorgrad

WAYS = ("get", "gradient", "number", "tensor", "written gradient", "put", "add")


def part(rng, n, common):
    """Draw a part of an index for an axis of length n: return it as a function of the library, and the number of
    axes it takes."""
    kind = rng.choice(("int", "int", "slice", "slice", "none", "tensor", "tensor", "list", "array", "range", "mask",
                       "bool", "numpy int"))
    place = lambda: rng.randint(-n, n - 1) if n else 0  # noqa: E731
    if kind == "int":
        i = place()
        return (lambda torch: i), 1
    if kind == "numpy int":
        number = np.int64(place())
        return (lambda torch: number), 1
    if kind == "slice":
        bounds = (rng.choice((None, rng.randint(-4, 4))), rng.choice((None, rng.randint(-4, 5))),
                  rng.choice((None, 1, 2, 3)))
        return (lambda torch: slice(*bounds)), 1
    if kind == "none":
        return (lambda torch: None), 0
    if kind == "range":
        return (lambda torch: range(min(n, 1))), 1
    if kind == "bool":
        flag = rng.random() < 0.7
        return (lambda torch: flag), 0
    if kind == "mask":
        mask = [rng.random() < 0.5 for _ in range(n)]
        return (lambda torch: torch.tensor(mask, dtype=torch.bool)), 1
    shape = tuple(d if rng.random() < 0.8 else 1 for d in common)[rng.randint(0, len(common)):]
    places = np.array([place() for _ in range(int(np.prod(shape)))]).reshape(shape)
    dtype = rng.choice(("int64", "int64", "int32", "int16"))
    if kind == "tensor":
        return (lambda torch: torch.tensor(places.tolist(), dtype=getattr(torch, dtype))), 1
    return (lambda torch: places.tolist() if kind == "list" and places.ndim < 2 else places), 1


def drawn(seed):
    """A shape, an index for it, and a way to use it."""
    rng = random.Random(seed)
    shape = [rng.randint(0 if rng.random() < 0.1 else 1, 4) for _ in range(rng.randint(0, 4))]
    common = [rng.randint(1, 3) for _ in range(rng.randint(0, 3))]
    parts, axis = [], 0
    for _ in range(rng.randint(1, len(shape) + 1)):
        if axis < len(shape) or rng.random() < 0.05:
            made, axes = part(rng, shape[axis] if axis < len(shape) else 1, common)
            parts.append(made)
            axis += axes
    if parts and rng.random() < 0.3:
        parts.append(lambda torch: ...)
    return rng, shape, parts, rng.choice(WAYS)


def used(torch, seed):
    rng, shape, parts, way = drawn(seed)
    x = torch.arange(float(np.prod(shape)), dtype=torch.float64).reshape(shape)
    index = tuple(made(torch) for made in parts)
    index = index[0] if len(index) == 1 else index
    count = lambda t: torch.arange(1., t.numel() + 1, dtype=torch.float64).reshape(t.shape)  # noqa: E731
    if way == "get":
        return x[index], x[index]._is_view()
    if way == "gradient":
        x.requires_grad_()
        y = x[index]
        y.backward(count(y))
        return y, x.grad
    if way == "number":
        x[index] = rng.choice((7, 2.5, True))
    elif way in ("tensor", "written gradient"):
        value = -count(x[index])
        value = value[:1] if value.ndim and rng.random() < 0.3 else value[None] if rng.random() < 0.3 else value
        if way == "tensor":
            x[index] = value
        else:
            x.requires_grad_(), value.requires_grad_()
            y = x * 1
            y[index] = value
            (y * count(y)).sum().backward()
            return y, x.grad, value.grad
    else:
        tensors = tuple(i for i in (index if isinstance(index, tuple) else (index,))
                        if isinstance(i, torch.Tensor) and i.ndim)
        if tensors:
            x.index_put_(tensors, torch.tensor(3., dtype=torch.float64), accumulate=way == "add")
    return x


@cpu_only
@pytest.mark.parametrize("start", range(0, 600, 100))
def test_drawn_at_random(start):
    for seed in range(start, start + 100):
        same(lambda torch, seed=seed: used(torch, seed))


def assigned(torch, x, index, value):
    x[index] = value
    return x


X = [[0., 1., 2.], [3., 4., 5.]]

READ = {                                    # what is read from a tensor of 2 × 3 elements
    "outside": lambda torch, x: x[2],
    "outside, second axis": lambda torch, x: x[0, -4],
    "outside, tensor": lambda torch, x: x[torch.tensor([0, 1]), torch.tensor([0, 3])],
    "too many": lambda torch, x: x[0, 0, 0],
    "a float": lambda torch, x: x[1.5],
    "a float tensor": lambda torch, x: x[torch.tensor([1.])],
    "int16": lambda torch, x: x[torch.tensor([1], dtype=torch.int16)],
    "a word": lambda torch, x: x["a"],
    "a dict": lambda torch, x: x[{}],
    "step 0": lambda torch, x: x[::0],
    "step -1": lambda torch, x: x[::-1],
    "a slice of floats": lambda torch, x: x[0.5:],
    "a mask too long": lambda torch, x: x[torch.ones(3, dtype=torch.bool)],
    "a mask too long, after a number": lambda torch, x: x[0, torch.ones(2, dtype=torch.bool)],
    "shapes": lambda torch, x: x[torch.zeros(2, dtype=torch.int64), torch.zeros(3, dtype=torch.int64)],
    "bytes are a mask": lambda torch, x: x[torch.tensor([1, 0], dtype=torch.uint8)],
    "a list of lists is a tuple": lambda torch, x: x[[[0, 1], [2, 0]]],
    "an array of rows is not": lambda torch, x: x[np.array([[0, 1], [1, 0]])],
    "floats in a list": lambda torch, x: x[[0.7, 1.2], 0],
    "two ellipses": lambda torch, x: x[..., 0, ...],
    "no dimension": lambda torch, x: x[0, 0][0],
    "no dimension, slice": lambda torch, x: x[0, 0][:],
    "no dimension, True": lambda torch, x: x[0, 0][True],
    "nothing to read": lambda torch, x: x[:, :0][torch.tensor([7])],
    "nothing to read from": lambda torch, x: x[:, :0][0, torch.tensor([0])],
}
WRITTEN = {
    "a list": (0, lambda torch: [1., 2., 3.]),
    "an array": (0, lambda torch: np.ones(3)),
    "a word": (0, lambda torch: "a"),
    "other dtype, view": (0, lambda torch: torch.tensor([1, 2, 3])),
    "other dtype, tensor": (np.array([0]), lambda torch: torch.tensor([1, 2, 3])),
    "other dtype, one value at a mask": (np.array([True, False]), lambda torch: torch.tensor(7)),
    "shape, view": (0, lambda torch: torch.ones(2)),
    "shape, tensor": (np.array([0]), lambda torch: torch.ones(2)),
    "leading ones": (0, lambda torch: torch.ones(1, 1, 3)),
    "complex": (0, lambda torch: 1j),
    "False": (False, lambda torch: 5),
    "True": (True, lambda torch: 5),
}


@pytest.mark.parametrize("name", READ)
def test_reads(name):
    with warnings.catch_warnings():
        same(lambda torch: READ[name](torch, torch.tensor(X)))


@pytest.mark.parametrize("name", WRITTEN)
def test_writes(name):
    index, value = WRITTEN[name]
    same(lambda torch: assigned(torch, torch.tensor(X), index, value(torch)))


@pytest.mark.parametrize("value", [-5, 300, 2.7, -0.5, 1j, True, float("nan"), 2 ** 40])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "float16", "float32", "bool"])
def test_numbers_as_a_dtype_takes_them(dtype, value):
    for way in ("full", "fill", "set", "masked", "tensor", "list"):
        def program(torch, way=way):
            d, x = getattr(torch, dtype), torch.zeros(2, dtype=getattr(torch, dtype))
            return {"full": lambda: torch.full((2,), value, dtype=d), "fill": lambda: x.fill_(value),
                    "set": lambda: assigned(torch, x, 0, value),
                    "masked": lambda: x.masked_fill(torch.tensor([True, False]), value),
                    "tensor": lambda: torch.tensor(value, dtype=d),
                    "list": lambda: torch.tensor([value], dtype=d)}[way]()
        same(program)


def test_a_tensor_of_no_dimensions_is_written_through_its_views():
    x = tensorgrad.tensor(2., requires_grad=True)
    y = x * 3
    y[None] = 5.
    (y * 7).backward()
    assert y.item() == 5 and x.grad.item() == 0


FORMS = """x[:, i] ; x[:, :, i] ; x[:, i, i] ; x[i, :, i] ; x[:, m] ; x[:, k] ; x[:, k.t()] ; x[:, i, ::2] ; x[None, :, i] ; x[1:, i]
    t[:, i] ; t[i] ; t[:, :, i] ; x[:, i].view(-1) ; t[:, i].view(-1) ; w[:, i, :, i] ; w[:, i, i] ; w[:, :, i, i] ; e[:, i]
    x.nonzero() ; x.argwhere() ; x[:, [1]] ; x[x > 9]"""  # noqa: E501


@cpu_only
@pytest.mark.parametrize("form", FORMS.replace("\n    ", " ; ").split(" ; "))
def test_strides_of_what_is_indexed(form):
    """In memory the elements are in PyTorch's order, so that a view of them is possible where it is there."""
    def program(torch):
        x, i = torch.arange(60.).reshape(3, 4, 5), torch.tensor([0, 2, 1])
        names = {"x": x, "i": i, "t": x.permute(2, 0, 1), "w": torch.arange(120.).reshape(2, 3, 4, 5),
                 "e": x[:1, :, :1].expand(3, 4, 5),
                 "m": torch.tensor([True, False, True, True]), "k": torch.tensor([[0, 1], [1, 2], [0, 0]])}
        out = eval(form, names)
        return out, out.stride()
    same(program)
