"""The few names of PyTorch's compiled module that programs use."""
from __future__ import annotations

from enum import Enum
from importlib import import_module
from typing import Any

from numpy import broadcast_shapes

from .._tensor import Tensor as TensorBase
from .._tensor.torch_function import AskingMethod, DisableTorchFunction, DisableTorchFunctionSubclass, state
from .._tensor.torch_function import disabled as _disabled_torch_function_impl
from ..core.class_hooks import DisableTorchDispatch, disabled_dispatch
from ..core.inplace import address
from ..core.mode import mode
from ..generator import Generator
from ..messages.missing_names import MissingName
from ..ops.linalg import LinAlgError as _LinAlgError
from ..size import Size
from ._namespaces import _fft, _linalg, _nn, _special, _VariableFunctions

PACKAGE = __name__.partition(".")[0]
_TensorMeta = type(TensorBase)
has_lapack = has_spectral = True        # NumPy's
has_mkl = has_openmp = _has_mkldnn = False


def _log_api_usage_once(event: str) -> None:
    """Do nothing: no use of the API is logged."""


def _skip_one_hop_torch_function(func: Any, types: Any, args: Any, kwargs: Any = None) -> Any:
    """Call a function without its overrides; functions that it calls keep theirs."""
    kwargs, home = kwargs or {}, str(getattr(func, "__module__", None))
    if isinstance(func, AskingMethod) or isinstance(getattr(func, "__self__", None), property) or home == PACKAGE:
        with DisableTorchFunctionSubclass():        # in PyTorch, compiled functions, which call no others
            return func(*args, **kwargs)
    if home.startswith(f"{PACKAGE}."):
        return getattr(func, "__wrapped__", func)(*args, **kwargs)
    state.skips = True
    try:
        return func(*args, **kwargs)
    finally:
        state.skips = False


def _get_tracing_state() -> None:
    """Return None: no TorchScript trace is recorded."""


def _get_privateuse1_backend_name() -> str:
    """Return the name of the device type that PyTorch leaves to others: nothing has renamed it."""
    return "privateuseone"


def _is_cow_tensor(tensor: TensorBase) -> bool:
    """Return True while the memory is shared with a lazy copy, see `torch._lazy_clone`."""
    return tensor._storage.lazy is not None


def _data_address(tensor: TensorBase) -> int:
    """Return the address of the first element; unlike `data_ptr()`, it leaves the memory shared with lazy copies."""
    return address(tensor.array)


def _storage_address(tensor: TensorBase) -> int:
    """Return a number that tensors of one storage share."""
    return id(tensor._storage)


def _infer_size(a: Size, b: Size, /) -> Size:
    """Return the shape that two shapes broadcast to."""
    for place, size in enumerate((a, b), 1):
        if not isinstance(size, Size):
            raise RuntimeError(f"expected a torch.Size as argument {place}")
    for k in range(1, min(len(a), len(b)) + 1):
        if 1 not in (a[-k], b[-k]) and a[-k] != b[-k]:
            raise RuntimeError(f"The size of tensor a ({a[-k]}) must match the size of tensor b ({b[-k]}) at "
                               f"non-singleton dimension {max(len(a), len(b)) - k}")
    return Size(broadcast_shapes(a, b))


class _TorchFunctionState(Enum):
    """The overrides that a thread calls: of classes and modes, of modes alone, or none."""

    ENABLED, SUBCLASSES_DISABLED, ALL_DISABLED = range(3)


def _get_torch_function_state() -> _TorchFunctionState:
    """Return which overrides this thread calls."""
    return (_TorchFunctionState.ENABLED if state.classes else _TorchFunctionState.ALL_DISABLED if state.disabled
            else _TorchFunctionState.SUBCLASSES_DISABLED)


def _is_torch_function_all_disabled() -> bool:
    """Return True if this thread calls no overrides."""
    return state.disabled


def _debug_only_are_vmap_fallback_warnings_enabled() -> bool:
    """Return False: vmap has no slow path that it could warn of."""
    return False


def _debug_only_display_vmap_fallback_warnings(enabled: bool) -> None:
    """Do nothing: vmap has no slow path that it could warn of."""


