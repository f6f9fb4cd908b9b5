"""The functions of `nn.functional`, a file for each family."""
