"""The functions of `nn.functional`, one file a family."""
