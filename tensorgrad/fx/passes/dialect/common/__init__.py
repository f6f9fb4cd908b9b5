"""Passes over all functions."""
