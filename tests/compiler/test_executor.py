"""Plans: emitters against eager results, memory shared at different times alone, programs that refuse buffers."""
import re
import threading

import numpy as np
import pytest
from support import cpu_only

import tensorgrad as torch
import tensorgrad.nn.functional as F
from tensorgrad import nn
from tensorgrad.compiler.emit import EMITTERS, load
from tensorgrad.compiler.executable import build
from tensorgrad.compiler.memory import ARENA, INPUT, WEAK, arranged, lines, template
from tensorgrad.compiler.plan import Build, Step
from tensorgrad.compiler.room import room
from tensorgrad.compiler.targets import Activation, Joined
from tensorgrad.graph import lower
from tensorgrad.kernels.compiled import WANTED
from tensorgrad.ops.base import OPS
from tensorgrad.runtime.native import native

pytestmark = [cpu_only, pytest.mark.skipif(native is None, reason="without compiled kernels, Python runs all nodes")]
needs_kernels = pytest.mark.skipif(not WANTED, reason="about compiled kernels")


def draw(*shape, dtype=None, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype or torch.get_default_dtype())


def built(program, *inputs):
    with torch.no_grad():
        return build(lower(program, inputs))


def arrays(found):
    return [x.numpy() for x in (found if isinstance(found, (tuple, list)) else [found])]


