"""Tensor: an array, its storage, and its history.

Conversions, printing and pickling are here; `api/` attaches the maths.
"""
from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from operator import index
from typing import Any

import numpy as np

from .. import dtype as dtypes
from ..core import dispatch, engine
from ..core.class_hooks import hooks as class_hooks
from ..core.class_hooks import is_own
from ..core.dispatch import PLAIN, wrap
from ..core.inplace import address
from ..core.mode import mode
from ..core.node import Hooks
from ..core.tape import Leaf, TensorBase, new, node_of, renew_leaf, root_of
from ..device import device as Device
from ..dtype import memory_format as MemoryFormat
from ..messages.warn_once import warn
from ..runtime.small_floats import widen
from ..size import Size, new_size
from ..storage.base import Storage, clock
from ..storage.layout import row_strides
from . import copying, printing, sparse_copying, torch_function
from .subclasses import prepare
from .wrappers import _make_wrapper_subclass

# functions of higher modules that methods of Tensor call: the package registers them here
ABOVE: dict[str, Callable[..., Any]] = {}
NO_DETACH = (
    "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, "
    "and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be "
    "called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
    "torch/optim/optimizer.py as the solution.")
NO_LEAF = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
    "use .retain_grad() on the non-leaf Tensor.")


def _place(dim: Any, ndim: int, name: str) -> int:
    """Return the number of an axis. Raises PyTorch's errors for values that are no axis."""
    if isinstance(dim, bool) or not hasattr(dim, "__index__") or getattr(dim, "ndim", 0):
        raise TypeError(f"{name}(): argument 'dim' (position 1) must be int, not {type(dim).__name__}")
    place = index(dim)
    if not -1 << 63 <= place < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    if not -ndim <= place < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {place})"
                         if ndim else
                         f"Dimension specified as {place} but tensor has no dimensions")
    return place


def _outside_vmap(tensor: Any, message: str) -> None:
    """Raise PyTorch's error for what batches inside vmap do not do."""
    if type(tensor._storage).rank:
        raise RuntimeError(message)


def _outside_transforms(name: str, running: Any, more: str = "") -> None:
    """Raise PyTorch's error for a method that may not be called while function transforms run."""
    if running:
        raise RuntimeError(UNDER_TRANSFORM.format(name, more))


def _check_source(cls: Any, data: Any) -> None:
    """Raise PyTorch's error for a tensor that a subclass's instance cannot be made of."""
    if not isinstance(data, TensorBase):
        raise TypeError(f"_make_subclass(): argument 'data' (position 2) must be Tensor, not {type(data).__name__}")
    if is_own(data) and not issubclass(type(data), cls):
        raise RuntimeError(f"Creating a new Tensor subclass {cls.__name__} but the raw Tensor object is already "
                           f"associated to a python object of type {type(data).__name__}")


def _is_in_format(array: Any, memory_format: Any) -> bool:
    """Return True if an array's elements are contiguous in the order of a memory format that is not the plain one."""
    axes = (0, 2, 3, 1) if memory_format is dtypes.channels_last else (0, 2, 3, 4, 1)
    return array.ndim == len(axes) and bool(array.transpose(axes).flags.c_contiguous)


def _pointed(tensor: Any, array: Any, storage: Storage) -> None:
    """Replace a tensor's memory."""
    version = tensor._storage.version
    tensor.array, tensor._storage, tensor.origin = array, storage.another(), None
    tensor._storage.version, tensor._storage.replaced = version, next(clock)
    leaf = tensor._node
    if type(leaf) is Leaf and (leaf.shape != array.shape or leaf.dtype != array.dtype
                               or leaf._storage is not tensor._storage.nowhere):
        renew_leaf(tensor, array)


FUNCTIONAL = "(or perhaps using torch.autograd.functional.* APIs) "
UNDER_TRANSFORM = ("You are attempting to call Tensor.{0}() {1}inside of a function being transformed by a functorch "
                   "transform. This is unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, "
                   "jacrev, jacfwd, hessian) or call {0}() outside of a function being transformed instead.")


