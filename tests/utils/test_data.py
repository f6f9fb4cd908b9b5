"""Datasets, samplers and the loader: PyTorch's batches in PyTorch's order, with and without workers."""
import collections
import gc
import multiprocessing
import os
import random
import signal
import time

import numpy as np
import pytest
from side_by_side import same
from support import is_running, until

import tensorgrad as tg
from tensorgrad.utils import data
from tensorgrad.utils.data import DataLoader, TensorDataset
from tensorgrad.utils.data._utils import worker_pool

pytestmark = [
    pytest.mark.usefixtures('forking'),
    pytest.mark.filterwarnings('ignore:This DataLoader will create'),  # where there is one processor
    pytest.mark.filterwarnings('ignore:.*fork.*:DeprecationWarning'),  # Python's, about threads of libraries
]

# The order of 10 samples with the seed 0, batches of 4, in two epochs (by PyTorch)
ORDER = [[6, 7, 1, 4], [2, 0, 9, 8], [3, 5], [2, 4, 7, 0], [8, 9, 5, 3], [6, 1]]


def rows(torch, number=10):
    """A dataset with numbered samples."""
    return torch.utils.data.TensorDataset(torch.arange(number * 3.0).reshape(number, 3), torch.arange(number))


def batches(loader):
    return [batch for batch in loader]


# ── the loader, without workers ───────────────────────────────────────────────────────────────

def test_order():
    tg.manual_seed(0)
    loader = DataLoader(rows(tg), batch_size=4, shuffle=True)
    assert [labels.tolist() for _ in range(2) for _, labels in loader] == ORDER


class Records:
    """A dataset of dicts, with the library's tensors."""

    def __init__(self, torch):
        self.torch = torch

    def __len__(self):
        return 7

    def __getitem__(self, index):
        return {'x': self.torch.ones(2) * index, 'name': str(index), 'number': index, 'pair': (index / 2, [index, 1])}


def streams(torch, **options):
    """Two epochs, and where they have left the generator."""
    def program(torch):
        given = {key: value(torch) if callable(value) else value for key, value in options.items()}
        dataset = given.pop('dataset', rows(torch))
        loader = torch.utils.data.DataLoader(dataset, **given)
        seen = [batches(loader), batches(loader)]
        return seen, len(loader), torch.rand(2)
    return program


def generator(torch):
    return torch.Generator().manual_seed(7)


@pytest.mark.parametrize('options', [
    {}, {'batch_size': 4}, {'batch_size': 4, 'drop_last': True}, {'batch_size': 4, 'shuffle': True},
    {'batch_size': 5, 'shuffle': True, 'generator': generator}, {'batch_size': None},
    {'batch_size': None, 'shuffle': True}, {'batch_size': 4, 'num_workers': 2},
    {'batch_size': 3, 'shuffle': True, 'num_workers': 2, 'persistent_workers': True},
    {'batch_size': 3, 'shuffle': True, 'num_workers': 1, 'generator': generator},
    {'batch_size': 3, 'dataset': Records}, {'batch_size': 3, 'dataset': Records, 'shuffle': True},
    {'batch_size': 4, 'sampler': [3, -1, 3, 0, 9]}, {'batch_sampler': [[1, 2], [9], [0, 0, 4]]},
    {'batch_size': None, 'sampler': [[1, 2], [3]]},
    {'batch_size': 4, 'sampler': lambda torch: torch.tensor([5, 3, 2])},
    {'batch_size': 3, 'dataset': lambda torch: torch.utils.data.Subset(rows(torch), [4, 2, 7, 1, 1]), 'shuffle': True},
    {'batch_size': 2, 'dataset': lambda torch: torch.utils.data.random_split(rows(torch), [0.5, 0.5])[1]},
    {'batch_size': 4, 'dataset': lambda torch: rows(torch) + rows(torch, 3)},
    {'batch_size': 2, 'dataset': lambda torch: torch.utils.data.StackDataset(a=rows(torch), b=range(10))},
    {'batch_size': 4, 'collate_fn': lambda torch: len}, {'batch_size': 4, 'sampler': [10]},
    {'batch_size': 4, 'sampler': lambda torch: torch.utils.data.RandomSampler(range(10), True, 70)},
    {'batch_size': 4, 'sampler': lambda torch: torch.utils.data.RandomSampler(range(10), False, 25, generator(torch))},
    {'batch_size': 4, 'sampler': lambda torch: torch.utils.data.RandomSampler(range(10), False, 20, generator(torch))},
    {'batch_size': 4, 'sampler': lambda torch: torch.utils.data.SubsetRandomSampler([5, 1, 7, 8], generator(torch))},
    {'batch_size': 4, 'sampler': lambda torch: torch.utils.data.WeightedRandomSampler([1, 2, 0, 4.0], 9)},
    {'batch_size': 2, 'sampler': lambda torch: torch.utils.data.WeightedRandomSampler([1, 2, 3.0], 3, False)},
], ids=lambda case: str(case).split(' at 0x')[0])
def test_like_pytorch(options):
    same(streams(tg, **options))


