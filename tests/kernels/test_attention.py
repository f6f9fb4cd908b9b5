"""Attention on NumPy, block by block, beside its definition; masks, numbers out of range, and what reaches the mask."""
import pytest
from support import cpu_only

import tensorgrad as torch
from tensorgrad.kernels import attention_numpy
from tensorgrad.ops.base import OPS
from tensorgrad.storage import NumpyStorage

pytestmark = cpu_only
F = torch.nn.functional


def given(*shape, scale=1.0):
    return (torch.randn(*shape, dtype=torch.float64) * scale).requires_grad_()


def side_by_side(*shape):
    """Query, key and value as they come out of one product."""
    return given(2, shape[0], 3, 3, shape[1]).permute(2, 0, 3, 1, 4)


NOTHING = torch.tensor([[True] * 6, [False] * 6, [True, False] * 3, [False] * 5 + [True], [False] * 6])
SEVERAL = {
    "plain": lambda: (given(2, 3, 5, 4), given(2, 3, 6, 4), given(2, 3, 6, 2)),
    "causal": lambda: (*side_by_side(7, 4), None, True),
    "causal, more queries": lambda: (given(2, 3, 9, 4), given(2, 3, 4, 4), given(2, 3, 4, 4), None, True),
    "causal, more keys": lambda: (given(2, 3, 4, 4), given(2, 3, 9, 4), given(2, 3, 9, 4), None, True),
    "rows that see nothing": lambda: (given(2, 3, 5, 4), given(2, 3, 6, 4), given(2, 3, 6, 4),
                                      torch.zeros(5, 6).double().masked_fill(~NOTHING, -torch.inf)),
    "a mask that learns": lambda: (given(2, 3, 5, 4), given(2, 3, 6, 4), given(2, 3, 6, 4), given(3, 1, 6)),
    "large scores": lambda: (given(2, 3, 5, 4, scale=40), given(2, 3, 6, 4, scale=40), given(2, 3, 6, 4)),
    "a large mask": lambda: (given(2, 3, 5, 4), given(2, 3, 6, 4), given(2, 3, 6, 4), given(2, 1, 5, 6, scale=2000)),
    "columns": lambda: tuple(given(2, 3, 4, 6).transpose(-1, -2) for _ in range(3)),
}


def attend(q, k, v, mask=None, causal=False):
    return F.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)


@pytest.mark.parametrize("block", [1, 13, 50, 70, 1 << 17])
@pytest.mark.parametrize("case", SEVERAL)
def test_blocks_come_to_the_same_as_the_definition(case, block, monkeypatch):
    monkeypatch.setattr(attention_numpy, "BLOCK", block)
    arguments = SEVERAL[case]()
    inputs = [t for t in arguments if isinstance(t, torch.Tensor) and t.requires_grad]
    arrays = [getattr(t, "array", None) for t in (*arguments, None)[:4]]
    out = attend(*arguments)
    assert out.grad_fn.name() == "ScaledDotProductFlashAttentionForCpuBackward0"
    defined = OPS["attention"].forward(NumpyStorage.xp, *arrays, causal=arguments[4:] == (True,),
                                       scale=arguments[0].shape[-1] ** -0.5)
    assert torch.allclose(out, torch.from_numpy(defined), rtol=1e-12)
    g = torch.cos(torch.arange(out.numel(), dtype=torch.float64)).reshape(out.shape)
    for ours, expected in zip(torch.autograd.grad(out, inputs, g, retain_graph=True),
                              torch.autograd.grad(out, inputs, g, create_graph=True)):
        assert torch.allclose(ours, expected, rtol=1e-9, atol=1e-12)


def test_second_derivatives():
    q, k, v, mask = given(1, 2, 3, 2), given(1, 2, 4, 2), given(1, 2, 4, 2), given(3, 4)
    assert torch.autograd.gradgradcheck(attend, (q, k, v, mask))
    assert torch.autograd.gradcheck(lambda q, k, v: attend(q, k, v, None, True), (q, k, v))


def test_a_mask_of_what_is_allowed():
    q, k, v = given(2, 3, 5, 4), given(2, 3, 6, 4), given(2, 3, 6, 4)
    out = attend(q, k, v, NOTHING)
    assert out[:, :, [1, 4]].abs().sum() == 0 and out[:, :, [0, 2, 3]].abs().min() > 0
    assert torch.allclose(out[:, :, 3], v[:, :, 5])
    for three in (attend(q[0], k[0], v[0], NOTHING), attend(q[0, 0], k[0, 0], v[0, 0], NOTHING)):
        assert torch.allclose(three, out[0] if three.ndim == 3 else out[0, 0])
    gradients = torch.autograd.grad(out.sum(), (q, k, v))
    assert all(g.isfinite().all() for g in gradients) and gradients[0][:, :, [1, 4]].abs().sum() == 0


def test_nan_stays_where_it_is():
    q, k, v = torch.randn(3, 1, 2, 4, 2)
    q[0, 1, 2] = torch.nan
    assert attend(q, k, v).isnan().any(-1)[0].tolist() == [[False] * 4, [False, False, True, False]]


