"""bfloat16, float16 and float8 on NumPy alone, beside PyTorch."""
import numpy as np
import pytest
from support import ROOT, cpu_only, fresh_process

import tensorgrad as tg
from tensorgrad.dtype import EIGHT_BITS

ALONE = """
import io, pickle, sys, tempfile
for package in ("ml_dtypes", "scipy", "torch", "cupy"):
    sys.modules[package] = None
import tensorgrad as torch
from tensorgrad.utils.safetensors import load_file, save_file
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.GELU(), torch.nn.Flatten(), torch.nn.LayerNorm(32),
                            torch.nn.Linear(32, 3)).to(torch.bfloat16)
x, y = torch.randn(4, 1, 6, 6), torch.tensor([0, 1, 2, 0])
optimizer, losses = torch.optim.AdamW(model.parameters(), lr=0.02), []
for _ in range(6):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x.bfloat16()), y)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
file = io.BytesIO()
torch.save(model.state_dict(), file)
file.seek(0)
state = torch.load(file)
small = {str(d): x.to(d) for d in (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu)}
with tempfile.NamedTemporaryFile() as held:
    save_file(small, held.name)
    again = load_file(held.name)
with torch.autocast("cpu", dtype=torch.bfloat16):
    product = torch.nn.Linear(6, 2)(x)
product.float().sum().backward()
print(losses[-1] < losses[0], all(torch.equal(state[k], v) for k, v in model.state_dict().items()),
      all(torch.equal(again[k].view(torch.uint8), v.view(torch.uint8)) for k, v in small.items()), product.dtype,
      torch.equal(pickle.loads(pickle.dumps(x.bfloat16())), x.bfloat16()), torch.rand(2, dtype=torch.bfloat16).dtype)
"""


@pytest.mark.parametrize("pure", ["0", "1"])
def test_numpy_is_enough(pure):
    assert fresh_process(ALONE, TENSORGRAD_PURE=pure).strip() == "True True True torch.bfloat16 True torch.bfloat16"


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def twins(torch, *shape, dtype="bfloat16", grad=True, seed=0):
    """Equal tensors of both libraries."""
    values = np.random.default_rng(seed).normal(size=shape).astype("f4")
    return [lib.asarray(values).to(getattr(lib, dtype)).requires_grad_(grad) for lib in (tg, torch)]


def same(ours, theirs):
    """Assert equality up to a few roundings to 8 or 11 bits: sums may be in another order, and cancel."""
    assert str(ours.dtype) == str(theirs.dtype) and ours.shape == theirs.shape
    step = 2.0 ** -11 if ours.dtype is tg.float16 else 2.0 ** -8
    np.testing.assert_allclose(ours.detach().float().numpy(), theirs.detach().float().numpy(), rtol=4 * step,
                               atol=2 * step)


@cpu_only
@pytest.mark.parametrize("dtype", ["bfloat16", *(d.name for d in EIGHT_BITS)])
def test_dlpack(torch, dtype):
    x = tg.arange(6).reshape(2, 3).to(getattr(tg, dtype))
    y = torch.from_dlpack(x)
    assert str(y.dtype) == f"torch.{dtype}" and y.data_ptr() == x.data_ptr() and y.float().tolist() == x.tolist()
    z = tg.from_dlpack(y.t())
    assert z.dtype is x.dtype and z.stride() == (1, 3) and z.tolist() == x.t().tolist()
    capsule = torch.utils.dlpack.to_dlpack(y)
    tg.from_dlpack(capsule).fill_(2.0)                          # memory of both
    assert x.float().sum() == 12
    with pytest.raises(RuntimeError, match="can be consumed only once"):
        tg.from_dlpack(capsule)
    assert tg.from_dlpack(torch.empty(0, 3, dtype=y.dtype)).shape == (0, 3)


