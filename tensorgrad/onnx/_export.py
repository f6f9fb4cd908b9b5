"""`export`: read arguments and dynamic axes, trace the model, build and save the file."""
from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from functools import partial
from typing import Any

from ..core.tape import TensorBase
from ..graph import CannotLower, ReadsValues, lower
from ..graph.inputs import input_names as inputs_of
from ..graph.inputs import parameters_of, tensors_in
from ..nn import Module
from ..utils._pytree import tree_flatten
from ._build import Builder, checked, proto
from ._graph import Graph, Term
from ._program import ONNXProgram, the_onnx
from ._rules import load
from ._sizes import Varying
from ._table import RULES
from ._whole import exporting, whole
from .errors import OnnxExporterWarning, SymbolicValueError, UnsupportedOperatorError

OLDEST, DEFAULT, NEWEST = 13, 20, 23         # versions of ONNX's own operators


class TrainingMode(IntEnum):
    """The mode in which a model is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(IntEnum):
    """PyTorch's choice of operators; only ONNX's are used here."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


def export(model: Any, args: Any = (), f: Any = None, *, kwargs: dict[str, Any] | None = None,
           verbose: bool | None = None, input_names: Sequence[str] | None = None,
           output_names: Sequence[str] | None = None, opset_version: int | None = None, dynamo: bool = True,
           external_data: bool | None = None, dynamic_shapes: Any = None,
           custom_translation_table: Mapping[Any, Callable[..., Any]] | None = None,
           report: bool = False, optimize: bool = True, verify: bool = False, profile: bool = False,
           dump_exported_program: bool = False, artifacts_dir: Any = ".", export_params: bool = True,
           keep_initializers_as_inputs: bool = False, dynamic_axes: Any = None, training: Any = TrainingMode.EVAL,
           operator_export_type: Any = OperatorExportTypes.ONNX, do_constant_folding: bool = True,
           custom_opsets: Any = None, export_modules_as_functions: Any = False,
           autograd_inlining: bool = True) -> ONNXProgram | None:
    """Run a model on example inputs, and export its computation as an ONNX file.

    https://pytorch.org/docs → torch.onnx.export

    The executed path of the program is exported. Axes named in `dynamic_axes` ({input: {axis: name}}) or
    `dynamic_shapes` may have any size when the file is run: the model is traced with several sizes, and numbers that
    differ are computed from the inputs' shapes. The model is not changed. UnsupportedOperatorError lists all steps
    without an ONNX operator; then nothing is written.

    >>> import tensorgrad as torch
    >>> model, axes = torch.nn.Linear(2, 1), {"x": {0: "batch"}}
    >>> torch.onnx.export(model, torch.ones(3, 2), "m.onnx", input_names=["x"], dynamic_axes=axes)  # doctest: +SKIP
    """
    onnx = the_onnx()
    args, kwargs = _arguments(args, kwargs)
    opset = _opset(opset_version)
    names = inputs_of(model, args, kwargs, input_names or ())
    _check_distinct(names)
    tensors = tensors_in((args, kwargs))
    axes = _dynamic(model, names, tensors, args, kwargs, dynamic_axes, dynamic_shapes)
    load()
    with exporting(), _mode(model, training, dynamo), _rules(custom_translation_table):
        graphs, sizes = _lowered(model, args, kwargs, tensors, axes)
        graph = Graph(onnx, opset)
        for name in names:
            graph.unique(name)
        terms = [Term(name, None, t.array.dtype) for name, t in zip(names, tensors, strict=True)]
        graph.symbols = [(terms[places[0][0]], places[0][1], values)
                         for places, values in zip(axes.values(), sizes, strict=True)]
        builder = Builder(graph, graphs, do_constant_folding)
        outs = builder.build(names)
    symbols = dict(zip(axes, sizes, strict=True))
    ends = _output_names(outs, output_names or (), set(names))
    _warn_of_unknown(set(dynamic_axes or ()) - set(names) - {name for name, _ in ends})
    options = {"keep_initializers_as_inputs": keep_initializers_as_inputs, "export_params": export_params,
               "version": _version(), "parameters": {v.target for v in builder.graphs[0].state},
               "name": type(model).__name__ if isinstance(model, Module) else getattr(model, "__name__", "main_graph"),
               "shapes": _output_shapes(ends, symbols, dynamic_axes or {})}
    shown = [(term, _shape(t.array.shape, {a: n for n, places in axes.items() for i, a in places if i == k}))
             for k, (term, t) in enumerate(zip(terms, tensors, strict=True))]
    built = proto(onnx, graph, shown, ends, options)
    checked(onnx, built)
    program = ONNXProgram(built)
    if verify:
        _verify(program, model, args, kwargs)
    if verbose:
        print(onnx.printer.to_text(built.graph) if hasattr(onnx, "printer") else built.graph)
    if f is not None:
        program.save(f, external_data=bool(external_data))
    return program if dynamo else None


