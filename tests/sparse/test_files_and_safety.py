"""Sparse tensors in files, and what keeps bad indices from being used."""
import copy
import io
import pickle
import struct
import zipfile

import numpy as np
import pytest
from support import cpu_only

import tensorgrad

pytestmark = [cpu_only, pytest.mark.filterwarnings("ignore:Sparse")]


def tensors(torch):
    eye = torch.eye(4)
    u = torch.sparse_coo_tensor([[1, 0, 1], [2, 1, 2]], [3., 4, 5], (2, 3))
    small = torch.sparse_csr_tensor(*(torch.tensor(n, dtype=torch.int32) for n in ([0, 1], [0])), [1.], (1, 3))
    return {"coo": eye.to_sparse(), "uncoalesced": u, "csr": eye.to_sparse_csr(), "csc": eye.to_sparse_csc(),
            "bsr": eye.to_sparse_bsr((2, 2)), "bsc": eye.to_sparse_bsc((2, 2)), "hybrid": eye.to_sparse(1),
            "parameter": torch.nn.Parameter(u), "int32": small, "empty": torch.sparse_coo_tensor(size=(2, 3)),
            "half": u.half(), "complex": torch.sparse_coo_tensor([[1]], [1 + 2j], (3,)),
            "batches": torch.eye(4).reshape(2, 2, 4).to_sparse_csr()}


def written(torch, what, **options):
    buffer = io.BytesIO()
    torch.save(what, buffer, **options)
    buffer.seek(0)
    return buffer


@pytest.mark.parametrize("weights_only", [True, False])
def test_files_go_both_ways(weights_only):
    oracle = pytest.importorskip("torch")
    expected = {name: repr(x) for name, x in tensors(oracle).items()}
    for writer, reader in ((oracle, tensorgrad), (tensorgrad, oracle), (tensorgrad, tensorgrad)):
        found = reader.load(written(writer, tensors(writer)), weights_only=weights_only)
        assert {name: repr(x) for name, x in found.items()} == expected


def test_files_of_the_old_format():
    """Their pickle comes before the indices, which are checked once they are read."""
    file = written(tensorgrad, tensorgrad.eye(2).to_sparse(), _use_new_zipfile_serialization=False)
    for torch in (tensorgrad, pytest.importorskip("torch")):
        file.seek(0)
        assert torch.load(file).to_dense().tolist() == [[1., 0.], [0., 1.]]
    indices = (tensorgrad.tensor(rows).numpy().tobytes() for rows in ([[0, 1], [0, 1]], [[0, 9], [0, 1]]))
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        tensorgrad.load(io.BytesIO(file.getvalue().replace(*indices)))


def changed(file, record, change):
    """A file with one of its records changed."""
    source, out = zipfile.ZipFile(file), io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in source.namelist():
            data = source.read(name)
            archive.writestr(name, change(data) if name.endswith(record) else data)
    out.seek(0)
    return out


REFUSED = pickle.UnpicklingError, RuntimeError         # as in PyTorch, which looks at places after the pickle


@pytest.mark.parametrize("name, record, number, message", [
    ("coo", "data/0", 10**12, "size is 4 but found index 1000000000000"),
    ("coo", "data/0", -1, "found negative index -1"),
    ("csr", "data/0", 3, r"crow_indices\[..., 0\] == 0"), ("csr", "data/1", 4, "0 <= col_indices < ncols"),
    ("csr", "data/1", -5, "0 <= col_indices < ncols"), ("csc", "data/1", 2**62, "0 <= row_indices < nrows"),
    ("bsr", "data/1", 2, "0 <= col_indices < ncols"), ("bsc", "data/0", 1, r"ccol_indices\[..., 0\] == 0"),
    ("hybrid", "data/0", 4, "size is 4 but found index 4")])
def test_hostile_indices(name, record, number, message):
    file = changed(written(tensorgrad, tensors(tensorgrad)[name]), record,
                   lambda data: struct.pack("<q", number) + data[8:])
    for options in ({}, {"weights_only": False}):
        file.seek(0)
        with pytest.raises(REFUSED, match=message):
            tensorgrad.load(file, **options)


def test_hostile_sizes():
    file = written(tensorgrad, tensorgrad.eye(4).to_sparse())
    for change in (lambda data: b"K\x02K\x04".join(data.rsplit(b"K\x04K\x04", 1)),
                   lambda data: b"K\x00K\x04".join(data.rsplit(b"K\x04K\x04", 1)),
                   lambda data: data.replace(b"sparse_coo", b"sparse_bsr")):
        with pytest.raises(REFUSED):
            tensorgrad.load(changed(file, "data.pkl", change))


def test_false_claims_to_be_coalesced_are_not_believed():
    x = tensorgrad.sparse_coo_tensor([[1, 0, 1]], [1., 2., 3.], (2,), is_coalesced=True)
    assert not x.is_coalesced() and x.to_dense().tolist() == [2., 4.]
    file = written(tensorgrad, tensorgrad.sparse_coo_tensor([[1, 0, 1]], [1., 2., 3.], (2,)))
    file = changed(file, "data.pkl", lambda data: b"\x88".join(data.rsplit(b"\x89", 1)))
    assert not tensorgrad.load(file).is_coalesced()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)),
                                       lambda x: pickle.loads(pickle.dumps(x, 2))])
def test_copies(duplicate):
    for name, x in tensors(tensorgrad).items():
        again = duplicate(x)
        assert repr(again) == repr(x), name
        assert type(again) is type(x)
    x = tensorgrad.eye(2).to_sparse().requires_grad_()
    assert duplicate(x).requires_grad and duplicate(x).is_leaf


