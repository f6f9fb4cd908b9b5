"""distributed.checkpoint: beside PyTorch's files, on numbers of ranks that change, through saves that die, and against
hostile files.
"""
import importlib
import os
import pickle
import threading
import warnings

import pytest
from ranks import as_threads
from side_by_side import attempt
from support import Programs, cpu_only, fresh_process

import tensorgrad as torch
from tensorgrad import distributed as dist
from tensorgrad.distributed import checkpoint as dcp
from tensorgrad.distributed.checkpoint import format_utils, state_dict
from tensorgrad.distributed.checkpoint._nested_dict import flatten_state_dict, unflatten_state_dict
from tensorgrad.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys
from tensorgrad.distributed.optim import ZeroRedundancyOptimizer

pytestmark = cpu_only
program = Programs()


def save(state, folder, **options):
    return dcp.save(state, checkpoint_id=folder, no_dist=True, **options)


def load(state, folder, **options):
    dcp.load(state, checkpoint_id=folder, no_dist=True, **options)
    return state


def of(library, name):
    return importlib.import_module(f"{library.__name__}.distributed.checkpoint{name}")


def everything(torch, fill=True):
    """A state of each kind of entry, or one to be filled."""
    def tensor(*shape, dtype=None):
        made = torch.arange(1, 1 + torch.Size(shape).numel()).reshape(shape).to(dtype or torch.float32)
        return made if fill else torch.zeros_like(made)
    value = (lambda given: given) if fill else (lambda given: None)
    return {"model": {"weight": tensor(2, 3), "bias": tensor(3, dtype=torch.bfloat16), "none": tensor(0, 3)},
            "kinds": [tensor(2, dtype=getattr(torch, name))
                      for name in "float64 float16 int64 int32 int16 uint8 bool complex64".split()],
            "number": tensor(dtype=torch.int64), "view": tensor(4, 6)[1:, ::2] if fill else torch.zeros(3, 3),
            "turned": tensor(3, 2).t(), "mixed": [value(1), tensor(2), {"text": value("äöü"), "list": value([1, [2]])}],
            "epoch": value(3), "rate": value(0.5), "nothing": value(None),
            "pair": value((1, "two", 3.5)), "deep": {"a": {"b": {"c": value(True)}}}}


def shown(value):
    """Nested values with lists in the place of tensors of any library."""
    if hasattr(value, "dtype"):
        return str(value.dtype), tuple(value.shape), value.tolist()
    if isinstance(value, dict):
        return {key: shown(item) for key, item in value.items()}
    return type(value)(map(shown, value)) if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("writer, reader", [("tensorgrad", "tensorgrad"), ("tensorgrad", "torch"),
                                            ("torch", "tensorgrad")])
def test_each_library_reads_the_other_s(writer, reader, tmp_path):
    writer, reader = pytest.importorskip(writer), pytest.importorskip(reader)
    state = everything(reader, fill=False)
    with warnings.catch_warnings():
        # PyTorch warns of a process that saves alone, though it was told to
        warnings.simplefilter("ignore")
        of(writer, "").save(everything(writer), checkpoint_id=tmp_path / "saved", no_dist=True)
        of(reader, "").load(state, checkpoint_id=tmp_path / "saved", no_dist=True)
    assert shown(state) == shown(everything(reader))
    assert sorted(os.listdir(tmp_path / "saved")) == [".metadata", "__0_0.distcp"]