def _check_distinct(names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        raise ValueError(f"input names must differ, but are {names}")


def _warn_of_unknown(keys: set[Any]) -> None:
    for key in keys:
        warnings.warn(f"Provided key {key} for dynamic axes is not a valid input/output name", UserWarning,
                      stacklevel=3)


# ── arguments ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _arguments(args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return (args, kwargs) of the example call: a tensor is the only input, a trailing dictionary holds keyword
    arguments."""
    args = args if isinstance(args, tuple) else (args,)
    if kwargs is None and args and isinstance(args[-1], dict):
        args, kwargs = args[:-1], args[-1]
    return args, dict(kwargs or {})


def _opset(version: int | None) -> int:
    if version is None:
        return DEFAULT
    if not isinstance(version, int) or version < 7 or version > NEWEST:
        raise ValueError(f"Unsupported opset_version: {version}. It may be {OLDEST} to {NEWEST}")
    if version < OLDEST:
        warnings.warn(f"opset_version {version} is older than the operators that models are written with: {OLDEST} is "
                      f"used", OnnxExporterWarning, stacklevel=3)
        return OLDEST
    return version


def _output_names(outs: Sequence[Term], given: Sequence[str], taken: set[str]) -> list[tuple[str, Term]]:
    if len(given) > len(outs):
        raise RuntimeError(f"number of output names provided ({len(given)}) exceeded number of outputs ({len(outs)})")
    names = list(given)
    for i in range(len(given), len(outs)):
        name = "output" if len(outs) == 1 and not given else f"output_{i}"
        while name in taken or name in names:
            name += "_"
        names.append(name)
    if len(set(names) | taken) != len(names) + len(taken):
        raise ValueError(f"names of inputs and outputs must differ, but the outputs are {names}")
    return list(zip(names, outs, strict=True))


# ── dynamic axes ──────────────────────────────────────────────────────────────────────────────────────────────────────

Places = list[tuple[int, int]]       # (input, axis)


def _dynamic(model: Any, names: list[str], tensors: Any, args: Any, kwargs: Any, axes: Any, shapes: Any) -> dict[str,
                                                                                                                 Places]:
    """Return {name of a dynamic size: its axes}. Axes of one name have equal sizes."""
    found: dict[str, Places] = {}

    def note(i: int, axis: Any, name: Any) -> None:
        if not isinstance(axis, int) or not -tensors[i].array.ndim <= axis < tensors[i].array.ndim:
            raise ValueError(f"{names[i]!r} has no axis {axis}: it has {tensors[i].array.ndim}")
        axis %= tensors[i].array.ndim
        places = found.setdefault(str(name), [])
        if places and tensors[i].array.shape[axis] != tensors[places[0][0]].array.shape[places[0][1]]:
            raise ValueError(f"axes named {name!r} have different sizes: {tensors[i].array.shape[axis]} and "
                             f"{tensors[places[0][0]].array.shape[places[0][1]]}")
        places.append((i, axis))
    for name, wanted in (axes or {}).items():
        if name in names:
            i = names.index(name)
            for axis in wanted:
                note(i, axis, wanted[axis] if isinstance(wanted, Mapping)
                     else f"{name}_dynamic_axes_{list(wanted).index(axis) + 1}")
    if shapes is not None:
        for i, axis, name in _from_shapes(shapes, names, tensors, parameters_of(model, args, kwargs)):
            note(i, axis, name)
    return found


def _from_shapes(shapes: Any, names: list[str], tensors: Any, forward: Any) -> list[tuple[int, int, str]]:
    """Return (input, axis, name) of each dynamic axis in `dynamic_shapes`, which is nested like the arguments."""
    given = shapes if isinstance(shapes, Mapping) else dict(zip([name for name, _ in forward], shapes, strict=False))
    unknown = set(given) - {name for name, _ in forward} - set(names)
    if unknown:
        raise ValueError(f"dynamic_shapes names {sorted(unknown)}, which are no inputs of the model")
    found: list[tuple[int, int, str]] = []
    free: dict[tuple[int, int], str] = {}          # unnamed axes: those of equal size and position count as equal

    def named(i: int, axis: int, dim: Any) -> str:
        if getattr(dim, "name", "") in ("AUTO", "DYNAMIC"):
            return free.setdefault((axis, tensors[i].array.shape[axis]), f"{names[i]}_dim_{axis}")
        return dim if isinstance(dim, str) else str(dim.__name__)

    def walk(spec: Any, value: Any) -> None:
        if spec is None:
            return
        if isinstance(value, TensorBase):
            i = next(k for k, t in enumerate(tensors) if t is value)
            for axis, dim in spec.items() if isinstance(spec, Mapping) else enumerate(spec):
                if dim is not None and not isinstance(dim, int) and getattr(dim, "name", "") != "STATIC":
                    found.append((i, axis, named(i, axis, dim)))
        else:
            parts = [(spec[k], value[k]) for k in spec] if isinstance(spec, Mapping) else zip(spec, value, strict=False)
            for inner, part in parts:
                walk(inner, part)
    for name, value in forward:
        walk(given.get(name), value)
    for i, name in enumerate(names):
        if name in given and name not in dict(forward):
            walk(given[name], tensors[i])
    return found


def _lowered(model: Any, args: Any, kwargs: Any, tensors: Any, axes: dict[str, Places]) -> tuple[list[Any],
                                                                                                 list[tuple[int, ...]]]:
    """Return the model's graphs for the given sizes, with each dynamic size changed alone, and with all changed.

    Tracing uses shapes only, unless the model reads values.
    """
    def run(sizes: Sequence[int], reading: Any = None) -> Any:
        places = {place: n for places, n in zip(axes.values(), sizes, strict=True) for place in places}
        return lower(model, args, kwargs, whole=whole, reading=reading, fold=False, sizes=places)
    try:
        try:
            return _with_sizes(run, tensors, axes)
        except ReadsValues:
            return _with_sizes(partial(run, reading=_warn), tensors, axes)
    except CannotLower as error:
        raise UnsupportedOperatorError([(error.what, error.source)]) from None


def _warn(source: str) -> None:
    warnings.warn(f"{source}: the values of a tensor that depends on the inputs are read, and are constants in the "
                  "exported model. What it does with other inputs may differ.", OnnxExporterWarning, stacklevel=2)


def _with_sizes(run: Any, tensors: Any, axes: dict[str, Places]) -> tuple[list[Any], list[tuple[int, ...]]]:
    """Return (graphs, sizes): the results of `run` for each choice of the dynamic sizes, and the choices."""
    if not axes:
        return [run(())], []
    given = [tensors[i].array.shape[axis] for (i, axis), *_ in axes.values()]
    given = [2 if n < 2 else n for n in given]           # size 1 broadcasts, so it is no example of a general size
    graphs, chosen = [run(given)], [given]

    def tried(sizes: Sequence[int], last: bool) -> bool:
        try:
            graphs.append(run(sizes))
        except (ReadsValues, CannotLower):
            raise
        except Exception as error:
            if last:
                raise _does_not_run(axes, sizes, error) from error
            return False
        chosen.append(list(sizes))
        return True
    for k, n in enumerate(given):
        if not tried([*given[:k], n + 1, *given[k + 1:]], n < 3):
            tried([*given[:k], n - 1, *given[k + 1:]], True)
    changes = [row[k] - given[k] for k, row in enumerate(chosen[1:])]
    for factor in (3, 2, -1, -2, 1):                     # a last trace with all sizes changed, to verify the formulas
        if tried([n + c * factor for n, c in zip(given, changes, strict=True)], factor == 1):
            break
    return graphs, list(zip(*chosen, strict=True))


def _does_not_run(axes: Any, sizes: Sequence[int], error: Exception) -> SymbolicValueError:
    shown = ", ".join(f"{name} = {n}" for name, n in zip(axes, sizes, strict=True))
    return SymbolicValueError(f"what the model computes depends on the size of a dynamic axis: it does not run with "
                              f"{shown}: {error}")


def _shape(shape: Any, names: Mapping[int, str]) -> list[Any]:
    return [names.get(axis, n) for axis, n in enumerate(shape)]


def _output_shapes(ends: Sequence[tuple[str, Term]], symbols: dict[str, tuple[int, ...]], axes: Any) -> dict[str,
                                                                                                             list[Any]]:
    """Return the shapes of the outputs, with the names of dynamic sizes: as given, the inputs', or new ones."""
    shapes = {}
    for name, term in ends:
        wanted = axes.get(name, {})
        asked = (dict(wanted) if isinstance(wanted, Mapping)
                 else {axis: f"{name}_dynamic_axes_{i + 1}" for i, axis in enumerate(wanted)})
        asked = {axis % max(term.ndim, 1): label for axis, label in asked.items()}
        shapes[name] = [asked.get(axis, next((s for s, values in symbols.items() if values == n.values),
                                             f"{name}_dim_{axis}") if isinstance(n, Varying) else n)
                        for axis, n in enumerate(term.shape)]
    return shapes


# ── the rest ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def _mode(model: Any, training: Any, dynamo: bool) -> Any:
    """Put the model into the mode that `training` names (old exporter only) until the block ends, else keep its
    mode.
    """
    if not isinstance(model, Module):
        yield
        return
    before = {module: module.training for module in model.modules()}
    if not dynamo and training is not None and training != TrainingMode.PRESERVE:
        model.train(training == TrainingMode.TRAINING)
    elif model.training:
        logging.getLogger("tensorgrad.onnx").warning(
            "Exporting a model while it is in training mode. Please ensure that this is intended, as it may lead to "
            "different behavior during inference. Calling model.eval() before export is recommended.")
    try:
        yield
    finally:
        for module, mode in before.items():
            module.training = mode


@contextmanager
def _rules(table: Any) -> Any:
    """Add the program's own rules until the block ends."""
    before = dict(RULES)
    RULES.update({getattr(key, "opname", key): value for key, value in (table or {}).items()})
    try:
        yield
    finally:
        RULES.clear()
        RULES.update(before)


def _version() -> str:
    return str(sys.modules[__name__.partition(".")[0]].__version__)


def _verify(program: ONNXProgram, model: Any, args: Any, kwargs: Any) -> None:
    """Compare the results of the file with the model's."""
    from ..core.mode import no_grad
    from ..testing import assert_close
    with no_grad():
        wanted = [leaf for leaf in tree_flatten(model(*args, **kwargs))[0] if isinstance(leaf, TensorBase)]
    for got, expected in zip(program(*args, **kwargs), wanted, strict=True):
        assert_close(got, expected, rtol=1e-3, atol=1e-4)
