"""The stubs of layers: their constructors, of which `settings` makes many, their attributes and their methods.

`Module` calls `forward`, so a call of a module has the parameters and the result of its class's `forward`; user-defined
subclasses may give it any. A call with a symbol (`tensorgrad.symbolic`) makes a symbol. A stub has the class statements
of the source with the `def` lines alone.
"""
from __future__ import annotations

import ast
from importlib import import_module
from inspect import getsource

from .names import WORD, Names, wrapped_imports
from .results import HEAD

FILES = """activation adaptive batchnorm channelshuffle container conv distance dropout flatten fold instancenorm lazy
    linear loss
    module normalization padding pixelshuffle pooling rnn sparse transformer upsampling""".split()
# The kinds of arguments of constructors that `settings` makes. Others have the kind of their default.
SETTINGS = {
    **dict.fromkeys("blank downscale_factor groups ignore_index in_features num_classes size upscale_factor".split(),
                    "int"),
    **dict.fromkeys("alpha beta k lambd lower margin negative_slope norm_type threshold upper value delta".split(),
                    "float"),
    **dict.fromkeys("kernel_size output_size padding dilation".split(), "Ints1"),
    **dict.fromkeys("size_average reduce recompute_scale_factor align_corners".split(), "bool | None"),
    **dict.fromkeys("min_value max_value".split(), "float | None"),
    **dict.fromkeys("weight pos_weight".split(), "Tensor | None"),
    "dim": "int | None", "stride": "Ints1 | None", "divisor_override": "int | None", "out_features": "int | Ints",
    "scale_factor": "float | Floats | None", "output_ratio": "float | Floats | None",
    "_random_samples": "Tensor | None", "device": "Device | None", "dtype": "Dtype | None", "unflattened_size": "Any",
    "options": "Any", "distance_function": "Callable[[Tensor, Tensor], Tensor] | None", "p": "float",
}
# Settings of single classes that differ.
OF_CLASS = {("LinearCrossEntropyLoss", "ignore_index"): "int | None",
            ("Unflatten", "dim"): "int | str", ("Upsample", "size"): "Ints1 | None",
            ("UpsamplingNearest2d", "size"): "Ints1 | None", ("UpsamplingBilinear2d", "size"): "Ints1 | None",
            ("_FractionalMaxPoolNd", "output_size"): "Ints1 | None",
            ("_AdaptiveMaxPoolNd", "output_size"): "Any", ("_AdaptiveAvgPoolNd", "output_size"): "Any"}
SHOWN = ("property", "staticmethod", "classmethod")
HIDDEN = ("__call__", "__getstate__", "__setstate__", "__reduce__", "__deepcopy__", "__reduce_ex__",
          "__init_subclass__", "__dir__", "__delattr__")
MODULE = """    forward: Callable[..., Any]
    training: bool
    @overload
    def __call__(self, symbol: SymbolicData, /, *args: Any, **kwargs: Any) -> Any: ...
    @overload
    def __call__(self: _HasForward[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ..."""
CALLED = """P = ParamSpec("P")
R = TypeVar("R", covariant=True)

class _HasForward(Protocol[P, R]):
    @property
    def forward(self) -> Callable[P, R]: ...
"""


def layer_stubs() -> dict[str, str]:
    """Return {path: text} of the stubs of `tensorgrad.nn.modules`."""
    return {f"tensorgrad/nn/modules/{name}.pyi": Outline(f"tensorgrad.nn.modules.{name}").text() for name in FILES}


