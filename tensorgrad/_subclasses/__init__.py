"""torch._subclasses: PyTorch's fake tensors, with which its compiler runs programs; use `device="meta"` here."""
from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