@program
def errors_of_loads(torch):
    import tempfile
    checkpoint, folder = of(torch, ""), tempfile.mkdtemp()

    def of_rank_0(call):
        try:
            return call()
        except checkpoint.CheckpointException as error:
            found, text = error.failures[0][0], str(error).split("\n")
            return type(found).__name__, str(found).split("\n")[0].replace("tensorgrad", "torch"), text[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checkpoint.save({"a": torch.ones(2), "b": 3, "l": [1, torch.ones(1)]}, checkpoint_id=folder, no_dist=True)
        states = [{"a": torch.zeros(3)}, {"a": 5}, {"c": 1}, {"l": [1, torch.ones(1), torch.ones(1)]}, {}]
        partly, renamed = {"a": torch.zeros(2), "c": 1}, {}
        checkpoint.load(partly, checkpoint_id=folder, planner=checkpoint.DefaultLoadPlanner(allow_partial_load=True),
                        no_dist=True)
        reader = checkpoint.FileSystemReader(folder)
        keys = sorted(reader.read_metadata().state_dict_metadata)
        return [of_rank_0(lambda state=state: checkpoint.load(state, checkpoint_id=folder, no_dist=True))
                for state in states] + [
            partly, renamed, keys, attempt(lambda: checkpoint.load({}, no_dist=True)),
            attempt(lambda: checkpoint.save({}, no_dist=True))]


@program
def states_under_canonical_names(torch):
    d, s = importlib.import_module(torch.__name__ + ".distributed"), of(torch, ".state_dict")
    d.init_process_group("gloo", rank=0, world_size=1, store=d.HashStore())
    try:
        seen = []
        for flat, cls in ((False, torch.optim.Adam), (True, torch.optim.Adam), (False, torch.optim.SGD)):
            options = s.StateDictOptions(flatten_optimizer_state_dict=flat)
            plain, copy = (torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)) for _ in range(2))
            for param in plain.parameters():
                torch.nn.init.constant_(param, 0.5)
            model = torch.nn.parallel.DistributedDataParallel(plain)
            first, second, third = ([{"params": list(m.parameters())[:1], "lr": 0.5},
                                     {"params": list(m.parameters())[1:]}] for m in (model, copy, plain))
            optimizer, other = cls(first), cls(second)
            model(torch.ones(3, 2)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            ours, theirs = s.get_state_dict(model, optimizer, options=options)
            seen += [list(ours), {key: theirs[key] for key in sorted(theirs)}]
            s.set_state_dict(copy, other, model_state_dict=dict(ours), optim_state_dict=theirs, options=options)
            state = other.state_dict()
            seen += [copy.state_dict(), state["state"] if cls is torch.optim.Adam else None,
                     [dict(sorted(group.items())) for group in state["param_groups"]]]
        copy[0].weight.requires_grad_(False)
        frozen = s.get_model_state_dict(copy,
                                        options=s.StateDictOptions(ignore_frozen_params=True, cpu_offload=True,
                                                                   full_state_dict=True))
        fresh = s.get_optimizer_state_dict(plain, torch.optim.Adam(third))
        spread = s.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        seen += [list(frozen), fresh["state"]["0.weight"],
                 s.set_model_state_dict(copy, dict(copy.state_dict()), options=spread)]
        return seen + [attempt(lambda: s.set_model_state_dict(copy, {"0.weight": torch.ones(3)})),
                       attempt(lambda: s.set_optimizer_state_dict(plain, torch.optim.Adam(third),
                                                                  {"state": {"0.bias": {}}, "param_groups": [
                           {"params": ["0.bias"]}]})),
                       attempt(lambda: s.get_model_state_dict(copy,
                                                              options=s.StateDictOptions(broadcast_from_rank0=True)))]
    finally:
        d.destroy_process_group()


test_programs = program.test(atol=1e-6)


# ── ranks ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def model():
    made = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 3))
    with torch.no_grad():
        for param in made.parameters():
            param.copy_(torch.arange(param.numel()).sin().view_as(param))
    return made


def train(made, optimizer, begin, end):
    for i in range(begin, end):
        optimizer.zero_grad()
        made(torch.arange(10.).reshape(2, 5).sin() * (i + 1)).square().sum().backward()
        optimizer.step()
    optimizer.zero_grad()
    return [param.tolist() for param in made.parameters()]


