"""Find the ops and functions that each public function's source names, and the reasons why names of PyTorch are
absent.
"""
from __future__ import annotations

import ast
import inspect
import re
import textwrap
from functools import cache
from types import FunctionType
from typing import Any

from ..ops.base import OPS, Op

# Absent names of PyTorch: (their purpose, and why they are absent) → patterns of full names.
ABSENT = {
    "quantized tensors":
        r"(Tensor\.)?q_\w+|quantize\w*|q?u?int\d+(x\d)?|fbgemm_\w+|(Tensor\.)?int_repr"
        r"|per_\w+_(affine|symmetric)\w*|"
        r"choose_qparams\w*|fused_moving_avg_obs_fake_quant|empty_quantized|(Tensor\.)?qscheme"
        r"|nn\.functional\.\w*scaled\w*_mm|nn\.functional\.grouped_mm|"
        r"nn\.functional\.(ScalingType|SwizzleType)",
    "dtypes of other sizes than NumPy's numbers and bfloat16": r"bit|bits\w+|float[48]_\w+",
    "methods of nested tensors alone": r"Tensor\.to_padded_tensor",
    "TorchScript, tracing and compilers: a program runs as it is written":
        r"\w*Type|Script(?!Function$|Module$)\w+|LiteScriptModule|Graph\w*|\w+Storage(Context|Tensor)|AliasDb"
        r"|Argument\w*|Benchmark\w+|Block|CallStack|Capsule|Code|"
        r"CompilationUnit|"
        r"ConcreteModule\w+|DeepCopyMemoTable|DispatchKey\w*|ErrorReport|ExcludeDispatchKeyGuard|ExecutionPlan"
        r"|FatalError|FileCheck|FunctionSchema|Gradient|"
        r"IODescriptor|JITException|LockingLogger|LoggerBase|ModuleDict|Node|NoopLogger|OperatorInfo|ParameterDict"
        r"|BufferDict|StaticModule|"
        r"ThroughputBenchmark|TracingState|Type|Use|Value|AVG|SUM|AggregationType|import_ir_\w+|merge_type_\w+"
        r"|parse_\w+|unify_type_list|"
        r"Serialization\w+|Deserialization\w+|while_loop|sym_(constrain_range\w*|fresh_size)|PRIVATE_OPS"
        r"|classproperty|"
        r"USE_\w+|func\.functionalize|func\.debug_unwrap",
    "kernels of other vendors and devices":
        r"cudnn_\w+|miopen_\w+|mkldnn_\w+|is_vulkan_available"
        r"|Tensor\.to_mkldnn|\w+_autocast_(ipu|xla)_\w+|"
        r"has_(lapack|mkl|openmp|spectral)|compiled_with_cxx11_abi|profiler_\w+|prepare_multiprocessing_environment|"
        r"AcceleratorError",
    "parts of PyTorch's own implementation":
        r"batch_norm_(?!update)\w+|native_norm"
        r"|(Tensor\.)?slice_inverse|quantized_\w+|"
        r"Tensor\.to_dense|(random\.)?thread_safe_generator|CompleteArgumentSpec|"
        r"nn\.functional\.(BroadcastingList\d|assert_int_or_pair|boolean_dispatch|handle_torch_function"
        r"|has_torch_function\w*|DType)|"
        r"optim\.swap_in_optimizer_params_and_state|autograd\.\w+",
    "storages of quantized elements, and names of the old storage classes for CUDA alone":
        r"cuda\.\w*Storage|Q\w+Storage|StorageBase",
    "first-class dimensions": r"Tensor\.index|func\.rearrange",
    "memory pools, graphs and meters of CUDA devices":
        r"cuda\.(\w*[gG]raph\w*|CUDAPluggableAllocator|CudaError|DeferredCudaCallError|GreenContext|MemPool"
        r"|AcceleratorError|caching_allocator_\w+|"
        r"change_current_allocator|check_error|clock_rate|cudaStatus|cudart|current_\w+_handle|device_memory_used"
        r"|get_allocator_backend|\w+_sync_debug_mode|"
        r"host_memory_\w+|\w+_host_memory_stats|is_current_stream_capturing|list_gpu_processes|memory_(snapshot|usage)"
        r"|power_draw|temperature|use_mem_pool|utilization|"
        r"classproperty|jiterator|nccl|profiler|sparse|tunable|get_gencode_flags|get_arch_list|can_device_access_peer"
        r"|has_\w+)",
}