def agrees(program, *inputs, left=0, exact=False):
    """Compare a program's executable with the program, at its inputs and others; Python runs `left` nodes of a plan."""
    run = built(program, *inputs)
    assert len(run.left) == left * WANTED, run.left
    for scale in (1, -0.75):
        given = [x * scale if x.is_floating_point() else x for x in inputs]
        before = [x.numpy().copy() for x in given]
        with torch.no_grad():
            wanted = arrays(program(*given))
        found = run([x.numpy() for x in given])
        for a, b in zip(found, wanted, strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype
            rounding = 0 if exact or a.dtype.kind not in "f" else 1e-5 if a.dtype == np.float32 else 1e-12
            np.testing.assert_allclose(a, b, rounding, rounding * max(1, np.abs(b).max(initial=0)))
        for x, old in zip(given, before, strict=True):
            np.testing.assert_array_equal(x.numpy(), old)
    return run


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.layer = kind(3, 5, bidirectional=True)

    def forward(self, x):
        y, state = self.layer(x)
        return (y, *state) if isinstance(state, tuple) else (y, state)


def layer(kind, *args, **params):
    torch.manual_seed(0)
    return kind(*args, **params).eval()


ATTENTION = dict(is_causal=True, scale=0.3)
PROGRAMS = {
    "conv": (lambda: layer(nn.Conv2d, 4, 6, 3, padding=1, stride=2), (2, 4, 9, 8)),
    "conv groups": (lambda: layer(nn.Conv2d, 4, 6, 3, groups=2, dilation=2), (2, 4, 9, 8)),
    "conv 1d": (lambda: layer(nn.Conv1d, 4, 6, 3, bias=False), (2, 4, 9)),
    "depthwise": (lambda: layer(nn.Conv2d, 4, 4, 3, groups=4, padding=1), (2, 4, 9, 8)),
    "transposed": (lambda: layer(nn.ConvTranspose2d, 4, 6, 3, stride=2), (2, 4, 5, 4)),
    "linear": (lambda: layer(nn.Linear, 5, 7), (3, 4, 5)),
    "linear of a view": (lambda: lambda x: F.linear(x.transpose(0, 2), draw(7, 3)), (3, 4, 5)),
    "matmul": (lambda: lambda x: (x @ x.mT, x[0] @ x[1].mT, x @ draw(5, 6)), (3, 4, 5)),
    "matmul of 4": (lambda: lambda x: x.permute(0, 2, 1, 3) @ x.permute(0, 2, 3, 1), (2, 4, 3, 5)),
    "batch norm": (lambda: lambda x: F.batch_norm(x, draw(4), draw(4).exp(), draw(4), draw(4)), (2, 4, 5, 3)),
    "layer norm": (lambda: layer(nn.LayerNorm, (4, 5)), (3, 4, 5)),
    "group norm": (lambda: layer(nn.GroupNorm, 2, 4), (3, 4, 5)),
    "rms norm": (lambda: layer(nn.RMSNorm, 5), (3, 4, 5)),
    "pooling": (lambda: lambda x: (F.max_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 2)), (2, 3, 8, 7)),
    "places of maxima": (lambda: lambda x: F.max_pool2d(x, 2, return_indices=True), (2, 3, 8, 7)),
    "activations": (lambda: lambda x: [f(x) for f in (F.relu, F.gelu, F.silu, F.mish, F.hardswish, F.leaky_relu, F.elu,
                                                      F.celu, F.softplus, torch.tanh, torch.exp, F.relu6, torch.neg)],
                    (3, 7)),
    "of a transposed array": (lambda: lambda x: (F.gelu(x.mT), x.mT + x.mT, F.gelu(x[:, ::2])), (3, 7)),
    "broadcasting": (lambda: lambda x: (x + x[0], x * x[:, :1], x[..., None] - x[0], 2 / x, x - 1.5,
                                        torch.maximum(x[:, None], x[None]), x.T + x[0, :, None]), (5, 5)),
    "many rows": (lambda: lambda x: x + x[:, :, :1, :1] * x[:1, :, :, :1], (6, 5, 4, 3)),
    "softmax": (lambda: lambda x: (x.softmax(1), x.log_softmax(-1), x.mT.softmax(0)), (3, 4, 5)),
    "attention": (lambda: lambda x: F.scaled_dot_product_attention(x, x * 2, x + 1, **ATTENTION), (2, 3, 4, 5)),
    "attention, masked": (lambda: lambda x: F.scaled_dot_product_attention(x, x, x, draw(4, 4)), (2, 3, 4, 5)),
    "lstm": (lambda: layer(Recurrent, nn.LSTM), (4, 2, 3)),
    "gru": (lambda: layer(Recurrent, nn.GRU), (4, 2, 3)),
    "reductions": (lambda: lambda x: (x.sum(), x.mean((0, 2)), x.amax(1, keepdim=True), x.amin((0, 1)), x.var(2),
                                      x.sum(0), x.var((0, 2)), x.max()), (3, 4, 5)),
    "positions": (lambda: lambda x: (x.argmax(-1), x.max(-1), x.cumsum(1))[0], (3, 4, 5)),
    "views": (lambda: lambda x: (x.reshape(6, 2, 5).permute(2, 0, 1)[1:, ::2].unsqueeze(1), x.mT.reshape(15, -1),
                                 x.unbind(1)[2].expand(2, 3, 5), x.split([1, 3], 1)[1].unfold(2, 2, 1)), (3, 4, 5)),
    "copies": (lambda: lambda x: (torch.cat([x, x[:1]]), torch.stack([x, x.flip(1)], 2), x.mT.contiguous(),
                                  x.roll((1, -2), (0, 2)), F.pad(x, (1, 2, -1, 0), value=3.0)), (3, 4, 5)),
    "windows": (lambda: lambda x: F.unfold(x, (2, 3), padding=1, stride=2, dilation=(1, 2)), (2, 3, 6, 8)),
    "copies along seven axes": (lambda: lambda x: x.permute(6, 4, 2, 0, 5, 3, 1).contiguous(), (2, 3, 2, 4, 3, 2, 3)),
    "scalars": (lambda: lambda x: (x.sum() * 2 + x.mean(), x[0, 0] * x[1]), (3, 4)),
    "an input and a constant": (lambda: lambda x: (x, x * 2, draw(3), x[0]), (3, 4)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_compute_all_nodes(name, dtype):
    make, shape = PROGRAMS[name]
    program = make()
    if isinstance(program, nn.Module):
        program = program.to(dtype)
    torch.set_default_dtype(dtype)
    try:
        agrees(program, draw(*shape, dtype=dtype))
    finally:
        torch.set_default_dtype(torch.float32)


def test_writes_to_parts():
    def program(x):
        y = x * 2
        y[1:, :2] += 3
        y[0].fill_(-0.0)
        return y, x
    agrees(program, draw(3, 4), exact=True)


@pytest.mark.parametrize("op", ["relu", "linear", "convolution"])
def test_joined_nodes(op):
    """An op does not overwrite its residual before it is added."""
    w = draw(4, 4) if op == "linear" else draw(4, 4, 1)
    target = Joined(op, Activation("hardtanh", (("low", -0.5), ("high", 6.0))), residual=True)

    def program(x):
        y = x * 2
        return {"relu": lambda: torch.relu(y), "linear": lambda: F.linear(y, w, w[0]),
                "convolution": lambda: F.conv1d(y, w)}[op]()
    x = draw(2, 4, 4)
    graph = lower(program, (x,))
    [node] = [node for node in graph.nodes if node.target is OPS[op]]
    node.target, node.args = target, (*node.args, node.args[0])
    run = build(graph)
    assert not run.left
    with torch.no_grad():
        wanted = (program(x) + x * 2).clamp(-0.5, 6)
    np.testing.assert_allclose(run([x.numpy()])[0], wanted.numpy(), 1e-5, 1e-6)


def test_unknown_ops_are_left_to_python():
    run = agrees(lambda x: torch.cumprod(x * 2, 0) + 1, draw(3, 4), left=1)
    assert run.left == [("cumprod", "no kernel computes it")] * WANTED
    agrees(lambda x: (x.to(torch.float16) * 2).to(torch.float32) + 1, draw(3, 4), left=4)
    agrees(lambda x: torch.sort(x * 2)[0] + torch.cumprod(x, 0).to(torch.int64).to(x.dtype), draw(3, 4), left=3)


@needs_kernels
def test_emitters_are_asked_from_the_last_to_the_first(monkeypatch):
    asked = []

    def refuses(build, node, x):
        asked.append(node.name)
        build.call("map_relu", x, build.new(x.shape, np.float64))
    load()
    monkeypatch.setitem(EMITTERS, "relu", [refuses, *EMITTERS["relu"]])
    agrees(torch.relu, draw(3, 4))
    assert asked == ["relu"]


# ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", range(3))
def test_buffers_in_use_together_never_overlap(seed):
    random = np.random.default_rng(seed)
    buffers = [(int(size), int(first), int(first + more)) for size, first, more in
               zip(random.integers(0, 5000, 60), random.integers(0, 40, 60), random.integers(0, 9, 60), strict=True)]
    offsets, size = arranged(buffers)
    for i, (offset, (bytes_, first, last)) in enumerate(zip(offsets, buffers, strict=True)):
        assert offset % 64 == 0 and offset + bytes_ <= size
        for other, (more, begun, ended) in list(zip(offsets, buffers, strict=True))[:i]:
            if begun <= last and first <= ended:
                assert offset + lines(bytes_) <= other or other + lines(more) <= offset
    most = max(sum(lines(size) for size, first, last in buffers if first <= t <= last) for t in range(50))
    assert most <= size < 1.3 * most


def test_a_plan_never_writes_to_memory_in_use():
    """No step of a plan writes to an array that a later step reads, except for its own result."""
    torch.manual_seed(0)
    net = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    with torch.no_grad():
        graph = lower(net, draw(2, 5, 8))
    made = Build(graph, {node: graph.tensors[node.target].array for node in graph.nodes if node.op == "get_attr"})
    made.plan()
    live = [b for b in made.buffers if b.kind == ARENA and b.used is not None]
    assert len(live) > 8
    for i, a in enumerate(live):
        for b in live[:i]:
            if a.used[0] <= b.used[1] and b.used[0] <= a.used[1]:
                assert a.shift + a.bytes <= b.shift or b.shift + b.bytes <= a.shift


@needs_kernels
def test_the_arena_is_smaller_than_all_results():
    run = built(nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.Softmax(-1)) for _ in range(8)]), draw(16, 64))
    assert 16 * 64 * 4 <= run.memory["arena"] <= 2 * 16 * 64 * 4 < run.memory["unplanned"]
    assert run.memory["constants"] >= 8 * 65 * 64 * 4


