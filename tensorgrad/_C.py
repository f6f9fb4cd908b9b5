"""The few names of PyTorch's compiled module that programs use."""
from ._overriding import DisableTorchFunction, DisableTorchFunctionSubclass
from ._overriding import disabled as _disabled_torch_function_impl
from ._tensor import Tensor as TensorBase
from .generator import Generator


def _log_api_usage_once(event: str) -> None:
    """Nothing is logged."""


__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "Generator", "TensorBase", "_disabled_torch_function_impl", "_log_api_usage_once"]
