"""Switches of the whole program: deterministic algorithms, the precision of float32 products, warnings.

Every algorithm here is deterministic and computes in full precision; the switches exist so that programs can set them
and read them back. https://pytorch.org/docs/stable/notes/randomness.html
"""
from __future__ import annotations

import warnings

__all__ = ["are_deterministic_algorithms_enabled", "get_deterministic_debug_mode", "get_float32_matmul_precision",
           "init_num_threads", "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled",
           "set_anomaly_enabled", "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_warn_always",
           "use_deterministic_algorithms"]

DEBUG_MODES = ("default", "warn", "error")
PRECISIONS = ("highest", "high", "medium")


class Settings:
    """The program's settings."""

    deterministic = 0                # an index of DEBUG_MODES
    warn_only = False                # as it was asked for, even without deterministic algorithms
    fill_uninitialized_memory = True
    precision = "highest"


settings = Settings()


NOT_DETERMINISTIC = (
    "{} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True{})'. You "
    "can {}file an issue at https://github.com/pytorch/pytorch/issues to help us prioritize adding deterministic "
    "support for this operation.")
ELSEWHERE = ("turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's "
             "acceptable for your application. You can also ")


def alert(function: str) -> None:
    """Raise, or warn, if deterministic algorithms are asked for: PyTorch's function is not deterministic."""
    if settings.deterministic == 1:
        warnings.warn(NOT_DETERMINISTIC.format(function, ", warn_only=True", ""), UserWarning, stacklevel=3)
    elif settings.deterministic:
        raise RuntimeError(NOT_DETERMINISTIC.format(function, "", ELSEWHERE))


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for deterministic algorithms: all of them are; memory that `empty` leaves unfilled is filled, too.

    Unpooling and `put_` raise RuntimeError nevertheless, as in PyTorch, where any one of equal indices may win.

    https://pytorch.org/docs → torch.use_deterministic_algorithms

    >>> import tensorgrad as torch
    >>> torch.use_deterministic_algorithms(True)
    >>> torch.empty(2)
    tensor([nan, nan])
    >>> torch.use_deterministic_algorithms(False)
    """
    if not isinstance(mode, bool):
        raise TypeError(f"_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not "
                        f"{type(mode).__name__}")
    if not isinstance(warn_only, bool):
        raise TypeError(f"_set_deterministic_algorithms(): argument 'warn_only' must be bool, not "
                        f"{type(warn_only).__name__}")
    _set(0 if not mode else 1 if warn_only else 2, warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Return True if deterministic algorithms are required.

    https://pytorch.org/docs → torch.are_deterministic_algorithms_enabled
    """
    return settings.deterministic > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return True if algorithms that are not deterministic should only warn.

    https://pytorch.org/docs → torch.is_deterministic_algorithms_warn_only_enabled
    """
    return settings.warn_only


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set `use_deterministic_algorithms` by number or name: default (0), warn (1), error (2).

    https://pytorch.org/docs → torch.set_deterministic_debug_mode
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in DEBUG_MODES:
            raise RuntimeError(f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                               f"{debug_mode}")
        debug_mode = DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    _set(debug_mode, debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2. https://pytorch.org/docs → torch.get_deterministic_debug_mode"""
    return settings.deterministic


def _set(mode: int, warn_only: bool) -> None:
    settings.deterministic, settings.warn_only = mode, warn_only
    fill_or_not()


def fill_or_not() -> None:
    """Tell the functions that make memory whether to fill it."""
    from ..api import creation, indexing
    indexing.alerts[:] = [alert] * (settings.deterministic > 0)
    creation.fill_memory = settings.deterministic > 0 and settings.fill_uninitialized_memory


def set_float32_matmul_precision(precision: str) -> None:
    """Set the precision of float32 matrix products: 'highest', 'high' or 'medium'.

    Products here always have the highest.

    https://pytorch.org/docs → torch.set_float32_matmul_precision
    """
    if precision not in PRECISIONS:
        warnings.warn(f"{precision} is not one of 'highest', 'high', or 'medium'; the currentsetFloat32MatmulPrecision "
                      f"call has no effect.",
                      UserWarning, stacklevel=2)
        return
    settings.precision = precision


def get_float32_matmul_precision() -> str:
    """Return the precision that was set. https://pytorch.org/docs → torch.get_float32_matmul_precision"""
    return settings.precision


def set_warn_always(b: bool, /) -> None:
    """Show warnings that come once a process each time. https://pytorch.org/docs → torch.set_warn_always"""
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    from ..api._arguments import WARNED
    WARNED.always = b


def is_warn_always_enabled() -> bool:
    """Return True if such warnings are repeated. https://pytorch.org/docs → torch.is_warn_always_enabled"""
    from ..api._arguments import WARNED
    return WARNED.always


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Turn anomaly detection on or off. https://pytorch.org/docs → torch.autograd.set_detect_anomaly"""
    from ..core.anomaly import set_detect_anomaly
    set_detect_anomaly(mode, check_nan)


def init_num_threads() -> None:
    """Do nothing: threads are counted when they are used."""
