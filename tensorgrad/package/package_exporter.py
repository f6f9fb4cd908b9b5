"""Write packages. https://pytorch.org/docs → torch.package.PackageExporter"""
from __future__ import annotations

import importlib.machinery
import io
import linecache
import os
import platform
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from enum import Enum
from itertools import count
from pathlib import Path
from types import FunctionType
from typing import Any

from ..graph.names import PACKAGE
from ..serialization._pickler import Pickler, torch_name
from ..serialization._zip_files import _open_zipfile_writer
from ..utils.hooks import RemovableHandle
from ._digraph import DiGraph
from ._mangling import demangle, is_mangled
from .find_file_dependencies import find_files_source_depends_on
from .glob_group import GlobGroup, GlobPattern
from .importer import Importer, ObjMismatchError, ObjNotFoundError, OrderedImporter, sys_importer

SYSTEM = ("sys", "io")          # modules of the standard library that a program must name to use
MOCK = """\
from _mock import MockedObject


def __getattr__(attr):
    return MockedObject(f"{__name__}.{attr}", _suppress_err=True)
"""


class _ModuleProviderAction(Enum):
    """The ways to treat a module that a package needs."""

    INTERN, EXTERN, MOCK, DENY, REPACKAGED_MOCK_MODULE, SKIP = range(1, 7)


class PackagingErrorReason(Enum):
    """The reasons why a module cannot be in a package."""

    IS_EXTENSION_MODULE = "Module is a C extension module. torch.package supports Python modules only."
    NO_DUNDER_FILE = "Module had no __file__ defined."
    SOURCE_FILE_NOT_FOUND = "Module had a __file__, but we could not find it in your filesystem."
    DEPENDENCY_RESOLUTION_FAILED = "Dependency resolution failed."
    NO_ACTION = "Module did not match against any action pattern. Extern, mock, or intern it."
    DENIED = "Module was denied by a pattern."
    MOCKED_BUT_STILL_USED = ("Module was mocked out, but is still being used in the package. Please intern or extern "
                             "the mocked modules if objects are supposed to be in the package.")


class EmptyMatchError(Exception):
    """A pattern with `allow_empty=False` matched no module."""


class PackagingError(Exception):
    """Modules cannot be in a package: the message lists them by reason, with `debug` also why they are needed."""

    def __init__(self, dependency_graph: DiGraph, debug: bool = False) -> None:
        lines = [""]
        broken = {name: node for name, node in dependency_graph.nodes.items() if node.get("error")}
        for reason in dict.fromkeys(node["error"] for node in broken.values()):
            lines.append(f"* {reason.value}")
            for name in (name for name, node in broken.items() if node["error"] is reason):
                lines.append(f"    {name}")
                if broken[name].get("error_context") is not None:
                    lines.append(f"      Context: {broken[name]['error_context']}")
                if name in SYSTEM:
                    lines.append("      Note: While we usually use modules in the python standard library from the "
                                 f"local environment, `{name}` has a lot of system level access and therefore can pose "
                                 f"a security risk. We heavily recommend removing `{name}` from your packaged code. "
                                 "However, if that is not possible, add it to the extern list by calling "
                                 f'PackageExporter.extern("`{name}`")')
                if debug:
                    lines.append(f"      A path to {name}: {' -> '.join(dependency_graph.first_path(name))}")
        if not debug:
            lines += ["", "Set debug=True when invoking PackageExporter for a visualization of where broken modules "
                          "are coming from!"]
        self.dependency_graph = dependency_graph
        super().__init__("\n".join([*lines, ""]))


