"""torch._subclasses: PyTorch's fake tensors, with which its compiler runs programs; use `device="meta"` here."""
from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["CrossRefFakeMode", "FakeTensor", "FakeTensorMode"]


class CrossRefFakeMode:
    """A mode that compares each operation with one on fake tensors: a name that files of tests derive from, no more.
    """

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise NotImplementedError("tensorgrad has no torch._subclasses.CrossRefFakeMode: fake tensors are those of the "
                                  'device "meta"')
