"""Pipes of utils.data: what they yield, their errors, their graph, and loaders of them, beside PyTorch."""
import importlib
import warnings

import pytest
from side_by_side import attempt
from support import Programs, cpu_only

import tensorgrad

program = Programs()


def parts(torch):
    data = importlib.import_module(f"{torch.__name__}.utils.data")
    return data, importlib.import_module(f"{data.__name__}.datapipes").iter, data.datapipes.map


def even(x):
    return x % 2 == 0


def tens(x):
    return 10 * x


def add(a, b):
    return a + b


def parity(x):
    return x % 2


@program
def pipes_that_are_iterated(torch):
    data, it, _ = parts(torch)
    source, pairs = it.IterableWrapper(range(7)), it.IterableWrapper([(1, 2, 3), (4, 5, 6)])
    dicts = it.IterableWrapper([{"a": 1, "b": 2}])
    chained = source.filter(even).map(tens).batch(3)
    batches = list(source.batch(3))
    groups = source.groupby(parity, group_size=2, guaranteed_group_size=1, keep_key=True)
    return ([list(chained), str(chained), len(source.batch(3)), len(source.batch(3, drop_last=True)), batches,
             type(batches[0]).__name__, list(batches[0].raw_iterator()), batches[0].as_str("> ")],
            [list(pairs.map(tens, input_col=1)), list(pairs.map(add, input_col=[0, 2])),
             list(pairs.map(add, input_col=[0, 2], output_col=1)), list(pairs.map(tens, 0, -1)),
             list(dicts.map(add, input_col=["a", "b"], output_col="c")), list(pairs.filter(even, input_col=1))],
            list(it.IterableWrapper([[1, [2, 3]], [4]]).unbatch(-1)), list(it.IterableWrapper([[1, 2], [3]]).unbatch()),
            list(groups), list(source.groupby(parity, buffer_size=3)), list(source.concat(pairs)), list(source + pairs),
            list(source.zip(pairs)), list(source.mux(pairs)), len(source.mux(pairs)), list(it.Sampler(source)),
            list(source.shuffle().set_shuffle(False)), sorted(source.shuffle(buffer_size=2)),
            list(source.shuffle().set_seed(3)),
            [batch.tolist() for batch in source.batch(4).collate()])


@program
def iterations_that_go_on_after_a_pickle(torch):
    import pickle
    data, it, indexed = parts(torch)
    restore = importlib.import_module(
        f"{data.__name__}.datapipes.utils.snapshot")._simple_graph_snapshot_restoration
    state = importlib.import_module(f"{data.__name__}.datapipes._hook_iterator")._SnapshotState
    settings, seen = importlib.import_module(f"{data.__name__}.graph_settings"), []

    def seeded():
        return torch.Generator().manual_seed(0)
    first, second = it.IterableWrapper(range(10)).map(tens).shuffle(buffer_size=4).fork(2)
    pipe = first.zip(second)
    settings.apply_random_seed(pipe, seeded())
    samples = iter(pipe)
    begun = [next(samples) for _ in range(3)]
    copy = pickle.loads(pickle.dumps(pipe))
    restore(copy, copy._number_of_samples_yielded, seeded())
    seen.append(begun + list(copy) == begun + list(samples))
    restore(copy, 1)
    seen += [attempt(lambda: restore(copy, 1)), attempt(lambda: restore(it.IterableWrapper([1]).map(tens), 2)),
             [pipe._snapshot_state.name, copy._snapshot_state.name], len(list(copy)), len(list(copy))]
    for shuffler in (it.IterableWrapper(range(8)).shuffle(buffer_size=3), indexed.SequenceWrapper(range(8)).shuffle()):
        samples = iter(shuffler)
        next(samples)
        copy = pickle.loads(pickle.dumps(shuffler))
        copy._snapshot_state = state.Restored
        if shuffler.datapipe.__class__.__name__ == "IterableWrapperIterDataPipe":
            restore(copy.datapipe, shuffler.datapipe._number_of_samples_yielded)
        seen.append(list(samples) == list(copy))
    return seen


