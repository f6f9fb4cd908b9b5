"""save writes a file whole or not at all: errors, kills, links, permissions, files that are not on a disk."""
import errno
import io
import os
import pickle
import subprocess
import sys
import threading

import pytest
from support import ROOT

import tensorgrad as tg


def test_an_error_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.pt"
    tg.save(tg.ones(1), path)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        tg.save({"x": tg.ones(2), "f": lambda: 1}, path)
    assert tg.load(path).tolist() == [1.0] and os.listdir(tmp_path) == ["file.pt"]
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        tg.save(1, tmp_path / "no" / "file.pt")
    with pytest.raises(AttributeError, match="expected 'f' to be string, path, or a file-like object"):
        tg.save(1, 3)


def test_an_open_file_can_be_read_by_its_name_at_once(tmp_path):
    for archive in (True, False):
        with open(tmp_path / "file.pt", "wb") as file:
            tg.save({"x": tg.ones(2)}, file, _use_new_zipfile_serialization=archive)
            assert tg.load(tmp_path / "file.pt")["x"].tolist() == [1.0, 1.0] and not file.closed


class Failing:
    """A file whose n-th call fails."""

    def __init__(self, file, calls, error):
        self._file, self._calls, self._error = file, calls, error

    def __getattr__(self, name):
        found = getattr(self._file, name)
        if name not in ("write", "flush"):
            return found

        def call(*arguments):
            self._calls[0] -= 1
            if self._calls[0] == 0:
                raise OSError(self._error, os.strerror(self._error))
            return found(*arguments)
        return call

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._file.close()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("new", [True, False])
def test_a_write_that_fails_leaves_everything_as_it_was(error, new, tmp_path, monkeypatch):
    path, opened, value = tmp_path / "file.pt", os.fdopen, {"a": tg.ones(50), "b": tg.zeros(3)}
    if not new:
        tg.save(tg.ones(1), path)
    monkeypatch.setattr(os, "fdopen", lambda *a, **k: Failing(opened(*a, **k), calls, error))
    for n in range(1, 500):
        calls = [n]
        try:
            tg.save(value, path)
        except OSError as raised:
            assert raised.errno == error
            assert os.listdir(tmp_path) == ([] if new else ["file.pt"]) and (new or tg.load(path).tolist() == [1.0])
        else:
            break
    assert n > 20 and tg.load(path)["a"].sum() == 50 and os.listdir(tmp_path) == ["file.pt"]


@pytest.mark.parametrize("name", ["fsync", "replace", "chmod"])
def test_the_last_steps_may_fail_too(name, tmp_path, monkeypatch):
    tg.save(tg.ones(1), tmp_path / "file.pt")

    def fails(*arguments):
        raise OSError(errno.EIO, "no")
    monkeypatch.setattr(os, name, fails)
    with pytest.raises(OSError, match="no"):
        tg.save(tg.zeros(5), tmp_path / "file.pt")
    assert os.listdir(tmp_path) == ["file.pt"] and tg.load(tmp_path / "file.pt").tolist() == [1.0]


KILLS = """
import os, random, signal, sys, time
import tensorgrad as tg
path, values = sys.argv[1], [tg.full((20_000,), float(i)) for i in range(3)]
tg.save(values[0], path)
random.seed(0)
for _ in range(200):
    child = os.fork()
    if not child:
        while True:
            for value in values:
                tg.save(value, path)
    time.sleep(random.random() * 0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    x = tg.load(path)
    assert x.numel() == 20_000 and x.min() == x.max()
print("whole")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path):
    ran = subprocess.run([sys.executable, "-c", KILLS, str(tmp_path / "file.pt")], capture_output=True, text=True,
                         timeout=300, cwd=ROOT)
    assert ran.stdout == "whole\n", ran.stderr


@pytest.mark.skipif(not hasattr(os, "symlink") or sys.platform == "win32",
                    reason="about links and permissions of POSIX")
def test_links_permissions_and_devices_stay_what_they_are(tmp_path):
    target, link = tmp_path / "target.pt", tmp_path / "link.pt"
    tg.save(tg.zeros(1), target)
    assert target.stat().st_mode & 0o777 == 0o666 & ~umask()
    target.chmod(0o640)
    link.symlink_to(target)
    tg.save(tg.ones(2), link)
    assert link.is_symlink() and tg.load(target).tolist() == [1.0, 1.0] and target.stat().st_mode & 0o777 == 0o640
    (tmp_path / "dangling.pt").symlink_to(tmp_path / "made.pt")
    tg.save(tg.ones(3), tmp_path / "dangling.pt")
    assert tg.load(tmp_path / "made.pt").numel() == 3
    os.mkfifo(tmp_path / "pipe")
    got = []
    reading = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_bytes()))
    reading.start()
    tg.save(tg.ones(3), tmp_path / "pipe", _use_new_zipfile_serialization=False)
    reading.join()
    assert tg.load(io.BytesIO(got[0])).numel() == 3 and not (tmp_path / "pipe").is_file()
    tg.save(1, os.devnull)
    assert not os.path.isfile(os.devnull)
    for name in ("n" * 250 + ".pt", "back\\slash.pt", "...", " .pt", ".pt", "αβ.pt", os.fsdecode(b"\xff.pt"),
                 "line\nbreak"):
        tg.save(tg.ones(1), tmp_path / name)
        assert tg.load(tmp_path / name, mmap=True).tolist() == [1.0]
    with pytest.raises(IsADirectoryError):
        tg.save(1, tmp_path)


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_folder_that_is_read_only(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(errno.EACCES, "Permission denied", arguments[0])
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(PermissionError, match="Permission denied") as caught:
        tg.save(1, tmp_path / "file.pt")
    assert caught.value.filename == str(tmp_path / "file.pt")


def test_files_that_cannot_seek_and_take_less_than_they_are_given():
    class Narrow:
        def __init__(self):
            self.data = b""

        def write(self, data):
            self.data += data[:1000]
            return min(len(data), 1000)
    narrow, x = Narrow(), tg.arange(3000.)
    tg.save(x, narrow)
    assert tg.load(io.BytesIO(narrow.data)).equal(x)
    file = io.BytesIO(b"before" + narrow.data)
    file.seek(6)
    assert tg.load(file).equal(x)


def test_very_deep_lists_are_a_clean_error(tmp_path):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        tg.save(deep, tmp_path / "deep.pt")
    assert os.listdir(tmp_path) == []
    while deep:         # from the outside in
        deep = deep[0]
