"""Operators that a program defines, beside PyTorch's: schemas, kernels, shapes, gradients, batches, checks."""
import pytest
from side_by_side import attempt
from support import Programs, cpu_only

import tensorgrad

pytestmark = cpu_only
program = Programs()


def scaled(torch, name, **options):
    """An operator of one tensor and a number; its kernel sees values, so that nothing records it."""
    def scale(x, factor=2.0):
        return torch.from_numpy(x.detach().numpy() * factor)
    scale.__annotations__ = {"x": torch.Tensor, "factor": float, "return": torch.Tensor}
    return torch.library.custom_op(f"made_{torch.__name__}::{name}", mutates_args=(), **options)(scale)


@program
def schemas_of_annotations(torch):
    def several(x: torch.Tensor, y: "torch.Tensor | None", n: int | None = None, sizes: list[int] = None,
                p: float = 1.5, name: str = "a", kind: torch.dtype = torch.float32, *, on: bool = True
                ) -> tuple[torch.Tensor, int, list[torch.Tensor]]: ...
    several.__globals__["torch"] = torch
    def bare(x) -> torch.Tensor: ...
    def other(x: dict) -> torch.Tensor: ...
    def nothing(x: torch.Tensor) -> None: ...
    infer = torch.library.infer_schema
    return [infer(several, mutates_args=(), op_name="several"), infer(several, mutates_args="unknown"),
            infer(nothing, mutates_args=["x"]),
            *(attempt(lambda f=f, m=m: infer(f, mutates_args=m))[0]
              for f, m in ((bare, ()), (other, ()), (nothing, "x"), (nothing, ["y"]), (several, ["n"])))
            ]


TEXT = ("made_text::f(Tensor x, int[2] s=[1,2], Tensor? b=None, float e=0.5, str r='a', ScalarType d=float, *, "
        "Tensor(a!)[] out, Scalar q=1) -> (Tensor, Tensor[] z)")


@program
def schemas_of_texts(torch):
    with torch.library._scoped_library("made_text", "FRAGMENT") as library:
        library.define(TEXT.partition("::")[2])
        schema = torch.ops.made_text.f.default._schema
        return [str(schema), schema.is_mutable,
                [(a.name, str(a.type), a.default_value, a.kwarg_only, bool(a.alias_info and a.alias_info.is_write))
                 for a in schema.arguments], [(a.name, str(a.type)) for a in schema.returns]]


@program
def types_of_arguments(torch):
    schema = torch._C.parse_schema(TEXT.replace("Scalar q=1", "Tensor?[] o, Generator? g=None, Storage t"))
    types, tensor = [a.type for a in schema.arguments], torch.TensorType.get()
    others = [tensor, torch.OptionalType.ofTensor(), torch.ListType(torch.IntType.get()), torch.NumberType.get(),
              torch.AnyType.get(), torch.NoneType.get(), torch.OptionalType(torch.ListType.ofInts())]
    return ([(str(t), t.kind(), t.annotation_str, type(t).__name__, list(map(str, t.containedTypes()))) for t in types],
            [[t.isSubtypeOf(other) for other in others] for t in types + others],
            [[t == other for other in others] for t in types], types[2].getElementType() == tensor,
            attempt(torch.TensorType), torch._C.ListType is torch.ListType, isinstance(types[0], torch.Type))


@program
def gradients_and_defaults(torch):
    op, seen = scaled(torch, "gradients"), []

    def setup_context(ctx, inputs, output):
        seen.append(inputs[1])
        ctx.factor = inputs[1]
    op.register_autograd(lambda ctx, g: (g * ctx.factor, None), setup_context=setup_context)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.no_grad():
        op(x)
    op(x, factor=3.0).backward(torch.tensor([1.0, 4.0]))
    return seen, x.grad, op(x.detach()).requires_grad