def test_a_spread_state_of_four_ranks_goes_on_with_two_and_with_one(tmp_path):
    plain_model = model()
    whole = train(plain_model, torch.optim.Adam(plain_model.parameters(), lr=0.1), 0, 4)

    def first(rank, group):
        made = model()
        zero = ZeroRedundancyOptimizer(made.parameters(), torch.optim.Adam, lr=0.1)
        train(made, zero, 0, 2)
        of_model, of_optimizer = state_dict.get_state_dict(made, zero)
        dcp.save({"model": of_model, "optim": of_optimizer,
                  f"rank {rank}": {"random": torch.full((3,), rank), "seen": rank}}, checkpoint_id=tmp_path)
        return len(of_optimizer["state"])

    def then(rank, group):
        made = model()
        zero = ZeroRedundancyOptimizer(made.parameters(), torch.optim.Adam, lr=0.5)
        of_model, of_optimizer = state_dict.get_state_dict(made, zero)
        state = {"model": of_model, "optim": of_optimizer,
                 f"rank {3 - rank}": {"random": torch.zeros(3, dtype=torch.int64), "seen": None}}
        dcp.load(state, checkpoint_id=tmp_path)
        state_dict.set_state_dict(made, zero, model_state_dict=state["model"], optim_state_dict=state["optim"])
        assert (state[f"rank {3 - rank}"]["random"].tolist() == [3 - rank] * 3
                and state[f"rank {3 - rank}"]["seen"] == 3 - rank)
        return train(made, zero, 2, 4)
    assert (as_threads(4, first) == [1, 1, 1, 1] and sorted(os.listdir(tmp_path))
            == [".metadata", *(f"__{rank}_0.distcp" for rank in range(4))])
    assert as_threads(2, then) == [whole] * 2 and as_threads(1, then) == [whole]
    alone = model()                                     # a plain optimizer takes the parts of all ranks
    optimizer = torch.optim.Adam(alone.parameters(), lr=0.5)
    of_model, of_optimizer = state_dict.get_state_dict(alone, optimizer)
    state = load({"model": of_model, "optim": of_optimizer}, tmp_path)
    state_dict.set_state_dict(alone, optimizer, model_state_dict=state["model"], optim_state_dict=state["optim"])
    assert train(alone, optimizer, 2, 4) == whole


def test_what_all_ranks_have_is_written_once(tmp_path):
    def program(rank, group):
        return dcp.save({"large": torch.ones(1000), "small": [torch.ones(400) for _ in range(4)], "n": 1},
                        checkpoint_id=tmp_path)
    metadata = as_threads(3, program)[2]
    writers = {index.fqn: info.relative_path for index, info in metadata.storage_data.items()}
    assert len(writers) == 6 and len(set(writers.values())) == 3
    assert all(writers[f"small.{i}"] != writers["large"] for i in range(3))
    assert (sum(info.length for info in metadata.storage_data.values())
            == sum(os.path.getsize(tmp_path / name) for name in set(writers.values())))


def test_an_error_of_one_rank_is_raised_on_all(tmp_path):
    class Broken(dcp.DefaultSavePlanner):
        def resolve_data(self, write_item):
            raise OSError(f"no room for {write_item.index.fqn}\x1b[2J")

    def program(rank, group):
        failures = []
        for state, planner in [({"x": torch.ones(1), f"own {rank}": torch.ones(2)}, Broken() if rank == 1 else None),
                               ({"x": torch.ones(1 + rank)}, None),
                               ({"x": torch.ones(1) if rank else 1}, None)]:
            with pytest.raises(dcp.CheckpointException) as caught:
                dcp.save(state, checkpoint_id=tmp_path, planner=planner)
            failures.append({where: str(error).split("\n")[0] for where, (error, _) in caught.value.failures.items()})
        with pytest.raises(dcp.CheckpointException, match="No such file"):
            dcp.load({"x": torch.ones(1)}, checkpoint_id=tmp_path)
        return failures
    said = as_threads(2, program)
    assert (said[0] == said[1] and said[0][0] == {1: "no room for own 1\x1b[2J"}
            and list(said[0][1]) == list(said[0][2]) == [0])
    assert ("the ranks 0 and 1 have unlike tensors under the key 'x'" in said[0][1][0]
            and "unlike entries 'x'" in said[0][2][0])