def test_results_are_new_arrays_and_views_share_memory():
    def program(x):
        y = x * 2
        return y, y[0], y.t(), x
    run, x = built(program, draw(3, 4)), draw(3, 4)
    first, second = run([x.numpy()]), run([-x.numpy()])
    np.testing.assert_array_equal(first[0], 2 * x.numpy())
    np.testing.assert_array_equal(first[2], 2 * x.numpy().T)
    first[0][0, 0] = 9
    assert first[1][0] == first[2][0, 0] == (9 if WANTED else 2 * x.numpy()[0, 0])
    assert not np.shares_memory(first[3], x.numpy())
    np.testing.assert_array_equal(second[0], -2 * x.numpy())


@pytest.mark.parametrize("form", ["transposed", "cut", "reversed", "misaligned", "subclass"])
def test_inputs_in_any_layout(form):
    x = np.random.default_rng(0).standard_normal((6, 6)).astype(np.float32)
    memory = np.zeros(40 * 4 + 4, np.uint8)[4:][:36 * 4].view(np.float32).reshape(6, 6)
    memory[...] = x
    given = {"transposed": x.T.copy().T, "cut": np.stack([x, x], 2)[..., 0], "reversed": x[::-1].copy()[::-1],
             "misaligned": memory, "subclass": x.view(np.matrix)}[form]
    run = built(lambda x: (torch.relu(x) @ x,), torch.from_numpy(x))
    np.testing.assert_allclose(run([given])[0], np.maximum(x, 0) @ x, 1e-5, 1e-5)


