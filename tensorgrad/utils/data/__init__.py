"""Datasets, samplers and loaders (PyTorch: ``torch.utils.data``).

>>> import tensorgrad as torch
>>> from tensorgrad.utils.data import DataLoader, TensorDataset
>>> dataset = TensorDataset(torch.arange(4), torch.arange(4) ** 2)
>>> for x, y in DataLoader(dataset, batch_size=3):
...     print(x.tolist(), y.tolist())
[0, 1, 2] [0, 1, 4]
[3] [9]
"""
from ._utils.collate import default_collate, default_convert
from ._utils.fetch import _DatasetKind
from ._utils.worker import get_worker_info
from .dataloader import DataLoader
from .dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from .distributed import DistributedSampler
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

__all__ = [
    'BatchSampler', 'ChainDataset', 'ConcatDataset', 'DataLoader', 'Dataset', 'DistributedSampler', 'IterableDataset',
    'RandomSampler', 'Sampler', 'SequentialSampler', 'StackDataset', 'Subset', 'SubsetRandomSampler', 'TensorDataset',
    'WeightedRandomSampler', '_DatasetKind', 'default_collate', 'default_convert', 'get_worker_info', 'random_split']