def absent(name: str) -> str | None:
    """Return the reason why a name of PyTorch (without 'torch.') is absent; None if there is no reason."""
    return next((reason for reason, pattern in ABSENT.items() if re.fullmatch(pattern, name)), None)


# checks, casts and views that every function may need
MACHINERY = ("dispatch", "_register", "_arguments", "torch_function")


@cache
def made_of(function: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (ops, functions of the package) that a function calls by name: in its source, in private helpers, in
    its closure."""
    ops: dict[str, None] = {}
    functions: dict[str, None] = {}
    _collect(inspect.unwrap(function), ops, functions, set())
    return tuple(ops), tuple(functions)


def _collect(function: Any, ops: dict[str, None], functions: dict[str, None], seen: set[Any]) -> None:
    if function in seen or not isinstance(function, FunctionType):
        return
    seen.add(function)
    for cell in function.__closure__ or ():
        _closed_over(cell.cell_contents, ops, functions, seen)
    if function.__module__.endswith(MACHINERY) or ".autograd." in function.__module__:
        return
    for node in _names_in(function):
        if (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "xp"
                and node.attr in OPS):
            ops[node.attr] = None
        elif (isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "OPS"
              and isinstance(node.slice, ast.Constant)):
            ops[str(node.slice.value)] = None
        elif isinstance(node, ast.Call):
            ops.update((a.value, None) for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)
                       and a.value in OPS)
            if (isinstance(node.func, ast.Attribute) and node.func.attr in _methods()
                    and getattr(node.func.value, "id", "") != "xp"):
                functions[node.func.attr] = None
            called = _called(node.func, function.__globals__)
            if called is not None and inspect.unwrap(called) is not function:
                _named(inspect.unwrap(called), ops, functions, seen)


@cache
def _names_in(function: FunctionType) -> list[ast.AST]:
    """Return the attributes, subscripts and calls in the source of a function."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return []
    return [node for node in ast.walk(tree) if isinstance(node, (ast.Attribute, ast.Subscript, ast.Call))]


def _closed_over(value: Any, ops: dict[str, None], functions: dict[str, None], seen: set[Any]) -> None:
    if isinstance(value, str) and value in OPS:
        ops[value] = None
    elif isinstance(value, type) and issubclass(value, Op) and value.opname in OPS:
        ops[value.opname] = None
    elif callable(value):
        _collect(inspect.unwrap(value), ops, functions, seen)      # a compiled fast path wraps a function


def _called(func: Any, names: dict[str, Any]) -> Any:
    """Return the package's function that a call f(…) or module.f(…) names."""
    if isinstance(func, ast.Name):
        found = names.get(func.id)
    elif (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name)
          and inspect.ismodule(names.get(func.value.id))):
        found = getattr(names[func.value.id], func.attr, None)
    else:
        return None
    return found if isinstance(found, FunctionType) and found.__module__.startswith("tensorgrad.") else None


def _named(called: Any, ops: dict[str, None], functions: dict[str, None], seen: set[Any]) -> None:
    if not isinstance(called, FunctionType):
        return
    if called.__name__ in _public() and not called.__name__.startswith("_"):
        functions[called.__name__] = None
    else:
        _collect(called, ops, functions, seen)


@cache
def _public() -> frozenset[str]:
    from ..api import FUNCTIONS
    from ..nn import functional
    return frozenset(FUNCTIONS) | frozenset(functional.__all__)


def is_static(name: str) -> bool:
    """Return True if a member of Tensor is a static method."""
    from ..api import Tensor
    return isinstance(inspect.getattr_static(Tensor, name), staticmethod)


@cache
def _methods() -> frozenset[str]:
    """Return the names of methods that only tensors have."""
    from ..api import FUNCTIONS, Tensor
    others = {name for kind in (str, list, dict, set, tuple) for name in dir(kind)}
    return frozenset(name for name in FUNCTIONS if hasattr(Tensor, name) and name not in others and not is_static(name))
