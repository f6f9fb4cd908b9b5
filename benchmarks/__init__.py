"""Speed and memory against PyTorch in one run: `python -m benchmarks.run`."""
