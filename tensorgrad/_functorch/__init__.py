"""PyTorch's paths of function transforms, and of the package `functorch`, which `torch.func` follows.

https://pytorch.org/functorch
"""
