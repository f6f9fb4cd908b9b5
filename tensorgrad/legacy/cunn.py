"""The name of what was the CUDA part of `legacy.nn`: modules move by `.cuda()`, and nothing else has to be imported.

>>> from tensorgrad.legacy import cunn
"""
