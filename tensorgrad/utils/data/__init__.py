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
from .datapipes._decorator import (
    argument_validation,
    guaranteed_datapipes_determinism,
    non_deterministic,
    runtime_validation,
    runtime_validation_disabled,
)
from .datapipes.datapipe import DataChunk, DFIterDataPipe, IterDataPipe, MapDataPipe, functional_datapipe
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
    'BatchSampler', 'ChainDataset', 'ConcatDataset', 'DFIterDataPipe', 'DataChunk', 'DataLoader', 'Dataset',
    'DistributedSampler', 'IterDataPipe', 'IterableDataset', 'MapDataPipe', 'RandomSampler', 'Sampler',
    'SequentialSampler', 'StackDataset', 'Subset', 'SubsetRandomSampler', 'TensorDataset', 'WeightedRandomSampler',
    '_DatasetKind', 'argument_validation', 'default_collate', 'default_convert', 'functional_datapipe',
    'get_worker_info', 'guaranteed_datapipes_determinism', 'non_deterministic', 'random_split', 'runtime_validation',
    'runtime_validation_disabled']
