"""Conversions among the layouts, tensors made like sparse ones, and selections, beside PyTorch's."""
import itertools
import warnings

import pytest
from side_by_side import attempt, same
from support import cpu_only

import tensorgrad

pytestmark = cpu_only
LAYOUTS = "sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc".split()
TABLE = [[1., 0, 2, 0], [0, 0, 0, 3], [0, 4, 0, 5], [0, 0, 0, 0]]


def shown(x):
    """The parts of a sparse tensor."""
    if not hasattr(x, "layout") or "strided" in str(x.layout):
        return x.tolist() if hasattr(x, "tolist") else str(x)
    if "coo" in str(x.layout):
        return str(x.layout), tuple(x.shape), x._indices().tolist(), x._values().tolist(), x.is_coalesced()
    rows = str(x.layout).endswith("r")
    parts = (x.crow_indices(), x.col_indices()) if rows else (x.ccol_indices(), x.row_indices())
    return str(x.layout), tuple(x.shape), str(parts[0].dtype), [p.tolist() for p in parts], x.values().tolist()


def made(torch, layout, kind="plain", dtype="int64"):
    d = torch.tensor(TABLE)
    d = {"plain": d, "batched": torch.stack([d, d * 2]), "hybrid": torch.stack([d, d * 3], -1)}[kind]
    more = {"blocksize": (2, 1)} if "bs" in layout else {}
    x = d.to_sparse(layout=getattr(torch, layout), **more, **({"dense_dim": 1} if kind == "hybrid" else {}))
    if dtype == "int64" or layout == "sparse_coo":
        return x
    first, second = ("crow", "col") if layout.endswith("r") else ("ccol", "row")
    parts = (getattr(x, f"{name}_indices")().to(getattr(torch, dtype)) for name in (first, second))
    return torch.sparse_compressed_tensor(*parts, x.values(), x.shape, layout=x.layout)


def each(torch, calls):
    """The result or the error of each call."""
    def result(call):
        found = []
        error = attempt(lambda: found.append(shown(call())))
        return found[0] if error is None else [error[0], error[1].partition(" This could be")[0]]
    return [result(call) for call in calls]


