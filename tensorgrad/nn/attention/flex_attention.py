"""Attention whose scores and mask are user-defined functions (PyTorch: ``torch.nn.attention.flex_attention``).

PyTorch compiles them; here they are applied to all scores at once, by `vmap`.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ... import api as tg
from ...func import vmap

__all__ = ["AuxOutput", "AuxRequest", "BlockMask", "and_masks", "create_block_mask", "create_mask",
           "create_nested_block_mask", "flex_attention", "noop_mask",
           "or_masks"]

BLOCK = _DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """Selects additional results of flex_attention: log Σ exp of the scores, and their maximum."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The additional results of flex_attention, as selected by an AuxRequest."""

    lse: Any = None
    max_scores: Any = None


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Any:
    """The mask that allows all pairs."""
    return batch.new_ones(size=(), dtype=tg.bool, device=batch.device)


def and_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """Return the conjunction of masks. https://pytorch.org/docs → torch.nn.attention.flex_attention.and_masks"""
    return _joined(mask_mods, tg.bitwise_and, True)


def or_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Any]:
    """Return the disjunction of masks. https://pytorch.org/docs → torch.nn.attention.flex_attention.or_masks"""
    return _joined(mask_mods, tg.bitwise_or, False)


def _joined(mask_mods: Any, join: Any, start: bool) -> Callable[..., Any]:
    if not all(callable(mask) for mask in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask(b: Any, h: Any, q: Any, kv: Any) -> Any:
        result = b.new_full((), start, dtype=tg.bool)
        for mod in mask_mods:
            result = join(result, mod(b, h, q, kv))
        return result
    return mask


def _at_all_places(function: Any, shape: tuple[int, ...], device: Any, *scores: Any) -> Any:
    """Evaluate function([score,] b, h, q, k) at all indices of a tensor of this shape (b, h, q, k)."""
    first = 0 if scores else None
    lead = (first,) if scores else ()
    for i in reversed(range(4)):
        function = vmap(function, in_dims=(*lead, *(0 if i == j else None for j in range(4))))
    return function(*scores, *(tg.arange(n, device=device) for n in shape))


def create_mask(mod_fn: Any, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Any:
    """Return a mask function's values, or a score function's values for scores of zero, as a tensor (B, H, Q, KV).

    https://pytorch.org/docs → torch.nn.attention.flex_attention.create_mask
    """
    shape = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    if _takes_scores(mod_fn):
        out = _at_all_places(mod_fn, shape, device, tg.zeros(shape, device=device))
        return tg.where(tg.isneginf(out), False, True)
    return _at_all_places(mod_fn, shape, device).expand(shape)


def _takes_scores(function: Any) -> bool:
    from inspect import Parameter, signature
    named = [p for p in signature(function).parameters.values()
             if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]
    return sum(p.default is Parameter.empty for p in named) == 5


class BlockMask:
    """A mask, and its blocks that are all False.

    https://pytorch.org/docs → torch.nn.attention.flex_attention.BlockMask
    """

    def __init__(self, mask: Any, mask_mod: Any, block: tuple[int, int]) -> None:
        self.mask, self.mask_mod, self.BLOCK_SIZE, self.seq_lengths = mask, mask_mod, block, tuple(mask.shape[2:])

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes (B, H, Q, KV)."""
        return tuple(self.mask.shape)

    def to_dense(self) -> Any:
        """Return 1 for each block that allows any pair, 0 for others."""
        b, h, q, kv = self.shape
        rows, columns = self.BLOCK_SIZE
        padded = tg.zeros(b, h, -(-q // rows) * rows, -(-kv // columns) * columns, dtype=tg.bool,
                          device=self.mask.device)
        padded[..., :q, :kv] = self.mask
        return padded.view(b, h, -1, rows, padded.shape[3] // columns, columns).any(5).any(3).int()

    def sparsity(self) -> float:
        """Return the percentage of the pairs that belong to blocks without an allowed pair."""
        rows, columns = self.BLOCK_SIZE
        return 100 * (1 - self.to_dense().sum().item() * rows * columns / self.numel())  # type: ignore[no-any-return]

    def numel(self) -> int:
        """Return the number of pairs."""
        return int(self.mask.numel())

    def to(self, device: Any) -> BlockMask:
        """Return the mask on a device."""
        return BlockMask(self.mask.to(device), self.mask_mod, self.BLOCK_SIZE)

    def __getitem__(self, index: Any) -> BlockMask:
        index = index if isinstance(index, tuple) else (index,)
        index = tuple(slice(i, i + 1 or None) if isinstance(i, int) else i for i in index)
        return BlockMask(self.mask[index], self.mask_mod, self.BLOCK_SIZE)

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def create_block_mask(mask_mod: Any, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
                      BLOCK_SIZE: Any = BLOCK,
                      _compile: bool = False, **options: Any) -> BlockMask:
    """Make a BlockMask for `flex_attention` from a function of (b, h, q, kv).

    https://pytorch.org/docs → torch.nn.attention.flex_attention.create_block_mask

    >>> from tensorgrad.nn.attention.flex_attention import create_block_mask
    >>> create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256).sparsity()
    25.0
    """
    block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    return BlockMask(create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), mask_mod, block)


def create_nested_block_mask(*args: Any, **kwargs: Any) -> Any:
    """Refused: there are no nested tensors."""
    raise NotImplementedError("tensorgrad has no create_nested_block_mask: tensors are strided")


def flex_attention(query: Any, key: Any, value: Any, score_mod: Any = None, block_mask: BlockMask | None = None,
                   scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False,
                   kernel_options: Any = None, *,
                   return_aux: AuxRequest | None = None) -> Any:
    """softmax(score_mod(Q Kᵀ · scale, b, h, q, kv)) V over the pairs that the mask allows; zeros for a query without
    any.

    https://pytorch.org/docs → torch.nn.attention.flex_attention.flex_attention

    >>> import tensorgrad as torch
    >>> from tensorgrad.nn.attention.flex_attention import flex_attention
    >>> q = torch.ones(1, 1, 2, 4)
    >>> flex_attention(q, q, q, score_mod=lambda score, b, h, q, kv: score + kv).shape
    torch.Size([1, 1, 2, 4])
    """
    for name, tensor in (("query", query), ("key", key), ("value", value)):
        if tensor.dim() != 4:
            raise ValueError("Expected query, key, and value to be 4D tensors") if name == "query" else ValueError(
                f"Expected {name} to be a 4D tensor")
    if not enable_gqa and query.size(-3) != key.size(-3):
        raise ValueError("Expect query and key/value to have the same number of heads but got "
                         f"Hq={query.size(-3)} and Hkv={key.size(-3)}. Try setting enable_gqa=True for GQA.")
    if enable_gqa:
        repeats = query.size(1) // key.size(1)
        key, value = key.repeat_interleave(repeats, 1), value.repeat_interleave(repeats, 1)
    scores = query @ key.transpose(-2, -1) * (query.size(-1) ** -0.5 if scale is None else scale)
    if score_mod is not None:
        scores = _at_all_places(score_mod, tuple(scores.shape), scores.device, scores)
    if block_mask is not None:
        mask = block_mask.mask[..., :scores.size(2), :scores.size(3)]
        scores = scores.masked_fill(~mask, -float("inf"))
    lse = scores.logsumexp(-1, keepdim=True)
    weights = tg.exp(scores - lse.masked_fill(lse == -float("inf"), 0))
    out = (weights @ value).to(query.dtype)
    if return_aux is not None:
        return out, AuxOutput(lse.squeeze(-1) if return_aux.lse else None,
                              scores.amax(-1) if return_aux.max_scores else None)
    return (out, lse.squeeze(-1)) if return_lse else out
