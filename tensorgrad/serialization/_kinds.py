"""Kinds of files that `load` cannot read: recognize them by their first bytes, and name a reader in the error."""
from __future__ import annotations

import os
import struct
import zipfile
from typing import Any

FIRST = 512         # bytes that are read
BEGINNINGS = (      # first bytes of files of a kind, and the text about it
    (b"GGUF", "The file is a GGUF model (llama.cpp): gguf.GGUFReader(path), of the package gguf, reads it."),
    (b"\x89HDF\r\n\x1a\n", "The file is HDF5 (Keras has its models so): h5py.File(path) reads it, and torch.from_numpy "
                           "takes its arrays."),
    (b"\x93NUMPY", "The file is an array of NumPy: torch.from_numpy(numpy.load(path)) reads it."),
    (b"\x1f\x8b", "The file is compressed by gzip: load(gzip.open(path)) may read what is in it."),
    (b"\xfd7zXZ", "The file is compressed by xz: load(lzma.open(path)) may read what is in it."),
    (b"BZh", "The file is compressed by bzip2: load(bz2.open(path)) may read what is in it."),
    (b"\x28\xb5\x2f\xfd", "The file is compressed by Zstandard: unpack it first."),
    (b"version https://git-lfs", "The file is a pointer of Git LFS, in place of the file itself: `git lfs pull` "
                                 "fetches that."),
    (b"%PDF", "The file is a PDF document."), (b"\x89PNG", "The file is a PNG picture."),
    (b"\xff\xd8\xff", "The file is a JPEG picture."),
    (b"\x7fELF", "The file is a program."),
    (b"ARROW1", "The file is an Arrow table: pyarrow.feather.read_table(path) reads it."),
    (b"PAR1", "The file is a Parquet table: pyarrow.parquet.read_table(path) reads it."))


def told(f: Any) -> str:
    """Name the kind of a file without tensors of PyTorch's, and a reader of it; "" if its first bytes do not tell.

    >>> import io
    >>> told(io.BytesIO(b"GGUF" + bytes(20)))
    'The file is a GGUF model (llama.cpp): gguf.GGUFReader(path), of the package gguf, reads it.'
    """
    try:
        if isinstance(f, (str, os.PathLike)):
            with open(f, "rb") as file:
                return _told(file)
        place = f.tell()
        try:
            f.seek(0)
            return _told(f)
        finally:
            f.seek(place)
    except (OSError, ValueError, AttributeError):       # a file that is closed, or cannot seek
        return ""


def _told(file: Any) -> str:
    data = bytes(file.read(FIRST))
    for beginning, text in BEGINNINGS:
        if data.startswith(beginning):
            return text
    start = data.lstrip().lower()
    if start.startswith((b"<!doctype", b"<html", b"<head", b"<?xml")):
        return ("The file is a web page: a download has given a page, perhaps one that asks to log in, in place of the "
                "file.")
    if data.startswith(b"PK"):
        return _told_zip(file)
    if len(data) > 9 and data[8:9] == b"{" and struct.unpack("<Q", data[:8])[0] < 1 << 32:
        return ("The file is of the safetensors format: load reads it if its name ends in .safetensors, and so does "
                "safetensors.torch.load_file(path).")
    if len(data) > 12 and data[:4] in (b"\1\0\0\0", b"\2\0\0\0", b"\3\0\0\0", b"\4\0\0\0"):
        return "The file may be one of Lua Torch (.t7): tensorgrad.legacy.load_lua(path) reads such files."
    if len(data) > 4 and data[0] == 0x08 and data[1] < 32 and data[2] in (0x12, 0x1a, 0x22, 0x3a, 0x42):
        return "The file is a model of ONNX: onnxruntime.InferenceSession(path) runs it, onnx.load(path) reads it."
    if start[:1] in (b"{", b"["):
        return "The file is JSON: json.load reads it."
    if data and all(byte in b"\t\r\n" or byte >= 32 for byte in data):
        return "The file is text."
    return ""


def _told_zip(file: Any) -> str:
    file.seek(0)
    try:
        names = zipfile.ZipFile(file).namelist()
    except (zipfile.BadZipFile, NotImplementedError):
        return ""
    if any(name.endswith("/data.pkl") or name == "data.pkl" for name in names):
        return ""
    if names and all(name.endswith(".npy") for name in names):
        return ("The file is an archive of NumPy's arrays (.npz): numpy.load(path) and "
                "tensorgrad.utils.npz.load_file(path) read it.")
    shown = ", ".join(ascii(name[:60]) for name in names[:3]) + (", …" if len(names) > 3 else "")
    return f"The file is a zip archive of other files ({shown or 'none'}): unpack it, and load what is in it."
