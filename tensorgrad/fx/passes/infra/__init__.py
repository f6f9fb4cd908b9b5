"""Passes and their order."""