def beside(program):
    """Compare what a program comes to, warnings apart."""
    def quiet(torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return program(torch)
    same(quiet)


@pytest.mark.parametrize("kind", ["plain", "batched", "hybrid"])
def test_conversions(kind):
    def program(torch):
        calls = []
        for source, target, dtype in itertools.product(LAYOUTS, LAYOUTS, ("int32", "int64")):
            x, layout = made(torch, source, kind, dtype), getattr(torch, target)
            calls += [lambda x=x, layout=layout, more=more: x.to_sparse(layout=layout, **more)
                      for more in ({}, {"blocksize": (2, 1)}, {"blocksize": (2, 2)}, {"blocksize": (3, 1)},
                                   {"dense_dim": 1, **({"blocksize": (2, 1)} if "bs" in target else {})})]
            args = [(2, 1)] if "bs" in target else []
            calls.append(lambda x=x, name=f"to_{target}", args=args: getattr(x, name)(*args))
        return each(torch, calls)
    beside(program)


def test_arguments_of_to_sparse():
    def program(torch):
        d, c = torch.tensor(TABLE), torch.tensor(TABLE).to_sparse_csr()
        return each(torch, [
            lambda: c.to_sparse(2), lambda: c.to_sparse(1), lambda: d.to_sparse(1, dense_dim=1),
            lambda: d.to_sparse(dense_dim=1), lambda: d.to_sparse(dense_dim=2), lambda: d.to_sparse(dense_dim=5),
            lambda: d.to_sparse_csr(3), lambda: d.to_sparse_bsr(2), lambda: d.to_sparse_bsr((2, 0)),
            lambda: d.to_sparse(blocksize=(2, 2)), lambda: d.to_sparse(layout=torch.sparse_bsr, blocksize=(1, 1, 1)),
            lambda: torch.ones(4).to_sparse().to_sparse_csr(), lambda: torch.ones(0, 2, 2).to_sparse_csr(),
            lambda: torch._convert_indices_from_coo_to_csr(torch.tensor([0, 1, 1]), 4, out_int32=True),
            lambda: torch._convert_indices_from_csr_to_coo(torch.tensor([[0, 1], [0, 1]]), torch.tensor([[2], [1]])),
            lambda: torch._convert_indices_from_coo_to_csr(torch.tensor([[0]]), 4)])
    beside(program)
    with pytest.raises(RuntimeError, match="ascending"):            # PyTorch writes outside of its memory
        tensorgrad._convert_indices_from_coo_to_csr(tensorgrad.tensor([7]), 4)


@pytest.mark.parametrize("name", "zeros empty ones full rand".split())
def test_like(name):
    def program(torch):
        def like(x, **more):
            made = getattr(torch, f"{name}_like")(x, *[2] * (name == "full"), **more)
            if name in ("empty", "rand") and "strided" not in str(made.layout):
                return str((made.layout, tuple(made.shape), made._nnz(), made.dense_dim(), made.dtype))
            return made if "strided" not in str(made.layout) else tuple(made.shape)
        kinds = [(a, k) for a in LAYOUTS for k in ("plain", "hybrid")]
        return each(torch, [lambda a=a, k=k, more=more: like(made(torch, a, k), **more) for a, k in kinds
                            for more in ({}, {"dtype": torch.int64}, {"layout": torch.strided},
                                         {"layout": torch.sparse_coo}, {"layout": torch.sparse_bsc})])
    beside(program)


def test_selections_and_copies():
    def program(torch):
        calls = [lambda a=a, k=k, i=i: made(torch, a, k).select(i, 1) for a in LAYOUTS[1:]
                 for k in ("plain", "batched", "hybrid") for i in range(2 + (k != "plain"))
                 if k == "batched" or "bs" not in a or i == 2]
        c, b = made(torch, "sparse_csr"), made(torch, "sparse_csr", "batched")
        calls += [lambda: c[0, 0], lambda: b[0, 1], lambda: c.clone().__setitem__(0, 1), lambda: b.transpose(0, 1),
                  lambda: c.clone().copy_(c.t()), lambda: c.clone().copy_(torch.eye(4).to_sparse_csr()),
                  lambda: c.clone().copy_(c * 2), lambda: torch.ones(4, 4).copy_(c),
                  lambda: c.clone().copy_(torch.ones(4, 4)), lambda: c.clone().fill_(2),
                  lambda: made(torch, "sparse_bsr").copy_(c.to_sparse_bsr((1, 1))),
                  lambda: c.clone().resize_(6, 5), lambda: c.clone().resize_(2, 4), lambda: c.clone().resize_(2, 3)]
        return each(torch, calls)
    beside(program)


def test_single_places():
    """A tensor of one place is a number; one of no axes scales others."""
    def program(torch):
        u = torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 2]], [1., 2, 3], (2, 3))
        two, c = torch.tensor(2.).to_sparse(), u.coalesce()
        h = torch.sparse_coo_tensor([[0, 1]], torch.ones(2, 2, 3), (2, 2, 3))
        narrow = torch.sparse_coo_tensor([[0, 1]], torch.ones(2, 1, 3) * 2, (2, 1, 3))
        return each(torch, [
            lambda: u * two, lambda: two * c, lambda: h * two, lambda: h * narrow, lambda: two.item(),
            lambda: torch.sparse_coo_tensor([[0, 0]], [-1., 1.], (1,)).is_nonzero(), lambda: bool(c),
            lambda: torch.tensor([[3.]]).to_sparse_csr().item(), lambda: u.new(), lambda: u.new(2, 3),
            lambda: u.new(c.indices(), c.values()), lambda: u.clone().sin_(), lambda: c.clone().sin_(),
            lambda: torch.sparse_coo_tensor((2, 3)) + h[0], lambda: torch.zeros(2, 2, 3).to_sparse() + h,
            lambda: c.clone().resize_as_(torch.ones(4, 5).to_sparse()), lambda: u.new([1, 2]),
            lambda: torch.rand(2, 2, 2).ge(-1).to_sparse().permute(0, 2, 1).is_coalesced()])
    beside(program)
    wide = tensorgrad.tensor([[1., 0, 2]]).to_sparse() * tensorgrad.arange(6.).reshape(2, 3)     # PyTorch: wrong
    assert wide.to_dense().tolist() == [[0., 0, 4], [3., 0, 10]]


def test_meta():
    def program(torch):
        m = {"device": "meta"}
        csr = torch.sparse_csr_tensor(torch.empty(5, dtype=torch.int32, **m), torch.empty(7, dtype=torch.int32, **m),
                                      torch.empty(7, **m), (4, 6))
        coo = torch.sparse_coo_tensor(torch.empty(2, 5, dtype=torch.int64, **m), torch.empty(5, 3, **m), (4, 6, 3))
        found = [repr(csr), repr(coo), repr(csr + csr), repr(torch.sum(csr)), repr(csr.to_dense())]
        for layout in LAYOUTS:
            x = made(torch, layout)
            found += [repr(x.to("meta")), repr(torch.zeros_like(x, device="meta"))]
        return found
    beside(program)
