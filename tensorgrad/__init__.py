"""tensorgrad: an autograd engine with PyTorch's API, on NumPy and CuPy.

>>> import tensorgrad as torch
>>> x = torch.tensor([1., 2., 3.], requires_grad=True)
>>> (x ** 2).sum().backward()
>>> x.grad
tensor([2., 4., 6.])
"""
from importlib import import_module as _import_module
from math import e, inf, nan, pi  # noqa: F401
from typing import Any as _Any

from .runtime import blas as _blas  # noqa: F401  (the first that imports NumPy)

# isort: split
from . import api as _api
from . import autograd  # noqa: F401
from . import kernels as _kernels
from ._tensor import ABOVE as _ABOVE
from ._tensor.torch_function import namespaced as _namespaced
from .api import *  # noqa: F403
from .api.first_version import with_makers as _with_makers
from .runtime.collecting import Paused as _Paused
from .storage import ABOVE as _OF_STORAGE

__version__ = "0.1.0"
globals().update(_namespaced(_api.FUNCTIONS, __name__))
_segment_reduce = globals()["segment_reduce"]
_with_makers(globals()["tensor"])

_LAZY = ("nn", "optim", "utils", "linalg", "fft", "special", "signal", "func", "distributions", "cuda", "random",
         "const", "viz", "backends", "storage", "ops", "kernels", "dispatch", "testing", "return_types", "amp", "jit",
         "version", "multiprocessing", "overrides", "_C", "_VF", "array_api", "serialization", "accelerator", "ao",
         "compiler", "cpu", "distributed", "export", "functional", "futures", "fx", "hub", "library", "monitor", "mps",
         "mtia", "nested", "onnx", "profiler", "quantization", "quasirandom", "sparse", "torch_version", "types", "xpu",
         "_dynamo", "_inductor", "__future__", "_higher_order_ops", "_jit_internal", "_linalg_utils", "_lobpcg",
         "_lowrank", "_prims_common", "_refs", "_tensor", "_utils", "__config__", "_ops", "_subclasses", "_tensor_str",
         "_custom_op", "_custom_ops", "symbolic", "layers", "masked", "package", "_functorch", "_library", "_logging",
         "_utils_internal", "_vmap_internals")
