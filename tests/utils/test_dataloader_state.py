"""The state of a DataLoader: another loader resumes with the following batches, to the bit, within an epoch and
after it."""
import copy
import gc
import io
import multiprocessing
import pickle
import random
import weakref

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
from tensorgrad.utils.data._utils import worker_pool

pytestmark = [
    pytest.mark.usefixtures('forking'),
    pytest.mark.filterwarnings('ignore:This DataLoader will create'),  # where there is one processor
    pytest.mark.filterwarnings('ignore:.*fork.*:DeprecationWarning'),  # Python's, about threads of libraries
]


@pytest.fixture(autouse=True)
def no_process_is_left(monkeypatch):
    monkeypatch.setattr(worker_pool, 'SECONDS_TO_FINISH', 0.5)
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
        return tg.tensor([index, random.random(), np.random.rand(), tg.rand(1, dtype=tg.float64).item()],
                         dtype=tg.float64)


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
    """A dataset that draws from its own stream."""

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
    'with replacement, lazily': lambda **o: DataLoader(rows(), batch_size=20,
                                                       sampler=RandomSampler(range(11), True, 110,
                                                                             tg.default_generator), **o),
    'many times': lambda **o: DataLoader(rows(), batch_size=5,
                                         sampler=RandomSampler(range(11), num_samples=28, generator=seeded()), **o),
    'subset': lambda **o: DataLoader(rows(), batch_size=2, sampler=SubsetRandomSampler(range(9)), **o),
    'weighted': lambda **o: DataLoader(rows(), batch_size=2, sampler=WeightedRandomSampler([1.0] * 11, 9), **o),
    'batch sampler': lambda **o: DataLoader(rows(), batch_sampler=BatchSampler(RandomSampler(range(11)), 2, False),
                                            **o),
    'whims': lambda **o: DataLoader(rows(), batch_size=2, sampler=Whims(), **o),
    'buffered': lambda **o: DataLoader(rows(), batch_size=2, sampler=Buffered(), **o),
    'eager': lambda **o: DataLoader(rows(), batch_size=2, sampler=Eager(), **o),
    'of its own': lambda **o: DataLoader(rows(), batch_size=2, sampler=OfItsOwn(), **o),
    'keeps its place': lambda **o: DataLoader(rows(), batch_size=2, sampler=KeepsPlace(), **o),
    'keeps its place, evenly': lambda **o: DataLoader(rows(), batch_size=2, sampler=KeepsPlace(10), **o),
    'keeps its place inside': lambda **o: DataLoader(rows(), batch_sampler=BatchSampler(KeepsPlace(), 2, False), **o),
    'augmented': lambda **o: DataLoader(Augmented(), batch_size=2, shuffle=True, **o),
    'rarely augmented': lambda **o: DataLoader(Augmented(every=4), batch_size=2, shuffle=True, **o),
    'own randomness': lambda **o: DataLoader(OwnRandomness(), batch_size=2, shuffle=True, **o),
    'iterable': lambda **o: DataLoader(Numbers(), batch_size=2, **o),
    'noisy iterable': lambda **o: DataLoader(Numbers(noisy=True), batch_size=2, **o),
    'keeping iterable': lambda **o: DataLoader(Keeping(), batch_size=2, **o),
    'keeping iterable, evenly': lambda **o: DataLoader(Keeping(12), batch_size=2, **o),
    'keeping iterable of samples': lambda **o: DataLoader(Keeping(7), batch_size=None, **o),
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
    """Save a state, and read it with `load(..., weights_only=True)`."""
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
    """Assert that a loader made by `again` resumes with the batches, and the streams, of the first after these
    epochs and batches."""
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
    expected = [rest, batches(loader)] if handed_out is not None else [batches(loader)]
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
    """The epoch ends when the iterator raises StopIteration: until then, a resumed iterator has no batches."""
    last = len(list(LOADERS[kind]()))
    goes_on(LOADERS[kind], last)


@pytest.mark.parametrize('kind, handed_out', [
    *((kind, 3) for kind in LOADERS if kind not in ('shared generator', 'in order', 'drop last', 'samples', 'subset',
                                                    'weighted', 'batch sampler')),
    *((kind, handed_out) for handed_out in (0, 5)
      for kind in ('own generator', 'augmented', 'noisy iterable', 'keeping iterable', 'keeps its place')),
])
def test_workers_go_on(kind, handed_out):
    goes_on(LOADERS[kind], handed_out, num_workers=2)