def test_saves_that_go_on_behind_training(tmp_path):
    def program(rank, group):
        weight, done = torch.ones(1000), []
        for i in range(3):
            future = dcp.async_save({"weight": weight, "step": i, f"own {rank}": torch.tensor(rank)},
                                    checkpoint_id=tmp_path)
            weight += 1
            total = torch.ones(1)
            dist.all_reduce(total)                      # the program communicates while the save does
            done.append(total.item())
            future.result(60)
        broken = dcp.async_save({"weight": (lambda: 1)}, checkpoint_id=tmp_path)
        assert isinstance(broken.exception(60), dcp.CheckpointException)
        return done
    assert as_threads(2, program) == [[2.] * 3] * 2
    state = load({"weight": torch.zeros(1000), "step": None, "own 1": torch.tensor(0)}, tmp_path)
    assert state["weight"].eq(3).all() and state["step"] == 2 and state["own 1"] == 1
    assert threading.active_count() < 20


def test_stagers(tmp_path):
    for options, both in [({}, True), ({"use_async_staging": False}, False)]:
        stager = dcp.staging.DefaultStager(dcp.staging.StagingOptions(**options))
        weight = torch.ones(2)
        response = dcp.async_save({"w": weight}, checkpoint_id=tmp_path, async_stager=stager, no_dist=True,
                                  async_checkpointer_type=dcp.state_dict_saver.AsyncCheckpointerType.PROCESS)
        if both:
            response.staging_completion.result(60)
            response = response.upload_completion
        weight.zero_()
        assert isinstance(response.result(60), dcp.Metadata) and isinstance(stager, dcp.staging.AsyncStager)
        stager.close()
        assert load({"w": torch.zeros(2)}, tmp_path)["w"].tolist() == [1., 1.]


def test_rank_0_has_the_state_and_the_others_get_it():
    def program(rank, group):
        made = model()
        optimizer = torch.optim.Adam(made.parameters(), lr=0.1)
        if rank == 0:
            train(made, optimizer, 0, 2)
        offload = state_dict.StateDictOptions(full_state_dict=True, cpu_offload=True)
        full = state_dict.get_state_dict(made, optimizer, options=offload)
        assert bool(full[0]) == bool(full[1]) == (rank == 0)
        options = state_dict.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
        state_dict.set_state_dict(made, optimizer, model_state_dict=full[0], optim_state_dict=full[1], options=options)
        return train(made, optimizer, 2, 3)
    one, other = as_threads(2, program)
    assert one == other


def test_the_whole_of_a_spread_state():
    def program(rank, group):
        made = model()
        zero = ZeroRedundancyOptimizer(made.parameters(), torch.optim.Adam, lr=0.1)
        train(made, zero, 0, 1)
        everywhere = state_dict.get_optimizer_state_dict(made, zero,
                                                         options=state_dict.StateDictOptions(full_state_dict=True))
        first = state_dict.get_optimizer_state_dict(made, zero,
                                                    options=state_dict.StateDictOptions(full_state_dict=True,
                                                                                        cpu_offload=True))
        return list(everywhere["state"]), list(first.get("state", ()))
    names = ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert as_threads(2, program) == [(names, names), (names, [])]


# ── objects with a state, planners, formats ───────────────────────────────────────────────────────────────────────────


class App:
    """An object that a program saves, as PyTorch's tutorial has it."""

    def __init__(self):
        self.model = model()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)

    def state_dict(self):
        of_model, of_optimizer = state_dict.get_state_dict(self.model, self.optimizer)
        return {"model": of_model, "optim": of_optimizer}

    def load_state_dict(self, state):
        state_dict.set_state_dict(self.model, self.optimizer, model_state_dict=state["model"],
                                  optim_state_dict=state["optim"])


