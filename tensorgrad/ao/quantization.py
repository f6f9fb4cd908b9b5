"""torch.ao.quantization: there are no quantized tensors. https://pytorch.org/docs/stable/quantization.html"""
from .._unsupported import unsupported
from ..nn.modules.module import Module

_NAMES = ("convert default_dynamic_qconfig fuse_modules get_default_qat_qconfig get_default_qconfig get_default_qconfig_mapping prepare prepare_qat quantize "
          "quantize_dynamic quantize_qat")
globals().update(unsupported(_NAMES, "torch.ao.quantization", "there are no quantized tensors"))
__all__ = [*_NAMES.split(), "DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QuantStub"]


class QuantStub(Module):
    """Where quantized values would begin: it gives back its input."""

    def __init__(self, qconfig=None):
        super().__init__()

    def forward(self, x):
        return x


class DeQuantStub(QuantStub):
    """Where quantized values would end: it gives back its input."""


class ObserverBase(Module):
    """The class of PyTorch's modules that watch values: nothing here is one."""


class FakeQuantizeBase(Module):
    """The class of PyTorch's modules that round values: nothing here is one."""
