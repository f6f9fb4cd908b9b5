"""Common parts of the examples: an IDX reader, a progress bar, an evaluator, a trainer, pictures, command-line
options.
"""
