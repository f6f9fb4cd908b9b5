"""Attention modules in evaluation, when nothing is recorded: their own results for hints and masks, as in PyTorch."""
import pytest
from support import cpu_only, needed

import tensorgrad

torch = needed("torch")
pytestmark = cpu_only


def answers(lib, function):
    """Return what `function(lib, same)` gives, whose modules have the same weights for both libraries, or its error."""
    def same(module):
        for i, weight in enumerate(module.parameters()):
            values = lib.arange(weight.numel(), dtype=lib.float32)
            weight.data = lib.sin(values * (i + 1.3)).reshape(weight.shape)
        return module.eval()
    try:
        with lib.no_grad():
            out = function(lib, same)
    except Exception as error:
        return type(error).__name__, str(error).splitlines()[0]
    return [None if t is None else (tuple(t.shape), t.flatten().tolist())
            for t in (out if isinstance(out, tuple) else (out,))]


def attention(**given):
    def call(lib, same):
        x = lib.cos(lib.arange(24.)).reshape(2, 3, 4)
        arguments = {name: value if isinstance(value, bool) else lib.tensor(value).bool()
                     for name, value in given.items()}
        return same(lib.nn.MultiheadAttention(4, 2, batch_first=True))(x, x, x, **arguments)
    return call


def encoder(width=4, activation="gelu", hook=False, **given):
    def call(lib, same):
        x = lib.cos(lib.arange(6. * width)).reshape(2, 3, width)
        arguments = {name: value if isinstance(value, bool) else lib.tensor(value).bool()
                     for name, value in given.items()}
        layer = same(lib.nn.TransformerEncoderLayer(4, 2, 5, activation=activation, batch_first=True))
        if hook:
            layer.linear1.register_forward_hook(lambda module, args, out: out * 2)
        return layer(x, **arguments)
    return call


def direct(kind, mask, **changes):
    def call(lib, same):
        x = lib.cos(lib.arange(24.)).reshape(2, 3, 4)
        weights = [lib.sin(lib.arange(48.)).reshape(12, 4), lib.sin(lib.arange(12.)), lib.eye(4), lib.ones(4)]
        arguments = {"embed_dim": 4, "num_head": 2} | changes
        return lib._native_multi_head_attention(x, x.clone(), x, *arguments.values(), *weights, lib.tensor(mask).bool(),
                                                True, False, kind)
    return call


