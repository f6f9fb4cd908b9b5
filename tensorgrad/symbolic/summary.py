"""The table of a model's values."""
from __future__ import annotations

from typing import Any


def summary(model: Any) -> str:
    """Return the text that `GraphModule.summary` prints. A parameter that several layers share is counted once."""
    program = model._described()
    values = program.values
    number = {node: str(k) for k, node in enumerate(values, 1)}
    ends = set(program.output_node().all_input_nodes)
    seen: set[int] = set()
    rows = [("", "Layer", "Output shape", "Params", "Parent")]
    for node in values:
        own = {id(p): p for p in getattr(model, node.target).parameters() if id(p) not in seen} if node.op == "call_module" else {}
        seen.update(own)
        rows.append((f"{number[node]}{'*' if node in ends else ''}", node.meta["label"], str(node.meta["shape"]), str(sum(p.numel() for p in own.values())),
                     ",".join(number[parent] for parent in node.all_input_nodes if parent in number)))
    widths = [max(len(row[k]) for row in rows) + 3 for k in range(5)]
    lines = ["".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows]
    length = max(map(len, lines))
    total = sum(p.numel() for p in model.parameters())
    trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
    return "\n".join(["_" * length, lines[0], "=" * length, *lines[1:], "=" * length, f"Total params: {total}", f"Trainable params: {trained}",
                      f"Non-trainable params: {total - trained}", "_" * length])
