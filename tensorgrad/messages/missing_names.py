"""The errors for names that this package lacks: they name the package, and suggest the nearest names.

Suggestions are computed when the message is read, so that `hasattr` stays fast.
"""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

PACKAGE = "tensorgrad"
# Other namespaces to search for a missing name.
NAMESPACES = ("", ".nn", ".nn.functional", ".optim", ".linalg", ".special", ".fft", ".func", ".utils.data",
              ".distributions", ".autograd", ".nn.init",
              ".nn.utils", ".optim.lr_scheduler")
WHY = {module: why for modules, why in {
    "ao.nn nn.intrinsic nn.qat nn.quantizable nn.quantized": "there are no quantized tensors",
    "ao.ns ao.pruning": "there are no quantized tensors; torch.nn.utils.prune prunes modules",
    "utils.cpp_backtrace utils.hipify utils.jit _inductor": "no C++ or Triton is written and compiled; torch.compile "
                                                            "runs graphs on kernels that are there",
    "backends._coreml backends._nnapi utils.bundled_inputs utils.mobile_optimizer": "programs are not compiled for "
                                                                                    "phones",
    "utils.mkldnn": "there is one layout of tensors",
    "cuda.gds cuda.green_contexts cuda.nccl cuda.tunable": "CuPy is what runs on CUDA",
    "distributed.fsdp distributed.pipelining distributed.tensor distributed._shard distributed._composable":
        "a model is whole in each process; torch.nn.parallel.DistributedDataParallel trains copies of it, and "
        "torch.distributed.optim.ZeroRedundancyOptimizer spreads the state of its optimizer",
    "distributed.rpc distributed.autograd distributed.nn.api":
        "processes exchange tensors and objects: torch.distributed.send, recv, send_object_list, and collectives; "
        "torch.distributed.nn has gradients",
    "distributed.checkpoint.quantized_hf_storage": "distributed.checkpoint.hf_storage reads .safetensors files",
    "distributed.checkpoint.optimizer": "torch.distributed.checkpoint.state_dict.get_optimizer_state_dict is for "
                                        "optimizers that are spread over ranks",
    "distributed.elastic distributed.launcher": "python -m tensorgrad.distributed.run starts the processes of a job",
    "utils.data.datapipes.dataframe utils.data.datapipes.utils.decoder": "pipes hold any samples: decode them, or make "
                                                                         "tables of them, in a function for `map`",
}.items() for module in modules.split()}


def nearest(module: str, name: str) -> list[str]:
    """Return up to three names that a program may have meant by `module.name`.

    >>> nearest("tensorgrad.nn", "Liner")[0], nearest("tensorgrad", "Linear")[0]
    ('torch.nn.Linear', 'torch.nn.Linear')
    """
    from difflib import get_close_matches
    from importlib import import_module

    def public(namespace: str) -> dict[str, str]:
        found = import_module(namespace)
        return {n.lower(): n for n in (*dir(found), *getattr(found, "__all__", ()))
                if not n.startswith("_") or name.startswith("_")}

    here, found = public(module) if module in sys.modules else {}, []
    if name.lower() in here:
        found.append(f"{module}.{here[name.lower()]}")
    for namespace in NAMESPACES:
        if (same := public(PACKAGE + namespace).get(name.lower())) is not None:
            found.append(f"{PACKAGE}{namespace}.{same}")
    found += [f"{module}.{here[n]}" for n in get_close_matches(name.lower(), here, 3, 0.75)]
    return [n.replace(PACKAGE, "torch", 1) for n in dict.fromkeys(found)][:3]


def hint(module: str, name: str) -> str:
    """Return the reason why there is no `module.name`, or suggestions, as " (tensorgrad has …)"; "" if there are
    none.
    """
    path = f"{module}.{name}".partition(".")[2]
    why = next((WHY[above] for above in (path[:end] for end, c in enumerate(path + ".") if c == ".") if above in WHY),
               None)
    found = f"none: {why}" if why else ", ".join(nearest(module, name))
    return f" (tensorgrad has {found})" if found else ""


class MissingName(AttributeError):
    """A namespace of this package does not have a name."""

    def __init__(self, module: str, name: str) -> None:
        # since `obj` is set, the interpreter adds no suggestion to ours
        super().__init__(module, name, obj=sys.modules.get(module))

    def __reduce__(self) -> Any:
        return AttributeError, (str(self),)

    def __str__(self) -> str:
        module, name = self.args
        return f"module {module!r} has no attribute {name!r}{hint(module, name)}"


MissingName.__name__ = MissingName.__qualname__ = "AttributeError"       # the name in tracebacks
MissingName.__module__ = "builtins"


def missing(module: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a namespace without lazily loaded names."""
    def __getattr__(name: str) -> Any:
        raise MissingName(module, name)
    return __getattr__