@program
def shapes_without_values(torch):
    op, meta = scaled(torch, "shapes"), torch.empty(3, device="meta")
    refused = attempt(lambda: op(meta))[0]
    op.register_fake(lambda x, factor=2.0: torch.empty_like(x))
    return refused, op(meta).shape, op(torch.ones(2))


@program
def rules_for_batches(torch):
    op, seen = scaled(torch, "batches"), []

    @op.register_vmap
    def rule(info, in_dims, x, factor=2.0):
        seen.append((info.batch_size, in_dims[0]))
        return op(x, factor), in_dims[0]
    return torch.vmap(op, in_dims=1)(torch.arange(6.0).reshape(2, 3)), seen


@program
def kernels_of_devices(torch):
    op = scaled(torch, "kernels")
    found = [op(torch.ones(2))]
    op.register_kernel("cpu", lambda x, factor=2.0: x + factor)
    found.append(op(torch.ones(2)))
    with op.set_kernel_enabled("cpu", False):
        found.append(op(torch.ones(2)))
    return [*found, op(torch.ones(2))]


@program
def memory_that_results_share(torch):
    def same(x: torch.Tensor) -> torch.Tensor:
        return x.view(-1)

    def double_(x: torch.Tensor) -> None:
        x.numpy()[...] *= 2
    space, x = f"made_{torch.__name__}", torch.ones(2)
    refused = attempt(lambda: torch.library.custom_op(f"{space}::same", same, mutates_args=())(x))[0]
    before = x._version
    torch.library.custom_op(f"{space}::double_", double_, mutates_args={"x"})(x)
    return refused.partition("(")[0], refused.rpartition("): ")[2][:60], x, x._version - before


@program
def tensors_passed_by_name(torch):
    def f(x: torch.Tensor, *, y: torch.Tensor) -> torch.Tensor: ...
    def g() -> torch.Tensor: ...
    make = torch.library.custom_op
    return [attempt(lambda: make("made_named::f", f, mutates_args=()))[0],
            attempt(lambda: make("made_named::g", g, mutates_args=(), device_types="cpu"))[0],
            attempt(lambda: make("made_named::h", lambda x: None, mutates_args=(), schema="(Tensor(a!) x) -> ()"))[0]]


@program
def operators_in_parts(torch):
    """Register kernels, shapes and gradients one by one, as in PyTorch 2.1."""
    from importlib import import_module
    ops, name = import_module(f"{torch.__name__}._custom_ops"), f"parts_{torch.__name__}::scale"
    found = [attempt(lambda q=q: ops.custom_op(q, "(Tensor x) -> Tensor")) for q in ("scale", "a.b::c", "aten::c")]
    found.append(attempt(lambda: ops.custom_op(name, "(Tensor(a!) x) -> Tensor"))[0])
    ops.custom_op(name, "(Tensor x, float s, Tensor[] y) -> (Tensor, Tensor)")
    op = import_module(f"{torch.__name__}._custom_op.impl").get_op(name)
    x, y = torch.tensor([1., 2.], requires_grad=True), [torch.tensor([3., 5.], requires_grad=True)]
    plain = x.detach(), 2.0, [y[0].detach()]
    found.append(attempt(lambda: op(*plain))[0])
    ops.impl(name, func=lambda x, s, y: (x * s, y[0] + 1))
    found += [[t.tolist() for t in op(*plain)], attempt(lambda: op(x, 2.0, y))]
    ops.impl_save_for_backward(name, func=lambda inputs, output: (inputs.s, inputs._fields))
    found.append(attempt(lambda: op(x, 2.0, y))[0])
    wrong = [lambda s, g, h: {"x": g}, lambda s, g, h: [g], lambda s, g, h: {"x": g, "y": [h, h]}]
    answer = [lambda s, g, h: {"x": g * s, "y": [h * 3]}]
    ops.impl_backward(name, func=lambda ctx, saved, g, h: answer[0](saved[0], g, h))
    out = op(x, 2.0, y)
    found += [t.tolist() for t in torch.autograd.grad(out, [x, *y], [torch.tensor([1., 4.]), torch.tensor([2., 7.])])]
    for answer[0] in wrong:
        found.append(attempt(lambda: torch.autograd.grad(op(x, 2.0, y), x, [torch.ones(2)] * 2))[0])
    ops._destroy(name)
    return [*found, attempt(lambda: ops._destroy(name))[0]]


