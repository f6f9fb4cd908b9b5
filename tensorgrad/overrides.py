"""Tools for classes and modes that override functions of tensors. https://pytorch.org/docs → torch.overrides

A class with a `__torch_function__` classmethod overrides every function that is called with one of its instances:

>>> import tensorgrad as torch
>>> class Scaled:
...     def __init__(self, data, factor):
...         self.data, self.factor = data, factor
...     @classmethod
...     def __torch_function__(cls, func, types, args=(), kwargs=None):
...         return func(*[a.data * a.factor if isinstance(a, cls) else a for a in args], **(kwargs or {}))
>>> torch.add(torch.ones(2), Scaled(torch.ones(2), 3))
tensor([4., 4.])
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from importlib import import_module
from types import FunctionType
from typing import Any

from ._C import _pop_torch_function_stack as _pop_mode
from ._C import _push_on_torch_function_stack as _push_mode
from ._C import _skip_one_hop_torch_function
from ._tensor import Tensor, torch_function
from ._tensor.torch_function import (
    UNLISTED,
    AskingMethod,
    DisableTorchFunction,
    DisableTorchFunctionSubclass,
    overriding,
    state,
)
from .core.fast_path import FUNCTIONS
from .dtype import strided

__all__ = ["BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode",
           "enable_reentrant_dispatch", "get_default_nowrap_functions", "get_ignored_functions",
           "get_overridable_functions", "get_testing_overrides", "handle_torch_function", "has_torch_function",
           "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
           "is_tensor_method_or_property", "redispatch_function",
           "resolve_name", "wrap_torch_function"]

METHODS = (*FUNCTIONS, AskingMethod)
# Functions of the root package that make tensors or settings, rather than take tensors.
PLAIN_FUNCTIONS = ("arange as_strided as_tensor asarray bartlett_window blackman_window broadcast_shapes can_cast "
                   "empty empty_permuted empty_strided eye fill frombuffer from_dlpack from_file from_numpy full "
                   "get_default_device get_default_dtype get_num_interop_threads get_num_threads get_rng_state "
                   "hamming_window hann_window initial_seed is_grad_enabled is_inference_mode_enabled is_storage "
                   "is_tensor kaiser_window linspace load logspace manual_seed normal ones promote_types rand "
                   "rand_like randint randint_like randn randn_like randperm range result_type save scalar_tensor seed "
                   "set_default_device set_default_dtype set_grad_enabled set_num_interop_threads set_num_threads "
                   "set_printoptions set_rng_state sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor "
                   "sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor tensor to_dlpack tril_indices triu_indices "
                   "typename vander zeros").split()


class TorchFunctionMode:
    """While it is on, every function call goes to its `__torch_function__`.

    https://pytorch.org/docs → torch.overrides.TorchFunctionMode

    >>> import tensorgrad as torch
    >>> class Names(torch.overrides.TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(torch.overrides.resolve_name(func))
    ...         return func(*args, **(kwargs or {}))
    >>> x = torch.ones(2)
    >>> with Names():
    ...     y = torch.exp(x) + x
    torch.exp
    torch.Tensor.add
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__ != __name__:      # the class below arms when it is entered
            torch_function.arm()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say what it does with calls: define "
                                  f"__torch_function__")

    def __enter__(self) -> TorchFunctionMode:
        torch_function.arm()
        _push_mode(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchFunctionMode:
        """An instance, by an older spelling."""
        import warnings
        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2)
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """Turn the innermost mode off in a `with` block."""
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


def _get_current_function_mode() -> Any:
    """Return the innermost mode, None if there is none."""
    return state.modes[-1] if state.modes else None


def _get_current_function_mode_stack() -> list[Any]:
    """Return the modes that are on, the innermost last."""
    return list(state.modes)


@contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Turn overrides of classes on again, in a `with` block inside an override."""
    before, state.classes = state.classes, True
    try:
        yield
    finally:
        state.classes = before


@contextmanager
def _enable_torch_function() -> Iterator[None]:
    """Turn overrides of classes on again, in a `with` block inside one of `DisableTorchFunction`."""
    before, state.classes, state.disabled = (state.classes, state.disabled), True, False
    try:
        yield
    finally:
        state.classes, state.disabled = before


def has_torch_function(relevant_args: Any) -> bool:
    """Return True if an argument overrides functions, or a mode is on.

    https://pytorch.org/docs → torch.overrides.has_torch_function
    """
    if state.skips:
        state.skips = False
        return False
    try:
        return bool(state.modes or state.classes and any(map(_answers, overriding(relevant_args))))
    except TypeError:
        raise TypeError("expected a sequence") from None


def _answers(argument: Any) -> bool:
    """Return False for a strided nested tensor, whose class is Tensor in PyTorch."""
    return not (getattr(argument, "is_nested", False) and getattr(argument, "layout", None) is strided)


def has_torch_function_unary(tensor: Any) -> bool:
    """`has_torch_function` for one argument."""
    return has_torch_function((tensor,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """`has_torch_function` for arguments given separately."""
    return has_torch_function(relevant_args)


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the overriding arguments' result for a function. Raises TypeError if none answers.

    https://pytorch.org/docs → torch.overrides.handle_torch_function
    """
    found = overriding(relevant_args) if state.classes else []
    answer = torch_function.ask(public_api, found, args, kwargs)
    if answer is NotImplemented:
        name = f"{public_api.__module__}.{public_api.__name__}"
        message = (f"no implementation found for '{name}' on types that implement __torch_function__: "
                   f"{[type(a) for a in found]}")
        raise TypeError(message + (f" nor in mode {state.modes[-1]}" if state.modes else ""))
    return answer


