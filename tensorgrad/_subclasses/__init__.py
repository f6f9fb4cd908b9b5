"""torch._subclasses: tensors without values, which PyTorch's compiler runs programs with; `device="meta"` is what is here of it."""
from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
