"""The first PyTorch, of 2016."""
