"""PyTorch's import path of questions about Triton, a compiler for GPUs that nothing here uses: the answer is False."""
from __future__ import annotations


def _no(*args: object) -> bool:
    """Return False."""
    return False


has_triton = has_triton_package = has_triton_tma = has_triton_tma_device = has_triton_stable_tma_api = _no
has_triton_experimental_host_tma = has_triton_tensor_descriptor_host_tma = _no
has_datacenter_blackwell_tma_device = _no

__all__ = ["has_triton", "has_triton_package", "has_triton_tma", "has_triton_tma_device"]
