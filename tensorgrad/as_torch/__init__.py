"""This package under other names, `torch` first of all, for programs that are to run unchanged."""
