"""`Layer`: a module that learns the sizes it needs from its first input, and knows the shape of its output before it is
called.
"""
from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from inspect import BoundArguments, Signature, signature
from typing import Any

from .. import api as tg
from .._tensor.torch_function import node_among
from ..nn.modules.module import Module
from ..nn.modules.sparse import Embedding, EmbeddingBag
from ..nn.parameter import Parameter, is_lazy
from ..symbolic.data import parts_of
from ..symbolic.shape_inference import infer
from . import _nesting
from ._lazy_state import Waiting
from .spec import REGISTRY, SpecError, build, described
from .utils.arguments import captured

PRINT_MODES = "torchx", "native"


class Layer(Waiting, Module):
    """The base of all layers: built by its first input, described by its constructor's arguments.

    A subclass defines `forward`, and may define
        `_build(input_shape)`, which makes parameters once that shape is known (or materializes each
        `nn.UninitializedParameter` that the constructor has
            registered: an optimizer that is made before the first call knows only these),
        `get_output_shape(input_shape)`, if running the layer on fake tensors cannot infer the shape,
        `native_module()`, the plain module behind the layer.
    A shape is a tuple of sizes with None for unknown ones; several inputs have a list of shapes. The first call builds
    the layer. Later inputs must have the same sizes, but for the batch (axis 0) and for sizes that were None:
    `build((None, None, 8))` asks for any length. Errors: AssertionError for arguments that `forward` does not take and
    for invalid shapes, RuntimeError for an input of other sizes.

    >>> import tensorgrad as torch
    >>> from tensorgrad.layers import Layer
    >>> class Factors(Layer):
    ...     def _build(self, input_shape):
    ...         self.factor = torch.nn.Parameter(torch.full((input_shape[-1],), 2.0))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> scale = Factors()
    >>> scale.get_output_shape((None, 3)), scale.is_built
    ((None, 3), False)
    >>> scale(torch.ones(1, 3)).tolist(), scale.input_shape
    ([[2.0, 2.0, 2.0]], (1, 3))
    """

    _free_axes: tuple[int, ...] = (0,)                               # sizes along these may differ from call to call
    # the dtype of the inputs, or a tuple of them; None: that of the parameters
    _input_dtype: Any = None
    _print_mode = "torchx"
    _arguments_given: tuple[tuple[Any, ...], dict[str, Any]] = (), {}
    _input_shape: Any = None

    def __init_subclass__(cls, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "build" in vars(cls):
            raise TypeError(f"{cls.__name__} must not override build(): create parameters in _build(input_shape)")
        if not abstract:
            REGISTRY[cls.__name__] = cls

    def __new__(cls, *args: Any, **kwargs: Any) -> Layer:
        layer = super().__new__(cls)
        layer.__dict__["_arguments_given"] = args, kwargs
        return layer

    @property
    def init_args_dict(self) -> dict[str | None, Any]:
        """The constructor's arguments: `{None: [positional, …], keyword: value, …}`.

        >>> import tensorgrad as torch
        >>> torch.layers.Linear(20, bias=False).init_args_dict
        {None: [20], 'bias': False}
        """
        return captured(*self._arguments_given)

    # ── building ──────────────────────────────────────────────────────────────────────────────
    @property
    def is_built(self) -> bool:
        """True if the shape of the input is known."""
        return self._input_shape is not None

    @property
    def input_shape(self) -> Any:
        """The shape that the layer was built for, or None."""
        return self._input_shape

    def build(self, input_shape: Any) -> Layer:
        """Make the parameters that depend on the input's shape, at the first call; later calls check the shape.

        Returns the layer.

        >>> import tensorgrad as torch
        >>> torch.layers.Linear(20).build((None, 10)).weight.shape
        torch.Size([20, 10])
        """
        return self._build_once(self._deciding(_nesting.checked(input_shape)))

    def _deciding(self, shape: Any) -> Any:
        """Return the part of the inputs' shapes that the layer is built for: here all of them."""
        return shape

    def _build_once(self, shape: Any) -> Layer:
        if self.is_built:
            self._check_sizes(shape)
        else:
            self._build(shape)
            self.__dict__["_input_shape"] = shape
        return self

    def _build(self, input_shape: Any) -> None:
        """Make the parameters that depend on the input's shape. Subclasses override it."""

    def _check_sizes(self, shape: Any) -> None:
        if not _nesting.same_sizes(self._input_shape, shape, self._free_axes):
            raise RuntimeError(f"{self._get_name()} was built for input of shape {self._input_shape}, and cannot take "
                               f"{shape}: only the batch, and sizes that were None when it was built, may change")

    def get_output_shape(self, input_shape: Any) -> Any:
        """Return the shape of the result for an input of this shape.

        The layer is not built, and no random number is drawn.

        >>> import tensorgrad as torch
        >>> torch.layers.Conv2d(8, 3, padding="same").get_output_shape((None, 3, 32, 32))
        (None, 8, 32, 32)
        """
        shape = _nesting.checked(input_shape)
        twin = hollow(self, lambda twin: twin.is_built or twin.build(shape))
        shapes = [shape] if _nesting.is_simple(shape) or isinstance(shape, dict) or not self._takes_several() else shape
        return shapes_of_result(twin, *shapes, dtype=self._dtypes(len(shapes)))

    def _takes_several(self) -> bool:
        """Return True if a list of shapes means several arguments, False if it means an argument that is a list."""
        parameters = _signature(type(self).forward).parameters.values()
        return len(parameters) > 2 or any(p.kind is p.VAR_POSITIONAL for p in parameters)

    def _dtypes(self, n: int) -> Any:
        """Return the dtypes of `n` inputs, or their common dtype: as declared by the layer, else that of its
        parameters."""
        declared = self._input_dtype if isinstance(self._input_dtype, tuple) else (self._input_dtype,) * n
        own = input_dtype(self)
        dtypes = [dtype or own for dtype in (*declared, *[None] * n)[:n]]
        return dtypes[0] if len(set(dtypes)) == 1 else dtypes

    # ── calling ───────────────────────────────────────────────────────────────────────────────
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (len(args) == 1 and not kwargs and type(args[0]) is tg.Tensor and type(self._input_shape) is tuple
                and args[0].shape[1:] == self._input_shape[1:]):
            return super().__call__(*args)          # fast path: a tensor of the shape that the layer was built for
        if (node := node_among(args, kwargs)) is not None:
            return parts_of(self._joined(node, args, {k: v for k, v in kwargs.items() if k != "custom_name"},
                                         kwargs.get("custom_name")))
        shape = self._shape_of_call(self._bind(args, kwargs))
        if self.is_built:
            self._check_sizes(shape)
        else:
            self._prepare(shape)
        result = super().__call__(*args, **kwargs)
        self.__dict__["_input_shape"] = self._input_shape or shape
        return result

    def _joined(self, node: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None = None) -> Any:
        """Build the layer for the shapes of the arguments, which contain nodes, and return the node of its result."""
        shape = self._shape_of_call(self._bind(args, kwargs))
        if shape:
            self._build_once(shape)
        return node._joined_by(self, args, kwargs, name)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> BoundArguments:
        """Bind the arguments to `forward`.

        AssertionError if `forward` does not take them, or if they mix positional and keyword ones.
        """
        if args and kwargs:
            raise AssertionError(f"{self._get_name()} takes its inputs as positional or as keyword arguments, not some "
                                 f"of each")
        try:
            return _signature(type(self).forward).bind(self, *args, **kwargs)
        except TypeError as error:
            raise AssertionError(f"{self._get_name()}.forward{_signature(type(self).forward)}: {error}") from None

    def _shape_of_call(self, bound: BoundArguments) -> Any:
        """Return the shapes of all arguments that contain tensors, in the order of the signature; of a single one,
        its own shape."""
        shapes = [_nesting.shape_of(value) for value in (*bound.args[1:], *bound.kwargs.values())
                  if _nesting.has_shape(value)]
        return shapes[0] if len(shapes) == 1 else shapes

    def _prepare(self, shape: Any) -> None:
        """Build the layer before the first call. (In containers each layer prepares itself.)"""
        self._build_once(shape)

    def _forget(self) -> None:
        """Drop the state that calls leave behind, other than buffers; called on copies that run for their shapes."""

    def native_module(self) -> Any:
        """The plain module of `nn` behind the layer: None before it is built, or if the layer has no state; a list for
        containers.
        """
        return None

    def _plain(self) -> Any:
        """Return the equivalent module of `nn`, which a file for PyTorch can name; None if there is none."""
        return None

    # ── descriptions ──────────────────────────────────────────────────────────────────────────
    @staticmethod
    def get_registry() -> dict[str, type[Layer]]:
        """All classes of layers by name, those of the program included.

        >>> import tensorgrad as torch
        >>> torch.layers.Layer.get_registry()["Linear"] is torch.layers.Linear
        True
        """
        return dict(REGISTRY)

    def to_spec(self) -> dict[str | None, Any]:
        """The layer as plain data, which `from_spec` turns into an equal one: `type`, positional arguments under None,
        and keyword arguments.

        SpecError (a ValueError) where an argument is not data, such as a function.

        >>> import tensorgrad as torch
        >>> torch.layers.Sequential(torch.layers.Linear(3, bias=False)).to_spec()
        {'type': 'Sequential', 'layers': [{'type': 'Linear', None: [3], 'bias': False}]}
        """
        try:
            return described(self)
        except RecursionError:
            raise SpecError(f"{self._get_name()}: it is nested too deeply for a spec") from None

    @classmethod
    def from_spec(cls, spec: Any) -> Any:
        """The layer that a spec describes; see `to_spec`.

        Types are found whatever their case; a spec that came through JSON will do.

        SpecError (a ValueError) says where in the spec the trouble is. Only registered classes and those of `nn` are
        made.

        >>> import tensorgrad as torch
        >>> torch.layers.Layer.from_spec({"type": "linear", None: 20, "bias": False})
        Linear(20, bias=False)
        """
        layer = build(spec)
        if not isinstance(layer, cls):
            raise SpecError(f"type: {spec['type']!r} is not a {cls.__name__}")
        return layer

    def _spec_parts(self) -> tuple[str, dict[str | None, Any]]:
        """Return the type in the spec, and the other entries."""
        args, kwargs = self._arguments_given
        return type(self).__name__, {None: list(args), **kwargs} if args else dict(kwargs)

    @classmethod
    def _arguments_from_spec(cls, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The constructor's arguments, from those in a spec."""
        return args, kwargs

    # ── printing ──────────────────────────────────────────────────────────────────────────────
    @staticmethod
    def set_print_mode(mode: str) -> None:
        """Set how layers are printed: 'torchx', as calls of their constructors, or 'native', as the modules that
        they wrap once built."""
        if mode not in PRINT_MODES:
            raise AssertionError(f"print mode {mode!r}: choose one of {', '.join(PRINT_MODES)}")
        Layer._print_mode = mode

    def __repr__(self) -> str:
        if Layer._print_mode == "native" and self.is_built:
            return super().__repr__()
        return self._as_call()

    def _as_call(self) -> str:
        args, kwargs = self._arguments_given
        return (f"{self._get_name()}("
                f"{', '.join([*map(repr, args), *(f'{name}={value!r}' for name, value in kwargs.items())])})")


@cache
def _signature(forward: Callable[..., Any]) -> Signature:
    return signature(forward)


def hollow(module: Module, prepare: Callable[[Any], Any] | None = None) -> Any:
    """Return a copy of a module in evaluation mode, whose tensors are expanded zeros without memory; `prepare(copy)`
    runs on the meta device."""
    memo = {}
    for tensor in (*module.parameters(), *module.buffers()):
        if not is_lazy(tensor):
            there = tensor.detach().to("meta")
            memo[id(tensor)] = Parameter(there, tensor.requires_grad) if isinstance(tensor, Parameter) else there
    twin = copy.deepcopy(module, memo).eval()
    for layer in twin.modules():
        if isinstance(layer, Layer):
            layer._forget()
    if prepare:
        twin.to("meta")
        with tg.device("meta"):
            prepare(twin)

    def zeros(tensor: Any) -> Any:
        return tg.zeros((), dtype=tensor.dtype, device="cpu").expand(0 if is_lazy(tensor) else tensor.shape)
    return twin._apply(zeros)


def input_dtype(module: Module) -> Any:
    """Return the dtype of a module's input, by its first parameter: int64 for an embedding, else the parameter's;
    None without parameters."""
    for part in module.modules():
        for parameter in part._parameters.values():
            if parameter is not None:
                return tg.int64 if isinstance(part, (Embedding, EmbeddingBag)) else parameter.dtype
    return None


def shapes_of_result(twin: Module, *shapes: Any, dtype: Any = None) -> Any:
    """Return the shapes of a hollow module's results.

    Unbuilt layers in it draw their parameters from a copy of the random generator.
    """
    with tg.random.fork_rng(devices=[]):
        return infer(twin, *shapes, dtype=dtype)