class Tensor(TensorBase):
    """A multi-dimensional array that remembers how it was computed. https://pytorch.org/docs → torch.Tensor

    >>> import tensorgrad as torch
    >>> x = torch.tensor([1., 2.], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __module__ = "tensorgrad._tensor"       # as pickles and messages name it
    __slots__ = ()
    __array_priority__ = 1000     # NumPy's operators defer to ours

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """The old constructor: sizes give uninitialized memory; a list, array or tensor its values."""
        made = ABOVE["constructed"](*args, **kwargs)
        return made if cls is Tensor else cls._make_subclass(cls, made)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: `__new__` made the tensor."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        prepare(cls)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call `func` and convert its results to the subclass. Subclasses override it."""
        return torch_function.answer(cls, func, types, args, kwargs)

    @staticmethod
    def _make_subclass(cls: Any, data: Any, require_grad: bool = False) -> Any:
        """Return a leaf of class `cls` that shares the memory of `data`."""
        _check_source(cls, data)
        out = new(cls)
        out.array, out._storage = data.array, data._storage.another()
        out._node, out._grad, out.origin = None, None, None
        out._storage.inference = data._storage.inference
        if require_grad:
            if out.array.dtype.kind not in "fcV":
                raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
            torch_function.disabled(Tensor.requires_grad_, (), (out,))
        return out

    _make_wrapper_subclass = staticmethod(_make_wrapper_subclass)

    def as_subclass(self, cls: Any) -> Any:
        """Return the tensor as an instance of a subclass, with its history."""
        _check_source(cls, self)
        out = new(cls)
        out.array, out._storage, out._node, out._grad, out.origin = self.array, self._storage, node_of(self), None, None
        return out

    # ── properties ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def shape(self) -> Size:
        """The lengths of the axes."""
        return new_size(Size, self.array.shape)

    @property
    def dtype(self) -> dtypes.dtype:
        """The data type of the elements."""
        return dtypes.FROM_NUMPY[self.array.dtype]

    @property
    def device(self) -> Device:
        """The device of the elements."""
        return self._storage.device  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.array.ndim  # type: ignore[no-any-return]

    def dim(self) -> int:
        """The number of axes."""
        return self.array.ndim  # type: ignore[no-any-return]

    ndimension = dim

    def size(self, dim: int | None = None) -> Size | int:
        """The shape, or the length of one axis."""
        if dim is None:
            return self.shape
        shape = self.array.shape
        return shape[dim if type(dim) is int and -len(shape) <= dim < len(shape) else _place(dim, len(shape), "size")]

    def numel(self) -> int:
        """The number of elements."""
        return self.array.size  # type: ignore[no-any-return]

    nelement = numel

    def element_size(self) -> int:
        """The bytes of one element."""
        return self.array.itemsize  # type: ignore[no-any-return]

    itemsize = property(element_size)
    nbytes = property(lambda self: self.array.nbytes)
    layout = property(lambda self: dtypes.strided if self._storage.dense is None else self.array.layout)
    is_sparse, is_sparse_csr = (property(lambda self, n=n: self.layout.name == n) for n in ("sparse_coo", "sparse_csr"))
    is_cpu, is_cuda, is_meta = (property(lambda self, kind=kind: self.device.type == kind)
                                for kind in ("cpu", "cuda", "meta"))
    is_quantized = is_mkldnn = is_nested = property(lambda self: False)
    is_mps = is_xpu = is_xla = is_mtia = is_ipu = is_maia = is_vulkan = is_quantized
    # a label for drawings; PyTorch has the attribute, unset
    name = None  # type: Any      # `typing.get_type_hints` looks for an annotation's names in `__module__`

    def get_device(self) -> int:
        """The index of the CUDA device, -1 on the CPU and for meta tensors."""
        return -1 if self.device.type in ("cpu", "meta") else self.device.index or 0

    def is_floating_point(self) -> bool:
        """Return True if the dtype is a floating point dtype."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Return True if the dtype is complex."""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Return True if the dtype has negative numbers."""
        return self.dtype.is_signed

    def is_inference(self) -> bool:
        """Return True if the tensor was made in inference mode."""
        return self._storage.inference  # type: ignore[no-any-return]

    # ── memory ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def stride(self, dim: int | None = None) -> tuple[int, ...] | int:
        """The steps in memory, in elements, along the axes (or along one)."""
        array = self.array
        strides = tuple(s // array.itemsize for s in array.strides) if array.size else row_strides(array.shape, 1)
        return strides if dim is None else strides[_place(dim, array.ndim, "stride")]

    def storage_offset(self) -> int:
        """Return the offset of the first element in the storage, in elements."""
        memory = self._storage.memory
        return (0 if memory is None or not memory.size
                else (address(self.array) - address(memory)) // self.array.itemsize)

    def data_ptr(self) -> int:
        """The address of the first element."""
        _check_memory(self)
        if self._storage.lazy is not None:
            self._storage.lazy.part()
        return address(self.array) if self.array.size and not self._storage.hollow else 0

    def is_contiguous(self, *, memory_format: MemoryFormat = dtypes.contiguous_format) -> bool:
        """Return True if the elements are contiguous in the order of their indices, or in that of `memory_format`."""
        if memory_format in (dtypes.channels_last, dtypes.channels_last_3d):
            _outside_vmap(self, "NYI: querying is_contiguous inside of vmap for memory_format other than "
                          "torch.contiguous_format")
            return _is_in_format(self.array, memory_format)
        if self._storage.dense is not None:
            self.array.check_strides("is_contiguous")
        return bool(self.array.flags.c_contiguous)

    @property
    def _version(self) -> int:
        if self._storage.inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self._storage.version  # type: ignore[no-any-return]

    @property
    def _base(self) -> Any:
        return root_of(self) if self._is_view() else None

    def _is_view(self) -> bool:
        return self.origin is not None and not self._storage.inference

    @property
    def data(self) -> Any:
        """A leaf that shares the memory but not the version counter: writes to it go unnoticed by autograd."""
        _outside_vmap(self, "accessing `data` under vmap transform is not allowed")
        return _alias(self, shared=False)

    @data.setter
    def data(self, value: Any) -> None:
        _check_data(self, value)
        self._point_to(value.array, value._storage)

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    def _point_to(self, array: Any, storage: Storage) -> None:
        """Replace the memory. As in PyTorch, a backward that saved this tensor uses the new memory, too."""
        _pointed(self, array, storage)

    def detach(self) -> Tensor:
        """Return a leaf that shares the memory, without history. https://pytorch.org/docs → torch.Tensor.detach"""
        return _alias(self, shared=True)

    def detach_(self) -> Tensor:
        """Forget the history."""
        if self.origin is not None:
            raise RuntimeError(NO_DETACH)
        self._node = None
        return self

    # ── the tape ──────────────────────────────────────────────────────────────────────────────────────────────────────

    node = property(node_of)

    @property
    def requires_grad(self) -> bool:
        node = (self._node if self._node is not None and self.origin is not None and self.origin.kind is not None
                else node_of(self))
        return node is not None and node.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if type(value) is not bool:
            raise RuntimeError("requires_grad must be a bool")
        if value and self.requires_grad:
            return
        node = node_of(self)
        if not value:
            if node is not None and type(node) is not Leaf:
                raise RuntimeError("you can only change requires_grad flags of leaf variables. If you want to use a "
                                   "computed variable in a subgraph that doesn't require differentiation use "
                                   "var_no_grad = var.detach().")
            if node is not None and node.hooks is not None:
                self.__dict__["_hooks_at_rest"] = node.hooks        # until it requires grad again
            self._node = None
        elif node is None or not node.requires_grad:
            if self.array.dtype.kind not in "fcV":
                raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
            if self._storage.inference and not mode.inference:
                raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not "
                                   "allowed.")
            if self.origin is None and self._storage.memory is not None and not self._storage.watched:
                self._storage.rebased = next(clock)       # its views require grad now, too
            self._node = Leaf(self)
            self._node.hooks = self.__dict__.pop("_hooks_at_rest", None)
            if node is not None and mode.tangents.see is not None:
                mode.tangents.see.hand_on(node, self._node)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Ask for gradients with respect to this tensor, or no longer."""
        if type(requires_grad) is not bool:
            raise TypeError(f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not "
                            f"{type(requires_grad).__name__}")
        if requires_grad and self.array.dtype.kind not in "fcV":
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        _outside_transforms("requires_grad_", requires_grad and mode.transforming, FUNCTIONAL)
        self.requires_grad = requires_grad
        return self

    @property
    def is_leaf(self) -> bool:
        node = node_of(self)
        return node is None or type(node) is Leaf or not node.requires_grad

    @property
    def grad_fn(self) -> Any:
        """The step of the tape that this tensor is the result of."""
        node = node_of(self)
        return None if node is None or type(node) is Leaf or not node.requires_grad else node.as_function()[0]

    @property
    def output_nr(self) -> int:
        """The tensor's number among the results of its step."""
        node = node_of(self)
        return 0 if node is None or type(node) is Leaf or not node.requires_grad else node.as_function()[1]

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward() left here."""
        if self._grad is None and self._node is not None and not self.is_leaf and not self.retains_grad:
            warnings.warn(NO_LEAF, UserWarning, stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            _check_gradient(self, value)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def backward(self, gradient: Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False,
                 inputs: Tensor | Sequence[Tensor] | None = None) -> None:
        """Add d(self)/d(leaf) to every leaf's .grad. https://pytorch.org/docs → torch.Tensor.backward"""
        engine.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Call `hook(gradient)` when this tensor's gradient is known; a result other than None replaces it."""
        node = node_of(self)
        if node is None or not node.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        return Hooks.of(node).tensor.add(hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        """Call `hook(tensor)` after backward() added to the .grad of this leaf."""
        node = node_of(self)
        if node is None or not node.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if type(node) is not Leaf:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return Hooks.of(node).accumulated.add(hook)

    def retain_grad(self) -> None:
        """Keep the gradient of this tensor in .grad, though it is no leaf."""
        _outside_transforms("retain_grad", mode.transforms)
        node = node_of(self)
        if node is None or not node.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if type(node) is not Leaf:
            Hooks.of(node).retained = weakref.ref(self)

    @property
    def retains_grad(self) -> bool:
        node = node_of(self)
        return (node is not None and node.hooks is not None and type(node) is not Leaf
                and node.hooks.retained is not None)

    # ── to Python and NumPy ───────────────────────────────────────────────────────────────────────────────────────────

    def item(self) -> Any:
        """The only element, as a Python number."""
        if (n := self.array.size) != 1 or self.is_meta:
            raise RuntimeError("Tensor.item() cannot be called on meta tensors" if n == 1
                               else f"a Tensor with {n} elements cannot be converted to Scalar")
        if is_own(self):
            return class_hooks.number(self)
        host = type(self._storage).one(self.array)
        return (widen(host) if host.dtype.kind == "V" else host).item()

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        _check_memory(self)
        host = self._host()
        return (widen(host) if host.dtype.kind == "V" else host).tolist()

    def _host(self) -> Any:
        return type(self._storage).host(self.array)

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The values as a NumPy array, in the same memory. https://pytorch.org/docs → torch.Tensor.numpy"""
        _check_memory(self, True)
        if not force:
            if self.device.type != "cpu":
                raise TypeError(f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy "
                                "the tensor to host memory first.")
            if self.requires_grad and mode.grad:
                raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                                   "instead.")
        if self.array.dtype.kind == "V":
            raise TypeError(f"Got unsupported ScalarType {dtypes.SCALAR_TYPES[self.dtype.name]}")
        dispatch.shared(self).hand_out()
        return self._host()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        cast = dtype is not None and array.dtype != dtype
        return array.astype(dtype) if cast else array.copy() if copy else array

    def __dlpack__(self, *, stream: Any = -1, max_version: Any = None, dl_device: Any = None, copy: Any = None) -> Any:
        return copying.capsule(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __len__(self) -> int:
        if not self.array.ndim:
            raise TypeError("len() of a 0-d tensor")
        return len(self.array)

    def __iter__(self) -> Iterator[Tensor]:
        if not self.array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))  # type: ignore[attr-defined]

    def __reversed__(self) -> Tensor:
        return self.flip(0) if self.array.ndim else self  # type: ignore[attr-defined]

    def __bool__(self) -> bool:
        if self.array.size != 1:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous" if not self.array.size else
                               "Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.array if type(self._storage).rank else self.item())

    def __int__(self) -> int:
        return int(_number(self, "int64_t"))

    def __float__(self) -> float:
        return float(_number(self, "double"))

    def __complex__(self) -> complex:
        return complex(_number(self, "c10::complex<double>"))

    def __index__(self) -> int:
        if self.array.dtype.kind not in "iub" or self.array.size != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __contains__(self, element: object) -> bool:
        if not isinstance(element, (TensorBase, int, float, complex, bool)):
            raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
                               f"{type(element)}.")
        return bool((self == element).any())

    def __hash__(self) -> int:
        return id(self)

    # ── printing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        if type(self._storage).rank or self._storage.dense is not None:
            return _other_repr(self)
        return _as_param(self, printing.tensor_repr(
            None if self._storage.hollow or tensor_contents is not None else _shown(self), dtype_name=self.dtype.name,
            requires_grad=self.requires_grad, grad_fn_name=_step_name(self), contents=tensor_contents,
            device_text=None if self.is_cpu else str(self.device),
            default_dtype_name=dtypes.get_default_dtype().name, shape=self.array.shape,
            prefix=self._storage.label if type(self) in PLAIN else type(self).__name__,
            notes=() if mode.tangents.see is None else mode.tangents.see.notes(self)))

    def __format__(self, spec: str) -> str:
        if not self.array.ndim and type(self) in PLAIN and not self.is_meta:
            return format(self.item(), spec)
        return format(str(self), spec) if spec == "" else object.__format__(self, spec)

    def render(self, format: str = "image") -> Any:
        """A picture of the recorded graph: a PIL image, or, with `format`, text: "dot", "svg" or "html"."""
        return ABOVE["render"](self, format)

    # ── copies of the object ──────────────────────────────────────────────────────────────────────────────────────────

    def __copy__(self) -> Tensor:
        return copying.shallow(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return copying.deep(self, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        copying.warn_if_has_hooks(self)
        return copying.reduced(self)


# the names of dtypes in the error for a gradient of another dtype
C_NAMES = dtypes.C_NAMES | {"uint16": "short unsigned int", "uint32": "unsigned int", "uint64": "long unsigned int"}


def _alias(tensor: Any, shared: bool) -> Any:
    if is_own(tensor):
        return class_hooks.detached(tensor)
    storage = dispatch.shared(tensor)
    if not shared:
        storage = storage.another()
        storage.inference = tensor._storage.inference
    return wrap(tensor.array, storage)


def _number(tensor: Any, target: str) -> Any:
    """The only element, as a Python number that fits a C type."""
    if tensor.array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    if mode.grad and target != "int64_t" and tensor._node is not None and tensor.requires_grad:
        warn("Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
             "Consider using tensor.detach() first.")
    number = tensor.item()
    if isinstance(number, complex) and "complex" not in target:
        if number.imag:
            raise RuntimeError(f"value cannot be converted to type {target} without overflow")
        return number.real
    return number


def _check_data(tensor: Any, value: Any) -> None:
    """Raise PyTorch's error for a value that cannot be the .data of a tensor."""
    if not isinstance(value, TensorBase):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if (tensor._storage.dense is None) != (value._storage.dense is None):
        raise RuntimeError("Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
                           "incompatible tensor type.")
    _outside_vmap(tensor, "mutating directly with `.data` under vmap transform is not allowed.")
    if tensor.requires_grad and value.array.dtype.kind not in "fcV":
        raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")


def _check_gradient(tensor: Any, value: Any) -> None:
    """Raise PyTorch's error for a value that cannot be the .grad of a tensor."""
    if not isinstance(value, TensorBase):
        raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
    if value is tensor:
        raise RuntimeError("can't assign Variable as its own grad")
    home, own = type(value._storage), type(tensor._storage)
    if (home.dense or home) is not (own.dense or own):
        raise RuntimeError(f"attempting to assign a gradient with device type '{value.device.type}' to a tensor with "
                           f"device type '{tensor.device.type}'. Please ensure that the gradient and the tensor are on "
                           f"the same device")
    expected = tensor.__dict__.get("_grad_dtype", tensor.dtype)
    if expected not in (None, value.dtype):
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{C_NAMES[value.dtype.name]}' to a tensor with grad_dtype "
            f"'{dispatch.SCALAR_TYPES[expected.name]}'. The gradient must match the tensor's grad_dtype (defaults to "
            "the tensor's dtype). You can set the tensor's grad_dtype attribute with a specific dtype, or None to "
            "allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break "
            "downstream systems that assume they match.")
    if value.array.shape != tensor.array.shape:
        raise RuntimeError(f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size "
                           f"'{list(tensor.shape)}'. Please ensure that the gradient and the tensor are the same size")


def _check_memory(tensor: Any, values: bool = False) -> None:
    if values and tensor._storage.dense is not None:
        tensor._host()
    moving = values and any(level.wraps and level[node_of(tensor)] is not None for level in mode.tangents.levels)
    if moving or type(tensor._storage).rank or tensor._storage.dense is not None:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


def _step_name(tensor: Any) -> str | None:
    """Return the name of the step that made a tensor, as its repr shows it."""
    try:
        fn = tensor.grad_fn
        return None if fn is None else fn.name().rpartition("::")[2]
    except RuntimeError:          # a view that lost its history to a write in place
        return "Invalid"


def _as_param(tensor: Any, text: str) -> str:
    """Return the repr of a tensor, which says if a tensor of a subclass is a parameter."""
    kind = type(tensor)
    marked = "_is_param" in tensor.__dict__ or (
        kind not in PLAIN and any(base in PLAIN for base in kind.__mro__ if base is not Tensor))
    return f"Parameter({text})" if marked else text


def _other_repr(tensor: Any) -> str:
    """Return the repr of a sparse tensor, or of one inside vmap: the hidden batch, with its axis in front."""
    if tensor._storage.dense is not None:
        return sparse_copying.text(tensor)
    from ..interpret.batching import shown
    depth = type(tensor._storage).rank
    inside = repr(shown(tensor.detach(), 0, depth, tensor.array.hidden[-1])).replace("\n", "\n    ")
    return f"BatchedTensor(lvl={depth}, bdim=0, value=\n    {inside}\n)"


def _shown(tensor: Any) -> Any:
    """Return the part of the values that printing shows, on the host."""
    array = printing.shown(tensor.array)
    host = type(tensor._storage).host(array)
    return widen(host) if host.dtype.kind == "V" else host


def _meta_storage(index: int) -> type[Storage]:
    """Return the storage of the device "meta", whose rules for shapes are imported with its first tensor."""
    from ..interpret.symbol_storage import MetaStorage
    return MetaStorage


Storage.makers["meta"] = _meta_storage
dispatch.results_are(Tensor)

__all__ = ["Tensor"]
