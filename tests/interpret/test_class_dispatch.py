"""Classes that define `__torch_dispatch__`, beside PyTorch: the operators they are asked for, results and gradients."""
import copy
import io
import warnings

import numpy as np
import pytest
from samples import SAMPLES
from side_by_side import attempt, same
from support import Programs, cpu_only

from tensorgrad.core.dispatch import apply
from tensorgrad.ops.base import OPS

pytestmark = cpu_only
program = Programs()


def boxed(torch):
    """A wrapper subclass that computes with the tensor it holds, and lists the operators."""
    class Boxed(torch.Tensor):
        __slots__ = ["held"]
        log = []

        @staticmethod
        def __new__(cls, held, requires_grad=False):
            self = torch.Tensor._make_wrapper_subclass(cls, held.size(), strides=held.stride(), dtype=held.dtype,
                                                       device=held.device, requires_grad=requires_grad)
            self.held = held
            return self

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.log.append(str(func))
            return wrapped(func(*opened(args), **(opened(kwargs or {}))))

        def __repr__(self):
            return super().__repr__(tensor_contents=str(self.held))

    def opened(value):
        if isinstance(value, dict):
            return {name: opened(part) for name, part in value.items()}
        return type(value)(map(opened, value)) if type(value) in (list, tuple) else getattr(value, "held", value)

    def wrapped(value):
        if isinstance(value, (list, tuple)):
            return [wrapped(part) for part in value]
        return Boxed(value) if isinstance(value, torch.Tensor) else value
    return Boxed


X = [[0.5, -1.5, 2.0], [1.25, 0.75, -0.25]]
CALLS = {
    "arithmetic": lambda torch, x: [x * 2, 2 - x, x + x, x / x, x ** 2, -x],
    "comparisons": lambda torch, x: [x > 0.5, x == x, 1 < x],
    "single elements": lambda torch, x: [x.exp(), x.tanh(), torch.relu(x), x.abs(), torch.sigmoid(x), x.clamp(0, 1)],
    "reductions": lambda torch, x: [x.sum(), x.sum(1), x.mean(0, keepdim=True), x.var(1), x.prod(1), x.amax(0)],
    "several results": lambda torch, x: [*x.max(1), *x.sort(1), *x.split(1), *x.unbind()],
    "views": lambda torch, x: [x.view(-1), x.transpose(0, 1), x.unsqueeze(0), x[0], x[:, 1:2], x.expand(2, 2, 3)],
    "products": lambda torch, x: [x @ x.transpose(0, 1), torch.nn.functional.linear(x, x)],
    "joins": lambda torch, x: [torch.cat([x, x]), torch.stack([x, x], 1), x.flip(0)],
    "new tensors": lambda torch, x: [torch.zeros_like(x), torch.full_like(x, 3), x.new_ones(2), x.double(), x.clone()],
    "choices": lambda torch, x: [x.masked_fill(x > 0, 7.), torch.where(x > 0, x, x.exp()), x.gather(1, x.argsort(1))],
}


@pytest.mark.parametrize("name", CALLS)
def test_operators_and_results(name):
    def run(torch):
        Boxed = boxed(torch)
        outs = CALLS[name](torch, Boxed(torch.tensor(X)))
        return Boxed.log, [(type(out).__name__, out.held) for out in outs]
    same(run)


