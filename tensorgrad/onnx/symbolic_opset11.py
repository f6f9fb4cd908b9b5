"""PyTorch's module of functions that write ONNX nodes; empty here, because a table of rules replaces it."""
from ._absent import __getattr__ as __getattr__