def test_whole_rows_are_what_single_samples_come_to():
    """A batch that is indexed at once equals the collated one, including separate memory and gradients."""
    x, y = tg.rand(6, 3, 2).transpose(1, 2), tg.arange(6)
    x.requires_grad_()
    dataset = TensorDataset(x, y)
    at_once = batches(DataLoader(dataset, batch_size=4))
    one_by_one = batches(DataLoader(dataset, batch_size=4, collate_fn=lambda samples: data.default_collate(samples)))
    for got, expected in zip(at_once, one_by_one, strict=True):
        assert type(got) is type(expected) is list
        for one, other in zip(got, expected, strict=True):
            assert tg.equal(one, other) and one.dtype == other.dtype
    gradients = []
    for kind in at_once, one_by_one:
        sum((batch[0] ** 2).sum() for batch in kind).backward()
        gradients.append(x.grad)
        x.grad = None
    assert tg.equal(*gradients)
    with tg.no_grad():
        at_once[0][0].zero_()
    assert x.ne(0).any()


def test_tensors_on_a_device(device):
    """Samples stay on their device; numbers and arrays become tensors where new tensors are made."""
    loader = DataLoader(TensorDataset(tg.arange(6.0), tg.arange(6)), batch_size=4, shuffle=True)
    seen = batches(loader)
    assert {part.device.type for batch in seen for part in batch} == {device.type}
    assert all(tg.equal(x, y.float()) for x, y in seen)


def test_nothing_to_pin_for():
    if tg.cuda.is_available():
        pytest.skip('memory is pinned here')
    same(streams(tg, batch_size=4, pin_memory=True))


def test_an_epoch_can_be_left():
    loader = DataLoader(rows(tg), batch_size=4)
    assert len(next(iter(loader))[1]) == 4
    assert [len(labels) for _, labels in loader] == [4, 4, 2]


def options_of_attributes(torch):
    loader = torch.utils.data.DataLoader(rows(torch), 4)
    loader.num_workers = 0
    return [loader.batch_size, loader.drop_last, loader.num_workers, loader.prefetch_factor, loader.timeout,
            loader.pin_memory, loader.persistent_workers, loader.multiprocessing_context, loader.generator,
            loader.in_order, loader.collate_fn is torch.utils.data.default_collate, len(loader),
            type(loader.sampler).__name__, type(loader.batch_sampler).__name__]


def length_of_a_stream(torch):
    class Stream(torch.utils.data.IterableDataset):
        def __len__(self):
            return 3

        def __iter__(self):
            return iter(range(5))

        def __repr__(self):
            return 'Stream()'

    loader = torch.utils.data.DataLoader(Stream())
    return len(loader), batches(loader), batches(torch.utils.data.DataLoader(Stream(), batch_size=2, drop_last=True))


@pytest.mark.parametrize('program', [options_of_attributes, length_of_a_stream], ids=lambda program: program.__name__)
def test_program(program):
    same(program)


def stream(torch):
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

        def __repr__(self):
            return 'Stream()'
    return Stream()


def loads(dataset=rows, **options):
    return lambda torch: torch.utils.data.DataLoader(dataset(torch), **options)


def sets(name, value):
    def program(torch):
        setattr(torch.utils.data.DataLoader(rows(torch)), name, value)
    return program