@pytest.mark.parametrize('kind', ['own generator', 'augmented', 'own randomness', 'noisy iterable', 'keeping iterable'])
@pytest.mark.parametrize('place, ask', [((1, None), False), ((1, 1), False), ((1, 4), True)], ids=str)
def test_workers_that_persist_go_on(kind, place, ask):
    """Their streams go on from epoch to epoch."""
    epochs, handed_out = place
    goes_on(LOADERS[kind], handed_out, epochs=epochs, ask=ask, num_workers=2, persistent_workers=True)


@pytest.mark.parametrize('kind', ['own generator', 'eager', 'augmented', 'rarely augmented', 'keeping iterable'])
@pytest.mark.parametrize('workers', [0, 2])
def test_a_state_that_nobody_asked_for_before(kind, workers):
    goes_on(LOADERS[kind], 4, ask=False, num_workers=workers)


def test_noise_of_workers_that_nobody_asked_for_before():
    goes_on(LOADERS['noisy iterable'], 3, ask=False, num_workers=2)


def test_noise_that_nobody_asked_for_before():
    """A state cannot tell later how an iterable dataset drew its numbers, and raises an error that says so."""
    loader = LOADERS['noisy iterable']()
    iterator = iter(loader)
    next(iterator), next(iterator)
    with pytest.raises(RuntimeError, match='the iterable dataset draws random numbers, .* call state_dict\\(\\) before '
                                           'the first batch'):
        loader.state_dict()


def test_a_sampler_that_drew_before_somebody_asked():
    """A sampler that returns other indices than before is detected."""
    loader = LOADERS['buffered']()
    iterator = iter(loader)
    for _ in range(4):
        next(iterator)
        draw()
    state = loader.state_dict()
    resumed = LOADERS['buffered']()
    resumed.load_state_dict(state)
    for _ in range(2):
        before = streams.state()
        with pytest.raises(RuntimeError, match='the sampler of this DataLoader does not give what it gave when the '
                                               'state was taken'):
            iter(resumed)
        assert equal(flat(streams.state()), flat(before))


def flat(state):
    return ([flat(state[key]) for key in sorted(state)] if isinstance(state, dict) else list(map(flat, state))
            if isinstance(state, tuple) else state)


@pytest.mark.parametrize('before, after', [(0, 2), (2, 0), (2, 1)])
def test_another_number_of_workers(before, after):
    """The number of workers may change if samples do not depend on the worker that fetches them."""
    goes_on(LOADERS['shuffled'], 4, num_workers=before, again=lambda: LOADERS['shuffled'](num_workers=after))


def test_another_number_of_workers_and_back():
    loader, states = LOADERS['shuffled'](num_workers=2), []
    seed(1)
    loader.state_dict()
    expected = batches(loader)
    seed(1)
    seen, iterator = [], iter(loader)
    for number in 0, 3, 2:
        seen += [(next(iterator), draw())]
        states = loader.state_dict(), streams.state()
        loader = LOADERS['shuffled'](num_workers=number)
        loader.load_state_dict(states[0])
        streams.restore(states[1])
        iterator = iter(loader)
    assert equal(seen + batches(iterator), expected)


@pytest.mark.parametrize('kind, why', [('augmented', 'samples depend on random numbers'),
                                       ('own randomness', 'samples depend on random numbers'),
                                       ('iterable', 'each worker iterates the dataset'),
                                       ('keeping iterable', 'the dataset has a state')])
@pytest.mark.parametrize('before, after', [(0, 2), (2, 0), (2, 3)])
def test_a_number_of_workers_that_matters(kind, why, before, after):
    loader = LOADERS[kind](num_workers=before)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    with pytest.raises(ValueError, match=f'the state was taken with num_workers={before}, and this DataLoader has '
                                         f'num_workers={after}: .*{why}'):
        LOADERS[kind](num_workers=after).load_state_dict(state)
    between = list(iterator) and loader.state_dict()
    LOADERS[kind](num_workers=after).load_state_dict(between)


