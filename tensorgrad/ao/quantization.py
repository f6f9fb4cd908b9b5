"""torch.ao.quantization: there are no quantized tensors. https://pytorch.org/docs/stable/quantization.html"""
from ..messages.unsupported import unsupported
from ..nn.modules.module import Module

_NAMES = ("convert default_dynamic_qconfig fuse_modules get_default_qat_qconfig get_default_qconfig "
          "get_default_qconfig_mapping prepare prepare_qat quantize quantize_dynamic quantize_qat")
globals().update(unsupported(_NAMES, "torch.ao.quantization", "there are no quantized tensors"))
__all__ = [*_NAMES.split(), "DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QuantStub"]


class QuantStub(Module):
    """Returns its input; marks the start of a quantized part."""

    def __init__(self, qconfig=None):
        super().__init__()

    def forward(self, x):
        return x


class DeQuantStub(QuantStub):
    """Returns its input; marks the end of a quantized part."""


class ObserverBase(Module):
    """PyTorch's class of modules that observe values; no object is an instance."""


class FakeQuantizeBase(Module):
    """PyTorch's class of modules that round values; no object is an instance."""