_ELSEWHERE = {name: module for module, names in {
    "__config__": "show_config",
    "accelerator": "get_device_module",
    "amp": "GradScaler autocast",
    "amp.autocast_mode": "clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype "
                         "is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled "
                         "set_autocast_cache_enabled set_autocast_dtype set_autocast_enabled "
                         "autocast_decrement_nesting autocast_increment_nesting set_autocast_cpu_dtype "
                         "set_autocast_cpu_enabled set_autocast_gpu_dtype",
    "_higher_order_ops": "cond", "_library.tags": "Tag",
    "_library.types": "AnyType BoolType DeviceObjType FloatType IntType ListType NoneType NumberType OptionalType "
                      "StreamObjType StringType TensorType Type",
    "_utils_internal": "_running_with_deploy",
    "_VF": "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    "_C": "DisableTorchFunction DisableTorchFunctionSubclass",
    "serialization._zip_files": "PyTorchFileReader PyTorchFileWriter",
    "api.checks": "_assert _assert_async _assert_scalar _assert_tensor_metadata _check _check_index _check_is_size "
                  "_check_not_implemented _check_tensor_all _check_tensor_all_with _check_type _check_value "
                  "_check_with",
    "api.hashing": "hash_tensor",
    "api.native_forms": "_amp_foreach_non_finite_check_and_unscale_ _amp_update_scale_ _conj _conj_physical "
                        "_convolution _dim_arange _euclidean_dist _is_all_true _is_any_true _log_softmax "
                        "_masked_softmax _safe_softmax _shape_as_tensor _softmax _stack _trilinear _unique "
                        "_unique2 _weight_norm convolution _functional_assert_async _conj_copy _neg_view_copy "
                        "_reshape_alias_copy _indices_copy _values_copy _sym_acos _sym_asin _sym_atan _sym_cos "
                        "_sym_cosh _sym_log2 _sym_sin _sym_sinh _sym_sqrt _sym_tan _sym_tanh sym_sqrt",
    "api.native_norms": "native_batch_norm native_group_norm native_layer_norm _fused_rms_norm "
                        "_native_batch_norm_legit batch_norm_update_stats",
    "nn._functions.sampling": "affine_grid_generator",
    "nn._functions.fake_quantization": "fake_quantize_per_channel_affine fake_quantize_per_tensor_affine",
    "as_torch.install": "install_as_torch uninstall_as_torch",
    "backends.nnpack": "_nnpack_available",
    "compiler": "compile",
    "futures": "Future",
    "jit": "ScriptFunction ScriptModule fork wait",
    "types": "SymBool SymFloat SymInt",
    "const": "DEVICE DTYPE OP",
    "api.tensor_types": "BFloat16Tensor BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor "
                 "LongTensor ShortTensor _tensor_classes set_default_tensor_type",
    "cuda": "OutOfMemoryError",
    "cuda.any_device": "Event Stream",
    "dispatch": "OpDispatch",
    "func": "vmap",
    "serialization": "load save",
    "utils._summary": "summary",
    "api.storage_objects": "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage "
                "ComplexFloatStorage DoubleStorage FloatStorage HalfStorage IntStorage LongStorage ShortStorage "
                 "Storage TypedStorage UntypedStorage _storage_classes",
    "nested": "_nested_from_padded _nested_from_padded_and_nested_example _nested_tensor_from_mask "
              "_nested_tensor_from_mask_left_aligned _nested_tensor_from_tensor_list _nested_view_from_buffer",
    "nn.attention": "_fused_sdp_choice",
    "nn._functions.native_attention": "_native_multi_head_attention _transform_bias_rescale_qkv "
                                      "_transformer_encoder_layer_fwd",
    "runtime.settings": "are_deterministic_algorithms_enabled get_deterministic_debug_mode "
                "get_float32_matmul_precision init_num_threads is_deterministic_algorithms_warn_only_enabled "
                "is_warn_always_enabled set_anomaly_enabled set_deterministic_debug_mode set_float32_matmul_precision "
                "set_warn_always use_deterministic_algorithms",
}.items() for name in names.split()}
newaxis = None
legacy_contiguous_format = _api.contiguous_format


def __getattr__(name: str) -> _Any:
    """Larger parts of the package are loaded when they are first used."""
    module = (name if name in _LAZY else "api.foreach" if name.startswith("_foreach_") else _ELSEWHERE.get(name))
    if module is None:
        if name in ("has_cuda", "has_cudnn", "has_mkldnn", "has_mps"):
            from .backends import former_switch
            return former_switch(name.removeprefix("has_"))
        from .messages.missing_names import MissingName
        raise MissingName(__name__, name)
    with _Paused():
        found = _import_module(f"{__name__}.{module}")
    return found if module == name else getattr(found, name)


def _later_value(module: str, name: str) -> _Any:
    """Return a function that loads a module of the package, and returns its attribute."""
    return lambda: getattr(_import_module(f"{__name__}.{module}"), name)


def _later(module: str, name: str) -> _Any:
    """A function of a part of the package that is loaded when it is first called."""
    def call(*args: _Any, **kwargs: _Any) -> _Any:
        return getattr(_import_module(f"{__name__}.{module}"), name)(*args, **kwargs)
    return call


_OF_STORAGE.update({_name: _later_value("api.storage_objects", _name) for _name in (
    "TypedStorage", "UntypedStorage", "_dtype_to_storage_type_map", "_storage_type_to_dtype_map",
    "_get_always_warn_typed_storage_removal", "_set_always_warn_typed_storage_removal")})
_OF_STORAGE["_load_from_bytes"] = _later_value("serialization", "storage_of_bytes")
_ABOVE.update(_rebuild_from_type_v2=_later("serialization._rebuild", "of_any_type"), render=_later("viz", "render"),
              constructed=_later("api.tensor_types", "legacy_tensor"),
              compiled_call=_later("compiler", "compiled_call"))


def is_cuda_available() -> "bool":
    """Return True if there is a CUDA device, or a simulated one."""
    return _import_module(f"{__name__}.cuda").is_available()  # type: ignore[no-any-return]


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, *_ELSEWHERE})


__all__ = [*_api.__all__, "autograd"]
