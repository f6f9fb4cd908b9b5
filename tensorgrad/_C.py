"""The few names of PyTorch's compiled module that programs use."""
from ._overriding import DisableTorchFunction, DisableTorchFunctionSubclass
from ._overriding import disabled as _disabled_torch_function_impl
from ._tensor import Tensor as TensorBase
from .generator import Generator

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "Generator", "TensorBase", "_disabled_torch_function_impl"]
