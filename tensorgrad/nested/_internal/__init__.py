"""PyTorch's package of jagged nested tensors."""
