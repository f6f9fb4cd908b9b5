"""Helpers of pipes."""
from . import common

__all__ = ['common']
