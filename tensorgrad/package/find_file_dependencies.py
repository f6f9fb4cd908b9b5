"""The modules that source code imports, by its syntax: the code is not run."""
from __future__ import annotations

import ast
from typing import Any


def find_files_source_depends_on(src: str, package: str) -> list[tuple[str, str | None]]:
    """Return (module, name) of each import in a source; name is None for `import module` and `from module import *`.

    >>> find_files_source_depends_on("import a.b as c\\nfrom . import d\\n__import__('e')", "here")
    [('a.b', None), ('here', 'd'), ('e', None)]
    """
    found: dict[tuple[str, str | None], None] = {}
    for node in ast.walk(ast.parse(src)):
        if isinstance(node, ast.Import):
            found.update(dict.fromkeys((alias.name, None) for alias in node.names))
        elif isinstance(node, ast.ImportFrom):
            module = absolute(node.module or "", package, node.level)
            found.update(dict.fromkeys((module, None if alias.name == "*" else alias.name) for alias in node.names))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "__import__":
            found.update(dict.fromkeys(_of_call(node, package)))
    return list(found)


def absolute(name: str, package: str, level: int) -> str:
    """Return the full name of a relative import. ValueError if it leaves the outermost package."""
    if not level:
        return name
    parts = package.split(".") if package else []
    if level > len(parts):
        raise ValueError("attempted relative import beyond top-level package")
    return ".".join([*parts[:len(parts) - level + 1], *([name] if name else [])])


def _of_call(node: ast.Call, package: str) -> list[tuple[str, str | None]]:
    """Return the imports of a call of `__import__`; none if its arguments are not literals."""
    given: dict[str | None, ast.expr] = dict(zip(("name", "globals", "locals", "fromlist", "level"), node.args))
    given.update((keyword.arg, keyword.value) for keyword in node.keywords)
    try:
        name, names, level = (_literal(given, *each) for each in (("name", None), ("fromlist", ()), ("level", 0)))
        module = absolute(name, package, level)
        return [(module, each) for each in names] or [(module, None)]
    except (ValueError, TypeError, AttributeError):
        return []


def _literal(given: dict[str | None, ast.expr], name: str, default: Any) -> Any:
    return ast.literal_eval(given[name]) if name in given else default