@program
def arguments_of_operators(torch):
    """Numbers as operands, and arguments that are defaults."""
    Boxed, found, F = boxed(torch), [], torch.nn.functional

    class Told(Boxed):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            found.append((str(func), [arg for arg in args if not isinstance(arg, (torch.Tensor, list))],
                          sorted(kwargs or {})))
            return func(*(getattr(arg, "held", arg) for arg in args), **(kwargs or {}))
    x, n = Told(torch.tensor(X)), Told(torch.tensor([[1, 0, 1], [1, 1, 0]]))
    results = [
        1 / x, 2 % x, 2 // x, x // 2, torch.copysign(x, 2.), torch.xlogy(x, 2.), torch.xlogy(2., x),
        torch.special.zeta(x, 2.), torch.special.xlog1py(2., x),
        torch.bitwise_left_shift(n, 2), x.div(2, rounding_mode="trunc"),
        x[0:2], x[-1:], x[:, -2:-1], x[:, 0:3], x[0:2, 1:], x.diagonal(), x.tril(), x.triu(1), x.squeeze(),
        x.split(1)[0], x.split([1, 1])[0], x.amax(), x.amin(0), x.all(1), x.norm(), x.norm(3., dim=1), x.argmax(),
        x.var(), x.std(0, keepdim=True), x.topk(2, 1)[0], x.topk(2, 1, False)[0], x.kthvalue(1, 1)[0], x.sort(1)[0],
        x.logsumexp(1), F.elu(x), F.celu(x), F.leaky_relu(x), F.softplus(x), F.softshrink(x), F.hardshrink(x, .7),
        x.nan_to_num(), x.clamp(0), x.clamp(max=1), F.embedding(torch.tensor([1, 0]), x, padding_idx=1),
        F.mse_loss(x, x + 1), F.huber_loss(x, x, reduction="sum"), F.smooth_l1_loss(x, x, beta=.5),
        F.soft_margin_loss(x, x), F.binary_cross_entropy_with_logits(x, x), torch.searchsorted(x, x, right=True)]
    return found, results


GRADIENTS = {
    "elementwise": lambda torch, x, w: (x.exp() * w / (1 + x * x)).tanh(),
    "rows": lambda torch, x, w: x.softmax(1) * w + x.var(1, keepdim=True) + x.logsumexp(0),
    "products": lambda torch, x, w: (x @ w.transpose(0, 1)).relu() @ w,
    "parts": lambda torch, x, w: torch.cat([x[0] * w[1], x[:, 1:].reshape(-1)]).flip(0) * x.max(1).values.sum(),
    "norms": lambda torch, x, w: torch.nn.functional.layer_norm(x, (3,)) * w + x.norm(),
    "losses": lambda torch, x, w: torch.nn.functional.cross_entropy(x * w, torch.tensor([2, 0])),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name):
    """First gradients by backward, second ones by grad, with respect to a wrapper and through one."""
    def run(torch):
        Boxed = boxed(torch)
        x, w = Boxed(torch.tensor(X), requires_grad=True), Boxed(torch.tensor(X).flip(1) * 3, requires_grad=True)
        out = GRADIENTS[name](torch, x, w)
        g = Boxed(torch.linspace(-1, 2, out.numel()).reshape(out.shape))
        first = torch.autograd.grad(out, (x, w), g, create_graph=True)
        second = torch.autograd.grad(first[0], x, Boxed(torch.tensor(X) + 1))
        GRADIENTS[name](torch, x, w).backward(g)
        found = (*first, *second, x.grad, w.grad)
        return [type(t).__name__ for t in found], [t.held for t in found]
    same(run, rtol=2e-5, atol=1e-6)


@program
def writes_in_place(torch):
    Boxed = boxed(torch)
    x, plain = Boxed(torch.tensor(X), requires_grad=True), torch.ones(2, 3)
    y = x * 2
    y.mul_(x).add_(1)
    y.sum().backward()
    z = x.detach()
    version, log = z._version, len(Boxed.log)
    z.add_(1).zero_()
    return y.held, x.grad.held, z._version - version, Boxed.log[log:], attempt(lambda: plain.add_(x.detach()) is plain)


@program
def results_written_to_wrappers(torch):
    """`out=`, random numbers, indices and gradients that are added reach the tensor that a wrapper holds."""
    Boxed = boxed(torch)

    class Kept(Boxed):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            found = super().__torch_dispatch__(func, types, args, kwargs)
            return (kwargs or {}).get("out", args[0] if func._opname.endswith("_") else found)
    x, outs = Kept(torch.tensor([1.0, 2.0])), [Kept(torch.zeros(2)) for _ in range(4)]
    plain, mask = torch.zeros(2), torch.tensor([True, False])
    torch.add(x, 1, out=outs[0])
    torch.add(torch.ones(2), 2, out=outs[1])
    torch.exp(x, out=plain)
    torch.manual_seed(3)
    outs[2].normal_(1.0, 2.0).bernoulli_(0.5)
    outs[2].uniform_().random_(5)
    outs[3].index_put_((torch.tensor([1]),), torch.tensor(3.0))
    outs[3].masked_fill_(mask, 9.0)
    plain[Kept(torch.tensor([1]))] = 5.0
    log, leaf = [*Kept.log], Boxed(torch.ones(2), requires_grad=True)
    (leaf * 2).sum().backward()
    first = leaf.grad
    masked = leaf * 1
    masked[masked > 5] = 0.0            # a wrapper as the mask, recorded
    (leaf * 3).sum().backward()
    return ([out.held for out in outs], plain, log, leaf.grad is first, first.held, masked.held,
            attempt(lambda: torch.add(leaf, 1, out=outs[0])))


