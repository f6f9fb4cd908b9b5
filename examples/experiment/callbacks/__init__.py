"""Callbacks of these experiments: importing a module registers what it defines."""
from . import classified, reconstructed, sampled, written
