"""The base for storages of devices that programs define.

A subclass that sets `device` registers the device. The class defines `asarray`, which makes its arrays, `host`, which
reads them, and `array_type`, their class; `module` is a NumPy-like module of functions on them, or each op that is used
on the device needs a registered kernel.

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
