"""Old and odd files: states of tensor classes, texts of Python 2, old sparse files, archives by record."""
import copy
import io
import pickle
import warnings
import zipfile

import numpy as np
import pytest
from side_by_side import attempt
from support import Programs

import tensorgrad
from tensorgrad.serialization import safe_globals

program = Programs()
# [bytes of UTF-8, zeros(1), 2], as Python 2 and PyTorch 0.4 wrote it
OLD = (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}q\x01(U\x10protocol_versionq\x02M\xe9\x03U"
       b"\ntype_sizesq\x03}q\x04(U\x03intq\x05K\x04U\x05shortq\x06K\x02U\x04longq\x07K\x04uU\rlittle_endianq\x08\x88u.\x80"
       b"\x02]q\x01(U\x04\xc3\xbc\xc4\x85q\x02ctorch._utils\n_rebuild_tensor_v2\nq\x03((U\x07storageq\x04ctorch\n"
       b"FloatStorage\nq\x05U\x0212q\x06U\x03cpuq\x07\x8a\x01\x01NtQK\x00K\x01\x85K\x01\x85\x89NtRq\x08K\x02e.\x80\x02]q"
       b"\x01U\x0212q\x02a.\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80?")


class Slotted(tensorgrad.Tensor):
    __slots__ = ("other", "unset")


class Stateful(tensorgrad.Tensor):
    def __getstate__(self):
        return "marked", self.__dict__

    def __setstate__(self, state):
        marker, self.__dict__ = state
        assert marker == "marked"
        self.again = True


def saved(value, **options):
    buffer = io.BytesIO()
    tensorgrad.save(value, buffer, **options)
    buffer.seek(0)
    return buffer


@pytest.mark.parametrize("sent", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x)),
                                  lambda x: tensorgrad.load(saved(x)),
                                  lambda x: tensorgrad.load(saved(x), weights_only=False)])
@pytest.mark.parametrize("values", [tensorgrad.arange(3.0), tensorgrad.eye(2).to_sparse(),
                                    tensorgrad.empty(2, device="meta")])
def test_slots_and_attributes_are_kept(sent, values):
    x = values.as_subclass(Slotted)
    x.other, x.note = [1, 2], "text"
    with safe_globals([Slotted]):
        y = sent(x)
    assert type(y) is Slotted and (y.other, y.note) == ([1, 2], "text") and not hasattr(y, "unset")
    assert y.layout is x.layout and y.shape == x.shape and y is not x


def test_the_class_may_say_what_its_state_is():
    x = tensorgrad.arange(3.0).as_subclass(Stateful)
    x.note = "text"
    with safe_globals([Stateful]):
        read = tensorgrad.load(saved(x))
    for y in read, pickle.loads(pickle.dumps(x)), copy.copy(x):
        assert type(y) is Stateful and (y.note, y.again, y.tolist()) == ("text", True, [0, 1, 2])


def test_a_file_sets_no_slots_that_the_class_lacks():
    x = tensorgrad.arange(3.0).as_subclass(Slotted)
    x.other = 1
    bad = saved(x).getvalue().replace(b"other", b"array")
    with safe_globals([Slotted]), pytest.raises(pickle.UnpicklingError, match="slots of a tensor are malformed"):
        tensorgrad.serialization.set_crc32_options(False)
        try:
            tensorgrad.load(io.BytesIO(bad))
        finally:
            tensorgrad.serialization.set_crc32_options(True)


