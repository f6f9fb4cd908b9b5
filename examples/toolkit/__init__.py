"""What the examples share: an IDX reader, a progress bar, an evaluator, a trainer, pictures, command-line options."""