@pytest.mark.parametrize('program', [
    loads(num_workers=-1), loads(timeout=-1), loads(prefetch_factor=2), loads(num_workers=1, prefetch_factor=-1),
    loads(persistent_workers=True), loads(sampler=[1], shuffle=True), loads(batch_sampler=[[1]], batch_size=2),
    loads(batch_sampler=[[1]], shuffle=True), loads(batch_sampler=[[1]], drop_last=True),
    loads(batch_size=None, drop_last=True), loads(batch_size=0), loads(batch_size=1.5), loads(drop_last=1),
    loads(multiprocessing_context='fork'), loads(multiprocessing_context='spoon', num_workers=1),
    loads(multiprocessing_context=3, num_workers=1), loads(stream, shuffle=True), loads(stream, sampler=[1]),
    loads(stream, batch_sampler=[[1]]),
    loads(lambda torch: torch.utils.data.TensorDataset(torch.ones(0)), shuffle=True),
    *(sets(name, 3) for name in ('batch_size', 'batch_sampler', 'sampler', 'drop_last', 'dataset',
                                 'persistent_workers')),
    lambda torch: len(loads(stream)(torch)), lambda torch: batches(loads(stream, timeout=1)(torch)) and None,
])
def test_loader_error(program):
    same(program)


# ── datasets and samplers ─────────────────────────────────────────────────────────────────────

def splits(*arguments):
    def program(torch):
        parts = torch.utils.data.random_split(*arguments, **{'generator': generator(torch)})
        return [list(part.indices) for part in parts], [list(part) for part in parts]
    return program


def split_without_generator(torch):
    return [part.indices for part in torch.utils.data.random_split(range(9), [4, 5])], torch.rand(1)


def parts_of_datasets(torch):
    D = torch.utils.data
    whole = D.ConcatDataset([rows(torch, 3), rows(torch, 2), D.Subset(rows(torch), [5, 7])])
    stack = D.StackDataset(rows(torch, 3), D.Subset(rows(torch), [5, 7, 1]))
    return (len(whole), whole.cumulative_sizes, whole[0], whole[4], whole[-1], whole[-7], stack[1], len(stack),
            stack.__getitems__([2, 0]), D.Subset(rows(torch), [5, 7]).__getitems__([1]),
            D.Subset(rows(torch), [5, 7])[[0, 1]], whole.cummulative_sizes,
            D.StackDataset(a=range(3), b=rows(torch, 3)).__getitems__([1, 2]))


def chains(torch):
    chain = stream(torch) + stream(torch)
    return type(chain).__name__, list(chain), batches(torch.utils.data.DataLoader(chain, batch_size=4))


def batch_samplers(torch):
    D = torch.utils.data
    return [[list(sampler), len(sampler)] for sampler in (
        D.BatchSampler(range(7), 3, False), D.BatchSampler(range(7), 3, True), D.BatchSampler(range(6), 3, True),
        D.BatchSampler(D.SequentialSampler(range(5)), 2, False))]


@pytest.mark.parametrize('program', [
    splits(range(10), [3, 7]), splits(range(10), [0.3, 0.3, 0.4]), splits(range(3), [0.5, 0.25, 0.25]),
    splits(range(1), [0.5, 0.5]), splits(range(10), [3, 8]), splits(range(10), [1.5, -0.5]), split_without_generator,
    parts_of_datasets, chains, batch_samplers,
])
def test_dataset_program(program):
    same(program)


def subset_with_half_an_interface(torch):
    class Half(torch.utils.data.Subset):
        def __getitem__(self, index):
            return index
    Half(rows(torch), [1])


def nested_dataset_of_wrong_size(torch):
    class Wrong(torch.utils.data.Dataset):
        def __len__(self):
            return 10

        def __getitems__(self, indices):
            return indices[1:]
    torch.utils.data.StackDataset(rows(torch), Wrong()).__getitems__([1, 2])


@pytest.mark.parametrize('program', [
    lambda torch: torch.utils.data.TensorDataset(torch.ones(2), torch.ones(3)),
    lambda torch: torch.utils.data.Dataset()[0], lambda torch: torch.utils.data.StackDataset(),
    lambda torch: torch.utils.data.StackDataset(range(2), a=range(2)),
    lambda torch: torch.utils.data.StackDataset(range(2), range(3)),
    lambda torch: torch.utils.data.ConcatDataset([]), lambda torch: torch.utils.data.ConcatDataset([stream(torch)]),
    lambda torch: torch.utils.data.ConcatDataset([range(2)])[-3],
    lambda torch: list(torch.utils.data.ChainDataset([range(2)])),
    lambda torch: len(torch.utils.data.ChainDataset([range(2)])),
    lambda torch: torch.utils.data.RandomSampler(range(3), replacement=1),
    lambda torch: torch.utils.data.RandomSampler(range(3), num_samples=0),
    lambda torch: torch.utils.data.RandomSampler([]),
    lambda torch: torch.utils.data.WeightedRandomSampler([1, 2], 0),
    lambda torch: torch.utils.data.WeightedRandomSampler([1, 2], 2, 1),
    lambda torch: torch.utils.data.WeightedRandomSampler([[1, 2]], 2),
    lambda torch: torch.utils.data.BatchSampler(range(2), True, False),
    lambda torch: torch.utils.data.BatchSampler(range(2), 2, 0),
    subset_with_half_an_interface, nested_dataset_of_wrong_size,
])
def test_dataset_error(program):
    same(program)