def test_again_and_again():
    """A state of a resumed loader is equivalent to one of the first loader."""
    for options in {}, {'num_workers': 2}:
        for kind in ('augmented', 'noisy iterable', 'keeping iterable', 'buffered')[::1 + bool(options)]:
            seed(5)
            loader = LOADERS[kind](**options)
            loader.state_dict()
            expected = batches(loader) + batches(loader)[:2]
            seed(5)
            loader, seen = LOADERS[kind](**options), []
            loader.state_dict()
            iterator = iter(loader)
            while len(seen) < len(expected):
                batch = next(iterator, None)
                if batch is None:
                    iterator = iter(loader)
                    continue
                seen.append((batch, draw()))
                state = through_a_file([loader.state_dict(), streams.state()])
                seed(len(seen))
                loader = LOADERS[kind](**options)
                loader.load_state_dict(state[0])
                assert loader.state_dict()['handed_out'] == state[0]['handed_out']
                streams.restore(state[1])
                iterator = iter(loader)
            assert equal(seen, expected), kind


def test_epochs_of_processes():
    """The epoch of a DistributedSampler comes with the state."""
    def make():
        return DataLoader(rows(), batch_size=2, sampler=DistributedSampler(range(11), 2, 1, seed=4))
    loader = make()
    loader.sampler.set_epoch(3)
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    resumed = make()
    resumed.load_state_dict(state)
    assert resumed.sampler.epoch == 3 and equal(list(resumed), list(iterator))


def test_nothing_is_fetched_again():
    class Counting(Augmented):
        fetched = []

        def __getitem__(self, index):
            self.fetched.append(index)
            return super().__getitem__(index)

    loader = DataLoader(Counting(), batch_size=2)
    iterator = iter(loader)
    next(iterator), next(iterator)
    resumed = DataLoader(Counting(), batch_size=2)
    resumed.load_state_dict(loader.state_dict())
    Counting.fetched.clear()
    assert len(list(resumed)) == 4 and Counting.fetched == list(range(4, 11))


def test_the_shared_streams_are_left_alone():
    """They are not the loader's: neither taking over a state nor going on moves them."""
    loader = LOADERS['shuffled']()
    next(iter(loader))
    state = loader.state_dict()
    before = flat(streams.state())
    resumed = LOADERS['shuffled']()
    resumed.load_state_dict(state)
    next(iter(resumed))
    assert equal(flat(streams.state()), before)


def test_draws_between_the_start_and_the_first_batch():
    """Two loaders that are read side by side: the second one starts before the first has given an order."""
    def program(loaders, state=None):
        seen = []
        for pair in zip(*loaders, strict=True):
            seen.append((pair, draw()))
            if state is not None and len(seen) == 3:
                state += [loader.state_dict() for loader in loaders] + [streams.state()]
        return seen
    seed(3)
    state = []
    expected = program([LOADERS['shuffled'](), LOADERS['eager']()], state)
    resumed = [LOADERS['shuffled'](), LOADERS['eager']()]
    for loader, its_state in zip(resumed, state, strict=False):
        loader.load_state_dict(its_state)
    streams.restore(state[-1])
    assert equal(program(resumed), expected[3:])


def test_an_error_in_a_sample_does_not_shift_what_comes_next():
    class Broken(Augmented):
        def __getitem__(self, index):
            if index == 4:
                raise KeyError('broken')
            return super().__getitem__(index)

    for workers in 0, 2:
        loader = DataLoader(Broken(), batch_size=2, num_workers=workers)
        iterator = iter(loader)
        seen = [next(iterator) for _ in range(2)]
        with pytest.raises(KeyError):
            next(iterator)
        state = loader.state_dict(), streams.state()
        seen = list(iterator)
        resumed = DataLoader(Broken(), batch_size=2, num_workers=workers)
        resumed.load_state_dict(state[0])
        streams.restore(state[1])
        assert len(seen) == 3 and equal(list(resumed), seen)


@pytest.mark.parametrize('options', [{}, {'num_workers': 2}, {'num_workers': 2, 'persistent_workers': True}])
def test_an_epoch_that_was_left_and_one_that_was_closed(options):
    loader = LOADERS['augmented'](**options)
    for _ in loader:
        break
    assert loader.state_dict()['handed_out'] == 1
    iterator = iter(loader)
    next(iterator)
    iterator.close()
    iterator.close()
    assert list(iterator) == []
    state = loader.state_dict(), streams.state()
    assert state[0]['handed_out'] == 0
    expected = batches(loader)
    resumed = LOADERS['augmented'](**options)
    resumed.load_state_dict(state[0])
    streams.restore(state[1])
    assert len(expected) == 6 and equal(batches(resumed), expected)


