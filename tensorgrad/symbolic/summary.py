"""`summary` of symbolic models: the table of their values, in the layout of the package pytorch-symbolic."""
from __future__ import annotations

from typing import Any

from ..messages import tables


def summary(model: Any) -> str:
    """Return the text that `GraphModule.summary` prints. A parameter that several layers share is counted once."""
    program = model._described()
    values = program.values
    number = {node: str(k) for k, node in enumerate(values, 1)}
    ends = set(program.output_node().all_input_nodes)
    seen: set[int] = set()
    rows = [("", "Layer", "Output shape", "Params", "Parent")]
    for node in values:
        own = ({id(p): p for p in getattr(model, node.target).parameters() if id(p) not in seen}
               if node.op == "call_module" else {})
        seen.update(own)
        rows.append((f"{number[node]}{'*' if node in ends else ''}", node.meta["label"], str(node.meta["shape"]),
                     str(sum(p.numel() for p in own.values())),
                     ",".join(number[parent] for parent in node.all_input_nodes if parent in number)))
    total, trained = [sum(p.numel() for p in model.parameters() if p.requires_grad or every) for every in (True, False)]
    head, *lines = tables.table(rows, gap="   ", end="   ")
    return tables.summary(head, lines, tables.parameters(total, trained, ""), width=len(head), outer="_")