# ── parameters, errors, threads ───────────────────────────────────────────────────────────────────────────────────────


def test_changed_parameters():
    net, x = layer(nn.Linear, 4, 3), draw(2, 4)
    run = built(net, x)
    with torch.no_grad():
        for change in (lambda: net.weight.add_(1), lambda: net.bias.data.zero_(),
                       lambda: setattr(net.weight, "data", draw(4, 3).t()), lambda: net.bias.fill_(2)):
            change()
            np.testing.assert_allclose(run([x.numpy()])[0], net(x).numpy(), 1e-6, 1e-6)


INDEXED = {
    "embedding": lambda x, i: F.embedding(i, x),
    "gather": lambda x, i: torch.gather(x, 0, i[:, None].expand(2, 3)),
    "index_select": lambda x, i: torch.index_select(x, 0, i),
    "index": lambda x, i: x[i],
    "take": lambda x, i: torch.take(x, i),
    "scatter": lambda x, i: x.scatter(0, i[:, None].expand(2, 3), x[:2]),
    "scatter_add": lambda x, i: x.scatter_add(0, i[:, None].expand(2, 3), x[:2]),
}


@pytest.mark.parametrize("wrong", [5, 20, -1, -16, 2 ** 40])
@pytest.mark.parametrize("op", INDEXED)
def test_indices_out_of_range_raise_the_usual_errors(op, wrong):
    table, good, bad = draw(5, 3), torch.tensor([1, 4]), torch.tensor([1, wrong])

    def program(i):
        return INDEXED[op](table, i) * 2
    run = agrees(program, good, exact=True, left="scatter" in op)
    try:
        wanted = program(bad).numpy()
    except (IndexError, RuntimeError) as usual:
        with pytest.raises(type(usual), match=re.escape(str(usual).split("\n")[0])):
            run([bad.numpy()])
    else:
        np.testing.assert_array_equal(run([bad.numpy()])[0], wanted)
    np.testing.assert_array_equal(run([good.numpy()])[0], program(good).numpy())


def test_threads_share_an_executable():
    net = layer(nn.Sequential, nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 9), nn.Softmax(-1))
    run, inputs = built(net, draw(2, 3, 8, 8)), [draw(2, 3, 8, 8, seed=seed).numpy() for seed in range(4)]
    wanted, wrong = [run([x])[0] for x in inputs], []

    def work(i):
        for _ in range(50):
            if not np.array_equal(run([inputs[i]])[0], wanted[i]):
                wrong.append(i)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def floats(*shape):
    """Return zeros that are aligned as a template of memory from outside is."""
    array = template(int(np.prod(shape)) * 4, WEAK).view(np.float32).reshape(shape)
    array[...] = 0
    return array


