"""Features that packages use beside public functions: custom operators, names to import, writes through views, 8-bit
floats."""
import importlib
import textwrap

import pytest
from support import Programs, cpu_only, fresh_process

import tensorgrad

program = Programs()


# ── torch.library, torch.ops ──────────────────────────────────────────────────────────────────────────────────────────

@program
def operators_with_gradients(torch):
    @torch.library.custom_op("packages::scaled", mutates_args=())
    def scaled(x: torch.Tensor, factor: float = 2.0) -> torch.Tensor:
        return x * factor

    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]
    scaled.register_autograd(lambda ctx, g: (g * ctx.factor, None), setup_context=setup_context)
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    (scaled(x) * torch.tensor([2.0, 5.0])).sum().backward()
    return x.grad, scaled(x.detach(), factor=3.0), scaled(torch.ones(2), 4.0)


@program
def operators_without_gradients_say_so(torch):
    @torch.library.custom_op("packages::plain", mutates_args=())
    def plain(x: torch.Tensor) -> torch.Tensor:
        return x * 2
    try:
        plain(torch.ones(2, requires_grad=True)).sum().backward()
    except RuntimeError as error:
        return str(error)


def test_operators_by_their_names():
    """In a process where torch is this package: `torch.ops` are operators there, not the table of ops."""
    out = fresh_process(textwrap.dedent("""
        import tensorgrad
        tensorgrad.install_as_torch()
        import torch
        library = torch.library.Library("packages_three", "DEF")
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x + x, "CPU")
        x = torch.ones(2)
        twice, eye = torch.ops.packages_three.twice, torch.eye(2)
        print(twice(x).tolist(), twice.default(x).tolist(), torch.ops.aten.mm(eye, eye).tolist())
        print(torch.torch is torch, torch.ops.aten.add.Tensor(x, x).tolist(), hasattr(torch.ops.packages_three, "thrice"))
        for call in (lambda: torch.ops.load_library("x.so"), lambda: torch.ops.aten.no_such_function(x), lambda: torch.ops.packages_three.thrice):
            try:
                call()
            except Exception as error:
                print(type(error).__name__, error)
    """))  # noqa: E501
    assert out.splitlines() == [
        "[2.0, 2.0] [2.0, 2.0] [[1.0, 0.0], [0.0, 1.0]]", "True [2.0, 2.0] False",
        "OSError Could not load this library: x.so: tensorgrad cannot load extensions that are compiled against "
        "PyTorch",
        "NotImplementedError tensorgrad has no torch.ops.aten.no_such_function: `aten` has the functions that this "
        "package has",
        "AttributeError '_OpNamespace' 'packages_three' object has no attribute 'thrice'"]


# ── writes through views of what lies in another order ───────────────────────────────────────────────────────────────

def written(base, write, use):
    def run(torch):
        torch.manual_seed(0)
        a, w = torch.randn(4, 5, dtype=torch.float64), torch.randn(5, 4, dtype=torch.float64)
        n, v = (torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in (0.5, 2.0))
        whole = base(torch, a, v)
        write(torch, whole, n)
        return torch.autograd.grad(use(whole, w), (n, v))
    return run


BASES = {"in order": lambda torch, a, v: v * a.t().contiguous(), "transposed": lambda torch, a, v: v * a.t()}
WRITES = {"diagonal of the flat whole": lambda torch, x, n: (x if x.is_contiguous() else x.t()).view(-1)[::5].add_(n),
          "flat": lambda torch, x, n: (x if x.is_contiguous() else x.t()).view(-1).mul_(n),
          "rows": lambda torch, x, n: x[1:3].t()[1].mul_(n),
          "strided": lambda torch, x, n: torch.as_strided(x, (3, 2), (2, 7)).mul_(n)}
USES = {"as it is": lambda x, w: (x * w).sum(), "transposed": lambda x, w: (x.t() * w.t().contiguous()).sum(),
        "product": lambda x, w: (x.t() @ w).pow(2).sum()}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("base", BASES)