def _len_torch_function_stack() -> int:
    """Return the number of active modes."""
    return len(state.modes)


def _get_function_stack_at(index: int) -> Any:
    """Return an active mode; 0 is the outermost."""
    return state.modes[index]


def _push_on_torch_function_stack(mode: Any) -> None:
    """Make a mode the innermost."""
    state.modes = (*state.modes, mode)


def _pop_torch_function_stack() -> Any:
    """Remove the innermost mode, and return it."""
    *others, innermost = state.modes
    state.modes = tuple(others)
    return innermost


def _are_functorch_transforms_active() -> bool:
    """Return True inside vmap, and inside a derivative of a function."""
    return bool(mode.batches) or (mode.watching.refused or "").startswith("torch.func")


_ConvBackend = Enum("_ConvBackend", "CudaDepthwise2d CudaDepthwise3d Cudnn CudnnTranspose Empty Miopen MiopenDepthwise "
                    "MiopenTranspose Mkldnn MkldnnEmpty NnpackSpatial Overrideable Slow2d Slow3d SlowDilated2d "
                    "SlowDilated3d SlowTranspose2d SlowTranspose3d Winograd3x3Depthwise Xnnpack2d Mps", start=0)


class Graph:
    """The class of PyTorch's graphs of compiled functions, for isinstance: it has no instances."""


class Node:
    """The class of the nodes of such graphs, for isinstance: it has no instances."""


class Value:
    """The class of the values in such graphs, for isinstance: it has no instances."""


class DispatchKey(Enum):
    """PyTorch's keys for choosing kernels.

    Kernels are chosen by device alone here: packages only register under the other keys.
    """

    (Undefined, CPU, CUDA, Meta, AutogradCPU, AutogradCUDA, Autograd, AutocastCPU, AutocastCUDA, AutocastXPU,
     CompositeImplicitAutograd, CompositeExplicitAutograd, Functionalize, Python, PythonDispatcher, BackendSelect,
     ADInplaceOrView) = range(17)


class DispatchKeySet:
    """A set of dispatch keys."""

    def __init__(self, key: DispatchKey) -> None:
        self.keys = {key}

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        both = DispatchKeySet(DispatchKey.Undefined)
        both.keys = self.keys | other.keys
        return both

    def has(self, key: DispatchKey) -> bool:
        """Return True if the set contains the key."""
        return key in self.keys


OF_ENGINE = frozenset("_WeakTensorRef _current_autograd_node _current_graph_task_execution_order "
                      "_current_graph_task_id _set_fwd_grad_enabled _will_engine_execute_node is_grad_enabled".split())


OF_DISPATCHER = frozenset("ExcludeDispatchKeyGuard _AutoDispatchBelowAutograd _EnableTorchFunction "
                          "_ExcludeDispatchKeyGuard _dispatch_has_computed_kernel_for_dispatch_key "
                          "_dispatch_has_kernel_for_dispatch_key parse_schema".split())
_DisableTorchDispatch, _disabled_torch_dispatch_impl = DisableTorchDispatch, disabled_dispatch


def __getattr__(name: str) -> Any:
    """Submodules are imported when they are first used."""
    if name in ("_autograd", "_functions", "_functorch", "_profiler"):
        return import_module(f"{__name__}.{name}")
    if name in ("_get_autograd_fallback_mode", "_set_autograd_fallback_mode"):
        return getattr(import_module(f"{PACKAGE}._unregistered"), name)
    if name in OF_DISPATCHER:
        return getattr(import_module(f"{PACKAGE}._library.dispatcher"), name)
    if name in OF_ENGINE:
        return getattr(import_module(f"{__name__}._autograd"), name)
    if name in ("Future", "PyTorchFileReader", "PyTorchFileWriter", "Tag") or name.endswith("Type"):    # the package's
        return getattr(import_module(PACKAGE), name)
    raise MissingName(__name__, name)


__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet", "Generator",
           "Graph", "Node", "TensorBase", "Value",
           "_disabled_torch_function_impl", "_log_api_usage_once"]
