"""ONNX files in: the wire format, tensors, operators, and the module that a file becomes."""
