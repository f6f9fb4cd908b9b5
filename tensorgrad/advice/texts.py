"""The notes of the errors that people search for, a function for each kind: it returns lines."""
from __future__ import annotations

import ast
import re
from math import prod
from typing import Any

from ..core.tape import Leaf, TensorBase
from .history import origins
from .places import NOTED, PACKAGE, WAYS, WRITES, Way, Write
from .source import expression, offer, place, placed, program, quoted, running, shown, tensors_in, variables

PICTURE = "A picture of the graph, with the lines of the program"
SO_FAR = "A picture of how far the program got"


# ── shapes that do not go together ────────────────────────────────────────────────────────────────────────────────────


def of_shapes() -> list[str]:
    """Where the operation is, which layer it belongs to, and the shapes of the tensors that are named there."""
    frames = running()
    user = program(frames)
    if user is None:
        return []
    lines, tree = [f"  {place(user.f_code, user.f_lasti)}"], expression(user)
    tensors = tensors_in(tree, user) if tree is not None else {}
    layer, given = _layer(frames, user)
    if layer:
        lines.append(layer)
        tensors = {name: tensor for name, tensor in tensors.items() if tensor is not given}
    if tensors:
        lines.append("  " + ", ".join(f"{name} has shape {_shape(tensor)}"
                                      for name, tensor in list(tensors.items())[:6]))
        lines += _remedy(tree, list(tensors.items()))
    return [*lines, *around(frames, user), *offer(SO_FAR)]


def _shape(tensor: Any) -> str:
    return str(tuple(tensor.array.shape))


def _remedy(tree: Any, named: list[tuple[str, Any]]) -> list[str]:
    """Return a change that makes the shapes fit, if it is evident."""
    if len(named) != 2 or not isinstance(tree, (ast.BinOp, ast.Call)):
        return []
    (a, x), (b, y) = named
    s, t = x.array.shape, y.array.shape
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.MatMult) and len(s) == len(t) == 2 and s[1] == t[1]:
        return [f"  {a} @ {b}.T would fit"]
    if len(s) == len(t) + 1 and s[-1] == 1 and s[:-1] == t or len(t) == len(s) + 1 and t[-1] == 1 and t[:-1] == s:
        return [f"  {a if len(s) > len(t) else b}.squeeze(-1) would have the shape of the other"]
    return []


def _layer(frames: list[Any], user: Any) -> tuple[str, Any]:
    """The layer of this package that runs, as text, and what it was given."""
    inner = frames[:frames.index(user)]
    at = next((f for f in inner if f.f_code.co_name == "forward" and _is_module(variables(f).get("self"))), None)
    if at is None:
        return "", None
    here = variables(at)
    module = here["self"]
    called, ours = _called(module, frames[frames.index(user):]), (PACKAGE_NAME, "torch.")
    written = repr(module) if type(module).__module__.startswith(ours) else type(module).__name__
    text = quoted(written) if "\n" not in written else type(module).__name__
    names = at.f_code.co_varnames[1:at.f_code.co_argcount + at.f_code.co_kwonlyargcount]
    given = next((v for v in map(here.get, names) if isinstance(v, TensorBase)), None)
    line = f"  in the layer {called}{text}" + (f", whose input has shape {_shape(given)}" if given is not None else "")
    if type(module).__name__ == "Linear" and given is not None and given.array.ndim:
        line += f": Linear({given.array.shape[-1]}, {module.out_features}) would take it"
    return line, given


PACKAGE_NAME = __name__.partition(".")[0] + "."


def _is_module(value: Any) -> bool:
    return value is not None and "_modules" in getattr(value, "__dict__", {}) and not isinstance(value, type)


def _called(module: Any, frames: list[Any]) -> str:
    """Return the program's name of a layer: its path in the outermost running module, or in a variable of the
    program.
    """
    owners = [(type(owner).__name__, owner) for owner in [variables(f).get("self") for f in frames]
              if _is_module(owner)][::-1]
    for frame in frames[:4]:
        owners += [(name, value) for name, value in {**frame.f_globals, **variables(frame)}.items()
                   if _is_module(value)]
    for name, owner in owners:
        if owner is module:
            return f"{name}, "
        path = next((path for path, part in owner.named_modules() if part is module), None)
        if path is not None:
            return f"{name}.{path}, "
    return ""


