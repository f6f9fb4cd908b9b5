"""PyTorch's folder of functions that its first autograd was made of: helpers for shapes are left."""