def test_programs_refuse_wrong_calls():
    arena, x = floats(64), floats(8)
    ok = ("map_relu", x, arena[:8])
    native.program([(ARENA, arena), (INPUT, x)], [ok])
    for buffers, calls, text in [
            ([(ARENA, arena), (INPUT, x)], [("map_relu", x, arena[:9])], "map_relu"),
            ([(ARENA, arena), (INPUT, x)], [("map_relu", arena[:8], x)], "writes to"),
            ([(ARENA, arena), (INPUT, x)], [("map_relu", x, floats(8))], "in no buffer"),
            ([(ARENA, arena), (INPUT, x)], [("map_relu", arena[:8], arena[4:12])], "refuses"),
            ([(ARENA, arena), (INPUT, arena[3:])], [], "overlap"),
            ([(ARENA, arena), (ARENA, x)], [], "one arena"),
            ([(4, arena)], [], "no kind"),
            ([(INPUT, arena[::2])], [], "contiguous"),
            ([(INPUT, np.array([None]))], [], "no objects"),
            ([], [("nothing", x)], "no kernel"),
            ([], [("sgd", x)], "lists of arrays")]:
        with pytest.raises(ValueError, match=text):
            native.program(buffers, calls)
    for buffers, calls in [(3, []), ([3], []), ([(0,)], []), ([(INPUT, [1.0])], []), ([], [3]), ([], [()]),
                           ([], [(3,)]), ([], [("map_relu",)])]:
        with pytest.raises(TypeError):
            native.program(buffers, calls)


def test_programs_refuse_wrong_arrays():
    arena, x, weight, out = floats(64), floats(8), floats(8), floats(8)
    program = native.program([(ARENA, arena), (1, x), (2, weight), (3, out)],
                             [("two_add", x, weight, arena[:8], 1, 8, 8, 1, 8, 1), ("map_relu", arena[:8], out)])
    for constants in ([], [floats(9)], [np.zeros(8)], [floats(2, 4)], [x, x]):
        with pytest.raises(ValueError):
            program.bind(constants)
    with pytest.raises(TypeError):
        program.bind(3)
    for takes_a_copy in (floats(16)[::2], [0.0] * 8, None, x.view(np.memmap)):
        assert program.bind([takes_a_copy]) is NotImplemented
    bound = program.bind([weight + 1])
    for inputs in ([], [floats(7)], [x.astype(np.int32)], [x, x]):
        with pytest.raises(ValueError):
            bound.run(inputs)
        with pytest.raises(ValueError):
            bound.start(inputs)
    assert bound.run([floats(16)[::2]]) is bound.start([floats(16)[::2]]) is NotImplemented
    x -= 0.5
    [result] = bound.run([x])
    np.testing.assert_array_equal(result, floats(8) + 0.5)
    x += 0.5
    run = bound.start([x])
    for first, last in [(-1, 1), (0, 3)]:
        with pytest.raises(ValueError):
            run.go(first, last)
    assert run.go(0, 2) and run.go(2, 1)
    memory = np.frombuffer(run, np.float32)
    del run, bound, program
    np.testing.assert_array_equal(memory[:8], 1)          # the view keeps the arena
    for kind in type(native.program([], [])), type(native.program([], []).bind([])):
        with pytest.raises(TypeError):
            kind()


@needs_kernels
def test_a_step_of_python_that_returns_another_shape_ends_the_plan():
    """The graph then runs without the plan."""
    run = built(lambda x: torch.cumprod(x, 0) + 1, draw(3, 4))
    [step] = [part for part in run._plan.parts if isinstance(part, Step)]
    object.__setattr__(step, "target", lambda x, axis: np.zeros(3, np.float32))
    x = floats(3, 4) + 2
    np.testing.assert_array_equal(run([x])[0], np.cumprod(x, 0) + 1)


def test_large_weights_share_one_block_of_memory():
    dtype = np.dtype("float32")
    with room.of(3 << 20):
        parts = [room.empty(shape, dtype) for shape in ((2, 100), (1 << 18,), (1 << 20,))]
    assert parts[0].base is not None and parts[0].base is parts[1].base
    assert parts[2].base is None                # there is no room for it
    assert not np.shares_memory(parts[0], parts[1]) and all(part.ctypes.data % 64 == 0 for part in parts[:2])
    with room.of(1000):                         # of few weights
        assert room.empty((2,), dtype).base is None
    assert room.empty((1 << 20,), dtype).base is None
