"""The state of a DataLoader: another one goes on with the batches that came next, to the bit, in the middle of an epoch and in those after it."""
import gc
import io
import multiprocessing
import random

import numpy as np
import pytest

import tensorgrad as tg
from tensorgrad.experiment import streams
from tensorgrad.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
)
from tensorgrad.utils.data._utils import pool

pytestmark = [
    pytest.mark.usefixtures('forking'),
    pytest.mark.filterwarnings('ignore:This DataLoader will create'),  # where there is one processor
    pytest.mark.filterwarnings('ignore:.*fork.*:DeprecationWarning'),  # Python's, about threads of libraries
]


@pytest.fixture(autouse=True)
def no_process_is_left(monkeypatch):
    monkeypatch.setattr(pool, 'SECONDS_TO_FINISH', 0.5)
    yield
    if multiprocessing.active_children():
        gc.collect()
    assert multiprocessing.active_children() == []


class Augmented(Dataset):
    """Samples that depend on all three streams."""

    def __init__(self, length=11, every=1):
        self.length, self.every = length, every

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if index % self.every:
            return tg.tensor([float(index), 0, 0, 0], dtype=tg.float64)
        return tg.tensor([index, random.random(), np.random.rand(), tg.rand(1, dtype=tg.float64).item()], dtype=tg.float64)


class OwnRandomness(Augmented):
    """Samples that depend on a generator of the dataset's own."""

    def __init__(self):
        super().__init__()
        self.rng = np.random.default_rng(3)

    def __getitem__(self, index):
        return tg.tensor([float(index), self.rng.random()], dtype=tg.float64)


class Numbers(IterableDataset):
    """Shared out among workers; with `noisy`, in an order that is shuffled by and by, with noise."""

    def __init__(self, length=11, noisy=False):
        self.length, self.noisy = length, noisy

    def __iter__(self):
        info = get_worker_info()
        numbers = range(self.length)[info.id::info.num_workers] if info else range(self.length)
        if not self.noisy:
            yield from numbers
            return
        buffer = []
        for number in numbers:
            buffer.append(number)
            if len(buffer) > 3:
                yield tg.tensor([buffer.pop(random.randrange(4)), np.random.rand()], dtype=tg.float64)
        yield from (tg.tensor([number, np.random.rand()], dtype=tg.float64) for number in buffer)


class Keeping(Numbers):
    """An iterable dataset that keeps its place, and is not to be iterated over what it has given."""

    def __init__(self, length=11):
        super().__init__(length)
        self.given = 0

    def __iter__(self):
        info = get_worker_info()
        numbers = range(self.length)[info.id::info.num_workers] if info else range(self.length)
        for number in numbers[self.given:]:
            self.given += 1
            yield tg.tensor([number, random.random()], dtype=tg.float64)
        self.given = 0

    def state_dict(self):
        return {'given': self.given}

    def load_state_dict(self, state):
        self.given = state['given']


class Whims(Sampler):
    """Draws an index whenever it is asked for one."""

    def __init__(self, length=11):
        self.length = length

    def __iter__(self):
        return (random.randrange(self.length) for _ in range(self.length))

    def __len__(self):
        return self.length


class Buffered(Whims):
    """Shuffles by and by, with NumPy's stream."""

    def __iter__(self):
        buffer = list(range(4))
        for index in range(4, self.length + 4):
            place = np.random.randint(4)
            yield buffer[place]
            buffer[place] = index % self.length


class Eager(Whims):
    """Draws when an iteration begins."""

    def __iter__(self):
        return iter(np.random.permutation(self.length).tolist())


class OfItsOwn(Whims):
    """Draws from a stream of its own."""

    def __init__(self, length=11):
        super().__init__(length)
        self.rng = random.Random(8)

    def __iter__(self):
        return (self.rng.randrange(self.length) for _ in range(self.length))


class KeepsPlace(Whims):
    """A sampler that keeps its place, by itself."""

    def __init__(self, length=11):
        super().__init__(length)
        self.order, self.given = [], 0

    def __iter__(self):
        if self.given == 0:
            self.order = np.random.permutation(self.length).tolist()
        while self.given < self.length:
            self.given += 1
            yield self.order[self.given - 1]
        self.given = 0

    def state_dict(self):
        return {'order': list(self.order), 'given': self.given}

    def load_state_dict(self, state):
        self.order, self.given = list(state['order']), state['given']


def seeded():
    return tg.Generator().manual_seed(7)


def rows():
    return TensorDataset(tg.arange(11), tg.arange(33.0).reshape(11, 3))


def shared_generator():
    generator = seeded()
    return DataLoader(rows(), batch_size=2, sampler=RandomSampler(range(11), generator=generator), generator=generator)