# ── a graph that was freed, a value that was written to ───────────────────────────────────────────────────────────────


def made(step: Any) -> str:
    """A step as text: its name, and the line that made it where that is known."""
    name = f"`{step.name()}`"
    for known in NOTED:
        if (noted := known(step)) is not None:
            file, line, text = noted
            return f"{name} ({shown(file, line)}: `{quoted(text)}`)"
    trace = getattr(step, "trace", None) or ()                      # of anomaly mode
    for entry in reversed(trace):
        found = re.match(r'\s*File "(.*)", line (\d+)', entry)
        if found and not found[1].startswith(PACKAGE):
            return f"{name} ({placed(found[1], int(found[2]))})"
    return name


def of_second_time(step: Any) -> list[str]:
    """Which backward freed the step, and which one comes back to it."""
    user = program(frames := running())
    if user is None or step is None:
        return []
    way = next((way for way in map(Way._make, WAYS) if way.oldest <= step.time <= way.newest and way.date > step.time),
               None)
    lines = [f"  {made(step)} was freed by an earlier backward"]
    if way is not None:
        lines = [f"  {made(step)} was freed by {place(way.code, way.instruction)}"]
    if way is not None and way.code is user.f_code and way.instruction == user.f_lasti:
        lines.append("  which runs again, and comes back to it: detach() what one round hands on to the next, or "
                     "compute the loss anew in each")
    else:
        lines.append(f"  and is needed again by {place(user.f_code, user.f_lasti)}")
        if way is not None:
            lines.append("  retain_graph=True in the first of them keeps it; so does detach() there of what only the "
                         "second has to go through")
    return [*lines, *around(frames, user), *offer(PICTURE)]


def of_write(step: Any, storage: Any, source: Any, since: int) -> list[str]:
    """Which line wrote to what the step had saved."""
    user = program(frames := running())
    dates = [date for date in storage.dates if date > since]
    found = [write for write in map(Write._make, WRITES) if any(write.first <= date <= write.last for date in dates)]
    needs = f"  {made(step)} needs it as it was" if step is not None else ""
    if found:
        write = found[0]
        lines = [f"  it was written to by {place(write.code, write.instruction)}", needs,
                 *_kept(place(write.code, write.instruction))]
    else:
        lines = ["  it was written to after it was used"
                 + (": most often by an optimizer's step between the forward and this backward" if type(source) is Leaf
else ": copy it first, or compute with the old values before"), needs]
    return [*[line for line in lines if line], *around(frames, user), *offer(PICTURE)]


def _kept(text: str) -> list[str]:
    """Return the statement to write in place of an in-place write."""
    text = text.partition("`")[2].removesuffix("`")
    try:
        statement: Any = ast.parse(text).body[0]
    except (SyntaxError, ValueError, IndexError):
        return []
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        better = ast.Assign([statement.target], ast.BinOp(ast.Name(statement.target.id), statement.op, statement.value),
                            lineno=0)
        return [f"  `{quoted(ast.unparse(better))}` makes a new tensor"]
    called = (statement.value.func if isinstance(statement, (ast.Expr, ast.Assign))
              and isinstance(statement.value, ast.Call) else None)
    name = called.attr if isinstance(called, ast.Attribute) else ""
    if name == "step":
        return ["  an optimizer's step belongs after every backward() that needs the parameters as they were"]
    if name.endswith("_") and not name.endswith("__"):
        plain = name.removesuffix("_")
        if any(hasattr(kind, plain) for kind in TensorBase.__subclasses__()):
            return [f"  {plain}() without the underscore makes a new tensor"]
        return _cloned(called.value)
    if isinstance(statement, (ast.Assign, ast.AugAssign)):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        return _cloned(target) if isinstance(target, ast.Subscript) else []
    return []


def _cloned(written: ast.expr) -> list[str]:
    """The copy that keeps the old values, of what a write went through: of `c` for `c[0]`, `c.T` and `c.view(2)`."""
    while True:
        if isinstance(written, ast.Call) and isinstance(written.func, ast.Attribute):
            written = written.func.value
        elif (isinstance(written, ast.Subscript) or isinstance(written, ast.Attribute)
              and written.attr in ("T", "mT", "H", "mH", "real", "imag", "data")):
            written = written.value
        else:
            break
    text = ast.unparse(written)
    return ([f"  `{text} = {text}.clone()` before it keeps the old values"]
            if isinstance(written, (ast.Name, ast.Attribute)) else [])


