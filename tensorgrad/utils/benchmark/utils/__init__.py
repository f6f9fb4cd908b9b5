"""Where PyTorch keeps the parts of torch.utils.benchmark."""
