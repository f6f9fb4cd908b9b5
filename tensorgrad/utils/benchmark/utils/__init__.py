"""Parts of torch.utils.benchmark, in PyTorch's layout of modules."""
