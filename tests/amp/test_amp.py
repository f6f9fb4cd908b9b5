"""Mixed precision beside PyTorch: what autocast casts, and how GradScaler scales.

And the settings of the whole program.
"""
import pytest
from support import DEVICE, Programs

import tensorgrad as tg

program = Programs()


def where_neither_has_a_gpu(function):
    """A program that asks for one: PyTorch, which the tests compare with, has none."""
    return program(function) if DEVICE == "cpu" else function


def dtypes_of(torch, calls):
    for call in calls:
        try:
            result = call()
            yield str((result if isinstance(result, torch.Tensor) else result[0]).dtype)
        except RuntimeError as error:       # NotImplementedError, too
            yield type(error).__name__


@program
def what_runs_in_bfloat16_and_what_in_float32(torch):
    F = torch.nn.functional
    x, v, b, image = torch.ones(4, 4), torch.ones(4), torch.ones(2, 4, 4), torch.ones(1, 3, 8, 8)
    weight, d, h, classes = (torch.ones(2, 3, 3, 3), torch.ones(4, 4, dtype=torch.float64),
                             torch.ones(4, 4, dtype=torch.bfloat16), torch.arange(4))
    with torch.autocast("cpu"):
        return list(dtypes_of(torch, [
            lambda: x @ x, lambda: torch.mm(x, x), lambda: x.matmul(x), lambda: torch.bmm(b, b),
            lambda: torch.addmm(x, x, x), lambda: torch.baddbmm(b, b, b),
            lambda: torch.mv(x, v), lambda: F.linear(x, x), lambda: F.conv2d(image, weight),
            lambda: torch.einsum("ij,jk", x, x), lambda: torch.dot(v, v),
            lambda: F.scaled_dot_product_attention(b, b, b), lambda: torch.nn.Linear(4, 2)(x),
            lambda: torch.nn.MultiheadAttention(4, 2)(x, x, x),
            lambda: torch.nn.GRU(4, 4)(x), lambda: torch.tensordot(x, x, 1), lambda: torch.linalg.multi_dot([x, x, x]),
            lambda: d @ d, lambda: F.relu(x), lambda: h + x, lambda: h * h, lambda: h.sum(), lambda: h.exp(),
            lambda: torch.softmax(h, 0),
            lambda: F.layer_norm(h, (4,)), lambda: F.cross_entropy(h, classes), lambda: F.mse_loss(h, h),
            lambda: F.nll_loss(h, classes), lambda: h.prod(),
            lambda: torch.cdist(h, h), lambda: torch.inverse(h + 9 * torch.eye(4)), lambda: torch.trace(h),
            lambda: torch.fft.fft(h), lambda: torch.cat([h, x]),
            lambda: torch.stack([h, x]), lambda: torch.nn.TransformerEncoderLayer(4, 2)(x), lambda: F.kl_div(h, h),
            lambda: torch.quantile(h, 0.5)]))


def test_an_lstm_runs_in_bfloat16():
    """PyTorch's does too where oneDNN has kernels for it (AVX-512), and raises elsewhere: it cannot be asked on every
    processor.
    """
    with tg.autocast("cpu"):
        assert {t.dtype for out in tg.nn.LSTM(4, 4)(tg.ones(4, 4))
                for t in (out if isinstance(out, tuple) else (out,))} == {tg.bfloat16}


