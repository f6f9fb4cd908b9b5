"""An empty module under the name of the former CUDA part of `legacy.nn`: modules move by `.cuda()`, without another
import.

>>> from tensorgrad.legacy import cunn
"""
