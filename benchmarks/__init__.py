"""Speed, as a ratio against PyTorch in one run."""
