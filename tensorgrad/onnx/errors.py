"""Errors and warnings of exports and of loading. https://pytorch.org/docs → torch.onnx"""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..messages.escaping import escaped

__all__ = ["InvalidModelError", "OnnxExporterError", "OnnxExporterWarning", "SymbolicValueError",
           "UnsupportedModelError", "UnsupportedOperatorError"]


class OnnxExporterError(RuntimeError):
    """An export failed. Nothing was written."""


class OnnxExporterWarning(UserWarning):
    """The file may compute something else than the model."""


class UnsupportedOperatorError(OnnxExporterError):
    """The model has steps without an ONNX operator; the message lists them all."""

    def __init__(self, steps: Iterable[tuple[str, str]]) -> None:
        places: dict[str, list[str]] = {}
        for name, where in steps:
            found = places.setdefault(name, [])
            if where not in found:
                found.append(where)
        self.names = tuple(places)
        lines = [f"\n  {name}{'' if not any(found) else ', at ' + '; '.join(filter(None, found))}"
                 for name, found in places.items()]
        super().__init__(f"ONNX export failed on operators that it cannot express: {', '.join(places)}{''.join(lines)}")


class SymbolicValueError(OnnxExporterError):
    """A number depends on the sizes of dynamic axes in a way that the exporter cannot determine."""


class InvalidModelError(ValueError):
    """A file is not an ONNX model, is damaged, or breaks a rule for models."""

    def __init__(self, message: str) -> None:
        super().__init__(escaped(message))


class UnsupportedModelError(RuntimeError):
    """A model uses operators that are not supported; the message lists them with the number of their nodes."""

    def __init__(self, operators: Mapping[str, int]) -> None:
        self.operators = dict(operators)
        listed = escaped(", ".join(f"{name} ({count})" for name, count in self.operators.items()))
        super().__init__(f"this ONNX model uses operators that are not supported: {listed}. The argument `operators` "
                         f"of torch.onnx.load takes functions for them.")
