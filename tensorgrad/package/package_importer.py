"""Import modules and load objects from a package. https://pytorch.org/docs → torch.package.PackageImporter"""
from __future__ import annotations

import builtins
import io
import linecache
import os
import pickle
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import ModuleSpec
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any

from ..graph.names import PACKAGE
from ..serialization._map_location import Location
from ..serialization._rebuild import module_of
from ..serialization._storages import Records
from ..serialization._zip_files import PyTorchFileReader
from ._directory_reader import DirectoryReader
from ._mangling import PackageMangler, demangle
from .file_structure_representation import Directory, _create_directory_from_file_list
from .find_file_dependencies import absolute
from .glob_group import GlobPattern
from .importer import Importer, sys_importer


class PackageImporter(Importer):
    """The modules and objects of a package. https://pytorch.org/docs → torch.package.PackageImporter

    Modules of the package import each other, and what the package lists as external from the process; `torch` is this
    library there. Code of the package runs when its modules are imported and its pickles are loaded.

    Input: a path of a package or of the directory that it was unpacked to, or a file. module_allowed: a function that
    returns False for external modules that must not be used
    Errors: ImportError for an external module that is not allowed, ModuleNotFoundError for a module that is neither in
    the package nor external
    """

    def __init__(self, file_or_buffer: Any, module_allowed: Callable[[str], bool] = lambda module_name: True) -> None:
        if isinstance(file_or_buffer, PyTorchFileReader):
            self.filename, self.zip_reader = "<pytorch_file_reader>", file_or_buffer
        elif isinstance(file_or_buffer, (str, os.PathLike)):
            self.filename = os.fspath(file_or_buffer)
            self.zip_reader = (DirectoryReader if os.path.isdir(self.filename) else PyTorchFileReader)(self.filename)
        else:
            self.filename, self.zip_reader = "<binary>", PyTorchFileReader(file_or_buffer)
        externs = self.zip_reader.get_record(".data/extern_modules").decode("utf-8").split()
        for name in externs:
            if not module_allowed(name):
                raise ImportError(f"package '{file_or_buffer}' needs the external module '{name}' but that module has "
                                  "been disallowed")
        self.extern_modules = externs
        self._files: dict[str, str | None] = {}     # the source of each module; None: a package without code
        for name in externs:
            self._files.update(dict.fromkeys(_prefixes(name.rpartition(".")[0])))
        for record in self.zip_reader.get_all_records():
            self._add_file(record)
        self._mangler = PackageMangler()
        self._builtins = {**vars(builtins), "__import__": self.__import__}
        self.modules: dict[str, Any] = {"torch_package_importer": self}
        self._records: Records | None = None        # the storages of the pickle that is being loaded
        self._reduced: dict[Any, Any] = {}

    def _add_file(self, record: str) -> None:
        *folders, last = record.split("/")
        if not folders and not last.endswith(".py") or record.startswith(".data/"):
            return
        folder, stem = ".".join(folders), last.removesuffix(".py")
        name = ".".join([*folders, stem]) if last.endswith(".py") and stem != "__init__" else folder
        if last.endswith(".py") and self._external(name.rpartition(".")[0]):
            raise ImportError(f"inconsistent module structure. package contains a module file {record} that is a "
                              "subpackage of a module marked external.")
        for each in _prefixes(folder):
            self._files.setdefault(each, None)
        if last.endswith(".py"):
            self._files[name] = record

    def _external(self, name: str) -> bool:
        return (name.partition(".")[0] in ("torch", PACKAGE)
                or any(each in self.extern_modules for each in _prefixes(name)))

    # modules

    def import_module(self, name: str, package: Any = None) -> Any:
        """Import a module of the package, or an external one.

        Errors: ModuleNotFoundError
        """
        return self._import(self._mangler.demangle(name))

    def _import(self, name: str) -> Any:
        if name in self.modules:
            return self.modules[name]
        above, _, last = name.rpartition(".")
        parent = self._import(above) if above else None
        if name in self.modules:                # the code of the package above has imported it
            return self.modules[name]
        if self._external(name):
            self.modules[name] = sys_importer.import_module(name)
        elif name in self._files:
            self._load(name)
        elif parent is not None and not isinstance(parent, PackageImporter) and not _of_package(parent):
            self.modules[name] = sys_importer.import_module(name)         # a module below an external one
        else:
            raise ModuleNotFoundError(f'No module named "{name}" in self-contained archive "{self.filename}" and the '
                                      "module is also not in the list of allowed external modules: "
                                      f"{self.extern_modules}", name=name)
        if parent is not None and _of_package(parent):
            setattr(parent, last, self.modules[name])
        return self.modules[name]

    def _load(self, name: str) -> None:
        """Make a module, and run its code."""
        record = self._files[name]
        is_package = record is None or record.endswith("/__init__.py")
        module = ModuleType(self._mangler.mangle(name))
        file = None if record is None else self._mangler.mangle(record)
        spec = ModuleSpec(name, self, origin="<package_importer>", is_package=is_package)   # type: ignore[arg-type]
        vars(module).update(__spec__=spec, __loader__=self, __package__=spec.parent, __file__=file, __cached__=None,
                            __builtins__=self._builtins, __torch_package__=True,
                            **{"__path__": []} if is_package else {})
        self.modules[name] = module
        if record is None or file is None:
            return
        source = self.zip_reader.get_record(record).decode("utf-8")
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
        _announce(module, file)
        try:
            exec(compile(source, file, "exec", dont_inherit=True), vars(module))
        except BaseException:
            del self.modules[name]
            raise

    def __import__(self, name: str, globals: Any = None, locals: Any = None, fromlist: Iterable[str] = (),
                   level: int = 0) -> Any:
        """Import for the code of the package, as the builtin `__import__`."""
        where = (globals or {}).get("__package__") or ""
        if level and not where:
            raise ImportError("attempted relative import with no known parent package")
        full = absolute(name, where, level)
        if not full:
            raise ValueError("Empty module name")
        module = self._import(full)
        if not fromlist:
            above = full.removesuffix(name.partition(".")[2]).rstrip(".") if level and name else full.partition(".")[0]
            return self._import(full if level and not name else above)
        if isinstance(vars(module).get("__path__"), Iterable):
            for each in self._wanted(module, fromlist):
                if not hasattr(module, each):
                    try:
                        self._import(f"{full}.{each}")
                    except ModuleNotFoundError as error:
                        if error.name != f"{full}.{each}":
                            raise
        return module

    @staticmethod
    def _wanted(module: ModuleType, fromlist: Iterable[str]) -> Iterator[str]:
        for each in fromlist:
            if not isinstance(each, str):
                raise TypeError(f"Item in ``from list'' must be str, not {type(each).__name__}")
            if each == "*":
                yield from vars(module).get("__all__", ())
            elif each:
                yield each

    def get_source(self, module_name: str) -> str:
        """Return the source of a module."""
        file = self.import_module(demangle(module_name)).__file__
        return self.zip_reader.get_record(demangle(file)).decode("utf-8")

    def get_resource_reader(self, fullname: str) -> _ResourceReader | None:
        """Return the reader of a package's files, for importlib.resources; None if there is no such package."""
        try:
            module = self._import(demangle(fullname))
        except ImportError:
            return None
        own = _of_package(module) and hasattr(module, "__path__")
        return _ResourceReader(self, demangle(fullname)) if own else None

    # files and objects

    def _path(self, package: Any, resource: str) -> str:
        name = demangle(package.__name__ if isinstance(package, ModuleType) else package)
        return "/".join([*name.split("."), resource])

    def load_binary(self, package: Any, resource: str) -> bytes:
        """Return the bytes of a file. https://pytorch.org/docs → torch.package.PackageImporter.load_binary"""
        if os.path.split(resource)[0]:
            raise ValueError(f"{resource!r} must be only a file name")
        return self.zip_reader.get_record(self._path(package, resource))

    def load_text(self, package: Any, resource: str, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the text of a file. https://pytorch.org/docs → torch.package.PackageImporter.load_text"""
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package: Any, resource: str, map_location: Any = None) -> Any:
        """Return a pickled object; its classes are those of the package. map_location: as in `load`.
        https://pytorch.org/docs → torch.package.PackageImporter.load_pickle
        """
        data = self.load_binary(package, resource)
        before = self._records, self._reduced
        if self._records is None:           # else a pickle in a pickle shares its tensors
            self._records, self._reduced = _Records(self.zip_reader._archive, Location(map_location)), {}
        try:
            return _Unpickler(self, data, self._records).load()
        finally:
            self._records, self._reduced = before

    # the package

    def id(self) -> str:
        """Return the prefix of the names of the modules, such as "<torch_package_0>"."""
        return self._mangler.parent_name()

    def file_structure(self, *, include: GlobPattern = "**", exclude: GlobPattern = ()) -> Directory:
        """Return the tree of the files whose paths match.
        https://pytorch.org/docs → torch.package.PackageImporter.file_structure
        """
        return _create_directory_from_file_list(self.filename, self.zip_reader.get_all_records(), include, exclude)

    def python_version(self) -> str | None:
        """Return the version of Python that wrote the package; None if it is not recorded."""
        name = ".data/python_version"
        return self.zip_reader.get_record(name).decode("utf-8").strip() if self.zip_reader.has_record(name) else None


