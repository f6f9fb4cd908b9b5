"""distributed.checkpoint.hf_storage: folders of .safetensors files, beside PyTorch's."""
import importlib
import json

import pytest
from support import cpu_only

import tensorgrad as torch

pytestmark = [cpu_only, pytest.mark.filterwarnings("ignore:torch.distributed is disabled", "ignore::FutureWarning")]


def of(library, name=""):
    return importlib.import_module(f"{library.__name__}.distributed.checkpoint{name}")


def tensors(library, fill=True):
    made = {"weight": library.arange(6.0).reshape(2, 3), "integers": library.arange(6).reshape(3, 2),
            "half": library.tensor([1.5, -2.0], dtype=library.float16), "scalar": library.tensor(3.5)}
    return made if fill else {key: library.zeros_like(value) for key, value in made.items()}


def saved(library, folder, **options):
    of(library).save(tensors(library), storage_writer=of(library, ".hf_storage").HuggingFaceStorageWriter(
        str(folder), **options), no_dist=True)
    return folder


def loaded(library, folder):
    state = tensors(library, fill=False)
    of(library).load(state, storage_reader=of(library, ".hf_storage").HuggingFaceStorageReader(str(folder)),
                     no_dist=True)
    return {key: value.tolist() for key, value in state.items()}


EXPECTED = {key: value.tolist() for key, value in tensors(torch).items()}


@pytest.mark.parametrize("options", [{}, {"fqn_to_index_mapping": {"weight": 1, "integers": 2, "half": 1, "scalar": 2}},
                                     {"save_distributed": True}])
def test_files_go_both_ways(tmp_path, options):
    theirs = pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    ours, other = saved(torch, tmp_path / "ours", **options), saved(theirs, tmp_path / "theirs", **options)
    assert sorted(path.name for path in ours.iterdir()) == sorted(path.name for path in other.iterdir())
    for path in ours.glob("*.json"):
        assert json.loads(path.read_text()) == json.loads((other / path.name).read_text())
    assert loaded(torch, other) == loaded(theirs, ours) == loaded(torch, ours) == EXPECTED


def test_blocks_of_several_files_are_put_together(tmp_path):
    from tensorgrad.utils.safetensors import save_file
    whole = torch.arange(8.0).reshape(4, 2)
    for rank in range(2):
        note = json.dumps({"w": {"saved_offsets": [2 * rank, 0]}})
        save_file({"w": whole[2 * rank:2 * rank + 2].clone()}, tmp_path / f"shard-{rank}.safetensors",
                  {"DCP_SHARDING_INFO": note})
    state = {"w": torch.zeros(4, 2)}
    of(torch).load(state, storage_reader=of(torch, ".hf_storage").HuggingFaceStorageReader(str(tmp_path)), no_dist=True)
    assert torch.equal(state["w"], whole)


@pytest.mark.parametrize("note", [{"w": {"saved_offsets": [-1, 0]}}, {"w": {"saved_offsets": [0]}}, {"w": 3},
                                  {"w": {"saved_offsets": "00"}}])
def test_false_places_are_refused(tmp_path, note):
    from tensorgrad.utils.safetensors import save_file
    save_file({"w": torch.ones(2, 2)}, tmp_path / "a.safetensors", {"DCP_SHARDING_INFO": json.dumps(note)})
    with pytest.raises(of(torch).CheckpointException, match="notes no place"):
        of(torch).load({"w": torch.zeros(2, 2)}, no_dist=True, storage_reader=of(
            torch, ".hf_storage").HuggingFaceStorageReader(str(tmp_path)))


def test_refusals(tmp_path):
    writer = of(torch, ".hf_storage").HuggingFaceStorageWriter
    with pytest.raises(NotImplementedError, match="does not consolidate"):
        writer(str(tmp_path), enable_consolidation=True)
    with pytest.raises(of(torch).CheckpointException, match="holds tensors alone"):
        of(torch).save({"n": object}, storage_writer=writer(str(tmp_path)), no_dist=True)
