"""torch.export: programs are not traced into graphs. https://pytorch.org/docs/stable/export.html"""
from ._unsupported import unsupported

__all__ = ["Dim", "ExportedProgram", "draft_export", "export", "load", "save"]


class ExportedProgram:
    """The class of PyTorch's exported programs: nothing here is one."""


globals().update(unsupported("Dim draft_export export load save", "torch.export", "programs are not traced into graphs"))
