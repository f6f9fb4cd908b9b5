"""torch.fx.experimental: PyTorch's queries about tracing, which never happens here."""