@program
def modes_and_classes(torch):
    mode_of = torch.utils._python_dispatch

    class Own(mode_of.TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Counting(mode_of.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            counted.append(str(func))
            return func(*args, **(kwargs or {}))

    class Sine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g.sin()
    counted, y = [], Sine.apply(torch.ones(1, requires_grad=True))
    with Counting():
        y.backward()

    class Serving(mode_of.TorchDispatchMode):
        @classmethod
        def is_infra_mode(cls):
            return True

    class Text(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return "text"

    def inside():
        with Own():
            return torch.ones(2).neg()
    with Serving():
        found = [mode_of.is_in_torch_dispatch_mode(flag) for flag in (True, False)]
    held = torch.Tensor._make_subclass(Text, torch.ones(2))
    return ("aten.sin.default" in counted, found, attempt(inside)[0], attempt(held.neg)[0],
            attempt(lambda: boxed(torch)(torch.ones(2)).as_subclass(Text))[0],
            attempt(lambda: torch.Tensor._make_subclass(Text, 3))[0])


@program
def what_a_wrapper_says_of_itself(torch):
    Boxed = boxed(torch)
    x = Boxed(torch.tensor(X).double().T, requires_grad=True)
    y = x.exp()
    return (x.shape, x.stride(), str(x.dtype), str(x.device), x.is_leaf, repr(x), repr(y), y.grad_fn.name(),
            x.transpose(0, 1)._is_view(), x.sum().item(), bool((x == x).all()), attempt(x.detach().numpy))


@program
def copies_and_files_keep_the_class(torch):
    Boxed = boxed(torch)
    x = Boxed(torch.tensor(X), requires_grad=True)
    x.note = "kept"
    twin = copy.deepcopy(x)
    with torch.no_grad():
        x.held.zero_()
    parameter = torch.nn.Parameter(twin)
    return (type(twin).__name__, twin.held, twin.note, twin.requires_grad, isinstance(parameter, torch.nn.Parameter),
            type(parameter).__name__, repr(parameter))


def test_a_saved_wrapper_is_read_again():
    import tensorgrad as torch
    Boxed = boxed(torch)
    Boxed.__module__, Boxed.__qualname__ = __name__, "Boxed"
    globals()["Boxed"] = Boxed
    file, x = io.BytesIO(), Boxed(torch.tensor(X), requires_grad=True)
    torch.save({"x": x}, file)
    file.seek(0)
    with pytest.raises(Exception, match="Boxed"):
        torch.load(file)
    file.seek(0)
    with torch.serialization.safe_globals([Boxed]):
        found = torch.load(file)["x"]
    assert type(found) is Boxed and found.requires_grad and torch.equal(found.held, x.held)
    del globals()["Boxed"]


@program
def classes_that_hold_memory(torch):
    class Counted(torch.Tensor):
        log = []

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.log.append(str(func))
            return super().__torch_dispatch__(func, types, args, kwargs)

    x = torch.Tensor._make_subclass(Counted, torch.tensor(X))
    out = (x * 2).exp()
    with torch._C._DisableTorchDispatch():
        quiet = x + 1
    return out, quiet, Counted.log, type(x).__name__


@program
def operators_of_a_program(torch):
    Boxed = boxed(torch)

    @torch.library.custom_op("wrapper_test::cube", mutates_args=())
    def cube(x: torch.Tensor) -> torch.Tensor:
        return x ** 3
    cube.register_autograd(lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
                           setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
    x = Boxed(torch.tensor(X), requires_grad=True)
    out = cube(x)
    out.sum().backward()
    return out.held, x.grad.held, sum("cube" in name for name in Boxed.log)


@program
def convolutions(torch):
    Boxed = boxed(torch)
    x, w, b = (Boxed(torch.linspace(-1, 2, n).reshape(shape), requires_grad=True)
               for n, shape in ((40, (1, 2, 4, 5)), (36, (3, 2, 3, 2)), (3, (3,))))
    out = torch.nn.functional.conv2d(x, w, b, stride=2, padding=1)
    (out * out).sum().backward()
    return out.held, x.grad.held, w.grad.held, b.grad.held


@program
def a_class_may_decline(torch):
    class Declines(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    x = torch.Tensor._make_wrapper_subclass(Declines, (2,))
    return (attempt(lambda: torch.exp(x))[0], attempt(lambda: torch.Tensor._make_wrapper_subclass(torch.Tensor, (2,))),
            attempt(lambda: torch.Tensor._make_wrapper_subclass(Declines, (2,), dtype=torch.int64, requires_grad=True)))


@program
def tangents_and_checks(torch):
    Boxed, forward = boxed(torch), torch.autograd.forward_ad
    with forward.dual_level(), warnings.catch_warnings():
        warnings.simplefilter("ignore")         # of the compiler that PyTorch loads for tangents
        dual = forward.make_dual(Boxed(torch.tensor(X)), Boxed(torch.tensor(X) * 2))
        out = forward.unpack_dual((dual * dual).sum(1))
    x = Boxed(torch.tensor(X).double(), requires_grad=True)
    rows = torch.autograd.functional.jacobian(lambda x: x.sin().sum(0), x.detach(), vectorize=True)
    drawn = torch.rand_like(x)
    return (out.primal.held, out.tangent.held, torch.autograd.gradcheck(lambda x: x.sin().sum(0), (x,)),
            type(rows).__name__, rows.held, type(drawn).__name__, drawn.dtype == x.dtype)


@program
def functions_between_plain_tensors_and_wrappers(torch):
    Boxed = boxed(torch)

    class Wrap(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return Boxed(x.detach())

        @staticmethod
        def backward(ctx, g):
            return g.held

    class Open(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.held.clone()

        @staticmethod
        def backward(ctx, g):
            return Boxed(g)

    x = torch.tensor(X, requires_grad=True)
    (Open.apply(Wrap.apply(x * 2).exp()) * torch.tensor(X)).sum().backward()
    return type(x.grad).__name__, x.grad


test_programs = program.test(rtol=1e-5, atol=1e-5)


# ops without an operator of PyTorch here, for such classes: factorizations, spectra, pooling, results of unknown shape
WITHOUT = frozenset(
    "as_strided bincount channels_last cholesky_factor cofactors columns columns_added copied dirichlet_grad "
    "distinct distinct_slices eig_pairs eig_values eigh_pairs eigh_values filled fourier_transform frexp "
    "from_half_spectrum half_spectrum histc householder_factors inverse_matrix ldl_factor ldl_solve "
    "log_determinant lu_factor max_pool pivot_order pseudo_inverse qr_factor region_max restride rrelu_with_noise "
    "set_view singular_values solve_linear solve_triangular standard_gamma standard_gamma_grad svd_factor "
    "to_device unfold unfold_add view window_max window_spread window_sum".split())


def on_first_sample(torch, op, row, made):
    """The results of an op on a sample, whose arrays become tensors of a class."""
    given = row.prepared([made(torch.tensor(a)) if isinstance(a, np.ndarray) else a for a in row.draw("float32")])
    found = apply(op, given, **row.params) if op.sequence else apply(op, *given, **row.params)
    return list(found) if op.several else [found]


def test_ops_of_the_table():
    """Each op, on wrappers of its first sample, returns wrappers of its results on plain tensors."""
    import tensorgrad as torch
    Boxed, ran = boxed(torch), 0
    for name, rows in SAMPLES.items():
        op, row = OPS[name], rows[0]
        if name in WITHOUT or "sparse" in name or "sampled" in name:
            continue
        plain, wrapped = on_first_sample(torch, op, row, lambda t: t), on_first_sample(torch, op, row, Boxed)
        ran += 1
        for one, other in zip(plain, wrapped, strict=True):
            assert type(other) is Boxed and other.held.dtype is one.dtype and other.shape == one.shape, name
            torch.testing.assert_close(other.held, one.detach(), rtol=1e-5, atol=1e-6, equal_nan=True, msg=name)
    assert ran > 200
