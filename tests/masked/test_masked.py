"""torch.masked: values, dtypes, gradients and errors, beside PyTorch's."""
import warnings

import pytest
from side_by_side import attempt, same

X = [[[3., -1., 2., 2.], [0., 5., -4., 1.5], [7., 7., -7., 0.5]],
     [[1., 2., 3., 4.], [-2., -2., 6., 8.], [9., 0., 1., 1.]]]
MASKS = {
    "none": lambda torch: None,
    "whole": lambda torch: torch.tensor([[[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 0, 1]],
                                         [[0, 1, 1, 0], [1, 0, 0, 1], [0, 0, 0, 0]]], dtype=torch.bool),
    "of rows": lambda torch: torch.tensor([[[True], [False], [True]]]),
    "of columns": lambda torch: torch.tensor([True, False, True, False]),
    "of numbers": lambda torch: torch.tensor([1, 0, 2, 0]),
    "one": lambda torch: torch.tensor(True),
}
REDUCTIONS = "sum prod amax amin mean var std norm logsumexp".split()
PLACES = "argmax argmin median".split()
ALONG = "cumsum cumprod softmax log_softmax softmin".split()
DTYPES = "float64 float32 float16 bfloat16 int64 int32 uint8 bool complex128".split()


def values(torch, dtype):
    x = torch.tensor(X, dtype=torch.float64)
    return (2 * x.abs() if dtype in ("uint8", "bool") else x).to(getattr(torch, dtype))


def weighted(torch, y):
    """Return a loss that weights all elements differently; −inf and NaN have no part in it."""
    y = torch.where(y.isfinite(), y, 0)
    return (y * torch.arange(1., y.numel() + 1, dtype=torch.float64).reshape(y.shape)).sum().real


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_and_their_gradients(name, mask):
    def program(torch):
        found = []
        for dim, keepdim in ((None, False), ((), True), (1, False), (-1, True), ((0, 2), False), ((2, 1), True)):
            x = values(torch, "float64").requires_grad_()
            y = getattr(torch.masked, name)(x, dim=dim, keepdim=keepdim, mask=MASKS[mask](torch))
            if name in ("var", "std"):      # PyTorch's gradient of a root at 0 is infinite
                y = torch.where(y == 0, 0, y)
            weighted(torch, y).backward()
            found += [y, x.grad]
        return found
    same(program, rtol=1e-12)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", [*PLACES, *ALONG, "normalize"])
def test_functions_of_an_axis_and_their_gradients(name, mask):
    def program(torch):
        found = []
        for dim in (0, 1, -1):
            x = values(torch, "float64").requires_grad_()
            at = (x, 2, dim) if name == "normalize" else (x, dim)
            y = getattr(torch.masked, name)(*at, mask=MASKS[mask](torch))
            if name not in ("argmax", "argmin"):
                weighted(torch, y).backward()
            found += [y, x.grad]
        return found
    same(program, rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*REDUCTIONS, *PLACES, *ALONG, "normalize"])
def test_dtypes(name, dtype):
    def result(torch, mask, **options):
        x = values(torch, dtype)
        at = (x, 2., 1) if name in ("norm", "normalize") else (x, 1)
        return getattr(torch.masked, name)(*at, mask=mask, **options)

    if name == "median" and dtype == "complex128":
        pytest.skip("PyTorch takes the median of the real parts, after a warning of its own form")
    half = dtype in ("float16", "bfloat16")
    for mask in (None, [True, True, False, True]):
        for given in (None, *(("float32", "int64") if dtype != "complex128" else ())):
            same(lambda torch, m=mask, g=given: result(torch, m and torch.tensor(m), dtype=g and getattr(torch, g)),
                 rtol=2e-2 if half else 1e-6, atol=1e-2 if half else 1e-7)


CALLS = {
    "mask of more axes": lambda torch, x: torch.masked.sum(x[0, 0], 0, mask=torch.ones(2, 4, dtype=torch.bool)),
    "mask that does not fit": lambda torch, x: torch.masked.sum(x, 0, mask=torch.ones(3, dtype=torch.bool)),
    "axis out of range": lambda torch, x: torch.masked.amax(x, 3),
    "axis named twice": lambda torch, x: torch.masked.prod(x, (1, 1)),
    "axis of a scan": lambda torch, x: torch.masked.cumsum(x, -4),
    "axis of a place": lambda torch, x: torch.masked.argmax(x, 5, mask=x > 0),
    "mean of integers": lambda torch, x: torch.masked.mean(x.long(), 0),
    "mean in integers": lambda torch, x: torch.masked.mean(x, 0, dtype=torch.int32),
    "two corrections": lambda torch, x: torch.masked.var(x, 0, True, correction=2),
    "no median of integers": lambda torch, x: torch.masked.median(x.long(), 0, mask=torch.tensor(False)),
    "least norm of complex numbers": lambda torch, x: torch.masked.norm(x * 1j, float("-inf"), 0, mask=x > 0),
    "no dim": lambda torch, x: torch.masked.softmax(x),
    "no axis": lambda torch, x: [torch.masked.sum(x[0, 0, 0], d, mask=torch.tensor(False)) for d in (None, 0, -1, ())],
    "norms": lambda torch, x: [torch.masked.norm(x, p, 1, mask=x > 1)
                               for p in (1, 2, 3.5, 0, float("inf"), -float("inf"))],
    "corrections": lambda torch, x: [f(x, 1, mask=x > 1, **how) for f in (torch.masked.var, torch.masked.std)
                                     for how in ({"unbiased": False}, {"correction": 2}, {"correction": 0.5})],
    "eps": lambda torch, x: torch.masked.normalize(x, 2, 1, eps=10, mask=x > 1),
    "logaddexp": lambda torch, x: [torch.masked.logaddexp(x, x.flip(0), input_mask=x > 0, other_mask=x > 1),
                                   torch.masked.logaddexp(x, x[0], input_mask=x[0, 0] > 0),
                                   torch.masked.logaddexp(x, x, dtype=torch.float32)],
    "NaN left out": lambda torch, x: torch.masked.sum(x.log(), 1, mask=x > 0),
    "nothing": lambda torch, x: [f(x[:0], 0, mask=torch.tensor(True)) for f in (torch.masked.sum, torch.masked.prod)],
    "bools without a mask": lambda torch, x: torch.masked.amax(x > 0, 0),
    "names": lambda torch, x: sorted(torch.masked.__all__),
    "masks of results": lambda torch, x: [
        torch.masked._output_mask(torch.masked.norm, x, 2, 1, mask=x > 1),
        torch.masked._output_mask(torch.masked.sum, x, dim=(0, 2), keepdim=True, mask=x[0, 0] > 2),
        torch.masked._output_mask(torch.masked.cumsum, x, 1, mask=x > 1)],
    "no masked function": lambda torch, x: torch.masked._output_mask(len, x, mask=x > 1),
    "masked input": lambda torch, x: [torch.masked._combine_input_and_mask(torch.masked.amin, x, x > 1),
                                      torch.masked._input_mask(x, mask=x[0, 0] > 2)],
    "no mask": lambda torch, x: torch.masked._input_mask(x),
    "path": lambda torch, x: torch.masked._ops.sum is torch.masked.sum,
}