# ── collating ─────────────────────────────────────────────────────────────────────────────────

Point = collections.namedtuple('Point', 'x y')


class Text(collections.UserList):
    """A sequence of the user's."""


@pytest.mark.parametrize('batch', [
    [1, 2], [1.5, 2.0], [True, False], ['a', 'b'], [b'a', b'b'], [np.float32(1), np.float32(2)], [np.float64(1.5)],
    [np.int16(3), np.int16(4)], [np.bool_(True)], [np.ones((2, 3)), np.zeros((2, 3))], [np.arange(2), np.arange(2.0)],
    [(1, 'a'), (2, 'b')], [[1, 2.5], [3, 4.5]], [{'x': 1, 'y': [1, 2]}, {'x': 2, 'y': [3, 4]}],
    [Point(1, 2.0), Point(3, 4.0)], [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
    [collections.defaultdict(int, a=1)], [range(2), range(2)], [Text([1, 2]), Text([3, 4])], [(), ()], [{}, {}],
    [np.array('a')], [object()], [None], [(1, 2), (3,)], [np.ones(2), np.ones(3)], [np.array(['a'])], [],
    [[1, [2, (3, {'a': 'b'})]]], [1 + 2j],
], ids=lambda case: repr(case).split(' at 0x')[0])
def test_collating(batch):
    def program(torch):
        return torch.utils.data.default_collate(batch)
    same(program)


def test_collating_tensors():
    def program(torch):
        collate = torch.utils.data.default_collate
        return (collate([torch.ones(2), torch.zeros(2)]), collate([(torch.tensor(1), torch.ones(2, 1))] * 3),
                collate([{'x': torch.ones(1, dtype=torch.int16)}]))
    same(program)


def test_collating_own_types():
    def program(torch):
        collate = __import__(f'{torch.__name__}.utils.data._utils.collate', fromlist=['collate'])

        def join(batch, *, collate_fn_map=None):
            return list(batch)
        extended = {**collate.default_collate_fn_map, (object,): join}
        return collate.collate([{'a': (None, 1)}, {'a': (Ellipsis, 2)}], collate_fn_map=extended)
    same(program)


@pytest.mark.parametrize('value', [
    1, 'a', None, np.arange(3), np.float32(2), np.array(['a']), [np.ones(2), (1, np.zeros(1))], {'a': np.int8(3)},
    Point(np.ones(1), 2), Text([np.ones(1)]), collections.OrderedDict(a=np.ones(1)), range(3), {1, 2},
], ids=lambda case: repr(case).split(' at 0x')[0])
def test_converting(value):
    same(lambda torch: torch.utils.data.default_convert(value))


# ── workers ───────────────────────────────────────────────────────────────────────────────────

class Numbers(data.Dataset):
    """Numbers; at five, something happens."""

    def __init__(self, happens=lambda: None, length=12):
        self.happens, self.length = happens, length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if index == 5:
            self.happens()
        return tg.tensor(index)


class Countdown(data.IterableDataset):
    """Split among the workers."""

    def __init__(self, start=11):
        self.start = start

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        return iter(range(self.start - first, 0, -step))


class Identities(data.Dataset):
    """Who fetches a sample, and random numbers from all generators."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        info = data.get_worker_info()
        return (info.id, info.num_workers, info.seed, len(info.dataset), tg.rand(1).item(), np.random.rand(),
                random.random(), os.environ.get('WORKER'))


def raises(error):
    def happens():
        raise error
    return happens


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def note_number(number):
    os.environ['WORKER'] = str(number)


@pytest.fixture(autouse=True)
def no_process_is_left(monkeypatch):
    monkeypatch.setattr(worker_pool, 'SECONDS_TO_FINISH', 0.5)
    yield
    if multiprocessing.active_children():
        gc.collect()
    assert multiprocessing.active_children() == []


def test_identities():
    """Numbers, seeds and generators of the workers, as PyTorch sets them."""
    def program(torch):
        class Own(torch.utils.data.Dataset):
            def __len__(self):
                return 6

            def __getitem__(self, index):
                info = torch.utils.data.get_worker_info()
                return (info.id, info.num_workers, info.seed, len(info.dataset), torch.rand(1).item(),
                        np.random.rand(), random.random(), os.environ.get('WORKER'), torch.get_num_threads())
        return batches(torch.utils.data.DataLoader(Own(), batch_size=None, num_workers=2, worker_init_fn=note_number))
    same(program)
    assert data.get_worker_info() is None


@pytest.mark.parametrize('method', ['fork', 'spawn'])
def test_start_methods(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip('not on this platform')
    tg.manual_seed(0)
    loader = DataLoader(Identities(), batch_size=None, num_workers=1, worker_init_fn=note_number,
                        multiprocessing_context=method)
    seen = batches(loader)
    assert [(number, total, length, name) for number, total, _, length, *_, name in seen] == [(0, 1, 6, '0')] * 6
    assert len({part[4] for part in seen}) == 6


@pytest.mark.parametrize('workers', [0, 1, 2, 3])
@pytest.mark.parametrize('in_order', [True, False])
def test_iterable_datasets_are_split(workers, in_order):
    loader = DataLoader(Countdown(), batch_size=2, num_workers=workers, in_order=in_order)
    for _ in range(2):
        seen = [batch.tolist() for batch in loader]
        assert sorted(sum(seen, [])) == list(range(1, 12))
        if in_order and workers == 2:
            assert seen == [[11, 9], [10, 8], [7, 5], [6, 4], [3, 1], [2]]


def test_workers_persist():
    loader = DataLoader(Identities(), batch_size=None, num_workers=2, persistent_workers=True)
    first = iter(loader)
    next(first)
    processes = set(multiprocessing.active_children())
    epochs = [batches(loader) for _ in range(2)]  # the epoch that was left is over
    assert set(multiprocessing.active_children()) == processes
    assert [[part[0] for part in epoch] for epoch in epochs] == [[0, 1] * 3] * 2
    assert epochs[0][0][4] != epochs[1][0][4]  # the generators go on


def test_persistent_workers_start_an_iterable_dataset_anew():
    loader = DataLoader(Countdown(5), batch_size=2, num_workers=2, persistent_workers=True)
    expected = [[5, 3], [4, 2], [1]]
    assert [[batch.tolist() for batch in loader] for _ in range(3)] == [expected] * 3


def test_batches_are_writable_and_own_their_memory():
    loader = DataLoader(rows(tg), batch_size=5, num_workers=1)
    (x, _), (other, _) = loader
    x.zero_()
    assert other.sum() == sum(range(15, 30))


class Odd(Exception):
    """An exception that takes two arguments."""

    def __init__(self, one, two):
        super().__init__(one, two)


def local_error():
    class Local(Exception):
        pass
    raise Local('nobody else knows it')


@pytest.mark.parametrize('happens, error, text', [
    (raises(ValueError('five')), ValueError, 'Caught ValueError in DataLoader worker process 0.\nOriginal Traceback'),
    (raises(KeyError('five')), KeyError, "^Caught KeyError in DataLoader worker process 0.\nOriginal Traceback"),
    (raises(Odd(1, 2)), RuntimeError, 'Caught Odd in DataLoader worker process 0.'),
    (local_error, RuntimeError, r'Caught Local in DataLoader worker process 0.(.|\n)*nobody else knows it'),
    (kill, RuntimeError, r'DataLoader worker \(pid\(s\) \d+\) exited unexpectedly\nDataLoader worker \(pid \d+\) is '
                         r'killed by signal: Killed.'),
    (lambda: os._exit(3), RuntimeError,
     r'DataLoader worker \(pid\(s\) \d+\) exited unexpectedly\n.* with exit code 3.'),
])
def test_what_happens_in_a_worker(happens, error, text):
    with pytest.raises(error, match=text):
        batches(DataLoader(Numbers(happens), batch_size=2, num_workers=2))


def test_an_exception_is_not_the_end():
    loader = iter(DataLoader(Numbers(raises(ValueError())), batch_size=3, num_workers=2))
    seen = [next(loader).tolist()]
    with pytest.raises(ValueError):
        next(loader)
    assert seen + [batch.tolist() for batch in loader] == [[0, 1, 2], [6, 7, 8], [9, 10, 11]]


def test_new_workers_for_dead_ones():
    loader = DataLoader(Numbers(kill, length=6), num_workers=1, persistent_workers=True)
    for _ in range(2):
        with pytest.raises(RuntimeError, match='exited unexpectedly'):
            batches(loader)


@pytest.mark.parametrize('function', [raises(ValueError('no'))])
def test_an_exception_before_the_first_batch(function):
    with pytest.raises(ValueError, match='Caught ValueError in DataLoader worker process 0'):
        batches(DataLoader(Numbers(), num_workers=1, worker_init_fn=lambda number: function()))


def test_a_batch_that_cannot_be_pickled():
    loader = DataLoader(Numbers(), num_workers=1, collate_fn=lambda samples: (lambda: 0))
    with pytest.raises(RuntimeError, match='in DataLoader worker process 0'):
        batches(loader)


def test_timeout():
    start = time.monotonic()
    with pytest.raises(RuntimeError, match='DataLoader timed out after 0.2 seconds'):
        batches(DataLoader(Numbers(lambda: time.sleep(120)), num_workers=1, timeout=0.2))
    gc.collect()
    assert time.monotonic() - start < 60


def test_an_epoch_with_workers_can_be_left():
    for number, _ in enumerate(DataLoader(Numbers(), num_workers=2)):
        if number == 3:
            break
    gc.collect()
    assert multiprocessing.active_children() == []


def test_indices_and_batches_larger_than_a_pipe():
    """Neither side may wait for the other to read."""
    size = 200_000
    loader = DataLoader(TensorDataset(tg.arange(size)), batch_size=size // 4, num_workers=2, prefetch_factor=4)
    for _ in range(2):
        assert sum(int(batch.sum()) for batch, in loader) == size * (size - 1) // 2


def test_keyboard_interrupt():
    def interrupt():    # by a worker, since it is at five while this process waits for it, and at no other time
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(60)

    loader = iter(DataLoader(Numbers(interrupt), num_workers=2))
    next(loader)
    # a shell's jobs in the background are told to ignore it
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            batches(loader)
    finally:
        signal.signal(signal.SIGINT, before)
    del loader
    gc.collect()
    assert multiprocessing.active_children() == []


def test_workers_of_a_process_that_is_killed_go():
    """A worker notices when nobody is left to work for, even in the middle of a batch."""
    def main(pids):
        loader = iter(DataLoader(Numbers(lambda: time.sleep(300)), num_workers=2))
        for _ in range(4):
            next(loader)
        pids.send([process.pid for process in multiprocessing.active_children()])
        kill()

    context = multiprocessing.get_context('fork')
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=main, args=(writer,))
    process.start()
    pids = reader.recv()
    process.join()
    reader.close()
    writer.close()
    until(lambda: not any(map(is_running, pids)))


def test_an_iterator_is_not_pickled():
    import pickle
    with pytest.raises(NotImplementedError, match='cannot be pickled'):
        pickle.dumps(iter(DataLoader(Numbers())))


def test_nothing_to_prefetch():
    with pytest.raises(AssertionError, match='prefetch_factor must be greater than 0'):
        iter(DataLoader(Numbers(), num_workers=1, prefetch_factor=0))


def test_more_workers_than_processors():
    with pytest.warns(UserWarning, match='This DataLoader will create 1000 worker processes in total.'):
        DataLoader(Numbers(), num_workers=1000)


def shares(torch):
    """Every index of every process, of several sizes and epochs."""
    found = []
    for options in ({}, {'shuffle': False}, {'drop_last': True}, {'seed': 4}):
        for length, count, epoch in ((10, 3, 0), (10, 3, 2), (2, 5, 1), (9, 3, 5)):
            for rank in range(count):
                sampler = torch.utils.data.DistributedSampler(range(length), num_replicas=count, rank=rank, **options)
                sampler.set_epoch(epoch)
                found.append((len(sampler), list(sampler)))
    return found


def test_shares_of_processes():
    same(shares)
    same(lambda torch: torch.utils.data.distributed.DistributedSampler(range(3), num_replicas=2, rank=2))
