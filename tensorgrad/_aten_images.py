"""Operators of `ops.aten` that pad, resize and unfold images; `torch._C._nn` has them, too."""
from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from .api._register import _with_out

PACKAGE = __name__.partition(".")[0]


def _functional(name: str) -> Any:
    """Return a function of nn.functional, in the form that overriding classes and autocast see."""
    return getattr(import_module(f"{PACKAGE}.nn.functional"), name)


def _padding(mode: str, axes: int) -> Callable[..., Any]:
    def pad(input: Any, padding: Any) -> Any:
        if len(padding) != 2 * axes:
            got = f", but got: {len(padding)}" if mode == "reflect" else ""
            raise RuntimeError(f"padding size is expected to be {2 * axes}{got}")
        return _functional("pad")(input, list(padding), mode)
    return pad


def _resizing(name: str, mode: str, axes: int, aligns: bool) -> Callable[..., Any]:
    """Return a function of an input, the new sizes or None, `align_corners` where the mode has it, and the factors:
    one after the other, or in a list, as they are also without sizes.
    """
    def upsample(input: Any, output_size: Any = None, *rest: Any, align_corners: bool = False,
                 scale_factors: Any = None, **scales: Any) -> Any:
        if aligns and rest:
            align_corners, *rest = rest         # type: ignore[assignment]
        if rest and isinstance(rest[0], (tuple, list)):
            scale_factors = rest[0]
        elif rest or scales:
            scale_factors = [*rest, *scales.values()]
        if input.ndim != axes + 2:
            raise RuntimeError(f"It is expected input_size equals to {axes + 2}, but got size {input.ndim}")
        if output_size is None:
            return _functional("interpolate")(input, None, list(scale_factors), mode, align_corners if aligns else None,
                                              antialias=name.endswith("_aa"))
        if len(output_size) != axes:
            raise RuntimeError(f"It is expected output_size equals to {axes}, but got size {len(output_size)}")
        factors = [None] * axes if scale_factors is None else list(scale_factors)
        return import_module(f"{PACKAGE}.nn._functions.interpolation").upsampled(
            input, list(output_size), factors, mode, align_corners, name.endswith("_aa"))
    upsample.__name__ = upsample.__qualname__ = name
    return _with_out(upsample, exact=True)       # type: ignore[no-any-return]


def _in_place(name: str) -> Callable[..., Any]:
    return lambda input: _functional(name)(input, inplace=True)


def _nll_loss2d(input: Any, target: Any, weight: Any = None, reduction: int = 0, ignore_index: int = -100) -> Any:
    return _functional("nll_loss")(input, target, weight, ignore_index=ignore_index,
                                   reduction=("none", "mean", "sum")[reduction])


MODES = {"upsample_nearest{}d": ("nearest", (1, 2, 3)), "_upsample_nearest_exact{}d": ("nearest-exact", (1, 2, 3)),
         "upsample_linear{}d": ("linear", (1,)), "upsample_bilinear{}d": ("bilinear", (2,)),
         "upsample_bicubic{}d": ("bicubic", (2,)), "upsample_trilinear{}d": ("trilinear", (3,)),
         "_upsample_bilinear{}d_aa": ("bilinear", (2,)), "_upsample_bicubic{}d_aa": ("bicubic", (2,)),
         "_upsample_lanczos{}d_aa": ("lanczos", (2,))}
IMAGES: dict[str, Callable[..., Any]] = {
    **{f"{long}ion_pad{n}d": _padding(mode, n) for long, mode in (("reflect", "reflect"), ("replicat", "replicate"))
       for n in (1, 2, 3)},
    **{name.format(n): _resizing(name.format(n), mode, n, not mode.startswith("nearest"))
       for name, (mode, many) in MODES.items() for n in many},
    **{f"{name}_": _in_place(name) for name in ("silu", "mish", "hardswish", "hardsigmoid", "relu6")},
    "nll_loss2d": _nll_loss2d, "im2col": lambda *args: _functional("unfold")(*args),
    "col2im": lambda *args: _functional("fold")(*args)}
