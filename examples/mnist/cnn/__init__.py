"""A small convolutional network."""
