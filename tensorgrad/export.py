"""torch.export: programs are not traced into graphs. https://pytorch.org/docs/stable/export.html"""
from ._unsupported import unsupported

_NAMES = "Dim draft_export export load save"
__all__ = ["ExportedProgram", *_NAMES.split()]


class ExportedProgram:
    """The class of PyTorch's exported programs: nothing here is one."""


globals().update(unsupported(_NAMES, "torch.export", "programs are not traced into graphs"))