@program
def several_pipes_of_one(torch):
    _, it, _ = parts(torch)
    source = it.IterableWrapper(range(6))
    first, second = source.fork(2, buffer_size=3)
    odd_ones, even_ones = source.demux(2, even)
    small = source.fork(2, buffer_size=2)
    return (list(zip(first, second)), list(first)[:0], attempt(lambda: [next(iter(small[0])) for _ in range(1)]),
            attempt(lambda: list(small[0])), list(odd_ones), list(even_ones), source.fork(1) is source,
            [list(pipe) for pipe in it.IterableWrapper([1, 2]).fork(3, copy="deep")],
            attempt(lambda: source.fork(0)), attempt(lambda: source.fork(2, copy="odd")),
            attempt(lambda: [list(pipe) for pipe in source.demux(2, tens)]),
            [list(pipe) for pipe in source.demux(1, lambda x: None if x else 0, drop_none=True)])


@program
def pipes_that_are_indexed(torch):
    _, _, mp = parts(torch)
    source = mp.SequenceWrapper([1, 2, 3, 4, 5])
    named = mp.SequenceWrapper({"a": 1})
    return (list(source.map(tens).batch(2)), source.batch(2)[2], len(source.batch(2, drop_last=True)), named["a"],
            list(source.concat(source))[7], list(source.zip(source.map(tens))),
            list(source.shuffle().set_shuffle(False)), sorted(source.shuffle()), list(source.shuffle().set_seed(5)),
            list(source.shuffle(indices=[2, 0]).set_seed(1)),
            attempt(lambda: source.batch(2)[9]), attempt(lambda: source.concat(3)), attempt(lambda: source.batch(0)))


@program
def errors_of_pipes(torch):
    data, it, _ = parts(torch)
    source = it.IterableWrapper(range(4))

    class NoLength(data.IterDataPipe):
        def __iter__(self):
            yield from range(3)
    calls = [lambda: source.nothing(), lambda: source.map(3), lambda: source.batch(0), lambda: len(NoLength().batch(2)),
             lambda: it.Sampler(NoLength()), lambda: source.map(tens, output_col=1),
             lambda: source.map(add, input_col=0),
             lambda: source.shuffle(buffer_size=0), lambda: source.zip(3),
             lambda: it.Concater(), lambda: list(source.unbatch(-2)),
             lambda: data.functional_datapipe("batch")(NoLength), lambda: len(NoLength().sharding_filter())]
    return [answer if isinstance(answer := attempt(call), str) else (answer[0], answer[1][:40]) for call in calls]


@program
def one_iterator_at_a_time(torch):
    _, it, _ = parts(torch)
    source = it.IterableWrapper(range(4))
    first, second = iter(source), None
    taken = [next(first)]
    second = iter(source)
    return taken, next(second), attempt(lambda: next(first))[1][:98], list(second)


@program
def graphs_and_shares(torch):
    data, it, _ = parts(torch)
    graph = importlib.import_module(f"{data.__name__}.graph")
    settings = importlib.import_module(f"{data.__name__}.graph_settings")
    source = it.IterableWrapper(range(10))
    pipe = source.shuffle().sharding_filter().map(tens)
    holder = it.IterableWrapper([1], deepcopy=False)
    holder.others = {"deep": [(pipe,)]}

    def shape(level):
        return sorted([type(one).__name__, shape(held)] for one, held in level.values())
    settings.apply_shuffle_settings(pipe, False)
    settings.apply_sharding(pipe, 3, 1)
    share = list(pipe)
    settings.apply_shuffle_settings(pipe, True)
    settings.apply_random_seed(pipe, torch.Generator().manual_seed(0))
    drawn = list(pipe)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        added = settings.apply_shuffle_settings(source, True)
    twice = source.sharding_filter().sharding_filter()
    return (shape(graph.traverse_dps(holder)), share, drawn, len(pipe), type(added).__name__,
            len(settings.get_all_graph_pipes(graph.traverse_dps(pipe.zip(pipe)))),
            attempt(lambda: settings.apply_sharding(twice, 2, 0))[0], attempt(lambda: graph.traverse_dps(3))[0])