def test_gradients_of_writes_do_not_depend_on_how_gradients_lie_in_memory(base, write, use):
    pytest.importorskip("torch")
    from side_by_side import same
    same(written(BASES[base], WRITES[write], USES[use]))


# ── 8-bit floats ─────────────────────────────────────────────────────────────────────────────────────────────────────

@program
def eight_bits(torch):
    x = torch.tensor([449.0, 464, 465, 1e9, -300, 240, 249, 0.01, float("inf"), float("nan")])
    kinds = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)
    return ([(d, d.itemsize, repr(torch.finfo(d)), x.to(d), x.to(d).float(), x.to(d).tolist()) for d in kinds],
            x.to(kinds[0])[1:3].view(torch.uint8))


@program
def eight_bits_do_not_promote(torch):
    return torch.promote_types(torch.float8_e5m2, torch.float32)


@program
def eight_bits_have_no_complex(torch):
    return torch.float8_e5m2.to_complex()


@program
def hooks_see_one_object(torch):
    x, seen = torch.ones(2, requires_grad=True), []

    def first(g):
        g.note = "left by the first"

    def second(g):
        seen.append(g.note)
        return g * 2
    y = x * 3
    for hook in (first, second, lambda g: seen.append((g, hasattr(g, "note")))):
        y.register_hook(hook)
    y.sum().backward()
    return seen, x.grad


@program
def kl_of_classes_of_any_kind(torch):
    class Mine:
        pass
    return callable(torch.distributions.kl.register_kl(Mine, torch.distributions.Normal))


@program
def arguments_of_to(torch):
    parse = torch._C._nn._parse_to
    return (str(parse(torch.float16)[1]), str(parse("cpu")[0]), str(parse(torch.ones(1))[1]),
            parse("cpu", torch.float64, True)[2])


test_programs = cpu_only(program.test())


# ── names that packages import, though they may never use them ───────────────────────────────────────────────────────

NAMES = """nn.modules.module:_IncompatibleKeys nn.modules.module:_EXTRA_STATE_KEY_SUFFIX hub:_get_torch_home
hub:HASH_REGEX utils.model_zoo:tqdm _subclasses.fake_tensor:FakeTensor fx.experimental.proxy_tensor:get_proxy_mode
fx.experimental.symbolic_shapes:guard_or_false fx:Tracer utils._pytree:SUPPORTED_NODES utils._pytree:_get_node_type
utils._python_dispatch:TorchDispatchMode utils.flop_counter:FlopCounterMode distributions.utils:_standard_normal
distributions.utils:_sum_rightmost distributions.transforms:_InverseTransform serialization:MAP_LOCATION
jit.annotations:BroadcastingList2 ao.quantization:ObserverBase _tensor_str:PRINT_OPTS
_dynamo.utils:is_compile_supported onnx.symbolic_helper:parse_args
distributed.rpc:is_available
distributed.device_mesh:DeviceMesh distributed.algorithms.join:Join _C:_get_tracing_state
_custom_ops:impl_abstract
cuda:CUDAGraph __config__:show distributed.tensor:DTensor distributed.fsdp:FullyShardedDataParallel _C:_nn""".split()


@pytest.mark.parametrize("path", NAMES)
def test_a_name_is_there(path):
    module, _, name = path.partition(":")
    assert hasattr(importlib.import_module(f"tensorgrad.{module}"), name)


@pytest.mark.parametrize("call", [lambda: tensorgrad.distributed.tensor.DTensor(),
                                  lambda: tensorgrad.distributed.tensor.distribute_tensor(),
                                  lambda: tensorgrad.cuda.CUDAGraph()])
def test_what_is_only_a_name_says_so(call):
    with pytest.raises(NotImplementedError, match="tensorgrad has no torch"):
        call()


def test_types_for_annotations():
    assert tensorgrad.distributed.ReduceOp.RedOpType is not None
    assert tensorgrad.futures.Future[int] is not None