class Outline:
    """The stub of one module with layers."""

    def __init__(self, module: str) -> None:
        self.tree = ast.parse(getsource(import_module(module)))
        self.names = Names(module, False, frozenset())
        self.local = {n.name for n in self.tree.body if isinstance(n, (ast.ClassDef, ast.FunctionDef))}

    def text(self) -> str:
        body: list[str] = []
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef):
                body += ["", *self._class(node)]
            elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                body += ["", self._header(node)]
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                body += ["", ast.unparse(node)]
        called = [CALLED] if self.names.module.endswith(".module") else []
        return "\n".join([HEAD, *self._imports("\n".join([*called, *body])), *called, *body]) + "\n"

    def _imports(self, body: str) -> list[str]:
        """Return the imports of the source that the stub needs, and those of kinds that `SETTINGS` names."""
        known = {"Any": "typing", "Callable": "collections.abc", "ParamSpec": "typing", "Protocol": "typing",
                 "TypeVar": "typing", "overload": "typing", "SymbolicData": "...symbolic.data", "Tensor": "..._tensor",
                 "F": "..",
                 "Parameter": "..parameter",
                 **dict.fromkeys("Ints Ints1 Floats Device Dtype".split(), "...api._kinds")}
        for node in [*self.tree.body, *(n for block in self.tree.body if isinstance(block, ast.If)
                                        for n in block.body)]:
            if isinstance(node, ast.ImportFrom) and node.module != "__future__":
                known.update({a.asname or a.name: "." * node.level + (node.module or "")
                              for a in node.names if a.asname is None})
        parts: dict[str, list[str]] = {}
        for word in sorted({w.partition(".")[0] for w in WORD.findall(body)} - self.local):
            if word in known:
                parts.setdefault(f"from {known[word]}", []).append(word if word != "F" else "functional as F")
        return wrapped_imports(parts)

    # ── classes ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _class(self, node: ast.ClassDef) -> list[str]:
        bases = ", ".join(map(ast.unparse, node.bases))
        inside = [line for part in node.body for line in self._member(node.name, part)]
        if node.name == "Module":
            inside = [*MODULE.split("\n"), *inside]
        parameters = {line.strip().partition(":")[0] for line in inside}
        inside[:0] = [line for line in self._attributes(node) if line.strip().partition(":")[0] not in parameters]
        return [f"class {node.name}({bases}):" if bases else f"class {node.name}:", *(inside or ["    ..."])]

    def _member(self, owner: str, node: ast.stmt) -> list[str]:
        if (isinstance(node, ast.FunctionDef) and node.name not in HIDDEN
                and (node.name.startswith("__") or not node.name.startswith("_"))):
            marks = [f"    @{ast.unparse(d)}" for d in node.decorator_list
                     if ast.unparse(d).partition(".")[0] in SHOWN or ".setter" in ast.unparse(d)]
            return [*marks, f"    {self._header(node)}"]
        if isinstance(node, ast.AnnAssign) and not ast.unparse(node.target).startswith("_"):
            return [f"    {ast.unparse(node.target)}: {ast.unparse(node.annotation)}"]
        if (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
                and ast.unparse(node.value.func) == "settings"):
            return self._constructor(owner, node.value)
        return []

    def _constructor(self, owner: str, call: ast.Call) -> list[str]:
        """Return what `__init__ = settings(…)` makes: the constructor, and an attribute for each setting."""
        required = [ast.literal_eval(a) for a in call.args]
        kinds = {name: OF_CLASS.get((owner, name)) or SETTINGS.get(name) or "Any" for name in required if name != "*"}
        shown = [name if name == "*" else f"{name}: {kinds[name]}" for name in required]
        for keyword in call.keywords:
            name, default = str(keyword.arg), keyword.value
            kinds[name] = OF_CLASS.get((owner, name)) or SETTINGS.get(name) or _kind_of(default)
            shown.append(f"{name}: {kinds[name]} = {ast.unparse(default)}")
        if "*" in required and required[-1] != "*":
            raise ValueError(f"{owner}: * must be the last name without default")
        plain = [f"    {name}: {kind}" for name, kind in kinds.items() if kind in ("int", "float", "bool", "str")]
        return [*plain, f"    def __init__({', '.join(['self', *shown])}) -> None: ..."]

    @staticmethod
    def _attributes(node: ast.ClassDef) -> list[str]:
        """Return the parameters that a constructor declares, and the arguments that it keeps."""
        found = []
        for method in node.body:
            if not (isinstance(method, ast.FunctionDef) and method.name == "__init__"):
                continue
            kinds = {a.arg: ast.unparse(a.annotation) for a in method.args.args if a.annotation is not None}
            for inner in ast.walk(method):
                if isinstance(inner, ast.Call) and ast.unparse(inner.func) == "declare":
                    found += [f"    {k.arg}: Parameter" for k in inner.keywords if k.arg is not None]
                elif isinstance(inner, ast.Assign):
                    for target, value in _pairs(inner):
                        kind = kinds.get(value, "")
                        if target == f"self.{value}" and kind in ("int", "float", "bool", "str"):
                            found.append(f"    {value}: {kind}")
        return list(dict.fromkeys(found))

    @staticmethod
    def _header(node: ast.FunctionDef) -> str:
        result = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
        return f"def {node.name}({ast.unparse(node.args)}){result}: ..."


def _pairs(node: ast.Assign) -> list[tuple[str, str]]:
    """Return (target, value) of an assignment, of a tuple the pairs."""
    target, value = node.targets[0], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return [(ast.unparse(t), ast.unparse(v)) for t, v in zip(target.elts, value.elts, strict=False)]
    return [(ast.unparse(target), ast.unparse(value))]


def _kind_of(default: ast.expr) -> str:
    value = default.value if isinstance(default, ast.Constant) else None
    return (type(value).__name__ if isinstance(value, (bool, int, float, str)) else "float"
            if isinstance(default, ast.BinOp) else "Any")
