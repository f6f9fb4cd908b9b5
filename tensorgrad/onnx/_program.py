"""The result of an export: a model to inspect, run and save."""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from ..api import from_numpy
from ..core.tape import TensorBase
from ..messages.extras import install
from ..serialization._atomic import replacing
from ..utils._pytree import tree_leaves
from .errors import OnnxExporterError

LIMIT = 2_000_000_000        # bytes: a protobuf is limited to 2 GiB


class ONNXProgram:
    """An exported model. https://pytorch.org/docs → torch.onnx.ONNXProgram"""

    def __init__(self, model_proto: Any) -> None:
        self._model = model_proto
        self._session: Any = None

    @property
    def model_proto(self) -> Any:
        """The model, as an `onnx.ModelProto`."""
        return self._model

    @property
    def model(self) -> Any:
        return self._model

    def save(self, destination: Any, *, include_initializers: bool = True, keep_initializers_as_inputs: bool = False,
             external_data: bool | None = None) -> None:
        """Write the model to a file, atomically; above 2 GB, or with `external_data`, the tensors are in a second
        file beside it."""
        onnx = the_onnx()
        model = self._model
        if not include_initializers or keep_initializers_as_inputs:
            model = onnx.ModelProto()
            model.CopyFrom(self._model)
            given = {info.name for info in model.graph.input}
            model.graph.input.extend(onnx.helper.make_tensor_value_info(t.name, t.data_type, t.dims)
                                     for t in model.graph.initializer if t.name not in given)
            if not include_initializers:
                del model.graph.initializer[:]
        if hasattr(destination, "write"):
            destination.write(model.SerializeToString())
        elif external_data or model.ByteSize() > LIMIT:
            _save_apart(onnx, model, os.fspath(destination))
        else:
            with replacing(destination) as file:
                file.write(model.SerializeToString())

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[Any]:
        """Run the model on tensors, with onnxruntime if it is installed, else with ONNX's reference implementation."""
        if self._session is None:
            self.initialize_inference_session()
        return self._run(self._session, args, kwargs)

    def call_reference(self, *args: Any, **kwargs: Any) -> Sequence[Any]:
        """Run the model on tensors with ONNX's reference implementation."""
        from onnx.reference import ReferenceEvaluator
        return self._run(ReferenceEvaluator(self._model), args, kwargs)

    def _run(self, session: Any, args: Any, kwargs: Any) -> Sequence[Any]:
        names = [info.name for info in self._model.graph.input]
        tensors = [leaf.detach().numpy() for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, TensorBase)]
        if len(tensors) != len(names):
            raise OnnxExporterError(f"the model has {len(names)} inputs ({', '.join(names)}), not {len(tensors)}")
        return tuple(from_numpy(array.copy()) for array in session.run(None, dict(zip(names, tensors, strict=True))))

    def initialize_inference_session(self, initializer: Any = None) -> None:
        """Create the session that runs the model."""
        data = self._model.SerializeToString()
        if initializer is not None:
            self._session = initializer(data)
            return
        try:
            import onnxruntime
        except ImportError:
            from onnx.reference import ReferenceEvaluator
            self._session = ReferenceEvaluator(self._model)
        else:
            self._session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])

    def release(self) -> None:
        """Drop the session."""
        self._session = None

    def apply_weights(self, state_dict: dict[str, Any]) -> None:
        """Replace values of initializers, by name."""
        onnx = the_onnx()
        for tensor in self._model.graph.initializer:
            if tensor.name in state_dict:
                tensor.CopyFrom(onnx.numpy_helper.from_array(state_dict[tensor.name].detach().numpy(), tensor.name))
        self._session = None

    def optimize(self) -> None:
        """Do nothing: constants are folded as the graph is written."""

    def __repr__(self) -> str:
        graph = self._model.graph
        return (f"ONNXProgram(inputs={[i.name for i in graph.input]}, outputs={[o.name for o in graph.output]}, "
                f"{len(graph.node)} nodes)")


def _save_apart(onnx: Any, model: Any, path: str) -> None:
    """Write the graph to a file and its tensors to another; both are complete before either is renamed into place."""
    apart = onnx.ModelProto()
    apart.CopyFrom(model)
    with replacing(f"{path}.data") as data:
        for tensor in apart.graph.initializer:
            if len(tensor.raw_data) < 1024:
                continue
            tensor.data_location = onnx.TensorProto.EXTERNAL
            del tensor.external_data[:]
            for key, value in (("location", f"{os.path.basename(path)}.data"), ("offset", data.tell()),
                               ("length", len(tensor.raw_data))):
                tensor.external_data.add(key=key, value=str(value))
            data.write(tensor.raw_data)
            tensor.ClearField("raw_data")
        with replacing(path) as file:
            file.write(apart.SerializeToString())


def the_onnx() -> Any:
    """Return the onnx package."""
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise ImportError(f"torch.onnx.export needs the onnx package: {install('onnx')}") from error
    return onnx