PADDED, TRIANGLE = [[0, 0, 1], [1, 1, 1]], [[0, 1, 1], [0, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize("function", [
    attention(), attention(is_causal=True), attention(need_weights=False),
    attention(is_causal=True, need_weights=False, attn_mask=[[0] * 3] * 3),
    attention(key_padding_mask=PADDED), attention(key_padding_mask=PADDED, need_weights=False),
    attention(key_padding_mask=PADDED, attn_mask=TRIANGLE, average_attn_weights=False),
    attention(attn_mask=[TRIANGLE] * 4), attention(attn_mask=[[0] * 4] * 4), attention(attn_mask=[[[0] * 3] * 3] * 5),
    attention(key_padding_mask=[[0] * 4] * 2), attention(key_padding_mask=[0] * 3),
    encoder(), encoder(is_causal=True), encoder(activation="relu", src_mask=TRIANGLE), encoder(hook=True),
    encoder(src_key_padding_mask=PADDED), encoder(width=5),
    direct(0, TRIANGLE), direct(1, PADDED), direct(None, PADDED), direct(0, PADDED), direct(1, TRIANGLE),
    direct(3, PADDED), direct(2, PADDED), direct(1, PADDED, embed_dim=5), direct(1, PADDED, num_head=3),
])
def test_inference_is_that_of_pytorch(function):
    ours, theirs = answers(tensorgrad, function), answers(torch, function)
    if isinstance(theirs, list):
        theirs = [t and (t[0], pytest.approx(t[1], abs=1e-5, nan_ok=True)) for t in theirs]
    assert ours == theirs


def test_the_switch_leads_back_to_the_other_path():
    x = tensorgrad.ones(1, 2, 4)
    layer = tensorgrad.nn.MultiheadAttention(4, 2, batch_first=True).eval()
    tensorgrad.backends.mha.set_fastpath_enabled(False)
    try:
        with tensorgrad.no_grad(), pytest.raises(RuntimeError, match="Need attn_mask if specifying the is_causal hint"):
            layer(x, x, x, is_causal=True)
    finally:
        tensorgrad.backends.mha.set_fastpath_enabled(True)
    with tensorgrad.no_grad():
        assert layer(x, x, x, is_causal=True)[0].shape == (1, 2, 4)


@pytest.mark.parametrize("dtype", ["float16", "float32", "bool", "complex64"])
def test_a_bias_of_another_dtype_is_added_where_the_input_is_no_matrix(dtype):
    def found(lib, x):
        try:
            out = lib.nn.functional.linear(x, lib.ones(3, 4, dtype=lib.float64), lib.ones(3, dtype=getattr(lib, dtype)))
        except RuntimeError as error:
            return str(error).splitlines()[0]
        return str(out.dtype), out.tolist()
    for shape in ((5, 2, 4), (5, 2, 1, 4)):
        for turned in (False, True):
            given = [lib.ones(shape, dtype=lib.float64) for lib in (tensorgrad, torch)]
            ours, theirs = (x.transpose(0, 1) if turned else x for x in given)
            assert found(tensorgrad, ours) == found(torch, theirs)
    attention = tensorgrad.nn.MultiheadAttention(4, 2, batch_first=True, dtype=tensorgrad.float64).eval()
    attention.in_proj_bias.data = attention.in_proj_bias.data.half()
    x = tensorgrad.ones(2, 3, 4, dtype=tensorgrad.float64)
    assert attention(x, x, x)[0].dtype is tensorgrad.float64


@pytest.mark.parametrize("corner, sizes", [("causal_upper_left", (2, 3)), ("causal_lower_right", (2, 3)),
                                           ("causal_lower_right", (3, 3))])
def test_causal_biases(corner, sizes):
    def found(lib):
        from importlib import import_module
        bias = getattr(import_module(f"{lib.__name__}.nn.attention.bias"), corner)(*sizes)
        q, k = lib.cos(lib.arange(4. * sizes[0])).reshape(-1, 4), lib.sin(lib.arange(4. * sizes[1])).reshape(-1, 4)
        out = lib.nn.functional.scaled_dot_product_attention(q, k, k, bias, scale=0.2)
        with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
            lib.nn.functional.scaled_dot_product_attention(q, k, k, bias, is_causal=True)
        return bias._materialize().tolist(), type(out).__name__, out.tolist()
    (mask, kind, out), theirs = found(tensorgrad), found(torch)
    assert (mask, kind) == theirs[:2]
    assert [pytest.approx(row, abs=1e-6) for row in theirs[2]] == out


def test_the_choice_of_a_backend():
    def found(lib, *, dtype="float32", mask=None, keys=(1, 2, 3, 4), **given):
        q, k = lib.ones(1, 2, 3, 4, dtype=getattr(lib, dtype)), lib.ones(keys, dtype=getattr(lib, dtype))
        return lib._fused_sdp_choice(q, k, k, None if mask is None else lib.ones(3, 3, requires_grad=mask), **given)
    for given in ({}, {"dtype": "float16"}, {"dropout_p": 0.5}, {"mask": True}, {"mask": False}, {"is_causal": True},
                  {"keys": (1, 1, 3, 4)}, {"keys": (1, 1, 3, 4), "enable_gqa": True}, {"keys": (1, 2, 3, 5)}):
        assert found(tensorgrad, **given) == found(torch, **given), given


def test_sequences_of_a_nested_tensor_attend_by_themselves():
    rows = [tensorgrad.cos(tensorgrad.arange(4.0 * n)).reshape(n, 4) for n in (3, 1, 2)]
    weights = [tensorgrad.sin(tensorgrad.arange(48.0)).reshape(12, 4), tensorgrad.sin(tensorgrad.arange(12.0)),
               tensorgrad.eye(4), tensorgrad.ones(4)]
    x = tensorgrad.nested.nested_tensor(rows)
    found, _ = tensorgrad._native_multi_head_attention(x, x, x, 4, 2, *weights, None, False)
    for row, out in zip(rows, found.unbind(), strict=True):
        row = row[None]
        alone, _ = tensorgrad._native_multi_head_attention(row, row, row, 4, 2, *weights, None, False)
        tensorgrad.testing.assert_close(out, alone[0])
    assert not tensorgrad.overrides.has_torch_function((x,))
    attention = tensorgrad.nn.MultiheadAttention(4, 2, batch_first=True)
    with tensorgrad.no_grad():
        assert attention.eval()(x, x, x)[0].is_nested
    with pytest.raises(AssertionError, match="outside of its fast path.*grad is enabled"):
        attention(x, x, x)
