"""torch._logging: the levels of the compiler's messages. https://pytorch.org/docs → torch._logging"""
from __future__ import annotations

import logging
from typing import Any

__all__ = ["getArtifactLogger", "set_logs"]

# PyTorch's names for the messages of the logger `tensorgrad.compiler`: eager calls, and further traces
ARTEFACTS = frozenset({"graph_breaks", "recompiles", "recompiles_verbose"})
COMPONENTS = frozenset({"all", "dynamo"})


def set_logs(*, modules: dict[str, Any] | None = None, **logs: Any) -> None:
    """Set the level of the logger `tensorgrad.compiler`: levels for `all` and `dynamo`, True or False for `recompiles`
    and `graph_breaks`.

    PyTorch's other names are accepted, and have no messages.

    >>> import logging, tensorgrad as torch
    >>> torch._logging.set_logs(recompiles=True)
    >>> logging.getLogger("tensorgrad.compiler").level == logging.INFO
    True
    >>> torch._logging.set_logs()
    """
    levels = [logs[name] for name in COMPONENTS if logs.get(name) is not None]
    if any(logs.get(name) for name in ARTEFACTS):
        levels.append(logging.INFO)
    logging.getLogger("tensorgrad.compiler").setLevel(min(levels, default=logging.NOTSET))
    for name, level in (modules or {}).items():
        logging.getLogger(name).setLevel(level)


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """Return the logger of a module's artefact."""
    return logging.getLogger(f"{module_qname}.__{artifact_name}")
