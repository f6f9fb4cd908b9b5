"""ONNX's own tests of its operators, run on models as this package loads them.

    python tests/campaign/onnx_nodes.py FOLDER --why

FOLDER is `onnx/backend/test/data/node` of the package onnx 1.19.1 (`pip install --target SOMEWHERE onnx==1.19.1`).
Each test is a model with inputs and outputs. Numbers must agree as ONNX's own runner asks: within rtol 1e-3 and atol
1e-7. Tests of operators of version 24, of text, and of the domains ai.onnx.ml and ai.onnx.preview.training are not
counted.
"""
from __future__ import annotations

import argparse
import io
import re
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import tensorgrad as torch
from tensorgrad.core.dispatch import wrap
from tensorgrad.onnx.errors import UnsupportedModelError
from tensorgrad.onnx.reading.tensors import Files
from tensorgrad.onnx.reading.wire import read
from tensorgrad.storage.cpu import NumpyStorage

NEWEST = 23


def value(onnx: Any, path: Path, proto: Any) -> Any:
    """Return the tensor, list or None of a file of data."""
    kind = proto.type.WhichOneof("value")
    data = path.read_bytes()
    if kind == "tensor_type":
        found = onnx.TensorProto.FromString(data)
        if proto.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16:       # written as uint16
            found.data_type = onnx.TensorProto.BFLOAT16
        return tensor(onnx, found)
    if kind == "sequence_type":
        return [tensor(onnx, each) for each in onnx.SequenceProto.FromString(data).tensor_values]
    found = onnx.OptionalProto.FromString(data)
    if found.elem_type == onnx.OptionalProto.TENSOR:
        return tensor(onnx, found.tensor_value)
    if found.elem_type == onnx.OptionalProto.SEQUENCE:
        return [tensor(onnx, each) for each in found.sequence_value.tensor_values]
    return None


def tensor(onnx: Any, proto: Any) -> Any:
    """Return the tensor of a message as this package reads it, checked against the package onnx where that can."""
    data = io.BytesIO(proto.SerializeToString())
    array = Files(data, None).array(read(data, "Tensor"))
    other = onnx.numpy_helper.to_array(proto)
    if array.dtype == other.dtype and array.dtype.kind != "V":
        np.testing.assert_array_equal(array, other)
    return wrap(array, NumpyStorage())


def agree(found: Any, wanted: Any) -> None:
    """Raise AssertionError if a result differs from the file's."""
    if isinstance(wanted, list):
        assert isinstance(found, list) and len(found) == len(wanted), f"a list of {len(wanted)} is wanted"
        for a, b in zip(found, wanted, strict=True):
            agree(a, b)
        return
    if wanted is None:
        assert found is None
        return
    assert found.dtype == wanted.dtype, f"{found.dtype} instead of {wanted.dtype}"
    assert found.shape == wanted.shape, f"shape {list(found.shape)} instead of {list(wanted.shape)}"
    a, b = (x.detach() if x.dtype.itemsize > 2 or not x.is_floating_point() else x.detach().float()
            for x in (found, wanted))
    np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-3, 1e-7)


def run(onnx: Any, folder: Path) -> str:
    """Return the outcome of a test: "passed", "not counted", or the error."""
    proto = onnx.load(folder / "model.onnx")
    text = any(i.type.tensor_type.elem_type == onnx.TensorProto.STRING
               or i.type.sequence_type.elem_type.tensor_type.elem_type == onnx.TensorProto.STRING
               for i in (*proto.graph.input, *proto.graph.output))
    if text or any(o.domain not in ("", "ai.onnx") or o.version > NEWEST for o in proto.opset_import):
        return "not counted"
    try:
        model = torch.onnx.load(folder / "model.onnx")
        for data in sorted(folder.glob("test_data_set_*")):
            inputs = [value(onnx, data / f"input_{i}.pb", each) for i, each in enumerate(proto.graph.input)]
            wanted = [value(onnx, data / f"output_{i}.pb", each) for i, each in enumerate(proto.graph.output)]
            found = model(*inputs)
            if re.search("bernoulli|training_dropout_(default|mask|default_mask)?$|training_dropout$", folder.name):
                continue
            for a, b in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
                agree(a, b)
    except UnsupportedModelError as error:
        return f"unsupported: {', '.join(error.operators)}"
    except Exception as error:
        notes = [note for note in getattr(error, "__notes__", ()) if note.startswith("While")]
        return f"{type(error).__name__}: {' '.join(str(error).split())[:160]} {' '.join(notes)[:80]}"
    return "passed"


def main() -> None:
    import onnx
    import onnx.numpy_helper
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--why", action="store_true")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    outcomes = {folder.name: run(onnx, folder) for folder in sorted(options.folder.iterdir())
                if options.only in folder.name}
    reasons: dict[str, list[str]] = {}
    for name, outcome in outcomes.items():
        reasons.setdefault(outcome, []).append(name)
    if options.why:
        for outcome, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
            if outcome not in ("passed", "not counted"):
                print(f"{len(names):4} {outcome}\n     {', '.join(names[:6])}")
    counted = Counter(outcome if outcome in ("passed", "not counted") else "failed" for outcome in outcomes.values())
    print(f"onnx_nodes: {counted['passed']} of {counted['passed'] + counted['failed']} tests pass, "
          f"{counted['not counted']} are not counted")


if __name__ == "__main__":
    main()