@pytest.mark.parametrize("written", ["query", "key", "value", "out"])
def test_a_write_to_what_was_kept_is_noticed(written):
    q, k, v = (given(1, 2, 3, 4) * 1 for _ in range(3))
    out = attend(q, k, v)
    {"query": q, "key": k, "value": v, "out": out.detach()}[written].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_heads_lie_side_by_side_in_memory():
    q, k, v = torch.randn(3, 2, 3, 5, 4)
    out = attend(q, k, v)
    assert out.stride() == (60, 4, 12, 1)
    assert out.transpose(1, 2).reshape(2, 5, 12).data_ptr() == out.data_ptr()


def test_weights_that_nobody_needs_change_nothing():
    attention, x = torch.nn.MultiheadAttention(8, 2, batch_first=True), torch.randn(3, 5, 8)
    padding = torch.arange(5) >= torch.tensor([5, 3, 4])[:, None]
    causal = torch.nn.Transformer.generate_square_subsequent_mask(5)
    for options in ({}, {"key_padding_mask": padding}, {"attn_mask": causal}, {"attn_mask": causal, "is_causal": True},
                    {"attn_mask": torch.randn(6, 5, 5), "key_padding_mask": padding}):
        if padding is options.get("key_padding_mask") and "attn_mask" in options:
            options["key_padding_mask"] = torch.zeros(3, 5).masked_fill(padding, -torch.inf)
        expected, _ = attention(x, x, x, **options)
        found, weights = attention(x, x, x, need_weights=False, **options)
        assert weights is None and torch.allclose(found, expected, atol=1e-6)


def test_flexible_attention():
    """Scores and masks of functions come to what masks and biases as tensors do."""
    from tensorgrad.nn.attention.flex_attention import (
        AuxRequest,
        and_masks,
        create_block_mask,
        create_mask,
        flex_attention,
        noop_mask,
        or_masks,
    )
    q, k, v = (given(2, 2, 7, 4) for _ in range(3))
    steps, slope = torch.arange(7), torch.tensor([0.5, 0.25], dtype=torch.float64)
    bias = slope[:, None, None] * (steps[:, None] - steps)

    def causal(b, h, i, j):
        return i >= j
    pairs = [
        (flex_attention(q, k, v), F.scaled_dot_product_attention(q, k, v)),
        (flex_attention(q, k, v, lambda s, b, h, i, j: s + slope[h] * (i - j)),
         F.scaled_dot_product_attention(q, k, v, bias)),
        (flex_attention(q, k, v, lambda s, b, h, i, j: torch.where(i >= j, s, -float("inf"))),
         F.scaled_dot_product_attention(q, k, v, is_causal=True)),
        (flex_attention(q, k, v, block_mask=create_block_mask(causal, None, None, 7, 7), scale=0.3),
         F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3)),
        (flex_attention(q, k[:, :1], v[:, :1], enable_gqa=True),
         F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], enable_gqa=True))]
    for ours, plain in pairs:
        torch.testing.assert_close(ours, plain)
        upstream = torch.arange(float(ours.numel()), dtype=ours.dtype).reshape(ours.shape).sin()
        for one, other in zip(*(torch.autograd.grad(y, (q, k, v), upstream) for y in (ours, plain))):
            torch.testing.assert_close(one, other)
    none = create_block_mask(lambda b, h, i, j: i < -1, None, None, 7, 7)
    assert flex_attention(q, k, v, block_mask=none).eq(0).all() and "sparsity=100.00%" in str(none)
    near = create_mask(and_masks(causal, lambda b, h, i, j: i - j < 2), 1, 1, 3, 3)
    assert (near.int().tolist() == [[[[1, 0, 0], [1, 1, 0], [0, 1, 1]]]]
            and create_mask(or_masks(causal, noop_mask), None, None, 2, 2).all())
    mask = create_block_mask(causal, 2, None, 300, 200)
    assert (mask.shape == (2, 1, 300, 200) and mask[0].shape == (1, 1, 300, 200)
            and mask.to_dense().tolist() == 2 * [[[[1, 0], [1, 1], [1, 1]]]])
    _, lse = flex_attention(q, k, v, return_lse=True)
    _, aux = flex_attention(q, k, v, return_aux=AuxRequest(lse=True, max_scores=True))
    torch.testing.assert_close(lse, (q @ k.mT / 2).logsumexp(-1))
    assert torch.equal(aux.lse, lse) and torch.equal(aux.max_scores, (q @ k.mT / 2).amax(-1))
    with pytest.raises(ValueError, match="same number of heads but got Hq=2 and Hkv=1"):
        flex_attention(q, k[:, :1], v[:, :1])


@pytest.mark.parametrize("batch_first", [False, True])
def test_the_result_lies_in_memory_as_pytorchs_does(batch_first):
    """A dropout after it draws its numbers in that order."""
    theirs = pytest.importorskip("torch")

    def steps(engine):
        engine.manual_seed(0)
        attention, x = engine.nn.MultiheadAttention(16, 2, batch_first=batch_first), engine.randn(4, 5, 16)
        out = attention(x, x, x, need_weights=False)[0]
        return out.stride(), engine.nn.functional.dropout(out).eq(0).tolist()
    assert steps(torch) == steps(theirs)


def test_sums_leave_room_for_their_products_with_values():
    q, k, v = torch.full((1, 1, 1, 4), 6.6), torch.full((1, 1, 3, 4), 6.6), torch.full((1, 1, 3, 4), 8.0)
    (out, _) = attention_numpy.Attention.forward(*(x.numpy() for x in (q, k, v)), None, causal=False, scale=0.5)
    assert torch.allclose(torch.from_numpy(out), torch.full((1, 1, 1, 4), 8.0))
