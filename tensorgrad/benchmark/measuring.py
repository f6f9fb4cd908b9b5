"""A process that runs a model with one library: `python measuring.py serve LIBRARY THREADS` answers requests, and
`python measuring.py first LIBRARY THREADS MODEL INPUTS` runs the model once and says how long that took.

The program runs as a file, not as a module of the package, so that processes of other libraries never import this one.
"""
from __future__ import annotations

import builtins
import gc
import importlib
import importlib.util
import inspect
import json
import os
import pickle
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple


class Problem(Exception):
    """Why a model cannot be measured, for the user."""


# ── models ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def program(path: str, torch: ModuleType) -> ModuleType:
    """Return the module that a file of Python defines, with a library for what it imports as torch or tensorgrad."""
    own = torch.__name__.partition(".")[0]
    if own == "tensorgrad":
        importlib.import_module("tensorgrad.as_torch.install").install_as_torch()

    def imported(module: str, *context: Any) -> Any:
        root, dot, rest = module.partition(".")
        return __import__(f"torch{dot}{rest}" if root == "tensorgrad" and own == "torch" else module, *context)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    loaded = sys.modules[Path(path).stem] = ModuleType(Path(path).stem)
    vars(loaded).update(__file__=os.path.abspath(path), __builtins__={**vars(builtins), "__import__": imported})
    exec(compile(Path(path).read_text(encoding="utf-8"), path, "exec", dont_inherit=True), loaded.__dict__)
    return loaded


def made(model: str, torch: ModuleType) -> tuple[Any, tuple[Any, ...]]:
    """Return (module in evaluation mode, its inputs, if the program says them) for `file.py:function`."""
    path, _, name = model.rpartition(":")
    torch.manual_seed(0)
    names = vars(program(path, torch))
    if name not in names:
        known = [key for key, value in names.items() if inspect.isfunction(value)
                 and value.__module__ == Path(path).stem]
        raise Problem(f"{path} has no function {name!r}: it defines {', '.join(known) or 'none'}")
    found = names[name]
    for _ in range(2):              # the function of a module and its inputs, or of such a function
        if callable(found) and not isinstance(found, torch.nn.Module):
            found = found()
    module, *inputs = found if isinstance(found, (tuple, list)) and found else (found,)
    inputs = list(inputs[0]) if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)) else inputs
    if not isinstance(module, torch.nn.Module) or not all(isinstance(x, torch.Tensor) for x in inputs):
        raise Problem(f"{model} returned {described(found)}; a module, or (module, inputs), was expected")
    return module.eval(), tuple(inputs)


def described(found: Any) -> str:
    if isinstance(found, (tuple, list)):
        return f"a {type(found).__name__} of ({', '.join(type(part).__name__ for part in found)})"
    return f"{found!r:.60}" if found is None or isinstance(found, (int, float, str)) else f"a {type(found).__name__}"


def flat(tree: Any) -> list[Any]:
    """Return the tensors of nested results as arrays, in order."""
    if isinstance(tree, dict):
        tree = list(tree.values())
    if isinstance(tree, (tuple, list)):
        return [array for part in tree for array in flat(part)]
    return [tree.detach().numpy()] if hasattr(tree, "detach") else [tree] if hasattr(tree, "dtype") else []


# ── libraries ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Tensors:
    """A library with PyTorch's interface."""

    def __init__(self, name: str, threads: int, compiled: bool = False) -> None:
        self.torch = importlib.import_module(name)
        if name == "torch" and "tensorgrad" in sys.modules:
            raise Problem("not installed: `import torch` is tensorgrad here")
        self.torch.set_num_threads(threads)
        self.version, self.compiled = f"{name} {self.torch.__version__}", compiled
        if name == "tensorgrad" and not self.torch.backends.compiled.is_enabled():
            self.version += " without compiled kernels"
        self.module: Any = None
        self.model: Any = None

    def load(self, model: str, state: str = "") -> tuple[Any, ...]:
        """Take a model, with parameters from a file if there is one; return the inputs that its program has."""
        if model.endswith(".onnx"):
            module, inputs = self.torch.onnx.load(model), ()
        else:
            module, inputs = made(model, self.torch)
            if state:
                module.load_state_dict(self.torch.load(state, weights_only=True))
        self.module = module
        self.model = self.torch.compile(module) if self.compiled else module
        return inputs

    def case(self, arrays: list[Any]) -> Callable[[], Any]:
        """Return a function that runs the model once."""
        model, no_grad, inputs = self.model, self.torch.no_grad, tuple(map(self.torch.from_numpy, arrays))

        def run() -> Any:
            with no_grad():
                return model(*inputs)
        return run

    def export(self, arrays: list[Any], path: str) -> None:
        """Write the model as an ONNX file, with any batch where that can be written."""
        inputs = tuple(map(self.torch.from_numpy, arrays))
        names = [f"input_{i}" for i in range(len(inputs))]
        axes = {name: {0: "batch"} for name, x in zip(names, inputs, strict=True)
                if x.ndim and len(x) == len(inputs[0])}
        try:
            self.torch.onnx.export(self.module, inputs, path, input_names=names, dynamic_axes=axes)
        except Exception:                   # sizes that a formula of the batch does not give: this batch alone
            self.torch.onnx.export(self.module, inputs, path, input_names=names)