def _prefixes(name: str) -> list[str]:
    """Return the names of the packages that a module is in, with its own."""
    return list(accumulate(name.split("."), "{}.{}".format)) if name else []


def _of_package(module: Any) -> bool:
    return "__torch_package__" in getattr(module, "__dict__", {})


def _announce(module: ModuleType, file: str) -> None:
    """Let `inspect` find the source of what a module defines: it asks sys.modules for a module's file."""
    name = module.__name__
    shadow = sys.modules[name] = ModuleType(name)
    shadow.__file__ = file
    weakref.finalize(module, _forget, name, file).atexit = False


def _forget(name: str, file: str) -> None:
    sys.modules.pop(name, None)
    linecache.cache.pop(file, None)


class _Records(Records):
    """The storages of a package, by their keys."""

    PATH, VERSION = ".data/{}.storage", ".data/version"


class _Unpickler(pickle.Unpickler):
    """Reads a pickle; its names are looked up in the package."""

    def __init__(self, importer: PackageImporter, data: bytes, records: Records) -> None:
        super().__init__(io.BytesIO(data))
        self._importer, self._records = importer, records

    def find_class(self, module: str, name: str) -> Any:
        found = module_of(module, name)
        if found is None:
            found = self._importer.import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
        return found

    def persistent_load(self, pid: Any) -> Any:
        if isinstance(pid, tuple) and pid and pid[0] == "reduce_package":
            _, key, function, arguments = pid
            reduced = self._importer._reduced
            if key not in reduced:
                reduced[key] = function(self._importer, *arguments)
            return reduced[key]
        if isinstance(pid, tuple) and len(pid) > 2 and type(pid[2]) is int:
            pid = *pid[:2], str(pid[2]), *pid[3:]
        return self._records.of_persistent_id(pid)


class _ResourceReader:
    """The files of one package in the archive, for importlib.resources."""

    def __init__(self, importer: PackageImporter, fullname: str) -> None:
        self.importer, self.fullname = importer, fullname

    def open_resource(self, resource: str) -> io.BytesIO:
        return io.BytesIO(self.importer.load_binary(self.fullname, resource))

    def resource_path(self, resource: str) -> str:
        reader, path = self.importer.zip_reader, self.importer._path(self.fullname, resource)
        if isinstance(reader, DirectoryReader) and reader.has_record(path):
            return os.path.join(reader.directory, path)
        raise FileNotFoundError

    def is_resource(self, name: str) -> bool:
        return self.importer.zip_reader.has_record(self.importer._path(self.fullname, name))

    def contents(self) -> Iterator[str]:
        above = Path(*self.fullname.split("."))
        paths = [Path(record) for record in self.importer.zip_reader.get_all_records()]
        yield from dict.fromkeys(path.relative_to(above).parts[0] for path in paths if above in path.parents)