def test_objects_with_a_state(tmp_path):
    app, plain, again = App(), torch.nn.Linear(2, 1), App()
    train(app.model, app.optimizer, 0, 2)
    assert isinstance(app, dcp.stateful.Stateful)
    save({"app": app, "plain": plain}, tmp_path)
    copy = torch.nn.Linear(2, 1)
    load({"app": again, "plain": copy}, tmp_path)
    assert (train(again.model, again.optimizer, 2, 3) == train(app.model, app.optimizer, 2, 3)
            and torch.equal(copy.weight, plain.weight))


def test_planners_of_a_program(tmp_path):
    class Renaming(dcp.DefaultSavePlanner):
        def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
            super().set_up_planner({f"old {key}": value for key, value in state_dict.items()}, storage_meta,
                                   is_coordinator)

    class Halving(dcp.DefaultLoadPlanner):
        def commit_tensor(self, read_item, tensor):
            tensor /= 2
    save({"x": torch.ones(2)}, tmp_path, planner=Renaming(flatten_state_dict=False))
    assert load({"old x": torch.zeros(2)}, tmp_path, planner=Halving())["old x"].tolist() == [0.5, 0.5]
    save({"x": [torch.ones(2)], "y": {"z": 1, "w": 2}}, tmp_path)
    with pytest.warns(UserWarning, match="assuming the intent is to load in a single process"):
        assert _load_state_dict_from_keys("y", checkpoint_id=tmp_path) == {"y": {"z": 1, "w": 2}}


def test_writers_of_several_files(tmp_path):
    state = {f"x{i}": torch.full((i + 1,), i) for i in range(7)} | {"n": 1}
    for options, count in [({"thread_count": 3}, 3), ({"single_file_per_rank": False}, 8), ({"sync_files": False}, 1)]:
        save(state, None, storage_writer=dcp.FileSystemWriter(tmp_path, **options))
        assert len(os.listdir(tmp_path)) == 1 + count
        loaded = load({key: torch.zeros_like(value) if key != "n" else None for key, value in state.items()}, tmp_path)
        assert shown(loaded) == shown(state)
    with pytest.raises(dcp.CheckpointException, match="Checkpoint already exists and self.overwrite=False"):
        save(state, None, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))
    with pytest.warns(FutureWarning, match="`save_state_dict` is deprecated"):
        dcp.save_state_dict(state, dcp.FileSystemWriter(tmp_path), no_dist=True)
    with pytest.warns(FutureWarning, match="`load_state_dict` is deprecated"):
        dcp.load_state_dict(state, dcp.FileSystemReader(tmp_path), no_dist=True)


def test_one_file_and_back(tmp_path):
    save(everything(torch), tmp_path / "folder")
    format_utils.main(["dcp_to_torch", str(tmp_path / "folder"), str(tmp_path / "one.pt")])
    format_utils.main(["torch_to_dcp", str(tmp_path / "one.pt"), str(tmp_path / "again")])
    assert (shown(torch.load(tmp_path / "one.pt")) == shown(load(everything(torch, fill=False), tmp_path / "again"))
            == shown(everything(torch)))


def test_one_file_for_all_ranks(tmp_path):
    torch.save({"model": {"w": torch.arange(6).reshape(2, 3), "b": torch.ones(2)}, "epoch": 3}, tmp_path / "one.pt")

    def program(rank, group):
        state = {"model": {"w": torch.zeros(2, 3, dtype=torch.int64), "b": torch.zeros(2)}}
        options = {"storage_reader": format_utils.BroadcastingTorchSaveReader(), "checkpoint_id": tmp_path / "one.pt"}
        dcp.load(state, planner=format_utils.DynamicMetaLoadPlanner(), **options)
        with pytest.raises(dcp.CheckpointException,
                           match="Non-tensor value identified at epoch. At this time DynamicMetaLoadPlanner only"):
            dcp.load({"epoch": 1}, planner=format_utils.DynamicMetaLoadPlanner(), **options)
        return shown(state)
    assert as_threads(2, program) == [shown({"model": {"w": torch.arange(6).reshape(2, 3), "b": torch.ones(2)}})] * 2


