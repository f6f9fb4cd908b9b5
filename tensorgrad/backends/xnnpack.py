"""torch.backends.xnnpack: not used. https://pytorch.org/docs → torch.backends.xnnpack"""
enabled = False