def test_a_deep_copy_has_its_own_values():
    x = tensorgrad.eye(2).to_sparse()
    again = copy.deepcopy(x)
    again._values().mul_(5)
    assert x.to_dense().tolist() == [[1., 0.], [0., 1.]] and again.to_dense().tolist() == [[5., 0.], [0., 5.]]


def test_modules_with_sparse_parts():
    module = tensorgrad.nn.Module()
    module.register_buffer("adjacency", tensorgrad.eye(3).to_sparse())
    module.weight = tensorgrad.nn.Parameter(tensorgrad.eye(3).to_sparse_csr())
    other = copy.deepcopy(module)
    other.load_state_dict({name: value * 2 for name, value in module.state_dict().items()})
    assert other.adjacency.to_dense().tolist() == (2 * tensorgrad.eye(3)).tolist()
    assert other.double().weight.dtype is tensorgrad.float64 and other.weight.layout is tensorgrad.sparse_csr


# ── indices that are in use ───────────────────────────────────────────────────────────────────────────────────────────


def test_indices_cannot_be_written_to():
    given = tensorgrad.tensor([[0, 1]])
    x = tensorgrad.sparse_coo_tensor(given, [1., 2.], (2,))
    given.fill_(10**9)
    assert x.to_dense().tolist() == [1., 2.]
    csr = tensorgrad.eye(2).to_sparse_csr()
    for part in (x._indices(), x.coalesce().indices(), csr.crow_indices(), csr.col_indices()):
        with pytest.raises((RuntimeError, ValueError), match="read-only"):
            part[..., 0] = 5
        with pytest.raises(RuntimeError, match="read-only"):
            part.copy_(part + 1)
        with pytest.raises(RuntimeError, match="read-only"):
            part.add_(1)
        assert not part.numpy().flags.writeable


def test_results_of_public_functions_are_checked_as_well():
    x = tensorgrad.eye(3).to_sparse()
    with pytest.raises(IndexError):
        x.index_select(0, tensorgrad.tensor([3]))
    with pytest.raises(IndexError):
        x[3]
    with pytest.raises(RuntimeError, match="shrinking the size of sparse dimensions"):
        x.sparse_resize_((2, 3), 2, 0)
    assert x.shape == (3, 3) and x._nnz() == 3
    with pytest.raises(RuntimeError, match="numel: integer multiplication overflow"):
        tensorgrad.sparse_coo_tensor([[0], [0]], [1.], (2**40, 2**40))


def test_values_share_memory():
    values = tensorgrad.tensor([1., 2.])
    x = tensorgrad.sparse_coo_tensor([[0, 1]], values, (2,)).coalesce()
    x.values().mul_(3)
    assert x.to_dense().tolist() == [3., 6.]


def test_checks_that_can_be_asked_for():
    check = tensorgrad.sparse.check_sparse_tensor_invariants
    def unordered(**options): return tensorgrad.sparse_csr_tensor([0, 2], [1, 0], [1., 2.], (1, 2), **options)
    assert unordered().to_dense().tolist() == [[2., 1.]] and not check.is_enabled()
    with pytest.raises(RuntimeError, match="sorted and distinct"), check():
        unordered()
    with check(), check(False):
        unordered()
    check.enable()
    try:
        assert check.is_enabled()
        with pytest.raises(RuntimeError, match="sorted and distinct"):
            unordered()
        unordered(check_invariants=False)
    finally:
        check.disable()
    with pytest.raises(RuntimeError, match="sorted and distinct"):
        check()(unordered)()
    first = check()
    with first, pytest.raises(RuntimeError, match="already activated"), first:
        pass
    assert not check.is_enabled()


def test_places_that_occur_twice_in_rows():
    """A row's columns may repeat, and be in no order."""
    x = tensorgrad.sparse_csr_tensor([0, 3, 4], [2, 0, 2, 1], [1., 2., 3., 4.], (2, 3))
    dense = np.array([[2., 0., 4.], [0., 4., 0.]])
    other = tensorgrad.arange(6.).reshape(3, 2)
    assert x.to_dense().tolist() == dense.tolist()
    assert (x @ other).tolist() == (dense @ other.numpy()).tolist()
    assert (x.t() @ other[:2]).tolist() == (dense.T @ other[:2].numpy()).tolist()
    assert x.to_sparse().to_dense().tolist() == x.to_sparse_csc().to_dense().tolist() == dense.tolist()
    x.requires_grad_()
    (x @ other).backward(tensorgrad.tensor([[1., 2.], [3., 4.]]))
    assert x.grad.to_dense().tolist() == [[2., 0., 14.], [0., 18., 0.]]


@pytest.mark.parametrize("kernel", ["numpy", "scipy"])
def test_products_with_and_without_scipy(kernel, monkeypatch):
    import tensorgrad.kernels.sparse_numpy as kernels
    if kernel == "scipy":
        pytest.importorskip("scipy.sparse")
    else:
        monkeypatch.setattr(kernels, "scipy_sparse", lambda size: None)
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(70, 50)) * (rng.random((70, 50)) < 0.2)
    x = tensorgrad.tensor(dense).to_sparse_csr()
    monkeypatch.setattr(kernels, "BLOCK", 40)
    for width in (1, 7):
        for side, matrix in ((x, dense), (x.t(), dense.T)):
            other = rng.normal(size=(matrix.shape[1], width))
            product = (side @ tensorgrad.tensor(other)).numpy()
            np.testing.assert_allclose(product, matrix @ other, rtol=1e-12, atol=1e-12)
    a, b = rng.normal(size=(70, 9)), rng.normal(size=(9, 50))
    found = tensorgrad.sparse.sampled_addmm(x, tensorgrad.tensor(a), tensorgrad.tensor(b), beta=0.0)
    np.testing.assert_allclose(found.to_dense().numpy(), (a @ b) * (dense != 0), rtol=1e-12)