@program
def texts_of_python_2(torch):
    def read(**options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return attempt(lambda: torch.load(io.BytesIO(OLD), **options))
    return ([read(weights_only=safe, encoding=encoding) for safe in (True, False)
             for encoding in ("utf-8", "bytes", "latin1", "ascii", "nonsense")], read())


@program
def wrong_indices_of_sparse_tensors(torch):
    class Spoof:
        def __init__(self, *parts):
            self.parts = parts

        def __reduce__(self):
            return torch._utils._rebuild_sparse_tensor, self.parts
    x = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coo, csr = x.to_sparse(), x.to_sparse_csr()
    found = []
    for indices in coo._indices(), coo._indices() + 5:
        found.append((torch.sparse_coo, (indices, coo._values(), coo.size())))
    for lines in csr.crow_indices(), csr.crow_indices() + 3:
        found.append((torch.sparse_csr, (lines, csr.col_indices(), csr.values(), csr.size())))

    def read(parts, new, safe):
        buffer = io.BytesIO()
        torch.save([Spoof(*parts)], buffer, _use_new_zipfile_serialization=new)
        buffer.seek(0)
        with torch.sparse.check_sparse_tensor_invariants(), warnings.catch_warnings():
            warnings.simplefilter("ignore")     # PyTorch's: CSR is in beta state
            return torch.load(buffer, weights_only=safe)[0].to_dense()
    return [attempt(lambda case=(parts, new, safe): read(*case)) for parts in found for new in (True, False)
            for safe in (True, False)]


test_programs = program.test()


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
def test_sparse_tensors_in_the_old_format(layout):
    oracle = pytest.importorskip("torch")
    arguments = {"coo": (), "bsr": ((1, 2),)}.get(layout, ())
    dense = np.array([[0, 2, 0, 4], [0, 0, 3, 0]], np.float32)
    for there, here in (oracle, tensorgrad), (tensorgrad, oracle), (tensorgrad, tensorgrad):
        x = getattr(there.tensor(dense), "to_sparse" + ("" if layout == "coo" else f"_{layout}"))(*arguments)
        buffer = io.BytesIO()
        there.save({"x": x, "again": x}, buffer, _use_new_zipfile_serialization=False)
        buffer.seek(0)
        read = here.load(buffer)
        assert read["x"] is read["again"] and str(read["x"].layout) == str(x.layout)
        np.testing.assert_array_equal(read["x"].to_dense().numpy(), dense)


def test_files_without_checksums_are_written_and_read():
    oracle = pytest.importorskip("torch")
    for there, here in (oracle, tensorgrad), (tensorgrad, oracle):
        buffer = io.BytesIO()
        there.serialization.set_crc32_options(False)
        try:
            there.save(there.arange(3.0), buffer)
        finally:
            there.serialization.set_crc32_options(True)
        assert {entry.CRC for entry in zipfile.ZipFile(buffer).infolist()} == {0}
        buffer.seek(0)
        assert here.load(buffer).tolist() == [0, 1, 2]


def test_archives_by_record(tmp_path):
    oracle, path = pytest.importorskip("torch"), str(tmp_path / "notes.pt")
    for there, here in (oracle, tensorgrad), (tensorgrad, oracle), (tensorgrad, tensorgrad):
        with there.serialization._open_zipfile_writer(path) as archive:
            archive.write_record("text", "a text", 6)
            archive.write_record("data/0", b"longer", 4)
            archive.write_record("data/1", there.arange(3.0).untyped_storage(), 12)
            archive.write_record_metadata("data/3", 5)
        assert archive.archive_name() == "notes"
        with here.serialization._open_zipfile_reader(path) as archive:
            assert archive.get_record("text") == b"a text" and archive.get_record("data/0") == b"long"
            assert archive.get_record("data/3") == bytes(5)
            assert archive.has_record("data/1") and not archive.has_record("data/2")
            assert archive.get_record_size("data/1") == 12 and archive.get_record_offset("data/1") % 64 == 0
            assert {"text", "data/0", "data/1", "version"} <= set(archive.get_all_records())
    before = (tmp_path / "notes.pt").read_bytes()
    with pytest.raises(RuntimeError, match="serialize file twice"), \
            tensorgrad.serialization._open_zipfile_writer(path) as archive:
        archive.write_record("text", b"1", 1)
        archive.write_record("text", b"2", 1)
    assert (tmp_path / "notes.pt").read_bytes() == before
    with pytest.raises(RuntimeError, match="is to have 9 bytes"):
        tensorgrad.PyTorchFileWriter(io.BytesIO()).write_record("text", b"1", 9)
    with pytest.raises(RuntimeError, match="central directory"):
        tensorgrad.PyTorchFileReader(io.BytesIO(b"no archive"))
    assert [tensorgrad.serialization._is_zipfile(io.BytesIO(data)) for data in (b"PK\3\4", b"PK\5\6", b"")] == [
        True, False, False]