class _PackagePickler(Pickler):
    """Writes names as an importer finds them, and tells which it wrote."""

    dispatch = dict(Pickler.dispatch)

    def __init__(self, file: Any, protocol: int, exporter: PackageExporter, shared: Pickler | None) -> None:
        super().__init__(file, protocol)
        self._exporter = exporter
        self.names: dict[str, list[str]] = {}
        if shared is not None:              # pickles of one package share their storages
            for name in ("storages", "sizes", "_references", "_kinds", "_empty", "_globals"):
                setattr(self, name, getattr(shared, name))

    def _write_global(self, obj: Any, module: str, name: str) -> None:
        self.names.setdefault(module, []).append(name)
        super()._write_global(obj, module, name)

    def save_global(self, obj: Any, name: Any = None) -> None:
        try:
            self._write_global(obj, *torch_name(obj) or self._exporter.importer.get_name(obj, name))
        except (ObjNotFoundError, ObjMismatchError) as error:
            from pickle import PicklingError
            raise PicklingError(f"Can't pickle {obj}: {error}") from error

    dispatch[FunctionType] = save_global

    def persistent_id(self, obj: Any) -> Any:
        if not isinstance(obj, type) and hasattr(obj, "__reduce_package__"):
            return self._exporter._reduced(obj)
        return super().persistent_id(obj)