def test_flat_keys():
    state = {"a": [torch.ones(1), {"b": [1, 2]}], 3: {"c": ()}, "empty": {}, "list": []}
    flat, paths = flatten_state_dict(state)
    assert list(flat) == ["a.0", "a.1.b", "3.c", "list"] and paths["a.1.b"] == ("a", 1, "b")
    assert unflatten_state_dict(flat, paths) == {"a": state["a"], "3": {"c": ()}, "list": []}
    with pytest.raises(ValueError, match="duplicated flatten key a.b"):
        flatten_state_dict({"a": {"b": 1}, "a.b": 2})


# ── saves that die ────────────────────────────────────────────────────────────────────────────────────────────────────

DYING = """
import os, sys, tensorgrad as torch
from tensorgrad.distributed import checkpoint as dcp
folder, real = sys.argv[-1] if len(sys.argv) > 1 else os.environ["FOLDER"], {name: getattr(os, name) for name in ("fsync", "replace", "unlink", "open")}

def save(value):
    dcp.save({"x": torch.full((1000,), value), "y": [torch.full((10,), value)], "n": value}, checkpoint_id=folder, no_dist=True)

def loaded():
    state = {"x": torch.zeros(1000, dtype=torch.int64), "y": [torch.zeros(10, dtype=torch.int64)], "n": None}
    dcp.load(state, checkpoint_id=folder, no_dist=True)
    assert state["x"].eq(state["n"]).all() and state["y"][0].eq(state["n"]).all()
    return state["n"]

def dying(left):
    def count(function):
        def call(*arguments, **options):
            left[0] -= 1
            if not left[0]:
                os._exit(9)
            return function(*arguments, **options)
        return call
    for name, function in real.items():
        setattr(os, name, count(function))

save(0)
value = 0
for steps in range(1, 99):
    child = os.fork()
    if not child:
        dying([steps])
        save(value + 1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = loaded()
    assert found in (value, value + 1), found
    value = found
    if code == 0:
        break
save(value + 1)
print(steps > 4, loaded() == value + 1, sorted(name[:4] for name in os.listdir(folder)))
"""  # noqa: E501


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the program forks")
def test_a_save_that_dies_anywhere_leaves_a_whole_checkpoint(tmp_path):
    assert fresh_process(DYING, FOLDER=str(tmp_path / "there")) == "True True ['.met', '__0_']\n"


# ── hostile files ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Evil:
    def __reduce__(self):
        return os.system, ("touch evil",)


def hostile():
    """Pairs (change to the index of a valid checkpoint, message of the error)."""
    m = dcp.metadata
    size, chunk = torch.Size, m.ChunkStorageMetadata

    def tensors(metadata):
        return metadata.state_dict_metadata["x"]

    def place(metadata):
        return metadata.storage_data[m.MetadataIndex("x", [0])]
    return [(lambda d: setattr(place(d), "relative_path", "../outside.distcp"),
             "the file name '../outside.distcp' is not allowed"),
            (lambda d: setattr(place(d), "relative_path", "/etc/passwd"), "not allowed"),
            (lambda d: setattr(place(d), "relative_path", "x"), "lacks its file"),
            (lambda d: setattr(place(d), "offset", -1), "is cut off"),
            (lambda d: setattr(place(d), "length", 1 << 50), "is cut off"),
            (lambda d: setattr(place(d), "transform_descriptors", ["zip"]), "an extension"),
            (lambda d: setattr(place(d), "offset", "1"), "malformed"),
            (lambda d: setattr(tensors(d), "size", size([1 << 40])), "hold 3 of its"),
            (lambda d: vars(tensors(d)).update(size=size([1 << 40]), chunks=[chunk(size([0]), size([1 << 40]))]),
             "larger than what the file holds"),
            (lambda d: setattr(tensors(d), "chunks", [chunk(size([1]), size([3]))]), "not in a file"),
            (lambda d: setattr(tensors(d), "chunks", [chunk(size([0]), size([3]))] * 2), "not in a file"),
            (lambda d: setattr(tensors(d), "chunks", [chunk(size([0]), size([-1]))]), "shape of a tensor is malformed"),
            (lambda d: setattr(tensors(d), "properties", 5), "malformed"),
            (lambda d: d.storage_data.clear(), "not in a file"),
            (lambda d: setattr(d, "planner_data", {"x": ("a", 1 << 40)}), "longer than there are entries"),
            (lambda d: setattr(d, "planner_data", {"x": ()}), "path of an entry"),
            (lambda d: setattr(d, "planner_data", {"x": (2.5,)}), "path of an entry"),
            (lambda d: setattr(d, "state_dict_metadata", {"x": 5}), "entry of the index is malformed"),
            (lambda d: setattr(d, "storage_meta", Evil()), "system"),
            (lambda d: d.state_dict_metadata.update(z=m.BytesStorageMetadata()), "no file holds"),
            (lambda d: vars(d).update(extra=1), "fields of Metadata are malformed"),
            (lambda d: d.storage_data.update({"x": 1}), "an entry of the index"),
            (lambda d: setattr(tensors(d).properties, "dtype", "float32"), "properties of a tensor are malformed")]