@pytest.mark.parametrize("call", CALLS)
def test_corner_cases_and_errors(call):
    same(lambda torch: CALLS[call](torch, torch.tensor(X, dtype=torch.float64)))


def test_gradients_do_not_reach_what_is_left_out():
    def program(torch):
        x = torch.tensor([0., 4., -1.], requires_grad=True)
        torch.masked.sum(x.sqrt(), 0, mask=torch.tensor([False, True, False])).backward()
        y = torch.tensor([float("nan"), 4., 2.], requires_grad=True)
        torch.masked.mean(y, 0, mask=torch.tensor([False, True, True])).backward()
        return y.grad
    same(program)


SPARSE_MASKS = [[[True, True, False], [False, False, True]], [[True, False, True], [False, True, True]],
                [[False, False, False], [True, True, True]]]


@pytest.mark.parametrize("dtype", ["float64", "int32"])
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean", "norm", "cumsum"])
def test_sparse_tensors(name, layout, dtype):
    """Values at the places that a mask keeps; a place that it keeps and that has no value is 0."""
    def program(torch):
        x = getattr(torch.tensor([[1., 0, 2], [0, 0, 3]], dtype=getattr(torch, dtype)), layout)()
        found = []
        if layout == "to_sparse_csr" and name != "sum" and dtype == "int32":
            return None                             # PyTorch's kernel knows no integers, and
        for mask in (None, *SPARSE_MASKS[:2 + (layout == "to_sparse")]):     # fails on a row without a value
            given = None if mask is None else torch.tensor(mask)
            for dim, keepdim in (((1,), True), ((0,), True), ((0, 1), True), ((1,), False)):
                at = {"norm": (2., dim), "cumsum": (dim[0],)}.get(name, (dim,))
                options = {} if name == "cumsum" else {"keepdim": keepdim}
                for m in (given, given if given is None else getattr(given, layout)()):
                    found.append(attempt(lambda a=at, o=options, m=m: described(
                        getattr(torch.masked, name)(x, *a, mask=m, **o))))
        return found

    def described(y):
        return str(y.layout).partition(".")[2], str(y.dtype).partition(".")[2], list(y.shape), y._nnz(), y.to_dense()
    same(lambda torch: quietly(program, torch))


def test_sparse_tensors_with_dense_dimensions():
    def program(torch):
        x = torch.tensor([[[1., 2.], [0., 0.]], [[0., 3.], [4., 5.]]]).to_sparse(1)
        mask = torch.tensor([[[True, True], [True, False]], [[False, False], [False, False]]])
        found = [torch.masked.sum(x, dim, keepdim=keepdim, mask=m).to_dense() for dim in (0, 1, (1, 2), (0, 2))
                 for keepdim in (False, True) for m in (None, mask)]
        whole = x.to_dense().to_sparse()            # without dense dimensions, and a mask that broadcasts
        found.append(torch.masked.sum(whole, 0, mask=mask[0].to_sparse()).to_dense())
        scalar = torch.masked.sum(torch.tensor(3.).to_sparse(), 0, mask=torch.tensor(True)).to_dense()
        return found, scalar, torch.masked.prod(x, 2, mask=mask) is NotImplemented
    same(lambda torch: quietly(program, torch))


def test_gradients_of_sparse_tensors():
    import tensorgrad as torch
    values = torch.tensor([1., 2., 3.], requires_grad=True)
    sparse = torch.sparse_coo_tensor([[0, 0, 1], [0, 2, 2]], values, (2, 3))
    y = torch.masked.sum(sparse, 0, mask=torch.tensor(SPARSE_MASKS[0])).to_dense()
    assert y.tolist() == [1., 0., 3.]
    (y * torch.tensor([2., 3., 5.])).sum().backward()
    assert values.grad.tolist() == [2., 0., 5.]


def quietly(program, torch):
    """Run a program without PyTorch's warnings of the state of its sparse tensors."""
    with warnings.catch_warnings(action="ignore"):
        return program(torch)