class PackageExporter:
    """Writes an archive of objects, the source of the modules that they need, and other files.

    Each module that is needed is written (`intern`), taken from the importing process (`extern`), replaced by a
    stand-in (`mock`) or refused (`deny`): the first pattern that matches decides. The standard library and `torch` are
    external. The archive is complete after `close`, or at the end of the block; after an error nothing is written.

    Input: a path, or a file. importer: where modules are found, or several of them. debug: errors show how modules come
    to be needed
    Errors: PackagingError for modules that cannot be in the package, EmptyMatchError for a pattern that must match
    """

    def __init__(self, f: Any, importer: Importer | Sequence[Importer] = sys_importer, debug: bool = False) -> None:
        if not isinstance(importer, (Importer, Sequence)):
            raise TypeError("importer arg should be an Importer or a sequence of Importers, got "
                            f"{type(importer)} instead.")
        self.importer = importer if isinstance(importer, Importer) else OrderedImporter(*importer)
        self.debug, self._target = debug, f if hasattr(f, "write") else os.fspath(f)
        self._records: dict[str, bytes] = {}
        self.dependency_graph = DiGraph()
        self.patterns: dict[GlobGroup, tuple[_ModuleProviderAction, bool]] = {}     # (action, may match nothing)
        self._matched: set[GlobGroup] = set()
        self._hooks: dict[_ModuleProviderAction, OrderedDict[int, Callable[[PackageExporter, str], None]]] = {
            action: OrderedDict() for action in _ModuleProviderAction}
        self._unique = count()
        self._shared: _PackagePickler | None = None
        self._reductions: dict[int, tuple[Any, Any]] = {}       # {id: (the object, kept alive; its persistent id)}
        self._closed = False

    # what is written

    def save_source_file(self, module_name: str, file_or_directory: str, dependencies: bool = True) -> None:
        """Write a file as a module, or a directory as a package.
        https://pytorch.org/docs → torch.package.PackageExporter.save_source_file
        """
        path = Path(file_or_directory)
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        sources = {}
        for file in files:
            parts = [*module_name.split("."), *(file.relative_to(path).with_suffix("").parts if path.is_dir() else ())]
            inner = len(parts) > 1 and parts[-1] == "__init__" or not path.is_dir() and file.stem == "__init__"
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            sources[name] = file.read_text(encoding="utf-8"), inner
        for name, (source, is_package) in sources.items():
            self._provide(name, source, is_package)
        for name, (source, is_package) in sources.items():
            self.save_source_string(name, source, is_package, dependencies)

    def save_source_string(self, module_name: str, src: str, is_package: bool = False,
                           dependencies: bool = True) -> None:
        """Write a text as a module. https://pytorch.org/docs → torch.package.PackageExporter.save_source_string"""
        self._provide(module_name, src, is_package)
        if dependencies:
            for name in self._dependencies(src, module_name, is_package):
                self.dependency_graph.add_edge(module_name, name)
                self.add_dependency(name)

    def _provide(self, name: str, source: str, is_package: bool) -> None:
        self.dependency_graph.add_node(name, source=source, provided=True, is_package=is_package,
                                       action=_ModuleProviderAction.INTERN)

    def save_module(self, module_name: str, dependencies: bool = True) -> None:
        """Write the source of a module. https://pytorch.org/docs → torch.package.PackageExporter.save_module"""
        if not isinstance(module_name, str):
            raise TypeError("save_module() expects a string input, did you perhaps mean to pass `__name__`?")
        self._intern(module_name, dependencies)

    def _intern(self, module_name: str, dependencies: bool) -> None:
        module = self._module(module_name)
        name, is_package, source = demangle(module_name), "__path__" in vars(module), _source_of(module)
        if source is not None:
            self.save_source_string(name, source, is_package, dependencies)
            return
        file, reason = getattr(module, "__file__", None), PackagingErrorReason.SOURCE_FILE_NOT_FOUND
        if file is None:
            reason = PackagingErrorReason.NO_DUNDER_FILE
        elif file.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
            reason = PackagingErrorReason.IS_EXTENSION_MODULE
        found = reason is PackagingErrorReason.SOURCE_FILE_NOT_FOUND
        self.dependency_graph.add_node(name, action=_ModuleProviderAction.INTERN, is_package=is_package, error=reason,
                                       error_context=f"filename: {file}" if found else None, provided=True)

    def save_pickle(self, package: str, resource: str, obj: Any, dependencies: bool = True,
                    pickle_protocol: int = 3) -> None:
        """Write a pickled object, and the modules of its classes and functions.
        https://pytorch.org/docs → torch.package.PackageExporter.save_pickle
        """
        if pickle_protocol not in (3, 4):
            raise AssertionError(f"torch.package only supports pickle protocols 3 and 4, got {pickle_protocol}")
        buffer = io.BytesIO()
        writer = _PackagePickler(buffer, pickle_protocol, self, self._shared)
        before = len(writer.storages)
        writer.dump(obj)
        self._shared = writer
        for key, memory in enumerate(writer.storages[before:], before):
            self._records[f".data/{key}.storage"] = bytes(memory)
        node = f"<{package}.{resource}>"
        self.dependency_graph.add_node(node, action=_ModuleProviderAction.INTERN, provided=True, is_pickle=True)
        for module, fields in writer.names.items() if dependencies else ():
            self.dependency_graph.add_edge(node, module)
            if self._action(module) is not _ModuleProviderAction.MOCK or _is_given(module):
                self.add_dependency(module)
                continue
            self.dependency_graph.add_node(
                module, action=_ModuleProviderAction.MOCK, provided=True,
                error=PackagingErrorReason.MOCKED_BUT_STILL_USED,
                error_context=f"Object(s) '{fields}' from module `{module}` was mocked out during packaging but is "
                              f"being used in resource - `{resource}` in package `{package}`. ")
        self._write(self._path(package, resource), buffer.getvalue())

    def _reduced(self, obj: Any) -> Any:
        """Return the persistent id of an object that says how packages hold it."""
        if id(obj) not in self._reductions:
            self._reductions[id(obj)] = obj, ("reduce_package", id(obj), *obj.__reduce_package__(self))
        return self._reductions[id(obj)][1]

    def save_text(self, package: str, resource: str, text: str) -> None:
        """Write a text. https://pytorch.org/docs → torch.package.PackageExporter.save_text"""
        self.save_binary(package, resource, text.encode("utf-8"))

    def save_binary(self, package: str, resource: str, binary: bytes) -> None:
        """Write bytes. https://pytorch.org/docs → torch.package.PackageExporter.save_binary"""
        self._write(self._path(package, resource), binary)

    def get_unique_id(self) -> str:
        """Return a text that is unique in this package."""
        return str(next(self._unique))

    # actions for modules

    def intern(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Write the modules that match. https://pytorch.org/docs → torch.package.PackageExporter.intern"""
        self._decide(_ModuleProviderAction.INTERN, include, exclude, allow_empty)

    def mock(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Replace the modules that match: use of what is in them is an error.
        https://pytorch.org/docs → torch.package.PackageExporter.mock
        """
        self._decide(_ModuleProviderAction.MOCK, include, exclude, allow_empty)

    def extern(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Take the modules that match from the importing process.
        https://pytorch.org/docs → torch.package.PackageExporter.extern
        """
        self._decide(_ModuleProviderAction.EXTERN, include, exclude, allow_empty)

    def deny(self, include: GlobPattern, *, exclude: GlobPattern = ()) -> None:
        """Refuse the modules that match. https://pytorch.org/docs → torch.package.PackageExporter.deny"""
        self._decide(_ModuleProviderAction.DENY, include, exclude, True)

    def _decide(self, action: _ModuleProviderAction, include: GlobPattern, exclude: GlobPattern, empty: bool) -> None:
        self.patterns[GlobGroup(include, exclude=exclude)] = action, empty

    def _action(self, name: str) -> _ModuleProviderAction | None:
        """Return the action of the first pattern that matches a module."""
        for group, (action, _) in self.patterns.items():
            if group.matches(name):
                return action
        return None

    def add_dependency(self, module_name: str, dependencies: bool = True) -> None:
        """Add a module to the package, as the patterns say."""
        graph, action = self.dependency_graph, _ModuleProviderAction
        if module_name in graph and graph.nodes[module_name].get("provided"):
            return
        given = {"torch_package_importer": action.SKIP, "_mock": action.REPACKAGED_MOCK_MODULE}.get(module_name)
        if given is not None or _is_given(module_name):
            graph.add_node(module_name, action=given or action.EXTERN, provided=True)
            return
        for group in self.patterns:
            if group.matches(module_name):
                self._matched.add(group)
                break
        found = self._action(module_name)
        if found is None:
            graph.add_node(module_name, error=PackagingErrorReason.NO_ACTION)
        elif found is action.INTERN:
            self._intern(module_name, dependencies)
        else:
            graph.add_node(module_name, action=found, provided=True,
                           error=PackagingErrorReason.DENIED if found is action.DENY else None)

    def _dependencies(self, source: str, name: str, is_package: bool) -> list[str]:
        try:
            pairs = find_files_source_depends_on(source, name if is_package else name.rpartition(".")[0])
        except Exception as error:
            self.dependency_graph.add_node(name, error=PackagingErrorReason.DEPENDENCY_RESOLUTION_FAILED,
                                           error_context=str(error))
            return []
        found = []
        for module, attribute in pairs:
            if attribute is not None and self._exists(f"{module}.{attribute}"):     # a module in a package
                found.append(f"{module}.{attribute}")
            elif self._exists(module):
                found.append(module)
        return list(dict.fromkeys(found))

    def _exists(self, name: str) -> bool:
        try:
            self._module(name)
        except Exception:
            return False
        return True

    def _module(self, name: str) -> Any:
        try:
            return self.importer.import_module(name)
        except ModuleNotFoundError:
            if not is_mangled(name):
                raise
            raise ModuleNotFoundError(f"Module not found: '{name}'. Make sure the PackageImporter that created this "
                                      "module is present in `self.importer`") from None

    # hooks

    def register_extern_hook(self, hook: Callable[[PackageExporter, str], None]) -> RemovableHandle:
        """Call hook(exporter, module name) for each external module when the package is closed."""
        return self._register(_ModuleProviderAction.EXTERN, hook)

    def register_mock_hook(self, hook: Callable[[PackageExporter, str], None]) -> RemovableHandle:
        """Call hook(exporter, module name) for each module that is replaced when the package is closed."""
        return self._register(_ModuleProviderAction.MOCK, hook)

    def register_intern_hook(self, hook: Callable[[PackageExporter, str], None]) -> RemovableHandle:
        """Call hook(exporter, module name) for each module that is written when the package is closed."""
        return self._register(_ModuleProviderAction.INTERN, hook)

    def _register(self, action: _ModuleProviderAction, hook: Any) -> RemovableHandle:
        handle = RemovableHandle(self._hooks[action])
        self._hooks[action][handle.id] = hook
        return handle

    # the graph of modules

    def _having(self, action: _ModuleProviderAction) -> list[str]:
        return sorted(name for name, node in self.dependency_graph.nodes.items()
                      if node.get("action") is action and not node.get("is_pickle"))

    def externed_modules(self) -> list[str]:
        """Return the names of the external modules."""
        return self._having(_ModuleProviderAction.EXTERN)

    def interned_modules(self) -> list[str]:
        """Return the names of the modules that are written."""
        return self._having(_ModuleProviderAction.INTERN)

    def mocked_modules(self) -> list[str]:
        """Return the names of the modules that are replaced."""
        return self._having(_ModuleProviderAction.MOCK)

    def denied_modules(self) -> list[str]:
        """Return the names of the modules that are refused."""
        return self._having(_ModuleProviderAction.DENY)

    def get_rdeps(self, module_name: str) -> list[str]:
        """Return the modules and files that need a module."""
        return list(self.dependency_graph.predecessors(module_name)) if module_name in self.dependency_graph else []

    def all_paths(self, src: str, dst: str) -> str:
        """Return the graph of how one module needs another, in Graphviz's language."""
        return self.dependency_graph.all_paths(src, dst)

    def dependency_graph_string(self) -> str:
        """Return the graph of what needs what, in Graphviz's language."""
        return self.dependency_graph.to_dot()

    # the archive

    def __enter__(self) -> PackageExporter:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self.close()

    def close(self) -> None:
        """Write the package.

        Errors: PackagingError, EmptyMatchError
        """
        if self._closed:
            return
        if any(node.get("error") for node in self.dependency_graph.nodes.values()):
            raise PackagingError(self.dependency_graph, debug=self.debug)
        for group, (_, empty) in self.patterns.items():
            if not empty and group not in self._matched:
                raise EmptyMatchError(f"Exporter did not match any modules to {group}, which was marked as "
                                      "allow_empty=False")
        self._write_modules()
        self._write(".data/python_version", platform.python_version())
        self._write("byteorder", sys.byteorder)
        self._closed = True
        with _open_zipfile_writer(self._target) as archive:
            for name, data in self._records.items():
                archive.write_record(name, data, len(data))

    def _write_modules(self) -> None:
        action, externs = _ModuleProviderAction, []
        for name, node in list(self.dependency_graph.nodes.items()):
            if node.get("is_pickle"):
                continue
            for hook in list(self._hooks[node["action"]].values()):
                hook(self, name)
            if node["action"] is action.EXTERN:
                externs.append(name)
            elif node["action"] is action.INTERN:
                self._write_module(name, node["source"], node["is_package"])
            elif node["action"] is action.MOCK:
                self._write_module(name, MOCK, "__path__" in vars(self._module(name)))
            if node["action"] in (action.MOCK, action.REPACKAGED_MOCK_MODULE):
                if "_mock.py" not in self._records:
                    self._write("_mock.py", Path(__file__).with_name("_mock.py").read_text(encoding="utf-8"))
        self._write(".data/extern_modules", "\n".join(externs) + "\n")

    def _write_module(self, name: str, source: str, is_package: bool) -> None:
        self._write(name.replace(".", "/") + ("/__init__.py" if is_package else ".py"), source)

    @staticmethod
    def _path(package: str, resource: str) -> str:
        if os.path.split(resource)[0]:
            raise ValueError(f"{resource!r} must be only a file name")
        return f"{package.replace('.', '/')}/{resource}"

    def _write(self, filename: str, data: str | bytes) -> None:
        if filename in self._records:
            raise AssertionError(f"Tried to write file '{filename}', but it already exists in this archive. Please "
                                 "file a bug.")
        if is_mangled(filename):
            raise AssertionError(f"Tried to save a torch.package'd module as '{filename}'. Directly saving "
                                 "torch.package'd modules is not allowed.")
        self._records[filename] = data.encode("utf-8") if isinstance(data, str) else bytes(data)


def _is_given(module: str) -> bool:
    """Return True for modules that each importing process has: those of this library and of Python."""
    top = module.partition(".")[0]
    return top in ("torch", PACKAGE) or top not in SYSTEM and top in sys.stdlib_module_names


def _source_of(module: Any) -> str | None:
    """Return the source of a module; None if it has none."""
    spec = getattr(module, "__spec__", None)
    loader = getattr(spec, "loader", None) or getattr(module, "__loader__", None)
    if hasattr(loader, "get_source"):
        try:
            return loader.get_source(module.__name__)       # type: ignore[union-attr, no-any-return]
        except (ImportError, OSError):
            pass
    file = getattr(module, "__file__", None)
    lines = linecache.getlines(file, vars(module)) if isinstance(file, str) and file.endswith(".py") else []
    return "".join(lines) or None
