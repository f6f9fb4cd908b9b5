"""torch.onnx: ONNX files are not written. https://pytorch.org/docs/stable/onnx.html"""
from ._unsupported import unsupported

_NAMES = "export register_custom_op_symbolic unregister_custom_op_symbolic"
__all__ = ["ONNXProgram", "OnnxExporterError", "is_in_onnx_export", *_NAMES.split()]


class OnnxExporterError(RuntimeError):
    """What PyTorch raises if an export fails."""


class ONNXProgram:
    """The class of PyTorch's exported programs: nothing here is one."""


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: never."""
    return False


globals().update(unsupported(_NAMES, "torch.onnx", "programs are not traced, and ONNX files not written"))