CALLS = """einsum("ij->ji", x)|einsum("i,i->i", v, v)|einsum("i,j->ij", v, v)|einsum("ij,j->i", x, v)|einsum("bij,bjk->bik", b, b)|einsum("ij,jk,kl", x, x, x)
einsum("ij,ij", x, x)|einsum("ij,k->ijk", x, v)|tensordot(v, v, 1)|tensordot(x, x, 1)|tensordot(x, x, 2)|inner(v, v)|inner(x, v)|inner(x[0, 0], x)|outer(v, v)
linalg.matrix_power(x, 2)|linalg.matrix_power(x, 1)|linalg.pinv(x)|cov(x)|corrcoef(x)|linalg.vecdot(x, x)|nn.functional.pad(h[None], (1, 1), mode="reflect")
nn.functional.pad(h[None, None], (1, 1, 1, 1), mode="replicate")|nn.functional.pad(h[None], (1, 1), mode="circular")|kthvalue(h, 1)[0]|mode(h)[0]
nn.functional.interpolate(h[None, None, None], scale_factor=2, mode="area")|nn.functional.interpolate(h[None, None], scale_factor=2, mode="area")
nn.functional.max_pool3d(h[None, None], 1)|nn.functional.max_pool2d(h[None], 1)|nn.functional.adaptive_avg_pool3d(h[None, None], 1)|addcmul(h, x, x)
nn.functional.gaussian_nll_loss(h, h, h)|nn.LayerNorm(4)(h)|nn.BatchNorm1d(4)(h)|nn.GroupNorm(2, 4)(h)|nn.BatchNorm1d(4).eval()(h)|nn.PReLU()(x)|cross(h, x)
hstack([h, x])|column_stack([h, x])|index_copy(h, 0, i, x)|index_put(h, (i,), x)|mm(x, x, out=empty(4, 4))|atan2(h, x)|dot(h[0], h[1])|x.clone().addmm_(x, x)
cat([h, h])|linalg.cond(h)|linalg.cholesky_ex(h + 9 * eye(4))[0]|scatter_add(h, 0, i[None], h)""".replace("\n", "|").split("|")  # noqa: E501


@program
def what_else_is_cast(torch):
    seen = []
    for dtype in torch.bfloat16, torch.float16:
        x, v, b, i = torch.ones(4, 4), torch.ones(4), torch.ones(2, 4, 4), torch.arange(4)
        names = {name: getattr(torch, name) for call in CALLS for name in [call.partition("(")[0].partition(".")[0]]
                 if hasattr(torch, name)}
        names |= {"x": x, "v": v, "b": b, "i": i, "h": x.bfloat16(), "eye": torch.eye, "empty": torch.empty}
        with torch.autocast("cpu", dtype=dtype):
            seen.append([(call, *dtypes_of(torch, [lambda call=call, names=names: eval(call, names)]))
                         for call in CALLS])
    return seen


@where_neither_has_a_gpu
def devices_that_are_not_here(torch):
    seen = []
    for name in "cpu", "cuda", "xpu", "mps", "meta", "hpu":
        seen.append(torch.amp.is_autocast_available(name))
        try:
            with torch.autocast(name) as block:
                seen += [str(block.fast_dtype), block._enabled, block.device, torch.is_autocast_enabled(name),
                         str((torch.ones(2, 2) @ torch.ones(2, 2)).dtype)]
        except RuntimeError as error:
            seen.append(str(error))
    return seen


@where_neither_has_a_gpu
def older_names(torch):
    with torch.cpu.amp.autocast(), torch.cuda.amp.autocast():
        seen = [str((torch.ones(2, 2) @ torch.ones(2, 2)).dtype), torch.cpu.amp.GradScaler().is_enabled(),
                torch.cuda.amp.GradScaler().is_enabled()]
    torch.cuda.amp.custom_fwd(len)
    torch.cuda.amp.custom_bwd(len)
    return (seen, torch.autocast_increment_nesting(), torch.autocast_decrement_nesting(),
            torch.cuda.amp.common.amp_definitely_not_available())