@pytest.mark.parametrize('make, differs', [
    (lambda: DataLoader(rows(), batch_size=3, shuffle=True), 'batch_size 2, here 3; batches 6, here 4'),
    (lambda: DataLoader(rows(), batch_size=2), "sampler 'RandomSampler', here 'SequentialSampler'"),
    (lambda: DataLoader(range(30), batch_size=2, shuffle=True), 'batches 6, here 15'),
    (lambda: DataLoader(rows(), batch_size=2, shuffle=True, drop_last=True),
     'drop_last False, here True; batches 6, here 5'),
    (lambda: DataLoader(Numbers(), batch_size=2), "dataset 'map', here 'iterable'"),
    (lambda: LOADERS['own generator'](), "generators \\[\\], here \\['generator'\\]"),
])
def test_the_state_of_another_loader(make, differs):
    loader = LOADERS['shuffled']()
    iterator = iter(loader)
    next(iterator)
    other = make()
    seed(4)
    before = flat(other.state_dict())
    with pytest.raises(ValueError, match=f'the state is that of a.* DataLoader.*{differs}'):
        other.load_state_dict(loader.state_dict())
    assert equal(flat(other.state_dict()), before)


@pytest.mark.parametrize('damage', [
    lambda state: None, lambda state: [], lambda state: {}, lambda state: state | {'format': 2},
    lambda state: state | {'iteration': 3},
    lambda state: state | {'iteration': state['iteration'] | {'consumed': 'x'}}, lambda state: state | {'loader': {}},
    lambda state: state | {'generators': {'generator': 5}},
    lambda state: {key: state[key] for key in state if key != 'workers'},
    lambda state: state | {'iteration': state['iteration']
                           | {'draws': [(0, {'tensorgrad': {'dtype': 'uint8', 'bytes': tg.zeros(3, dtype=tg.uint8)}})]}},  # noqa: E501
    lambda state: state | {'sampler': {'given': 1}},
])
def test_a_damaged_state(damage):
    loader = LOADERS['own generator']()
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    resumed = LOADERS['own generator']()
    before = flat(resumed.state_dict())
    with pytest.raises(ValueError, match='state'):
        resumed.load_state_dict(damage(state))
    assert equal(flat(resumed.state_dict()), before)


def test_without_order_there_is_no_place():
    loader = LOADERS['shuffled'](num_workers=2, in_order=False)
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(RuntimeError, match='in_order=False'):
        loader.state_dict()
    list(iterator)
    assert loader.state_dict()['handed_out'] == 0


@pytest.mark.parametrize('make_copy', [copy.deepcopy, copy.copy, lambda loader: pickle.loads(pickle.dumps(loader))],
                         ids=['deepcopy', 'copy', 'pickle'])
def test_copies(make_copy):
    """A copy begins a new epoch, unless it was made of a loader that is to resume."""
    loader = LOADERS['own generator']()
    iterator = iter(loader)
    next(iterator)
    state = loader.state_dict()
    assert make_copy(loader).state_dict()['handed_out'] == 0
    rest = list(iterator)
    loader.load_state_dict(state)
    assert equal(list(make_copy(loader)), rest) and equal(list(loader), rest)


def test_an_iterator_that_is_gone_leaves_nothing_behind():
    """The loader keeps where it was, but neither batches nor what iterates the dataset."""
    closed = []

    class Stream(IterableDataset):
        def __iter__(self):
            try:
                yield from range(9)
            finally:
                closed.append(True)

    loader = DataLoader(Stream(), batch_size=2)
    for batch in loader:
        kept = weakref.ref(batch)
        break
    del batch
    assert closed == [True] and kept() is None and loader.state_dict()['handed_out'] == 1


def test_a_class_in_place_of_the_data_has_no_state():
    # packages that rebuild pickled loaders make one of a class first
    assert DataLoader(DataLoader, sampler=[]).state_dict()['dataset'] is None


class Wrapper:
    """A loader whose other attributes are those of the loader that it holds, as accelerate's.

    It is pickled as one of a class, and then gets its own attributes.
    """

    def __init__(self, data):
        self.loader, self.name = DataLoader(data, sampler=[]), 'new'

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def __reduce__(self):
        return Wrapper, (DataLoader,), self.__dict__


def test_a_wrapper_that_hands_on_attributes_is_pickled():
    wrapper = Wrapper(range(3))
    wrapper.name = 'old'
    again = pickle.loads(pickle.dumps(wrapper))
    assert again.name == 'old' and again.dataset == range(3) and not hasattr(again, '__setstate__')