@program
def kernels_for_autograd(torch):
    library, seen = torch.library.Library(f"auto_{torch.__name__}", "FRAGMENT"), []
    library.define("twice(Tensor x) -> Tensor", tags=(torch.Tag.pointwise,))
    library.define("twice.by(Tensor x, Tensor by) -> Tensor")
    library.impl("twice", lambda x: seen.append(x.requires_grad) or x * 2, "CPU")
    library.impl("twice.by", lambda x, by: x * by, "CPU")
    op = getattr(torch.ops, library.ns).twice

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch._C._AutoDispatchBelowAutograd():
                return op(x)

        @staticmethod
        def backward(ctx, g):
            return g * 5
    library.impl("twice", Twice.apply, "Autograd")
    x = torch.tensor([3.], requires_grad=True)
    guard = torch._C._AutoDispatchBelowAutograd()
    below = op(x)
    del guard
    return [op(x), torch.autograd.grad(op(x), x), below.requires_grad, op(x, torch.tensor([7.])), op.overloads(),
            [tag.name for tag in op.default.tags], attempt(lambda: op(torch.ones(1, device="meta")))[0], len(seen)]


@program
def fake_tensors(torch):
    from importlib import import_module
    fakes = import_module(f"{torch.__name__}._subclasses.fake_tensor")
    mode, real = fakes.FakeTensorMode(), torch.ones(3, 2).T.requires_grad_()
    with mode:
        layer = torch.nn.Linear(3, 4)
        x = torch.rand(2, 3, dtype=torch.float32)
        y = layer(x)
        y.sum().backward()
        made = [x, y, layer.weight.grad, torch.zeros_like(x), x.double(), torch.arange(3), torch.eye(2, device="meta")]
        errors = [attempt(f)[0] for f in (x.sum().item, lambda: x @ x, lambda: bool(x.sum()))]
    kept = mode.from_tensor(real)
    return [[(tuple(t.shape), str(t.dtype), t.device.type, t.stride()) for t in (*made, kept)], errors,
            [isinstance(t, fakes.FakeTensor) for t in (x, y, kept, real, torch.ones(1))],
            repr(x), repr(y).split("=<")[0],
            mode.from_tensor(real) is kept, kept.requires_grad, attempt(x.nonzero)[0] != "tensor"]