@program
def a_training_step(torch):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    x, y = torch.randn(16, 8), torch.randint(2, (16,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(x)
        loss = torch.nn.functional.cross_entropy(out, y)
    loss.backward()
    return (str(out.dtype), str(loss.dtype), [str(p.grad.dtype) for p in model.parameters()],
            torch.allclose(loss, torch.tensor(0.7), atol=0.3))


@program
def blocks_nest_and_decorate(torch):
    x = torch.ones(2, 2)

    @torch.autocast("cpu", dtype=torch.float16)
    def product(a, b):
        return a @ b
    seen = [product(x, x).dtype, (x @ x).dtype]
    with torch.autocast("cpu") as block:
        seen += [(x @ x).dtype, torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"), type(block).__name__]
        with torch.autocast("cpu", enabled=False):
            seen += [(x @ x).dtype, torch.is_autocast_enabled("cpu")]
        with torch.autocast("cpu", dtype=torch.float16):
            seen.append((x @ x).dtype)
        seen.append((x @ x).dtype)
    seen += [(x @ x).dtype, torch.is_autocast_enabled("cpu"), torch.amp.is_autocast_available("cpu")]
    return [str(s) for s in seen]


@program
def an_unsupported_dtype_switches_it_off(torch):
    with torch.autocast("cpu", dtype=torch.float64):
        return str((torch.ones(2, 2) @ torch.ones(2, 2)).dtype)


@program
def the_wrong_device(torch):
    torch.autocast(3)


@program
def functions_say_what_they_take(torch):
    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g @ b.T, a.T @ g
    x = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu"):
        y = Product.apply(x.bfloat16(), x)
    y.sum().backward()
    return str(y.dtype), x.grad


def scaled_step(torch, scaler, factor=1.0):
    torch.manual_seed(0)
    w = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.5)
    scaler.scale((w * w).sum() * factor).backward()
    return w, optimizer


@program
def a_good_step_and_a_bad_one(torch):
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=1)
    w, optimizer = scaled_step(torch, scaler)
    before = w.grad.clone()
    scaler.unscale_(optimizer)
    result = scaler.step(optimizer)
    scaler.update()
    good = scaler.state_dict()
    v, optimizer = scaled_step(torch, scaler, float("inf"))
    scaler.step(optimizer)
    scaler.update()
    return before, w, result, good, v, scaler.state_dict(), scaler.get_scale()


class Unscaling:
    """Optimizers that unscale themselves, and tell what they were given."""

    def __new__(cls, torch, params, keyword):
        class Own(torch.optim.Optimizer):
            _step_supports_amp_scaling = True

            def __init__(self):
                super().__init__(params, {})

            if keyword:
                def step(self, closure=None, *, grad_scaler=None):
                    return type(grad_scaler).__name__, hasattr(self, "found_inf")
            else:
                def step(self, closure=None):
                    return self.grad_scale, self.found_inf
        return Own()


@program
def optimizers_that_unscale_themselves(torch):
    scaler, seen = torch.amp.GradScaler("cpu", init_scale=4.0), []
    for factor, keyword, unscaled in ((1., False, False), (float("inf"), False, True), (1., True, False)):
        w, _ = scaled_step(torch, scaler, factor)
        own = Unscaling(torch, [w], keyword)
        if unscaled:
            scaler.unscale_(own)
        seen.append((scaler.step(own), w.grad, hasattr(own, "found_inf")))
        if keyword:
            scaler.unscale_(Unscaling(torch, [w], True))
        scaler.update()
    half = torch.zeros(3, requires_grad=True)
    half.grad = torch.sparse_coo_tensor([[1, 1]], [6e4, 6e4], (3,), check_invariants=True)
    found = scaler._unscale_grads_(Unscaling(torch, [half], False), torch.tensor(.5), torch.zeros(()), True)
    return seen, found[torch.device("cpu")], half.grad.to_dense(), list(scaler._per_optimizer_states)


@program
def scaled_outputs(torch):
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    return (scaler.scale([torch.ones(1), (torch.ones(2),)]), scaler.is_enabled(),
            torch.amp.GradScaler("cpu", enabled=False).scale(torch.ones(1)))


@program
def state_goes_on(torch):
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    other.set_growth_factor(3.0)
    return other.state_dict(), other.get_growth_interval(), other.get_backoff_factor()


for _name, _misuse in {
        "twice": lambda torch, s, o: (s.unscale_(o), s.unscale_(o)),
        "after_the_step": lambda torch, s, o: (s.step(o), s.unscale_(o)),
        "two_steps": lambda torch, s, o: (s.step(o), s.step(o)),
        "closure": lambda torch, s, o: s.step(o, closure=lambda: 1),
        "nothing_scaled": lambda torch, s, o: torch.amp.GradScaler("cpu").step(o),
        "nothing_to_update": lambda torch, s, o: torch.amp.GradScaler("cpu").update(),
        "growth": lambda torch, s, o: torch.amp.GradScaler("cpu", growth_factor=1.0),
        "empty_state": lambda torch, s, o: s.load_state_dict({})}.items():
    def _program(torch, misuse=_misuse):
        scaler = torch.amp.GradScaler("cpu")
        misuse(torch, scaler, scaled_step(torch, scaler)[1])
    _program.__name__ = f"misuse_{_name}"
    program(_program)


@program
def settings_are_kept(torch):
    torch.use_deterministic_algorithms(True, warn_only=True)
    seen = [torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled(),
            torch.get_deterministic_debug_mode()]
    seen += [torch.empty(2), torch.empty(2, dtype=torch.int32), torch.empty(1, dtype=torch.bool)]
    torch.set_deterministic_debug_mode("default")
    torch.set_float32_matmul_precision("high")
    seen += [torch.get_deterministic_debug_mode(), torch.get_float32_matmul_precision()]
    torch.set_float32_matmul_precision("highest")
    return seen, torch.pi, torch.inf, torch.newaxis, torch.is_warn_always_enabled()


@program
def functions_refused_by_deterministic_mode(torch):
    x, i, seen = torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 2, 2, dtype=torch.int64), []
    calls = (lambda: torch.nn.functional.max_unpool1d(x[0], i[0], 2), lambda: torch.nn.MaxUnpool2d(2)(x, i),
             lambda: torch.ones(3).put_(i[0, 0, 0], x[0, 0, 0]),
             lambda: torch.ones(3).put_(i[0, 0, 0], x[0, 0, 0], accumulate=True),
             lambda: setattr(torch.utils.deterministic, "fill_uninitialized_memory", 1))
    torch.set_deterministic_debug_mode("error")
    try:
        for call in calls:
            try:
                seen.append(call())
            except RuntimeError as error:
                seen.append(str(error))
        torch.set_deterministic_debug_mode("warn")
        with pytest.warns(UserWarning, match="put_ does not have a deterministic"):
            calls[2]()
    finally:
        torch.set_deterministic_debug_mode("default")
    return seen


