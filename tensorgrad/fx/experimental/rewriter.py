"""Trace programs whose asserts become calls of `torch._assert`. https://pytorch.org/docs/stable/fx.html"""
from __future__ import annotations

import ast
import copy
import inspect
import textwrap
from types import FunctionType
from typing import Any

from ...graph.names import package
from ...nn import Module
from .._symbolic_trace import Tracer

__all__ = ["AST_Rewriter", "RewritingTracer"]


class AST_Rewriter(ast.NodeTransformer):         # noqa: N801  PyTorch's name
    """Rewrites a function's asserts, and annotated assignments, as calls."""

    def rewrite(self, fn: FunctionType) -> Any:
        """Return a function of the same names whose asserts are calls."""
        tree = self.visit(ast.parse(textwrap.dedent(inspect.getsource(fn))))
        # the function keeps its globals, in which functions are wrapped; an outer function has what asserts call
        outer = ast.parse(f"def outer(_torch_for_asserts):\n    return {fn.__name__}")
        outer.body[0].body[:0] = tree.body                              # type: ignore[attr-defined]
        code = compile(ast.fix_missing_locations(outer), fn.__code__.co_filename, "exec", dont_inherit=True)
        made: dict[str, Any] = {}
        exec(code, fn.__globals__, made)
        new = inspect.unwrap(made["outer"](package()))
        rewritten = FunctionType(new.__code__, fn.__globals__, fn.__name__, fn.__defaults__, new.__closure__)
        rewritten.__dict__.update(fn.__dict__)
        rewritten.__annotations__ = fn.__annotations__
        return rewritten

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Return a call for an assert."""
        call = ast.parse("_torch_for_asserts._assert()", mode="eval").body
        assert isinstance(call, ast.Call)
        call.args = [node.test, node.msg or ast.Constant("")]
        return ast.copy_location(ast.Expr(call), node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Return an assignment to a name whose value is annotated by `fx.annotate`."""
        if node.value is None or not isinstance(node.target, ast.Name):
            return node
        call = ast.parse("_torch_for_asserts.fx.annotate.annotate()", mode="eval").body
        assert isinstance(call, ast.Call)
        call.args = [node.value, node.annotation]
        return ast.copy_location(ast.Assign([node.target], call), node)


class RewritingTracer(Tracer):
    """A tracer that records asserts.

    >>> class Checked(Module):
    ...     def forward(self, x):
    ...         assert x.shape[0] > 1, "rows"
    ...         return x
    """

    def trace(self, root: Any, concrete_args: Any = None) -> Any:
        """Return the graph of a module or function, with its asserts."""
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(root: Any) -> Any:
    """Return a function, or a copy of a module and of those in it, with asserts as calls."""
    if not isinstance(root, Module):
        return AST_Rewriter().rewrite(root)

    def rewritten(module: Module) -> Module:
        class RewrittenModule(type(module)):        # type: ignore[misc]
            pass
        new = object.__new__(RewrittenModule)
        new.__dict__.update(copy.copy(module.__dict__))
        RewrittenModule.__module__, RewrittenModule.__name__ = type(module).__module__, type(module).__name__
        if "forward" in vars(type(module)):
            RewrittenModule.forward = AST_Rewriter().rewrite(type(module).forward)
        new.__dict__["_modules"] = {name: child if child is None or child.__module__.startswith("tensorgrad.")
                                    else rewritten(child) for name, child in module._modules.items()}
        return new
    return rewritten(root)
