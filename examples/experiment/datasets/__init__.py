"""Data of these experiments: importing a module registers what it defines."""
from . import digits, loaders, pixels, shakespeare