@program
def settings_that_do_not_exist(torch):
    seen = []
    for call in (lambda: torch.set_deterministic_debug_mode("loud"), lambda: torch.set_deterministic_debug_mode(7),
                 lambda: torch.use_deterministic_algorithms(1)):
        with pytest.raises((RuntimeError, TypeError)) as caught:
            call()
        seen.append((type(caught.value).__name__, str(caught.value)))
    return seen


@program
def methods_that_programs_seldom_need(torch):
    x = torch.arange(6.).reshape(2, 3)
    return (x.dim_order(), x.T.dim_order(), x.is_same_size(x), torch.is_signed(x), torch.get_device(x),
            torch.is_inference(x), torch.detach(x),
            x.new([1., 2.]), x.new(2, 2).shape, x.clone().map2_(x, x, lambda a, b, c: a + b - c),
            torch.unsafe_split_with_sizes(x, [1, 1]),
            x.module_load(x + 1), x.grad_dtype == torch.float32)


@program
def another_dtype_for_the_gradient(torch):
    x = torch.ones(2, requires_grad=True)
    x.grad_dtype = torch.float64
    (x * 2).sum().backward()
    return x.grad


test_programs = program.test()


def test_a_scaler_pickles_between_iterations():
    import pickle
    scaler = tg.amp.GradScaler("cpu", init_scale=4.0)
    assert pickle.loads(pickle.dumps(scaler)).get_scale() == 4.0


def test_addmm_activation_is_lowered():
    x = tg.eye(2)
    with tg.autocast("cpu"):
        assert tg._addmm_activation(x[0], x, x, use_gelu=True).dtype is tg.bfloat16
        rows, weights = tg.ones(1, 2, 2), (tg.ones(6, 2), tg.ones(6), x, x[0])
        assert tg._native_multi_head_attention(rows, rows, rows, 2, 1, *weights)[0].dtype is tg.bfloat16
        assert tg._C._nn.reflection_pad1d(rows.bfloat16(), (1, 1)).dtype is tg.float32
