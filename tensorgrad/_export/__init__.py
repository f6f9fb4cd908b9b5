"""torch._export: what packages import from PyTorch's private side of `torch.export`."""
