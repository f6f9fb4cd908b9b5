"""Training with sparse gradients and sparse matrices: step by step as PyTorch does it."""
import numpy as np
import pytest
from support import DEVICE, cpu_only, on_device

import tensorgrad
from tensorgrad.storage.sparse import SparseStorage

pytestmark = pytest.mark.filterwarnings("ignore:Sparse", "ignore:backward hook")


def both(program):
    """Compare what `program(torch)` returns, lists of numbers and strings, with both libraries."""
    oracle = pytest.importorskip("torch")
    compare(program(tensorgrad), program(oracle))


def compare(ours, theirs):
    assert type(ours) is type(theirs)
    if isinstance(ours, (list, tuple)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            compare(one, other)
    elif isinstance(ours, float):
        assert ours == pytest.approx(theirs, rel=2e-5, abs=1e-6)
    else:
        assert ours == theirs


def table(torch):
    return torch.nn.Parameter(torch.arange(8.).reshape(4, 2) * 0.3)


OTHERS = "Adam AdamW Adadelta Adamax NAdam RAdam RMSprop Rprop ASGD Adafactor Muon".split()
OPTIMIZERS = [("SGD", {}), ("SGD", {"momentum": 0.9}), ("SGD", {"momentum": 0.9, "nesterov": True, "dampening": 0}),
              ("SGD", {"maximize": True}), ("SGD", {"weight_decay": 0.1}),
              ("Adagrad", {}), ("Adagrad", {"lr_decay": 0.1}), ("Adagrad", {"weight_decay": 0.1}),
              ("SparseAdam", {}), ("SparseAdam", {"maximize": True}),
              ("SparseAdam", {"betas": (0.5, 0.7), "eps": 1e-3, "lr": 0.1}),
              *((name, {}) for name in OTHERS)]


@cpu_only
@pytest.mark.parametrize("name, options", OPTIMIZERS)
def test_optimizers(name, options):
    """Rows that occur twice, rows that get no gradient, and errors of optimizers that take no sparse gradients."""
    def program(torch):
        weight = table(torch)
        optimizer = getattr(torch.optim, name)([weight], **options)
        for rows in ([1, 1, 3], [1], [0, 3]):
            optimizer.zero_grad()
            taken = torch.nn.functional.embedding(torch.tensor(rows), weight, sparse=True)
            (taken * torch.tensor([[1., 2.], [3., 4.], [5., 6.]])[:len(rows)]).sum().backward()
            try:
                optimizer.step()
            except RuntimeError as error:
                return str(error)
        return weight.tolist()
    both(program)


def test_the_state_of_sparse_adam():
    def program(torch):
        weight = table(torch)
        optimizer = torch.optim.SparseAdam([weight], lr=0.1)
        for _ in range(2):
            torch.nn.functional.embedding(torch.tensor([1]), weight, sparse=True).sum().backward()
            optimizer.step()
        again = table(torch)
        other = torch.optim.SparseAdam([again])
        other.load_state_dict(optimizer.state_dict())
        torch.nn.functional.embedding(torch.tensor([2]), again, sparse=True).sum().backward()
        other.step()
        state = other.state_dict()["state"][0]
        return [state["step"], state["exp_avg"].tolist(), state["exp_avg_sq"].tolist(), again.tolist()]
    both(program)
    sparse = tensorgrad.eye(2).to_sparse().requires_grad_()
    with pytest.raises(ValueError, match=r"Sparse params at indices \[\[0, 0\]\]: SparseAdam requires dense"):
        tensorgrad.optim.SparseAdam([sparse])
    dense = tensorgrad.ones(2, requires_grad=True)
    dense.sum().backward()
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        tensorgrad.optim.SparseAdam([dense]).step()


def test_a_step_writes_to_rows_with_a_gradient(monkeypatch):
    weight = tensorgrad.nn.Parameter(tensorgrad.zeros(1000, 4))
    memory = weight.data_ptr()
    optimizer = tensorgrad.optim.SGD([weight], lr=1.0)
    tensorgrad.nn.functional.embedding(tensorgrad.tensor([7, 7]), weight, sparse=True).sum().backward()
    assert weight.grad._nnz() == 2 and weight.grad._values().shape == (2, 4)
    before = weight._version
    densified = []
    monkeypatch.setitem(SparseStorage.rules, "add", lambda *operands: densified.append(operands))
    optimizer.step()
    assert not densified
    assert weight.data_ptr() == memory and weight._version == before + 1
    assert weight.sum().item() == -8 and weight[7].tolist() == [-2.0] * 4


@cpu_only
def test_embeddings():
    def program(torch):
        functional, found = torch.nn.functional, []
        for options in ({}, {"padding_idx": 1}):
            weight = table(torch)
            functional.embedding(torch.tensor([[1, 1], [3, 0]]), weight, sparse=True, **options).sum().backward()
            found.append(repr(weight.grad))
        for options in ({"mode": "sum"}, {"mode": "mean"}, {"mode": "sum", "padding_idx": 1},
                        {"mode": "sum", "per_sample_weights": torch.tensor([1., 2., 3.])}):
            weight = table(torch)
            bags = functional.embedding_bag(torch.tensor([1, 1, 3]), weight, torch.tensor([0, 2]), sparse=True,
                                            **options)
            (bags * torch.tensor([[1., 2.], [3., 4.]])).sum().backward()
            found += [repr(weight.grad), repr(weight.grad.coalesce())]
        for make in (lambda: functional.embedding(torch.tensor([1]), weight, sparse=True, scale_grad_by_freq=True),
                     lambda: functional.embedding_bag(torch.tensor([[1]]), weight, sparse=True, mode="max")):
            try:
                make().sum().backward()
            except (RuntimeError, ValueError) as error:
                found.append(str(error))
        module = torch.nn.Embedding(4, 2, sparse=True)
        found.append(repr(module))
        (module(torch.tensor([1, 2])) ** 2).sum().backward()
        found.append(repr(module.weight.grad.indices() if module.weight.grad.is_coalesced() else
                          module.weight.grad._indices()))
        return found
    both(program)


@cpu_only
def test_gathered_elements():
    def program(torch):
        found = []
        for dim, index in ((1, [[0, 0], [2, 1]]), (0, [[0, 0, 1]])):
            x = torch.arange(6.).reshape(2, 3).requires_grad_()
            (torch.gather(x, dim, torch.tensor(index), sparse_grad=True) ** 2).sum().backward()
            found.append(repr(x.grad))
        return found
    both(program)


@cpu_only
def test_gradients_add_up():
    """Sparse to sparse, in place; dense to sparse; sparse to dense, in place; in one backward and over several."""
    def program(torch):
        weight, found = table(torch), []
        def taken(*rows): return torch.nn.functional.embedding(torch.tensor(rows), weight, sparse=True)
        def note(): found.append((repr(weight.grad), weight.grad is before))
        taken(1, 1, 3).sum().backward()
        before = weight.grad
        taken(0, 3).sum().backward()
        note()
        (weight * 2).sum().backward()
        note()
        before = weight.grad
        taken(2).sum().backward()
        note()
        weight.grad = None
        (taken(1).sum() + taken(1, 2).sum() * 3).backward()
        found.append(repr(weight.grad.coalesce()))
        weight.grad = None
        (taken(1).sum() + (weight * 3).sum()).backward()
        found.append(repr(weight.grad))
        weight.grad = None
        ((weight * 3).sum() + taken(1).sum()).backward()
        found.append(repr(weight.grad))
        weight.grad = None
        first = torch.autograd.grad((taken(1) ** 2).sum() + (weight ** 2).sum(), weight, create_graph=True)[0]
        second = torch.autograd.grad(first.to_dense().sum(), weight)[0]
        found.append([first.to_dense().tolist(), second.to_dense().tolist()])
        weight.grad = torch.sparse_coo_tensor([[1]], torch.ones(1, 2), (4, 2))
        torch.optim.SGD([weight], lr=1.).zero_grad(set_to_none=False)
        found.append(repr(weight.grad))
        return found
    both(program)


def test_gradients_share_no_memory():
    weight = tensorgrad.ones(3, 2, requires_grad=True)
    upstream = tensorgrad.tensor([[1., 2.], [3., 4.]])
    taken = tensorgrad.nn.functional.embedding(tensorgrad.tensor([0, 2]), weight, sparse=True)
    taken.backward(upstream)
    weight.grad._values().mul_(10)
    assert upstream.tolist() == [[1., 2.], [3., 4.]]
    assert weight.grad.to_dense().tolist() == [[10., 20.], [0., 0.], [30., 40.]]


def test_norms_of_gradients_are_clipped():
    weight = tensorgrad.ones(3, 2, requires_grad=True)
    tensorgrad.nn.functional.embedding(tensorgrad.tensor([1, 1]), weight, sparse=True).sum().backward()
    norm = tensorgrad.nn.utils.clip_grad_norm_([weight], 1.0)
    assert norm.item() == pytest.approx(8 ** 0.5)
    assert weight.grad.to_dense().norm().item() == pytest.approx(1.0, rel=1e-5)


def graph_network(torch, layout):
    """Train two graph convolutions on a ring of twelve nodes with a few chords; return the losses."""
    rng = np.random.default_rng(0)
    edges = {(i, (i + 1) % 12) for i in range(12)} | {(0, 6), (2, 9), (3, 7)}
    rows, columns = zip(*sorted({*edges, *((b, a) for a, b in edges), *((i, i) for i in range(12))}), strict=True)
    degree = np.bincount(rows)
    weights = 1 / np.sqrt(degree[list(rows)] * degree[list(columns)])
    adjacency = torch.sparse_coo_tensor([rows, columns], torch.tensor(weights).float(), (12, 12)).coalesce()
    adjacency = getattr(adjacency, layout)() if layout else adjacency
    features = torch.tensor(rng.normal(size=(12, 5))).float().relu().to_sparse()
    labels = torch.tensor([i % 3 for i in range(12)])
    first = torch.nn.Parameter(torch.tensor(rng.normal(size=(5, 8)) * 0.5).float())
    second = torch.nn.Parameter(torch.tensor(rng.normal(size=(8, 3)) * 0.5).float())
    edge = torch.nn.Parameter(torch.ones(len(rows)))          # a weight of each edge, learnt
    optimizer = torch.optim.Adam([first, second, edge], lr=0.05)
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        weighted = torch.sparse_coo_tensor([rows, columns], edge, (12, 12))
        hidden = torch.sparse.mm(adjacency, torch.sparse.mm(features, first)).relu()
        scores = torch.sparse.mm(weighted, adjacency @ (hidden @ second))
        loss = torch.nn.functional.cross_entropy(scores, labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return [*losses, first.tolist(), second.tolist(), edge.tolist()]


@cpu_only
@pytest.mark.parametrize("layout", ["", "to_sparse_csr"])
def test_a_graph_network_trains(layout):
    both(lambda torch: graph_network(torch, layout))
    losses = graph_network(tensorgrad, layout)
    assert losses[11] < 0.9 * losses[0]


def test_on_the_device_under_test():
    table_ = on_device(tensorgrad.nn.Embedding(5, 2, sparse=True))
    optimizer = tensorgrad.optim.SparseAdam(table_.parameters(), lr=0.1)
    before = table_.weight.detach().clone()
    table_(tensorgrad.tensor([1, 3, 3], device=DEVICE)).sum().backward()
    assert table_.weight.grad.device.type == DEVICE and table_.weight.grad.layout is tensorgrad.sparse_coo
    optimizer.step()
    moved = (before - table_.weight.detach()).abs().sum(1).cpu()
    assert (moved > 0).tolist() == [False, True, False, True, False]
    matrix = on_device(tensorgrad.eye(3)).to_sparse_csr()
    dense = on_device(tensorgrad.arange(6.).reshape(3, 2)).requires_grad_()
    (matrix @ dense).sum().backward()
    assert dense.grad.cpu().tolist() == [[1., 1.]] * 3 and matrix.cpu().device.type == "cpu"
    for layout in ("to_sparse", "to_sparse_csc"):
        back = getattr(matrix.cpu(), layout)().to(DEVICE)
        assert back.device.type == DEVICE and back.to_dense().cpu().tolist() == tensorgrad.eye(3).tolist()
