"""The base for the storage of a device of a program's own.

A subclass that names its `device` is the registration of the device. It says how its arrays are made (`asarray`), how they are read (`host`) and what
they are (`array_type`); `module` is a NumPy-like module of functions on them, or each op that is used on the device has a registered kernel.

>>> import numpy, tensorgrad as torch
>>> from tensorgrad.storage.stubs import Storage
>>> class Shelf(Storage):
...     device, module, array_type = "shelf", numpy, numpy.ndarray
...     asarray, host = staticmethod(numpy.asarray), staticmethod(lambda array: array)
>>> torch.ones(2, device="shelf").exp().device
device(type='shelf')
>>> del Storage.by_device["shelf"]
"""
from .base import Storage

__all__ = ["Storage"]