PROGRAMS = {
    "numbers": lambda lib, a, b: lib.where(a > 0, a, 0.5) + b.masked_fill(a < 0, 3) * 2,
    "both dtypes": lambda lib, a, b: (a * b.float() + b / a.float()).sum(0),
    "broadcast": lambda lib, a, b: (a[:, None] * b[None]).pow(2).mean(),
    "indices": lambda lib, a, b: a.index_put((lib.tensor([0, 0, 1]),), b, accumulate=True)[[1, 0]] * b[:2],
    "scatter": lambda lib, a, b: a.scatter_add(0, lib.tensor([[0, 0, 0, 0], [0, 1, 2, 0], [2, 2, 1, 1]]), b),
    "softmax": lambda lib, a, b: lib.nn.functional.softmax(a @ b.t(), -1).log_softmax(0),
    "norms": lambda lib, a, b: lib.nn.functional.layer_norm(a, (4,)) * lib.linalg.vector_norm(b, dim=1, keepdim=True),
    "interpolate": lambda lib, a, b: lib.nn.functional.interpolate(a[None, None], (5, 7), mode="bilinear") * b.sum(),
    "product": lambda lib, a, b: lib.addmm(b[:, :3], a, b.t(), beta=0.3, alpha=1.7),
    "views": lambda lib, a, b: lib.cat([a.t().contiguous().view(3, 4), lib.stack([b, b])[1]]).flip(0).cumsum(1),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_programs(torch, program, dtype):
    (a, other_a), (b, other_b) = (twins(torch, 3, 4, dtype=dtype, seed=seed) for seed in range(2))
    ours, theirs = PROGRAMS[program](tg, a, b), PROGRAMS[program](torch, other_a, other_b)
    same(ours, theirs)
    upstream = np.linspace(-0.9, 1.1, ours.numel(), dtype="f4").reshape(tuple(ours.shape))
    ours.backward(tg.asarray(upstream).to(ours.dtype))
    theirs.backward(torch.asarray(upstream).to(theirs.dtype))
    for own, other in (a, other_a), (b, other_b):
        same(own.grad, other.grad)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_gradients_of_gradients_and_batches(torch):
    a, other = twins(torch, 5)
    for lib, x in (tg, a), (torch, other):
        first, = lib.autograd.grad((x ** 3 * 2).sum(), x, create_graph=True)
        first.sum().backward()
    same(a.grad, other.grad)
    matrix, other = twins(torch, 3, 4, grad=False)
    for f in (lambda lib, v: (v * v).sum(), lambda lib, v: v.softmax(0) * 2 + lib.ones(4, dtype=v.dtype)):
        same(tg.func.vmap(lambda v, f=f: f(tg, v))(matrix), torch.func.vmap(lambda v, f=f: f(torch, v))(other))
    same(tg.func.jvp(lambda v: v.sin().sum(0), (matrix,), (matrix,))[1],
         torch.func.jvp(lambda v: v.sin().sum(0), (other,), (other,))[1])


def test_float8_is_stored_and_compared(torch):
    for name in (d.name for d in EIGHT_BITS):
        ours, theirs = (lib.tensor([0.5, 1, 2, 4], dtype=getattr(lib, name)) for lib in (tg, torch))
        for f in (lambda x: x == 1, lambda x: x != 2, lambda x: x.isnan(),
                  lambda x: x[[2, 0]].float(), lambda x: x.reshape(2, 2).t().float(), lambda x: x.element_size(),
                  lambda x: x.bfloat16().float(), lambda x: x.tolist()):
            found, expected = f(ours), f(theirs)
            assert (found.tolist() == expected.tolist()) if hasattr(found, "tolist") else found == expected
        for f in (lambda x: x * 2, lambda x: x.sum(), lambda x: x > 1):
            with pytest.raises(NotImplementedError):
                f(ours)
    assert tg.tensor([500.0, -1e9]).to(tg.float8_e4m3fn).tolist() == [448.0, -448.0]
    assert tg.finfo(tg.bfloat16).eps == torch.finfo(torch.bfloat16).eps


# tests/campaign/half.py goes through all
OPERATORS = {"addbmm", "baddbmm", "cumsum", "index_add", "linalg.vector_norm", "log_softmax", "masked_fill", "mean",
             "nn.functional.adaptive_avg_pool2d", "nn.functional.gelu", "nn.functional.pad", "prod", "softmax", "std",
             "sum", "where"}


@cpu_only
@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_the_table_of_operators(torch, dtype, monkeypatch):
    pytest.importorskip("expecttest")
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "campaign"))
    import half
    found = {(info.name, info.variant_test_name): half.judged(info, dtype, 2)
             for info in half.operators(dtype, OPERATORS)}
    assert {name for name, _ in found} == OPERATORS
    judged = {name: counts for name, counts in found.items() if counts is not None}
    assert sum(counts["equal"] for counts in judged.values()) > 20
    assert not [name for name, counts in judged.items() if counts["differs"] or counts["refused"]]