LOADERS = {
    'in order': lambda **o: DataLoader(rows(), batch_size=2, **o),
    'shuffled': lambda **o: DataLoader(rows(), batch_size=2, shuffle=True, **o),
    'own generator': lambda **o: DataLoader(rows(), batch_size=2, shuffle=True, generator=seeded(), **o),
    'drop last': lambda **o: DataLoader(rows(), batch_size=2, shuffle=True, drop_last=True, **o),
    'samples': lambda **o: DataLoader(rows(), batch_size=None, shuffle=True, **o),
    'shared generator': lambda **o: shared_generator(**o),
    'with replacement': lambda **o: DataLoader(rows(), batch_size=20, sampler=RandomSampler(range(11), True, 110), **o),
    'with replacement, lazily': lambda **o: DataLoader(rows(), batch_size=20, sampler=RandomSampler(range(11), True, 110, tg.default_generator), **o),
    'many times': lambda **o: DataLoader(rows(), batch_size=5, sampler=RandomSampler(range(11), num_samples=28, generator=seeded()), **o),
    'subset': lambda **o: DataLoader(rows(), batch_size=2, sampler=SubsetRandomSampler(range(9)), **o),
    'weighted': lambda **o: DataLoader(rows(), batch_size=2, sampler=WeightedRandomSampler([1.0] * 11, 9), **o),
    'batch sampler': lambda **o: DataLoader(rows(), batch_sampler=BatchSampler(RandomSampler(range(11)), 2, False), **o),
    'whims': lambda **o: DataLoader(rows(), batch_size=2, sampler=Whims(), **o),
    'buffered': lambda **o: DataLoader(rows(), batch_size=2, sampler=Buffered(), **o),
    'eager': lambda **o: DataLoader(rows(), batch_size=2, sampler=Eager(), **o),
    'of its own': lambda **o: DataLoader(rows(), batch_size=2, sampler=OfItsOwn(), **o),
    'keeps its place': lambda **o: DataLoader(rows(), batch_size=2, sampler=KeepsPlace(), **o),
    'augmented': lambda **o: DataLoader(Augmented(), batch_size=2, shuffle=True, **o),
    'rarely augmented': lambda **o: DataLoader(Augmented(every=4), batch_size=2, shuffle=True, **o),
    'own randomness': lambda **o: DataLoader(OwnRandomness(), batch_size=2, shuffle=True, **o),
    'iterable': lambda **o: DataLoader(Numbers(), batch_size=2, **o),
    'noisy iterable': lambda **o: DataLoader(Numbers(noisy=True), batch_size=2, **o),
    'keeping iterable': lambda **o: DataLoader(Keeping(), batch_size=2, **o),
}


def seed(number):
    random.seed(number)
    np.random.seed(number)
    tg.manual_seed(number)


def draw():
    """As a step of training does."""
    return tg.rand(5).tolist(), random.random(), np.random.rand()


def batches(iterator):
    """The rest of an epoch, and what is drawn beside it."""
    return [(batch, draw()) for batch in iterator]


def through_a_file(state):
    """What `load(..., weights_only=True)` reads of a state."""
    file = io.BytesIO()
    tg.save(state, file)
    file.seek(0)
    return tg.load(file, weights_only=True)


def equal(one, other):
    if isinstance(one, tg.Tensor):
        return one.dtype == other.dtype and tg.equal(one, other)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    return one == other


def goes_on(make, handed_out, *, epochs=0, ask=True, again=None, **options):
    """A loader made by `again` goes on with the batches, and the streams, that the first has after so many epochs and batches."""
    seed(1)
    loader = make(**options)
    if ask:
        loader.state_dict()
    for _ in range(epochs):
        batches(loader)
    if handed_out is not None:
        iterator = iter(loader)
        for _ in range(handed_out):
            next(iterator)
            draw()
    else:
        iterator = ()
    state = through_a_file({'loader': loader.state_dict(), 'streams': streams.state()})
    rest = batches(iterator)
    expected = [rest, batches(loader), batches(loader)] if handed_out is not None else [batches(loader), batches(loader)]
    del iterator, loader
    seed(2)
    resumed = again() if again else make(**options)
    resumed.load_state_dict(state['loader'])
    streams.restore(state['streams'])
    assert equal([batches(resumed) for _ in expected], expected)


@pytest.mark.parametrize('place', [(0, None), (1, None), (0, 0), (0, 1), (0, 3), (1, 4)], ids=str)
@pytest.mark.parametrize('kind', LOADERS)
def test_a_loader_goes_on(kind, place):
    epochs, handed_out = place
    goes_on(LOADERS[kind], handed_out, epochs=epochs)


@pytest.mark.parametrize('kind', LOADERS)
def test_a_loader_goes_on_after_its_last_batch(kind):
    """The epoch is over when the iterator has said so: until then, the next one has no batches."""
    last = len(list(LOADERS[kind]()))
    goes_on(LOADERS[kind], last)


WITH_WORKERS = [kind for kind in LOADERS if kind not in ('shared generator',)]


@pytest.mark.parametrize('place', [(0, 0), (0, 3), (1, 4)], ids=str)
@pytest.mark.parametrize('kind', WITH_WORKERS)
def test_workers_go_on(kind, place):
    epochs, handed_out = place
    goes_on(LOADERS[kind], handed_out, epochs=epochs, num_workers=2)
