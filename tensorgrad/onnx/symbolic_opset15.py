"""The functions that PyTorch writes ONNX nodes with: none here, where a table of rules does it."""
from ._absent import __getattr__ as __getattr__