def test_a_hostile_index(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save({"x": torch.ones(3), "n": 1}, "good")
    for change, said in hostile():
        metadata = dcp.FileSystemReader("good").read_metadata()
        change(metadata)
        data = importlib.import_module("tensorgrad.serialization._pickler").pickled(metadata, 2)[0]
        (tmp_path / "good" / ".metadata").write_bytes(data)
        with pytest.raises(dcp.CheckpointException) as caught:
            load({"x": torch.zeros(3)}, "good")
        assert said in str(caught.value.failures[0][0]), said
        save({"x": torch.ones(3), "n": 1}, "good")
    for data in (b"", b"x", pickle.dumps(Evil()), pickle.dumps({"x": 1}), pickle.dumps([]),
                 pickle.dumps(metadata)[:-9]):
        (tmp_path / "good" / ".metadata").write_bytes(data)
        with pytest.raises(dcp.CheckpointException):
            load({"x": torch.zeros(3)}, "good")
    assert not (tmp_path / "evil").exists()


def test_bytes_that_changed(tmp_path):
    save({"x": torch.arange(3), "n": [1, "two"]}, tmp_path)
    index, data = (tmp_path / ".metadata").read_bytes(), (tmp_path / "__0_0.distcp").read_bytes()
    for n in range(0, 2 * len(index), 31):                      # each kind of damage at many places
        i = n % len(index)
        changed = index[:i] if n >= len(index) else index[:i] + bytes([index[i] ^ (1 << n % 8)]) + index[i + 1:]
        (tmp_path / ".metadata").write_bytes(changed)
        try:
            state = load({"x": torch.zeros(3, dtype=torch.int64)}, tmp_path)
        except dcp.CheckpointException:
            continue
        assert state["x"].tolist() == [0, 1, 2], "read what was not written"
    (tmp_path / ".metadata").write_bytes(index)
    for i in range(0, len(data), 79):
        (tmp_path / "__0_0.distcp").write_bytes(data[:i] + bytes([data[i] ^ 16]) + data[i + 1:])
        try:
            state = load({"x": torch.zeros(3, dtype=torch.int64), "n": None}, tmp_path)
        except dcp.CheckpointException:
            continue
        # the byte was one of those between the entries
        assert shown(state) == {"x": ("torch.int64", (3,), [0, 1, 2]), "n": [1, "two"]}


def test_objects_of_a_program_s_own_are_not_run(tmp_path):
    save({"n": Evil}, tmp_path)
    with pytest.raises(dcp.CheckpointException) as caught:
        load({"n": None}, tmp_path)
    assert isinstance(caught.value.failures[0][0], pickle.UnpicklingError)
    with torch.serialization.safe_globals([Evil]):
        assert load({"n": None}, tmp_path)["n"] is Evil
