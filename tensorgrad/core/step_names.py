"""Names of steps for functions that are composed of several ops here, and of one op or other ops in PyTorch.

`print` shows a tensor's `grad_fn` by its name. An op has the name of PyTorch's step (`Op.name`); `called` gives another
one to the step that a tensor is the result of, and `naming` to those of a function's results.
"""
from __future__ import annotations

from typing import Any

from ..storage.base import clock
from .step import PlainStep
from .tape import TensorBase

# function: the name of its step, or old>new where it depends on the last op (`*` is short for Backward)
TABLE = """
addmm: Addmm*0; addmv: Addmv*0; addbmm: Addbmm*0; baddbmm: Baddbmm*0; addr: Addr*0; addcmul: Addcmul*0
addcdiv: Addcdiv*0; bmm: Bmm*0; vdot: Vdot*0; einsum: Mm*0>View*0 Bmm*0>View*0 UnsafeView*0>View*0; kron: UnsafeView*0
trace: Trace*0; chain_matmul linalg_multi_dot: Mm*0>View*0; linalg_matrix_power: Clone*0>Mm*0
linalg_vecdot: Dot*0>Vdot*0; cdist: Cdist*0; dist: Dist*0; pdist F.pdist: Pdist*0
pairwise_distance F.pairwise_distance: Norm*1; renorm: Renorm*0; block_diag: BlockDiag*0; combinations: Stack*0
roll: Roll*0; rot90: Rot90*0; repeat tile: Repeat*0; ravel: Clone*0>View*0; repeat_interleave: IndexSelect*0>View*0
atleast_2d atleast_3d: View*0>Unsqueeze*0; diag: Clone*0>Diagonal*0_copy; expand_copy: Expand*0_copy
diagonal_copy: Diagonal*0_copy; alias_copy: Alias*0_copy; view_copy: View*0_copy; as_strided_copy: AsStrided*0_copy
narrow_copy: NarrowCopy*0; permute_copy: Permute*0_copy; squeeze_copy: Squeeze*0_copy
split_with_sizes_copy: SplitWithSizes*0_copy; t_copy: T*0_copy; transpose_copy: Transpose*0_copy
unfold_copy: Unfold*0_copy; unbind_copy: Unbind*0_copy; unsqueeze_copy: Unsqueeze*0_copy
unsafe_chunk unsafe_split: UnsafeSplit*0; diagonal_scatter: DiagonalScatter*0; as_strided_scatter: AsStridedScatter*0
select_scatter: SelectScatter*0; slice_scatter: SliceScatter*0; index_add: IndexAdd*0; index_copy: IndexCopy*0
index_fill: IndexFill*0; index_reduce: IndexReduce*0; scatter_reduce: ScatterReduce*0; put: Put*0; take: Take*0
segment_reduce: SegmentReduce*0; masked_scatter: MaskedScatter*0; masked_select: MaskedSelect*0; gather: Gather*0
unfold: Unfold*0; zero: Zero*0; nansum: Nansum*0; aminmax: Aminmax*0; var_mean: VarMean*0; std_mean: StdMean*0
mvlgamma: Mvlgamma*0; polar: Polar*0; quantile nanquantile: View*0>Squeeze*4; cov: Squeeze*0; ldexp: Ldexp*0
frac: Frac*0; sgn: Sgn*0; trapezoid trapz: Mul*0>Mul*1; clamp_min: Clamp*0>ClampMin*1 Clamp*1>ClampMin*0
clamp_max: Clamp*0>ClampMax*1 Clamp*1>ClampMax*0; cholesky: Cholesky*0; cholesky_inverse: CholeskyInverse*0
cholesky_solve: CholeskySolve*0; lu_solve: LinalgLuSolve*0; lu_unpack: LuUnpack*0; ormqr: Ormqr*0
triangular_solve: TriangularSolve*0; linalg_cholesky: LinalgCholeskyEx*0; linalg_cholesky_ex: LinalgCholeskyEx*0
linalg_householder_product: LinalgHouseholderProduct*0; linalg_lu: LinalgLu*0; linalg_lu_solve: LinalgLuSolve*0
linalg_solve: LinalgSolveEx*0; linalg_solve_ex: LinalgSolveEx*0; linalg_lstsq: LinalgLstsq*0
F.pixel_shuffle: PixelShuffle*0; F.pixel_unshuffle: PixelUnshuffle*0
channel_shuffle native_channel_shuffle: ChannelShuffle*0; F.affine_grid affine_grid_generator: AffineGridGenerator*0
F.fractional_max_pool2d: FractionalMaxPool2D*0; F.fractional_max_pool3d: FractionalMaxPool3D*0; F.unfold: Im2Col*0
F.embedding_bag: EmbeddingBag*0; F.adaptive_avg_pool2d F.interpolate: AvgPool2D*0>AdaptiveAvgPool2D*0
F.adaptive_avg_pool3d: AvgPool3D*0>AdaptiveAvgPool3D*0
F.avg_pool1d F.max_pool1d F.adaptive_max_pool1d F.max_unpool1d: Squeeze*1; F.max_unpool2d: MaxUnpool2D*0
fill: Fill*2>Fill*0 torch::autograd::Copy*s>Fill*1; bernoulli: torch::autograd::Copy*s>Bernoulli*0
cumulative_trapezoid: Mul*0>Cumsum*0 Mul*1>Cumsum*0; unsqueeze_: Unsqueeze*1
squeeze_: Squeeze*0>Squeeze*3 Squeeze*1>Squeeze*4 Squeeze*2>Squeeze*5; t_: T*1
transpose_ swapaxes_ swapdims_: Transpose*1
F.max_unpool3d: MaxUnpool3D*0; F.adaptive_avg_pool1d: AvgPool2D*0>Squeeze*1 AdaptiveAvgPool2D*0>Squeeze*1
"""


def _rows() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for row in TABLE.replace("\n", ";").split(";"):
        functions, _, names = row.partition(":")
        pairs = [pair.partition(">") for pair in names.replace("*", "Backward").split()]
        spec = {old: new for old, mark, new in pairs if mark} or "".join(pair[0] for pair in pairs)
        found.update(dict.fromkeys(functions.split(), spec))
    return found


NAMES = _rows()


def called(tensor: Any, names: str | dict[str, str], began: int = -1) -> Any:
    """Give the step that a tensor is the result of another name, unless it is older than `began`; return the tensor."""
    node = tensor._node
    step = None if node is None else node.as_function()[0]
    if isinstance(step, PlainStep) and step.time > began:
        name = names if isinstance(names, str) else names.get(step.name())
        if name is not None:
            step.title = name
    return tensor


def naming(function: Any, key: str) -> Any:
    """Return a function in a form that names the steps of its results, if the table has its key."""
    names = NAMES.get(key)
    if names is None:
        return function

    def call(*args: Any, **kwargs: Any) -> Any:
        began = next(clock)
        result = function(*args, **kwargs)
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(tensor, TensorBase) and tensor._node is not None:
                called(tensor, names, began)
        return result
    call.__dict__.update(function.__dict__)
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(call, name, getattr(function, name))
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call