@program
def functions_in_modes(torch):
    """Run functions in a mode of operators, where their operators have other arguments."""
    from importlib import import_module
    F, seen = torch.nn.functional, []

    class Log(import_module(f"{torch.__name__}.utils._python_dispatch").TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.name().startswith(MAKERS):
                seen.append((str(func), args, {k: str(v) for k, v in (kwargs or {}).items()}))
            return func(*args, **(kwargs or {}))
    x = torch.arange(6.).reshape(2, 3)
    with Log():
        torch.ones((2, 3), requires_grad=True), torch.empty(2, pin_memory=False), torch.arange(1, 9, 2), torch.eye(2, 3)
        torch.full((2,), 3., dtype=torch.float64), torch.randint(0, 3, (2,)), torch.linspace(0, 1, 3), torch.rand(())
    with Log():
        found = [F.embedding(torch.tensor([1]), x), F.batch_norm(x, None, None, training=True),
                 F.dropout(x, 0.0), F.elu(x - 2, 0.5), torch.fft.fft2(x).real, F.relu(x, inplace=False),
                 torch.nn.Linear(2, 2).weight.shape]
    return found, seen[:8]


MAKERS = tuple(f"aten::{name}" for name in "ones empty arange eye full randint linspace rand".split())


@program
def operators_of_wrappers(torch):
    from importlib import import_module
    tree, dispatch = (import_module(f"{torch.__name__}.utils.{name}") for name in ("_pytree", "_python_dispatch"))

    class Held(torch.Tensor):
        @staticmethod
        def __new__(cls, held):
            self = torch.Tensor._make_wrapper_subclass(cls, held.size(), strides=held.stride(), dtype=held.dtype)
            self.held = held
            return self

        def __tensor_flatten__(self):
            return ["held"], None

        __tensor_unflatten__ = None

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            bare = tree.tree_map(lambda v: v.held if isinstance(v, cls) else v, (args, kwargs or {}))
            out = tree.tree_map(lambda v: cls(v) if isinstance(v, torch.Tensor) else v, func(*bare[0], **bare[1]))
            return dispatch.return_and_correct_aliasing(func, args, kwargs, out)
    x, F = Held(torch.arange(16.).reshape(4, 4)), torch.nn.functional
    weak = import_module(f"{torch.__name__}.multiprocessing.reductions").StorageWeakRef
    found = [torch.fft.fft2(x), torch.fft.rfft(x), torch.fft.irfft(torch.fft.rfft(x)), F.dropout(x, 0.0),
             torch.linalg.svd(x).S[:2], F.max_pool2d(x[None], 2)]
    first, view, other = (weak(t.untyped_storage()) for t in (x, x.view(16), x + 1))
    return [t.held for t in found], first == view, first == other


@program
def calls_are_checked_by_the_schema(torch):
    def show(*args, **kwargs):
        seen.append([str(a) for a in args] + [f"{k}={v}" for k, v in kwargs.items()])
        return args[0][0] * 1
    seen, x = [], torch.ones(2)
    with torch.library._scoped_library("made_checks", "FRAGMENT") as library:
        library.define("f(Tensor[] xs, int[] k, int? n=None, bool b=False, *, str s='q', Scalar v=1, "
                       "ScalarType? d=None, float r=0, int[2] z=0) -> Tensor")
        library.impl("f", show, "CPU")
        f = torch.ops.made_checks.f
        calls = [lambda: f([x], [1], r=3, z=4), lambda: f((x,), (1, True), 3), lambda: f([x], [1], b=1),
                 lambda: f([x], [1], d=torch.float32, v=2.5), lambda: f([x], k=[1], r=torch.tensor(2)),
                 lambda: f([x], [1], n=2.5), lambda: f([x, 3], [1]), lambda: f([x], ["a"]), lambda: f([x], [1], s=3),
                 lambda: f([x], [1], v="x"), lambda: f(x, [1]), lambda: f([x]), lambda: f([x], [1], d="float"),
                 lambda: f([x], [1], None, True, 5), lambda: f([x], [1], q=5), lambda: f([x], [1], r=1j)]
        return [*map(attempt, calls), seen, attempt(lambda: library.impl("f", show, "Cpu"))]


@program
def overloads_are_named(torch):
    x = torch.ones(2)
    with torch.library._scoped_library("made_overloads", "FRAGMENT") as library:
        library.define("mul(Tensor x, float s=2.) -> Tensor")
        library.define("mul.two(Tensor x, Tensor y) -> Tensor")
        library.impl("mul", lambda x, s=2.0: x * s, "CPU")
        library.impl("mul.two", lambda x, y: x + y, "CPU")
        op = torch.ops.made_overloads.mul
        return [[str(each) for each in (op, op.default, op.two)], [repr(each) for each in (op, op.default, op.two)],
                op.overloads(), op.default.overloadpacket is op, op.two.__name__, op.default.name(), op(x), op(x, 3),
                op(x, x), attempt(lambda: op.three), attempt(lambda: op.two(x)), attempt(lambda: op("a"))[0],
                isinstance(op, torch._ops.OpOverloadPacket), isinstance(op.two, torch._ops.OpOverload)]


@program
def graphs_keep_operators(torch):
    """A kernel that looks at memory is a step; one of several results, too, with its gradient."""
    from importlib import import_module
    make_fx = import_module(f"{torch.__name__}.fx.experimental.proxy_tensor").make_fx
    op, halves = scaled(torch, "kept"), torch.library.custom_op(f"made_{torch.__name__}::halves", mutates_args=())

    def parts(x):
        return torch.from_numpy(x.detach().numpy()[:1] * 2), torch.from_numpy(x.detach().numpy()[1:] * 3)
    parts.__annotations__ = {"x": torch.Tensor, "return": tuple[torch.Tensor, torch.Tensor]}
    halves = halves(parts)
    op.register_fake(lambda x, factor=2.0: torch.empty_like(x))
    halves.register_fake(lambda x: (x.new_empty(1), x.new_empty(x.shape[0] - 1)))

    class Net(torch.nn.Module):
        def forward(self, x):
            first, second = halves(op(x, 3.0))
            return first + second
    x = torch.tensor([1.0, 2.0, 4.0])
    codes = [make_fx(Net())(x), torch.export.export(Net(), (x,)).module()]
    own = f"made_{torch.__name__}"
    return ([str(n.target).replace(own, "made") for n in codes[0].graph.nodes if n.op == "call_function"],
            [n.name for n in codes[0].graph.nodes][1:], *(code(x + 1) for code in codes), Net()(x + 1))


@program
def batches_without_a_rule(torch):
    """Each example goes to the kernel, which looks at memory; an operator without results needs no shapes."""
    def write(x):
        x.add_(1)
    write.__annotations__ = {"x": torch.Tensor, "return": None}
    written = torch.library.custom_op(f"made_{torch.__name__}::written", mutates_args={"x"})(write)
    x = torch.ones(2, device="meta")
    return (torch.vmap(scaled(torch, "looped"), in_dims=(1, None), out_dims=1)(torch.arange(6.0).reshape(2, 3), 3.0),
            written(x), attempt(lambda: torch.library.opcheck(written, (x,), test_utils="no"))[0])


test_programs = program.test(rtol=1e-6, atol=1e-7)


def test_opcheck():
    torch = tensorgrad
    good, wrong = scaled(torch, "good"), scaled(torch, "wrong")
    good.register_fake(lambda x, factor=2.0: torch.empty_like(x))
    good.register_autograd(lambda ctx, g: (g * 2, None), setup_context=lambda ctx, inputs, output: None)
    wrong.register_fake(lambda x, factor=2.0: x.new_empty(3))
    x = torch.ones(2, requires_grad=True)
    assert set(torch.library.opcheck(good, (x,)).values()) == {"SUCCESS"}
    found = torch.library.opcheck(wrong, (x,), raise_exception=False)
    assert found["test_schema"] == "SUCCESS"
    assert "Shapes torch.Size([2]) and torch.Size([3]) are not equal!" in str(found["test_faketensor"])

    def writes(x: torch.Tensor) -> torch.Tensor:
        return x.add_(1).clone()
    writer = torch.library.custom_op("made_tensorgrad::writes", writes, mutates_args=())
    with pytest.raises(Exception, match="test_schema failed with Argument x is not defined as mutable but was mutated"):
        torch.library.opcheck(writer, (torch.ones(2),))


def test_rules_for_modes():
    from tensorgrad.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))
    op = scaled(tensorgrad, "moded")
    op.register_torch_dispatch(Mode, lambda mode, func, types, args, kwargs: args[0] * 0)
    with Mode():
        assert op(tensorgrad.ones(2)).tolist() == [0, 0]
    assert op(tensorgrad.ones(2)).tolist() == [2, 2]
