"""Texts of errors and warnings that the whole package shares."""
