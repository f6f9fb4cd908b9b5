"""Handwritten digits, learned by a convolutional network and by a vision transformer."""
