"""Random sparse tensors: with places that occur twice, without values, with dense dimensions, of several dtypes."""
import pickle
import warnings

import numpy as np
import pytest
from support import cpu_only

import tensorgrad
from tensorgrad.ops.base import OPS
from tensorgrad.storage.base import backend_of

pytestmark = cpu_only

COO = """
x ; x.coalesce() ; x * 2.5 ; -x ; x / 2 ; x + x ; x + y ; x - y ; x * y ; x * d ; d + x ; d - x ; x.t()
x.transpose(0, 1)
x.abs() ; x.sin() ; x.sqrt() ; x.sum() ; x.sum(0) ; x.sum(1) ; x.sum((0, 1)) ; x.sum(-1, keepdim=True)
torch.sparse.sum(x, 0) ; x.norm() ; torch.cat([x, y]) ; torch.cat([x, y], 1) ; torch.stack([x, y], 1)
x.index_select(1, i)
x.index_select(0, i) ; x[1] ; x[:, 0] ; x.unsqueeze(1) ; x.narrow_copy(0, 1, 2) ; x.narrow_copy(1, 0, 2)
x.sparse_mask(y.coalesce()) ; d.sparse_mask(x.coalesce()) ; x.to_sparse() ; x.clone() ; x.double() ; x.isnan()
x.coalesce().values().sum(0) ; torch.zeros_like(x) ; x ** 2
"""
MATRIX = """
x @ m ; m.t()[:, :x.shape[0]] @ x ; x @ m[:, 0] ; x @ y.t() ; x.t() @ y ; torch.sparse.mm(x, m)
torch.addmm(a, x, m, beta=2)
x.to_sparse_csr() ; x.to_sparse_csc() ; x.to_sparse_csr().to_sparse_csc() ; x.to_sparse_csc().to_sparse_csr() @ m
x.to_sparse_csr() @ m ; x.to_sparse_csr() @ m[:, 1] ; x.to_sparse_csr() @ y.to_sparse_csr().t()
x.to_sparse_csr().sum()
x.to_sparse_csr() + y.to_sparse_csr() ; x.to_sparse_csr() * 3 ; x.to_sparse_csr().t() ; x.to_sparse_csr().sin()
x.to_sparse_bsr((2, 1)) ; x.to_sparse_bsc((1, 2)) ; x.to_sparse_csr().to_sparse_bsr((2, 2)) ; d.to_sparse_bsr((2, 2))
d.to_sparse() ; d.to_sparse(1) ; d.to_sparse_csr() ; d.to_sparse_csc() ; torch.sparse.softmax(x, 1)
torch.sparse.log_softmax(x, 0)
torch.bmm(torch.stack([x, y]), torch.stack([m, m])) ; torch.sparse.mm(x.to_sparse_csr(), m, 'mean') ; torch.smm(x, m)
torch.sparse.mm(x.to_sparse_csr(), m, 'amax') ; torch.sparse.mm(x.to_sparse_csr(), m, 'amin') ; torch.hspmm(x, m)
torch.sspaddmm(x @ y.t(), x, y.to_dense().t())
torch.sparse.sampled_addmm(x.to_sparse_csr(), a, m.t(), beta=0.5, alpha=3)
d.to_sparse_csr().to_sparse().to_dense() ; torch.sparse.spdiags(d[:2], torch.tensor([0, -1]), (4, 5))
"""


def drawn(torch, seed, inner):
    """Random operands of 4 rows and 6 columns: sparse x and y, dense d, m and a, indices i."""
    rng = np.random.default_rng(seed)
    names = {"torch": torch}
    for name in "xy":
        count = int(rng.choice([0, 1, 5, 20]))
        indices = np.stack([rng.integers(0, n, count) for n in (4, 6)])
        values = rng.normal(size=(count, *inner))
        values = np.round(values, 1) if seed % 2 else values
        made = torch.sparse_coo_tensor(torch.tensor(indices), torch.tensor(values),
                                       (4, 6, *inner))
        names[name] = made.coalesce() if rng.random() < 0.5 else made
    dense = rng.normal(size=(4, 6, *inner)) * (rng.random((4, 6, *[1] * len(inner))) < 0.5)
    arrays = {"d": dense, "m": rng.normal(size=(6, 3)), "a": rng.normal(size=(4, 3)), "i": rng.integers(0, 4, 5)}
    return names | {name: torch.tensor(array) for name, array in arrays.items()}


def computed(torch, program, names):
    """The result's numbers, shape, dtype and layout, or the kind of its error."""
    try:
        found = eval(program, names)
    except Exception as error:
        return "error", isinstance(error, RuntimeError)
    dense = found if found.layout is torch.strided else found.to_dense()
    return str(found.layout), str(found.dtype), tuple(found.shape), np.array(dense.cpu().tolist())


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("inner", [(), (2,)], ids=["numbers", "vectors"])
@pytest.mark.parametrize("seed", range(6))
def test_results(seed, inner):
    oracle = pytest.importorskip("torch")
    text = COO if inner else COO + MATRIX
    for program in [p.strip() for line in text.strip().splitlines() for p in line.split(" ; ") if p]:
        ours, theirs = (computed(torch, program, drawn(torch, seed, inner)) for torch in (tensorgrad, oracle))
        assert ours[:3] == theirs[:3], (program, ours, theirs)
        if theirs[0] != "error":
            np.testing.assert_allclose(ours[3], theirs[3], rtol=1e-6, atol=1e-9, err_msg=program)


@pytest.mark.parametrize("name", ["bfloat16", "float16", "bool", "int16", "complex64"])
def test_dtypes(name):
    """Booleans, halves, integers and complex numbers: what adds up, converts, prints and is copied."""
    def program(torch):
        dtype = getattr(torch, name)
        x = torch.sparse_coo_tensor([[1, 0, 1], [2, 1, 2]], torch.tensor([1, 0, 3]), (2, 4)).to(dtype)
        found = [x, x.coalesce(), x.to_dense(), x.to_sparse_csr(), x.to_sparse_bsr((1, 2)), x.to_dense().to_sparse(),
                 x.coalesce().t().to_sparse_csc(), pickle.loads(pickle.dumps(x)), x.sparse_mask(x.coalesce()), x.sum()]
        if name != "bool":
            found += [x * 2, -x, x.sum(0), torch.sparse.sum(x, 1)]
        if name not in ("bool", "float16"):
            found += [x + x, x.coalesce() + x.coalesce(), x.to_dense().add_(x)]
        if name not in ("bool", "int16"):
            found += [x @ torch.ones(4, 2).to(dtype)]
        return [repr(y) for y in found]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert program(tensorgrad) == program(pytest.importorskip("torch"))


@pytest.mark.parametrize("name", [op.opname for op in OPS.values() if op.zeros and op.arity == 1])
def test_what_ops_say_of_zeros(name):
    """`Op.zeros`: f(0) = 0, and for additive ones f(x + y) = f(x) + f(y)."""
    function, x = getattr(backend_of("cpu").xp, name), np.array([1.5, -2.0, 0.25])
    assert not np.any(function(np.zeros(3)))
    if OPS[name].zeros == "additive":
        assert np.array_equal(function(x + x[::-1]), function(x) + function(x[::-1]))
