"""torch.hub: models from a directory with a hubconf.py.

Nothing is ever downloaded. https://pytorch.org/docs/stable/hub.html
"""
from __future__ import annotations

import os
import re
import sys
from typing import Any
from urllib.parse import urlparse

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]


class _Bar:
    """A progress bar that shows nothing, in place of `tqdm` where the package tqdm is not installed."""

    def __init__(self, iterable: Any = (), **unused: Any) -> None:
        self.iterable = iterable

    def __iter__(self) -> Any:
        return iter(self.iterable)

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *raised: Any) -> None:
        """Do nothing: no bar is open."""

    def update(self, n: Any = 1) -> None:
        """Do nothing: no bar is shown."""

    close = update


def __getattr__(name: str) -> Any:
    """tqdm, for programs that take it from here."""
    if name != "tqdm":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from tqdm import tqdm
    except ImportError:
        return _Bar
    return tqdm


_directory: str | None = None
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")      # the beginning of a file's SHA-256 in its name


def _get_torch_home() -> str:
    """Return $TORCH_HOME, or the directory for caches."""
    return os.path.expanduser(os.environ.get("TORCH_HOME")
                              or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch"))


def get_dir() -> str:
    """Return the directory of cached files: set_dir's, or $TORCH_HOME/hub.

    https://pytorch.org/docs → torch.hub.get_dir
    """
    return _directory or os.path.join(_get_torch_home(), "hub")


def set_dir(d: Any) -> None:
    """Choose where files are kept. https://pytorch.org/docs → torch.hub.set_dir"""
    global _directory
    _directory = os.path.expanduser(d)


def load(repo_or_dir: Any, model: str, *args: Any, source: str = "github", trust_repo: Any = "check",
         force_reload: bool = False, verbose: bool = True,
         skip_validation: bool = False, **kwargs: Any) -> Any:
    """Call an entry point of a directory's hubconf.py and return its result; source='local'.

    https://pytorch.org/docs → torch.hub.load
    """
    return _entry(_hubconf(repo_or_dir, source), model)(*args, **kwargs)


def list(github: Any, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = "check",
         verbose: bool = True,
         source: str = "local") -> Any:
    """The entry points of a directory. https://pytorch.org/docs → torch.hub.list"""
    return [name for name, value in vars(_hubconf(github, source)).items()
            if callable(value) and not name.startswith("_")]


def help(github: Any, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = "check",
         source: str = "local") -> Any:
    """The docstring of an entry point. https://pytorch.org/docs → torch.hub.help"""
    return _entry(_hubconf(github, source), model).__doc__


def _hubconf(directory: Any, source: str) -> Any:
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise RuntimeError(f"tensorgrad downloads nothing: get a copy of {directory!r} and load it with source='local'")
    from importlib.util import module_from_spec, spec_from_file_location
    directory = os.path.realpath(os.path.expanduser(directory))
    spec = spec_from_file_location("hubconf", os.path.join(directory, "hubconf.py"))
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    sys.path.insert(0, directory)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(directory)
    for package in getattr(module, "dependencies", ()):
        from importlib.util import find_spec
        if find_spec(package) is None:
            raise RuntimeError(f"Missing dependencies: {package}")
    return module


def _entry(module: Any, name: str) -> Any:
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def load_state_dict_from_url(url: str, model_dir: str | None = None, map_location: Any = None, progress: bool = True,
                             check_hash: bool = False,
                             file_name: str | None = None, weights_only: bool = True) -> Any:
    """Read a file of that name, which has to be there already.

    Nothing in it is run, unless weights_only=False, which is PyTorch's default here. Archives around a file are not
    unpacked. check_hash: RuntimeError unless its SHA-256 begins as its name says.
    https://pytorch.org/docs → torch.hub.load_state_dict_from_url
    """
    from .serialization import load as read
    path = os.path.join(model_dir or os.path.join(get_dir(), "checkpoints"),
                        file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(path):
        raise RuntimeError(f"tensorgrad downloads nothing: put the file of {url} at {path}")
    if check_hash and (expected := HASH_REGEX.search(os.path.basename(path))):
        _check_hash(path, expected.group(1))
    return read(path, map_location=map_location, weights_only=weights_only)


def _check_hash(path: str, expected: str) -> None:
    from hashlib import file_digest
    with open(path, "rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    if not digest.startswith(expected):
        raise RuntimeError(f'invalid hash value (expected "{expected}", got "{digest}")')


def download_url_to_file(url: str, dst: Any, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Raise RuntimeError: nothing is downloaded."""
    raise RuntimeError(f"tensorgrad downloads nothing: put the file of {url} at {dst}")
