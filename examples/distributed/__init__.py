"""Programs of several processes. They are PyTorch's as they are, and say `import torch`: see README.md."""