def redispatch_function(func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Call a function without its overrides; those of the functions that it calls are asked.

    https://pytorch.org/docs → torch.overrides.redispatch_function
    """
    return _skip_one_hop_torch_function(func, types, args, kwargs)


def wrap_torch_function(dispatcher: Callable[..., Any]) -> Callable[[Any], Any]:
    """Make one's own function overridable; `dispatcher` returns the arguments that matter.

    https://pytorch.org/docs → torch.overrides.wrap_torch_function
    """
    def attach(function: Any) -> Any:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            return (handle_torch_function(call, relevant, *args, **kwargs) if has_torch_function(relevant)
                    else function(*args, **kwargs))
        return call
    return attach


def is_tensor_like(inp: Any) -> bool:
    """Return True if `inp` is a tensor, or its class overrides functions.

    https://pytorch.org/docs → torch.overrides.is_tensor_like
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def get_default_nowrap_functions() -> set[Any]:
    """Return the functions whose results stay plain tensors for subclasses."""
    return {Tensor._base.__get__, Tensor.grad.__get__}  # type: ignore[attr-defined]


def _namespaces() -> dict[str, Any]:
    import_module(f"{__package__}.nn.functional")
    names = ("", ".functional", ".nn.functional", ".nn.init", ".linalg", ".fft", ".special")
    return {f"torch{name}": import_module(f"{__package__}{name}") for name in names}


def _listed(module: Any) -> dict[str, Any]:
    """Return {name: function} for the functions of a namespace, those that are loaded late included."""
    if later := getattr(module, "_ELSEWHERE", None):
        for home in {home for home in later.values() if home.startswith(("_VF", "api.", "nn._functions."))}:
            import_module(f"{__package__}.{home}")
    names = module.__all__ if later is None else {**dict.fromkeys(module.__all__), **torch_function.PUBLIC}
    return {n: f for n in names if type(f := getattr(module, n)) is FunctionType}


def _others() -> list[Any]:
    """Return overridable functions that `get_overridable_functions` leaves out: private ones, and those that fill or
    send tensors in place.
    """
    init, group = (import_module(f"{__package__}.{name}") for name in ("nn.init", "distributed.distributed_c10d"))
    sending = ("all_gather", "all_gather_coalesced", "all_gather_single", "all_reduce", "all_reduce_coalesced",
               "all_to_all", "all_to_all_single", "broadcast", "gather", "irecv", "isend", "recv", "reduce",
               "reduce_scatter", "reduce_scatter_single", "scatter", "send")
    private = ("_assert_async", "_conj_copy", "_functional_assert_async", "_fused_rms_norm", "_indices_copy",
               "_native_batch_norm_legit", "_neg_view_copy", "_reshape_alias_copy", "_values_copy")
    root = _listed(_namespaces()["torch"])
    return [*(f for n, f in root.items() if n in private or n.startswith("_sym_")),
            init.constant_, init.kaiming_uniform_, init.normal_, init.uniform_,
            *(getattr(group, name) for name in sending)]


@cache
def get_overridable_functions() -> dict[Any, list[Any]]:
    """{namespace: its overridable functions}. https://pytorch.org/docs → torch.overrides.get_overridable_functions"""
    ignored = get_ignored_functions()
    found: dict[Any, list[Any]] = {module: [f for n, f in _listed(module).items()
                                            if f not in ignored and not n.startswith("_") and not n.endswith("_")]
                                   for name, module in _namespaces().items() if name != "torch.nn.init"}
    found[Tensor] = [v.__get__ if isinstance(v, property) else v for n, v in vars(Tensor).items()
                     if n not in UNLISTED and (isinstance(v, property) or isinstance(v, METHODS))]
    return found


@cache
def get_ignored_functions() -> set[Any]:
    """Functions that no class overrides. https://pytorch.org/docs → torch.overrides.get_ignored_functions"""
    root = _namespaces()["torch"]
    return {f for home, names in ((root, PLAIN_FUNCTIONS), (Tensor, UNLISTED))
            for name in names if callable(f := getattr(home, name, None))}


@cache
def get_testing_overrides() -> dict[Any, Any]:
    """{overridable function: a function of the same signature that gives −1}.

    https://pytorch.org/docs → torch.overrides.get_testing_overrides
    """
    import inspect
    overrides: dict[Any, Any] = {}
    for functions in (*get_overridable_functions().values(), _others()):
        for function in functions:
            stand_in: Any = lambda *args, **kwargs: -1  # noqa: E731
            try:
                stand_in.__signature__ = inspect.signature(function)
            except (TypeError, ValueError):
                stand_in.__signature__ = inspect.Signature(
                    [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)])
            overrides[function] = stand_in
    return overrides


@cache
def _names() -> dict[Any, str]:
    names: dict[Any, str] = {}
    for prefix, module in reversed(_namespaces().items()):
        names |= {f: f"{prefix}.{n}" for n, f in _listed(module).items() if not n.startswith("_")}
    names |= {f: f"torch.functional.{n}" for n, f in _listed(_namespaces()["torch.functional"]).items()}
    for n, v in reversed(vars(Tensor).items()):
        if isinstance(v, property):
            names |= {v.__get__: f"torch.Tensor.{n}.__get__", v.__set__: f"torch.Tensor.{n}.__set__"}
        elif isinstance(v, METHODS):
            names[v] = f"torch.Tensor.{n if v.__name__ not in vars(Tensor) else v.__name__}"
    return names


def resolve_name(f: Any) -> str | None:
    """The public name of an overridable function, None for others.

    https://pytorch.org/docs → torch.overrides.resolve_name
    """
    if isinstance(f, str):
        return f
    return _names().get(f)


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Return True if `func` is a method or property of Tensor.

    https://pytorch.org/docs → torch.overrides.is_tensor_method_or_property
    """
    return (resolve_name(func) or "").startswith("torch.Tensor.") or getattr(func, "__name__", "") == "__get__"
