"""Storages as programs meet them: shared with tensors, mapped from files, on the device "meta", copied with tensors."""
import copy
import functools
import os
import tempfile
import warnings

import pytest
from side_by_side import same
from support import Programs

program = Programs()


def quietly(call):
    """The call without PyTorch's warning of old storages, which comes once in a process."""
    @functools.wraps(call)
    def quiet(torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(torch)
    return quiet


@program
@quietly
def a_storages_tensor_shares_its_memory(torch):
    storage = torch.UntypedStorage([0] * 8)
    made = torch.tensor(storage, dtype=torch.uint8)
    made[0] = 7
    return storage[0], torch.tensor(storage), torch.as_tensor(torch.ones(3).storage(), dtype=torch.float32)


@program
def a_files_storage(torch):
    return [written(torch, element) for element in (torch.float64, torch.int16)]


def written(torch, element):
    file = tempfile.TemporaryFile("w+b")        # PyTorch writes to its descriptor
    torch.ones(2, dtype=element).untyped_storage()._write_file(file, True, True, element.itemsize)
    file.seek(0)
    return file.read().hex()


@program
def mapped_files(torch):
    name = os.path.join(tempfile.gettempdir(), f"{os.getpid()}.mapped")
    try:
        with open(name, "wb") as file:
            file.write(b"abcd")
        private = torch.from_file(name, size=2, dtype=torch.uint8)
        private[0] = 1
        shared = torch.from_file(name, True, 4, dtype=torch.uint8)
        before = shared.clone()
        shared[1] = 65
        with open(name, "rb") as file:
            return (private, before, file.read(), shared.untyped_storage().filename == name,
                    private.untyped_storage().filename, torch.from_file(name).shape)
    finally:
        os.remove(name)


@program
@quietly
def sizes_of_meta_storages(torch):
    storage = torch.UntypedStorage(8, device="meta")
    typed = torch.TypedStorage([1, 2, 3], dtype=torch.int32, device="meta")
    tensors = torch.ones(2, 3, device="meta").t().untyped_storage()
    return (storage.nbytes(), storage.data_ptr(), storage.resize_(10).nbytes(), repr(storage), typed.nbytes(),
            typed.size(), tensors.nbytes(), str(tensors.device), format(torch.tensor(1., device="meta")))


@program
def who_may_resize(torch):
    lent = torch.ones(3)
    lent.numpy()
    return [torch.ones(3).untyped_storage().resizable(), lent.untyped_storage().resizable(),
            torch.frombuffer(bytearray(4), dtype=torch.int32).untyped_storage().resizable()]


@program
def deep_copies_share_what_was_shared(torch):
    x = torch.arange(4.)
    first, view, storage = copy.deepcopy([x, x.view(2, 2), x.untyped_storage()])
    first[0] = 5
    return view, storage.data_ptr() == first.data_ptr(), x.untyped_storage().nbytes()


@program
def sizes_and_attributes(torch):
    a, b = torch.ones(10).untyped_storage(), torch.ones(20).untyped_storage()
    a.label = "kept"
    x = torch.ones(2, 3)
    return (b.__sizeof__() - a.__sizeof__(), a.label, x.is_set_to(torch.empty(0).set_(x)), x.is_set_to(x.t()),
            x.is_set_to(x.clone()), torch.Storage.__name__)


test_programs = program.test()
META = {
    "item": lambda s: s[0], "list": lambda s: s.tolist(), "cpu": lambda s: s.cpu(),
    "share": lambda s: s.share_memory_(), "descriptor": lambda s: s._share_fd_cpu_(),
    "name": lambda s: s._share_filename_cpu_(),
    "file": lambda s: s._write_file(tempfile.TemporaryFile(), True, True, 1),
}


@pytest.mark.parametrize("name", META)
def test_a_meta_storage_has_no_bytes(name):
    same(lambda torch: META[name](torch.UntypedStorage(8, device="meta")))
    same(quietly(lambda torch: META[name](torch.TypedStorage([1, 2], dtype=torch.int32, device="meta"))))


def test_refusals():
    for dtype in ("float64", "int32"):
        same(quietly(lambda torch, dtype=dtype: torch.tensor(torch.ones(2).to(getattr(torch, dtype)).storage())))
    same(quietly(lambda torch: torch.tensor(torch.ones(3).storage(), dtype=torch.int32)))
    for call in (lambda torch: torch.from_file("/no such folder/file", size=2),
                 lambda torch: torch.from_file(__file__, size=1 << 20), lambda torch: torch.from_file(3),
                 lambda torch: torch.from_file(__file__, size=4, dtype=torch.uint8).resize_(5)):
        same(call)
