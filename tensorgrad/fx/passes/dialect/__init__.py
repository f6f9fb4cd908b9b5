"""Passes over functions of one kind."""
