"""Loaders that are no DataLoader, over the iterators of torch.utils.data.dataloader, as in fastai."""
import itertools
import multiprocessing
import os

import pytest
from side_by_side import same
from support import cpu_only

pytestmark = cpu_only


def loader_over(torch, rows, kind, workers=0, **others):
    """A loader of a class of its own, with the attributes that PyTorch's iterators read."""
    module = torch.utils.data.dataloader

    class Loader:
        _IterableDataset_len_called, _auto_collation, drop_last, in_order = None, False, False, True
        generator, prefetch_factor, timeout, pin_memory, persistent_workers = None, 2, 0, False, False
        worker_init_fn, pin_memory_device, multiprocessing_context = None, "", None
        collate_fn = staticmethod(lambda x: x * 2)
        dataset, num_workers, _dataset_kind = rows, workers, getattr(module._DatasetKind, kind)
        _index_sampler = property(lambda self: itertools.count() if kind == "Iterable" else [2, 0, 1])
        _get_shared_seed = lambda self: None
    for name, value in others.items():
        setattr(Loader, name, value)
    return Loader()


@pytest.mark.parametrize("kind", ["Iterable", "Map"])
def test_in_this_process(kind):
    pytest.importorskip("torch")

    def run(torch):
        torch.manual_seed(0)
        loader = loader_over(torch, [torch.randn(2) for _ in range(3)], kind)
        return list(torch.utils.data.dataloader._SingleProcessDataLoaderIter(loader)), torch.rand(1)
    same(run)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the loader's class is not pickled")
def test_with_workers():
    import tensorgrad as torch
    loader = loader_over(torch, [torch.ones(2), torch.zeros(2), torch.full((2,), 3.0)], "Map", workers=1,
                         multiprocessing_context=multiprocessing.get_context("fork"))
    batches = list(torch.utils.data.dataloader._MultiProcessingDataLoaderIter(loader))
    assert [batch.tolist() for batch in batches] == [[6.0, 6.0], [2.0, 2.0], [0.0, 0.0]]