@program
def loaders_of_pipes(torch):
    data, it, mp = parts(torch)
    pipe = it.IterableWrapper(range(8)).shuffle()
    loader = data.DataLoader(pipe, batch_size=3, shuffle=True, generator=torch.Generator().manual_seed(0))
    epochs = [[batch.tolist() for batch in loader] for _ in range(2)]
    plain = [batch.tolist() for batch in data.DataLoader(pipe, batch_size=3, shuffle=False)]
    indexed = data.DataLoader(mp.SequenceWrapper(range(5)).map(tens), batch_size=2, shuffle=True,
                              generator=torch.Generator().manual_seed(0))
    return epochs, plain, [batch.tolist() for batch in indexed]


@program
def pipes_of_random_order(torch):
    data, _, _ = parts(torch)

    @data.non_deterministic
    class Random(data.IterDataPipe):
        pass

    @data.non_deterministic(lambda n: n > 1)
    class Sometimes(data.IterDataPipe):
        def __init__(self, n):
            self.n = n
    with data.guaranteed_datapipes_determinism():
        refused = [attempt(Random), attempt(lambda: Sometimes(2))[0], Sometimes(1).n]
    return refused, type(Random()).__name__, Sometimes(2).n, attempt(lambda: data.non_deterministic(3))


test_programs = program.test()


def test_arguments_and_samples_are_checked():
    data = tensorgrad.utils.data

    class Checked(data.IterDataPipe[int]):
        @data.argument_validation
        def __init__(self, source: list, other: data.IterDataPipe = None):
            self.source = source

        @data.runtime_validation
        def __iter__(self):
            yield from self.source
    assert list(Checked([1, 2], Checked([]))) == [1, 2]
    with pytest.raises(TypeError, match="Expected argument 'other' as a IterDataPipe, but found <class 'int'>"):
        Checked([], 3)
    with data.runtime_validation_disabled():
        assert list(Checked(["a"])) == ["a"]
    with pytest.raises(RuntimeError, match="Expected an instance as subtype of <class 'int'>, but found an instance"):
        list(Checked([1, "a"]))


def test_files(tmp_path):
    it = tensorgrad.utils.data.datapipes.iter
    for name in ("b.txt", "a.txt", "c.csv"):
        (tmp_path / name).write_text(f"in {name}")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "d.txt").write_text("in d.txt")
    paths = it.FileLister(str(tmp_path), masks="*.txt", recursive=True)
    assert [path.removeprefix(str(tmp_path)) for path in paths] == ["/a.txt", "/b.txt", "/inner/d.txt"]
    assert [text for _, text in paths.open_files("r").read_from_stream()] == ["in a.txt", "in b.txt", "in d.txt"]
    assert [text for _, text in paths.open_files("b").read_from_stream(4)][:2] == [b"in a", b".txt"]
    with pytest.raises(TypeError, match="doesn't have valid length"):
        len(paths)
    with pytest.raises(ValueError, match="Invalid mode"):
        it.FileOpener(paths, "w")


@cpu_only
def test_workers_share_samples_out_and_begin_each_epoch_anew():
    data = tensorgrad.utils.data
    pipe = data.datapipes.iter.IterableWrapper(range(9)).shuffle().sharding_filter().map(tens)
    loader = data.DataLoader(pipe, num_workers=2, batch_size=2, shuffle=True, persistent_workers=True)
    epochs = [[x for batch in loader for x in batch.tolist()] for _ in range(2)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == [10 * i for i in range(9)] and epochs[0] != epochs[1]
    assert len(loader._iterator._workers) == 2 and not any(worker.exitcode for worker in loader._iterator._workers)
    in_order = data.DataLoader(pipe, num_workers=2, batch_size=2, shuffle=False)
    assert [batch.tolist() for batch in in_order][:2] == [[0, 20], [10, 30]]
