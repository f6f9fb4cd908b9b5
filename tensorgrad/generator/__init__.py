"""PyTorch's CPU random numbers, bit for bit. https://docs.pytorch.org → torch.Generator"""
from .generator import DEFAULT_SEED, MANY, Generator, default_generator, states

__all__ = ["DEFAULT_SEED", "MANY", "Generator", "default_generator", "states"]