def of_leaf(target: Any) -> list[str]:
    """A write to a leaf."""
    user = program(frames := running())
    return [f"  {place(user.f_code, user.f_lasti)}",
            "  `with torch.no_grad():` around it changes the leaf, as optimizers do; on a clone() of it, the write is "
            "part of the graph",
            *around(frames, user)] if user is not None else []


# ── tensors without a history ─────────────────────────────────────────────────────────────────────────────────────────


def of_unrecorded(tensor: Any) -> list[str]:
    """Where the history of a tensor ends."""
    user = program(frames := running())
    if user is None:
        return []
    lines, cut = origins(tensor, user)
    return [f"  {place(user.f_code, user.f_lasti)}", *lines, *around(frames, user), *(offer(PICTURE) if cut else [])]


def of_several(node: Any) -> list[str]:
    """A backward from a tensor of several elements."""
    user = program(frames := running())
    if user is None:
        return []
    tree = expression(user)
    name = next((text for text, t in (tensors_in(tree, user) if tree is not None else {}).items() if t._node is node),
                "it")
    return [f"  {place(user.f_code, user.f_lasti)}",
            f"  {name} has shape {tuple(node.shape)}, {prod(node.shape)} elements: take its mean() or sum(), or give "
            f"backward a gradient of that shape",
            *around(frames, user)]


def of_nan(step: Any) -> list[str]:
    """A step that anomaly mode found to make a NaN."""
    return [f"  {made(step)}", *_from(program(running())), *offer("Where it came from, with all numbers", "--nan ")]


# ── hooks and Functions ───────────────────────────────────────────────────────────────────────────────────────────────


def defined(function: Any) -> str:
    """Where a function of the program is defined."""
    function = getattr(function, "__func__", function)
    function = getattr(function, "hook", function)
    code = getattr(function, "__code__", None)
    return f" ({shown(code.co_filename, code.co_firstlineno)})" if code is not None else ""


def of_hook(hook: Any, node: Any) -> list[str]:
    """A hook that returned what cannot be."""
    user = program(running())
    of = f" of {made(node)}" if node is not None else ""
    return [f"  the hook `{_name(hook)}`{defined(hook)} was given the gradient of the result{of}", *_from(user),
            *offer(PICTURE)]


def of_function(step: Any) -> list[str]:
    """A Function whose backward returned what cannot be."""
    rule, user = step._rule(), program(running())
    return [f"  {step.function.__name__}.{rule.__name__}{defined(rule)} is the backward of {made(step)}", *_from(user),
            *offer(PICTURE)]


def _from(user: Any) -> list[str]:
    return [f"  called by {place(user.f_code, user.f_lasti)}"] if user is not None else []


def _name(hook: Any) -> str:
    return str(getattr(hook, "__name__", type(hook).__name__))


def around(frames: list[Any], user: Any) -> list[str]:
    """If the program's line is in a hook or in a Function: in which, and which line of the program led there."""
    at = frames.index(user) if user in frames else 0
    for i, frame in enumerate(frames[at:], at):
        file, values = frame.f_code.co_filename, variables(frame)
        if not file.startswith(PACKAGE):
            continue
        told, name = "", frame.f_code.co_name
        if file.endswith("hooks.py") and "hook" in values:
            subject = values.get("node")
            told = (f"the hook `{_name(values['hook'])}`"
                    + (f", for the gradient of {made(subject)}" if subject is not None else ""))
        elif file.endswith("function.py") and name in ("_backward", "apply"):
            function = values["self"].function if name == "_backward" else values["cls"]
            told = f"the {'backward' if name == '_backward' else 'forward'} of the Function {function.__name__}"
            if function.__module__.startswith(PACKAGE_NAME):
                continue
        if told:
            outer = program(frames[i:])
            return [f"  in {told}" + (f", called by {place(outer.f_code, outer.f_lasti)}" if outer is not None else "")]
    return []


def of_trace(trace: Any) -> list[str]:
    """`around` for an error that the program's own code raised."""
    frames = []
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    user = program(frames[::-1])
    if not frames or user is None:
        return []
    return around([*frames[::-1], *running(frames[0].f_back)], user)