class OnnxRuntime:
    """onnxruntime, on ONNX files."""

    def __init__(self, threads: int) -> None:
        self.library, self.threads = importlib.import_module("onnxruntime"), threads
        self.version = f"onnxruntime {self.library.__version__}"

    def load(self, model: str, state: str = "") -> tuple[Any, ...]:
        options = self.library.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = self.threads, 1
        self.session = self.library.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return ()

    def case(self, arrays: list[Any]) -> Callable[[], Any]:
        feeds = {given.name: array for given, array in zip(self.session.get_inputs(), arrays, strict=True)}
        return lambda: self.session.run(None, feeds)


class OpenVino:
    """OpenVINO, on ONNX files, float32 throughout."""

    def __init__(self, threads: int) -> None:
        self.library, self.threads = importlib.import_module("openvino"), threads
        self.version = f"openvino {self.library.__version__.partition('-')[0]}"

    def load(self, model: str, state: str = "") -> tuple[Any, ...]:
        settings = {"INFERENCE_NUM_THREADS": self.threads, "PERFORMANCE_HINT": "LATENCY",
                    "INFERENCE_PRECISION_HINT": "f32"}
        self.compiled = self.library.Core().compile_model(model, "CPU", settings)
        return ()

    def case(self, arrays: list[Any]) -> Callable[[], Any]:
        request, inputs = self.compiled.create_infer_request(), dict(enumerate(arrays))

        def run() -> Any:
            found = request.infer(inputs)
            return [found[i] for i in range(len(found))]
        return run


LIBRARIES: dict[str, Callable[[int], Any]] = {
    "eager": lambda threads: Tensors("tensorgrad", threads),
    "compiled": lambda threads: Tensors("tensorgrad", threads, compiled=True),
    "pytorch": lambda threads: Tensors("torch", threads),
    "onnxruntime": OnnxRuntime,
    "openvino": OpenVino,
}


# ── requests ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class Shape(NamedTuple):
    """An input as the command line tells it: `name=1,3,224,224:int64`."""

    name: str
    sizes: tuple[int, ...]
    dtype: str


class Worker:
    """The requests that a process answers: a method each."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.run: Any = None

    def load(self, model: str, state: str = "") -> list[Any]:
        return [x.detach().numpy() for x in self.library.load(model, state)]

    def signatures(self) -> list[tuple[str, Any, str]]:
        """Return (name, sizes, dtype) of each input of an ONNX model."""
        return [(given.name, given.shape, str(given.dtype).rpartition(".")[2]) for given in self.library.module.inputs]

    def save(self, path: str) -> None:
        self.library.torch.save(self.library.module.state_dict(), path)

    def export(self, arrays: list[Any], path: str) -> None:
        self.library.export(arrays, path)

    def make(self, arrays: list[Any]) -> list[Any]:
        """Take inputs; return the results of two runs."""
        self.run = None
        gc.collect()
        self.run = self.library.case(arrays)
        self.run()
        return [array.copy() for array in flat(self.run())]

    def block(self, runs: int) -> float:
        """Return the time of one run, measured over a block of them."""
        run, clock = self.run, time.perf_counter
        gc.disable()
        try:
            start = clock()
            for _ in range(runs):
                run()
            return (clock() - start) / runs
        finally:
            gc.enable()

    def fill(self, seconds: float) -> int:
        """Return how many runs fill a block."""
        runs = 1
        while (taken := self.block(runs) * runs) <= seconds / 4:
            runs *= 4
        return max(1, int(runs * seconds / taken))

    def answer(self, request: str, *args: Any) -> tuple[Any, str]:
        """Return (result of a request or None, error message)."""
        try:
            return getattr(self, request)(*args), ""
        except Problem as problem:
            return None, str(problem)
        except (Exception, SystemExit) as error:
            if "TENSORGRAD_DEBUG" in os.environ:
                traceback.print_exc()
            return None, f"failed: {type(error).__name__}: {error}".partition("\n")[0]


def serve(name: str, threads: int) -> None:
    requests, answers, sys.stdout = sys.stdin.buffer, sys.stdout.buffer, sys.stderr     # what models print is no answer
    try:
        library, problem = LIBRARIES[name](threads), ""
    except Problem as found:
        library, problem = None, str(found)
    except Exception as error:
        library, problem = None, f"failed: {type(error).__name__}: {error}".partition("\n")[0]
    worker = Worker(library)
    pickle.dump({"version": getattr(library, "version", "")}, answers)
    answers.flush()
    while True:
        try:
            request = pickle.load(requests)
        except EOFError:
            return
        pickle.dump((None, problem) if problem else worker.answer(*request), answers)
        answers.flush()


def first(name: str, threads: int, model: str, inputs: str) -> None:
    """Print when this process began, had its library, and had the first result; and the most memory that it held."""
    library = LIBRARIES[name](threads)
    imported = time.time()
    numpy = importlib.import_module("numpy")
    with numpy.load(inputs, allow_pickle=False) as file:
        arrays = [file[key] for key in file.files]
    library.load(model)
    flat(library.case(arrays)())
    done = time.time()
    print(json.dumps({"imported": imported, "done": done, "peak": peak()}))


def peak() -> int | None:
    """Return the most memory that this process held, in bytes; None where that is not known."""
    try:
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
    except OSError:
        return None


def main(what: str, name: str, threads: str, *rest: str) -> None:
    if hasattr(os, "sched_setaffinity"):                # what every library has to heed, whatever else it reads
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:int(threads)])
    if what == "serve":
        serve(name, int(threads))
    else:
        first(name, int(threads), *rest)


if __name__ == "__main__":
    main(*sys.argv[1:])
