"""A small vision transformer."""
