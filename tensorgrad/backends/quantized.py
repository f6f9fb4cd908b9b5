"""torch.backends.quantized: there are no quantized tensors. https://pytorch.org/docs → torch.backends.quantized"""
engine, supported_engines = "none", ["none"]
