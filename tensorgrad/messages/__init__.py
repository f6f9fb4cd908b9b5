"""Texts of errors and warnings that the whole package shares, and the layout of its tables."""
