"""The table of op samples: op → ways to call it. It drives the op tests; every op of the table has a row."""
import numpy as np
from sampling import (
    OF_DENSE_ARRAYS,
    Row,
    Sample,
    ascending,
    between,
    complex_,
    fixed,
    index,
    mask,
    places,
    positive,
    real,
    square,
    whole,
)
from support import DEVICE

from tensorgrad.api._sparse import rules
from tensorgrad.core.dispatch import xp
from tensorgrad.ops.base import OPS
from tensorgrad.ops.indexing import ARRAY
from tensorgrad.storage.base import backend_of
from tensorgrad.storage.sparse import Coo, Csr

S = Sample
HERE = backend_of(DEVICE)
ALL = slice(None)
PATTERN = Csr(np.array([0, 2, 2, 5]), np.array([3, 0, 1, 1, 2]), (3, 4))     # an empty row, and a place twice
inf = float("inf")
PLACES = Coo(np.array([[2, 0, 1, 2, 0], [1, 3, 0, 1, 0]]), (3, 4), HERE)      # in no order, and one of them twice
ONCE = PLACES.ordered[0]
SAMPLES: dict[str, list[Row]] = {}


def at_places(values):
    """A sparse tensor of the values."""
    rules()
    return xp.sparse_tensor(values, pattern=PLACES)


def same(names, *samples):
    """Add these samples to several ops."""
    SAMPLES.update({name: list(samples) for name in names.split()})


# ── elementwise: one input, by domain ─────────────────────────────────────────────────────────────────────────────────

same("negative square sign sgn absolute floor ceil trunc nan_to_num conj angle isnan isinf isfinite logical_not clone "
     "signbit",
     S(real(3, 4)))
same("exp exp2 expm1 sigmoid sin cos arctan sinc deg2rad rad2deg sinh cosh tanh arcsinh", S(real(3, 4)))
same("log log2 log10 log1p sqrt rsqrt reciprocal", S(positive(3, 4)))
same("tan arcsin arccos arctanh", S(between(-0.9, 0.9, 3, 4)))
same("arccosh", S(between(1.2, 3, 3, 4)))
same("erf erfc ndtr log_ndtr i0 i0e i1 i1e bessel_j0 bessel_j1 spherical_bessel_j0", S(real(3, 4)),
     S(between(-9, 9, 20)))
same("erfcx", S(real(3, 4)), S(positive(9)))
same("airy_ai", S(between(-6, 6, 20)))
same("erfinv", S(between(-0.9, 0.9, 3, 4)))
same("ndtri", S(between(0.1, 0.9, 3, 4)))
same("entr lgamma digamma modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 "
     "bessel_y0 bessel_y1",
     S(positive(3, 4)), S(between(2, 12, 20)))
same("relu silu mish log_sigmoid gelu gelu_tanh hardsigmoid hardswish", S(between(-5, 5, 3, 8)))
SAMPLES |= {
    "reciprocal": [S(positive(3, 4)), S(real(5))],
    "round": [S(real(3, 4)), S(real(3, 4), decimals=1)],
    "logit": [S(between(0.1, 0.9, 3, 4)), S(between(-0.5, 1.5, 3, 4), eps=0.1)],
    "polygamma": [S(positive(3, 4), n=1), S(positive(3, 4), n=2)],
    "lgamma": [S(positive(3, 4)), S(between(2, 12, 20)), S(between(-1.9, -1.1, 5))],
    "leaky_relu": [S(real(3, 4), slope=0.2)],
    "hardtanh": [S(real(3, 4), low=-0.7, high=1.1)],
    "hardshrink": [S(real(3, 4), lambd=0.6)],
    "softshrink": [S(real(3, 4), lambd=0.6)],
    "threshold": [S(real(3, 4), threshold=0.3, value=7.0)],
    "elu": [S(real(3, 4), alpha=0.8), S(real(3, 4), alpha=1.7, scale=1.1)],
    "celu": [S(real(3, 4), alpha=0.8)],
    "softplus": [S(real(3, 4), beta=1.5, threshold=20.0), S(real(3, 4), beta=2.0, threshold=1.0)],
    "bitwise_not": [S(whole(-8, 8, 3, 4)), S(mask(3))],
}

# ── elementwise: several inputs, which broadcast ──────────────────────────────────────────────────────────────────────

same("add subtract multiply rsub maximum minimum fmax fmin", S(real(3, 4), real(4)), S(real(3, 1), real(2, 1, 4)),
     S(real(3, 4), 1.5))
same("divide", S(real(3, 4), positive(4)), S(real(3, 1), real(2, 1, 4)), S(real(3, 4), 1.5))
same("floor_divide trunc_divide remainder fmod", S(between(-9, 9, 3, 4), between(1, 3, 4)), S(between(-9, 9, 5), -1.7))
same("gcd lcm", S(whole(-20, 20, 3, 4), whole(1, 20, 4)))
same("hypot copysign heaviside nextafter logaddexp logaddexp2 arctan2", S(real(3, 4), real(4)),
     S(real(3, 1), real(2, 1, 4)))
same("xlogy", S(real(3, 4), positive(4)))
same("tanh_gradient sigmoid_gradient relu_gradient", S(real(3, 4), real(3, 4)))
same("xlog1py", S(real(3, 4), between(-0.9, 2, 4)))
same("zeta", S(between(1.5, 4, 3, 1), positive(4)))
same("igamma igammac", S(fixed(3, 1), positive(4)), S(fixed(2, 3), between(3, 9, 2, 3)))
same("equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor",
     S(whole(0, 3, 3, 4), whole(0, 3, 4)), S(real(3, 4), 0.5))
same("bitwise_and bitwise_or bitwise_xor", S(whole(-8, 8, 3, 4), whole(-8, 8, 4)), S(mask(3, 4), mask(4)))
same("left_shift right_shift", S(whole(0, 99, 3, 4), whole(0, 5, 4)))
same(" ".join(name for name in OPS if "_polynomial_" in name), S(between(-0.9, 0.9, 3, 1), whole(0, 7, 4)))
SAMPLES |= {
    "power": [S(positive(3, 4), real(4)), S(real(3, 4), 3), S(real(3, 4), -1.0), S(positive(5), 0.5), S(2.0, real(3))],
    "lerp": [S(real(3, 4), real(4), between(0, 1, 3, 1)), S(real(3, 4), real(4), 0.3)],
    "clamp": [S(real(3, 4), between(-1, -0.5, 4), positive(3, 1)), S(real(3, 4), None, 0.6),
              S(real(3, 4), between(-1, 0.5, 3, 4), None)],
    "where": [S(mask(3, 4), real(4), real(3, 1)), S(mask(4), real(3, 4), 2.0).without("half")],
    "masked_fill": [S(real(3, 4), real(), mask(4)), S(real(3, 4), 2.5, mask(3, 4)).without("half")],
    "prelu": [S(real(3, 4), positive(4))],
    "rrelu_with_noise": [S(real(3, 4), fixed(3, 4))],
    "make_complex": [S(real(3, 4), real(3, 4)).without("dtype")],
}

# ── parts of numbers, copies, other dtypes ────────────────────────────────────────────────────────────────────────────

SAMPLES |= {
    "frexp": [S(real(3, 4))],
    "real": [S(complex_(3, 4)).without("dtype")],
    "imag": [S(complex_(3, 4)).without("dtype")],
    "view_as_real": [S(complex_(3, 4)).without("dtype")],
    "view_as_complex": [S(real(3, 2)).without("dtype", "strided")],
    "cast": [S(real(3, 4), dtype=np.dtype("complex128")).without("dtype"),
             S(real(3), dtype=np.dtype("float64")).without("dtype", "complex")],
    "to_device": [S(real(3, 4), source=HERE, target=HERE).without("device", "memory")],
    "copied": [S(real(3, 4), real(3, 4))],
    "filled": [S(real(3, 4), value=2.5)],
    "contiguous": [S(real(3, 4)), S(real())],
    "channels_last": [S(real(2, 3, 2, 2)), S(real(1, 2, 2, 1, 2))],
}

# ── shapes ────────────────────────────────────────────────────────────────────────────────────────────────────────────

SAMPLES |= {
    "reshape": [S(real(2, 6), shape=(3, 4)), S(real(), shape=(1, 1)), S(real(0, 3), shape=(3, 0))],
    "permute_dims": [S(real(2, 3, 4), axes=(2, 0, 1)), S(real(), axes=())],
    "swapaxes": [S(real(2, 3, 4), axis1=0, axis2=2)],
    "t": [S(real(2, 3))],
    "expand_dims": [S(real(2, 3), axis=1), S(real(), axis=0)],
    "squeeze": [S(real(2, 1, 3, 1), axis=(1, 3)), S(real(1), axis=(0,))],
    "broadcast_to": [S(real(3, 1), shape=(2, 3, 4)), S(real(), shape=(2, 2)), S(real(1, 3), shape=(0, 3))],
    "get_item": [S(real(3, 4), index=(1,)), S(real(3, 4, 2), index=(2, 1)), S(real(3, 4), index=(1, 2))],
    "get_slice": [S(real(5, 4), index=(slice(1, 4, 2),)), S(real(5, 4), index=(..., slice(0, 2))),
                  S(real(5), index=(slice(2, 2),))],
    "place_slice": [S(real(2, 4), shape=(5, 4), index=(slice(1, 4, 2),)), S(real(4), shape=(3, 4), index=(1,))],
    "diagonal": [S(real(3, 4)), S(real(2, 3, 4), offset=-1, axis1=1, axis2=2)],
    "diagonal_place": [S(real(3), shape=(3, 4)), S(real(3, 1), shape=(2, 3, 3), offset=-1, axis1=0, axis2=2)],
    "unfold": [S(real(7, 2), axis=0, size=3, step=2), S(real(2, 5), axis=1, size=2, step=1)],
    "unfold_add": [S(real(3, 2, 3), shape=(7, 2), axis=0, size=3, step=2)],
    "as_strided": [S(real(2, 3), size=(2, 2), stride=(1, 2), offset=1, layout=((2, 3), (3, 1), 0),
                     length=6).without("strided")],
    "restride": [S(real(2, 2), source=((2, 2), (1, 2), 1), target=((2, 3), (3, 1), 0), length=6)],
    "unbind": [S(real(3, 2), axis=0), S(real(2, 3, 2), axis=1)],
    "split_sizes": [S(real(5, 2), sizes=(2, 0, 3), axis=0)],
    "split_with_sizes": [S(real(5, 2), sizes=(2, 0, 3), axis=0)],
    "concat": [S(real(2, 3), real(1, 3), real(0, 3), axis=0), S(real(2, 3), real(2, 1), axis=1)],
    "stack": [S(real(2, 3), real(2, 3), axis=1), S(real(), real())],
    "flip": [S(real(3, 4), axis=(0, 1)), S(real(3, 4), axis=(1,))],
    "roll": [S(real(3, 4), shift=(1, -1), axis=(0, 1))],
    "tril": [S(real(3, 4)), S(real(2, 3, 3), k=1)],
    "triu": [S(real(3, 4)), S(real(2, 3, 3), k=-1)],
    "pad_constant": [S(real(3, 4), widths=((1, 2), (0, 1))), S(real(3, 4), widths=((-1, 1), (2, -3)), value=1.5)],
    "view": [S(real(3, 4), view=((OPS["get_slice"], {"index": (slice(0, 2),)}), (OPS["t"], {})))],
    "set_view": [S(real(3, 4), real(4, 2), view=((OPS["get_slice"], {"index": (slice(0, 2),)}), (OPS["t"], {})))],
}

# ── indexing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

UNLIKE = {"padding": 1}, {"by_frequency": True}      # what is called a gradient there is no derivative
SAMPLES |= {
    "index": [S(real(3, 4), index(3, 5), template=(ARRAY,)),
              S(real(3, 4, 2), index(3, 2, 1), index(2, 3), template=(ARRAY, ALL, ARRAY)),
              S(real(3, 4), mask(3, 4), template=(ARRAY,))],
    "index_add_into": [S(real(5, 4), index(3, 5), shape=(3, 4), template=(ARRAY,))],
    "index_put": [S(real(4, 3), real(3, 3), places(4, 3), template=(ARRAY,)),
                  S(real(4, 3), real(), mask(4, 3), template=(ARRAY,)),
                  S(real(4, 3), real(5, 3), index(4, 5), template=(ARRAY,), accumulate=True)],
    "gather": [S(real(3, 4), index(3, 5, 2), axis=0), S(real(3, 4), index(4, 3, 6), axis=1)],
    "take_along_axis": [S(real(3, 4), index(4, 3, 5), axis=1)],
    "place_along_axis": [S(real(3, 2), places(4, 3, 2), shape=(3, 4), axis=1)],
    "scatter": [S(real(3, 5), real(4, 4), places(5, 3, 4), axis=1)],
    "scatter_add": [S(real(3, 5), real(3, 6), index(5, 2, 6), axis=1),
                    S(real(3, 4), real(5, 4), index(3, 5, 4), axis=0)],
    "scatter_extreme": [S(positive(3, 4), between(0.2, 3.1, 5, 4), index(3, 5, 4), axis=0, reduce=how,
                          include_self=itself).without("complex")
                        for how in ("amax", "amin", "prod") for itself in (True, False)],
    "one_zero": [S(real(3, 4), mask(3, 4))],
    "embedding": [S(real(4, 3), index(4, 2, 3)),
                  *(S(real(4, 3), index(4, 6), **how).without("gradient") for how in UNLIKE)],
    "embedding_add": [S(real(2, 3, 2), index(4, 2, 3), rows=4)],
    "sparse_tensor": [S(real(5), pattern=PLACES).without(*OF_DENSE_ARRAYS, "graph")],
    "sparse_values": [S(real(5), pattern=ONCE, own=PLACES).through(at_places).without(*OF_DENSE_ARRAYS, "graph")],
    "sparse_to_dense": [S(real(5), pattern=PLACES, **how).through(at_places).without(*OF_DENSE_ARRAYS, "graph")
                        for how in ({}, {"masked": False})],
    "embedding_sparse": [S(real(5, 3), index(5, 4)).without(*OF_DENSE_ARRAYS, "second"),
                         S(real(5, 3), np.array([1, 2, 1]), padding=2).without(*OF_DENSE_ARRAYS, "gradient")],
    "gather_sparse": [S(real(3, 4), index(3, 2, 4), axis=0).without(*OF_DENSE_ARRAYS)],
    "sparse_matmul": [S(real(5), real(4, 2), pattern=PATTERN).without("device"),
                      S(real(5), real(3, 2), pattern=PATTERN, transposed=True).without("device")],
    "sampled_matmul": [S(real(3, 2), real(4, 2), pattern=PATTERN).without("device")],
    "embedding_bag": [S(real(5, 3), index(5, 6), np.array([0, 0, 1, 1, 1, 3]), real(6), bags=4),
                      S(real(5, 3), index(5, 4), np.array([0, 1, 1, 2]), None, bags=3)],
    "take_axis": [S(real(3, 4), index(4, 6), axis=1)],
    "index_select": [S(real(3, 4), index(4, 6), axis=1), S(real(3, 4), index(3, 5), axis=0)],
    "border": [S(real(3, 4), index(4, 6), axis=1)],
    "upsample_nearest": [S(real(3, 4), index(4, 6), axis=1)],
    "add_axis": [S(real(3, 6), index(4, 6), size=4, axis=1)],
    "average": [S(real(2, 4, 3), fixed(5, 4), axis=1)],
    "resample": [S(real(2, 4), fixed(3, 4), axis=1), S(real(2, 4, 3), fixed(5, 4), axis=1)],
}

# ── reductions ────────────────────────────────────────────────────────────────────────────────────────────────────────

AXES = [{}, {"axis": 1}, {"axis": (0, -1), "keepdims": True}]
for _name in ("sum", "mean", "amax", "amin", "max", "min", "any", "all"):
    SAMPLES[_name] = [S(real(2, 3, 4), **axes) for axes in AXES]
for _name in ("variance", "deviation"):
    SAMPLES[_name] = [S(real(2, 3, 4), **axes) for axes in AXES] + [S(real(3, 4), axis=0, correction=0)]
SAMPLES["sum"] += [S(real()), S(real(0, 3)), S(real(0, 3), axis=0)]
same("logsumexp", S(real(3, 4), axis=1), S(real(2, 3, 4), axis=(0, 2), keepdims=True))
same("prod", S(real(3, 4)), S(real(2, 3, 2), axis=1, keepdims=True), S(real()))
same("argmax argmin", S(real(3, 4)), S(real(3, 4), axis=1, keepdims=True))
same("greatest_of_all least_of_all median_of_all nanmedian_of_all", S(real(3, 4)), S(real()))
same("max_dim min_dim median_dim nanmedian_dim mode", S(real(3, 4), axis=0), S(real(3, 4), axis=1, keepdims=True))
same("cumsum cumprod logcumsumexp cummax cummin", S(real(3, 4), axis=1), S(real(5, 2), axis=0))
SAMPLES |= {
    "vector_norm": [S(real(3, 4), ord=order, **axes) for order, axes in
                    ((2, {}), (1, {"axis": 1}), (3, {"axis": 0}), (inf, {"axis": 1}), (-inf, {}),
                     (0.5, {"axis": 1, "keepdims": True}))],
    "count_norm": [S(real(3, 4), axis=1), S(real(3, 4), keepdims=True)],
    "recurrence": [S(real(3, 4), between(-0.9, 0.9, 3, 4), axis=1), S(real(5, 2), real(5, 2), axis=0, reverse=True)],
    "order": [S(real(3, 4), axis=1), S(real(3, 4), axis=0, descending=True)],
    "sort_dim": [S(real(3, 4), axis=1), S(real(3, 4), axis=0, descending=True)],
    "topk": [S(real(3, 5), k=2, axis=1), S(real(5, 2), k=3, axis=0, largest=False)],
    "kthvalue": [S(real(3, 5), k=2, axis=1), S(real(5, 2), k=3, axis=0, keepdims=True)],
    "search_sorted": [S(ascending(5), real(3, 4)), S(ascending(2, 5), real(2, 4), right=True)],
    "bincount": [S(whole(0, 5, 9), None), S(whole(0, 5, 9), fixed(9), minlength=7).without("dtype")],
    "histc": [S(real(9), bins=4, low=-2, high=2)],
    "distinct": [S(whole(0, 4, 3, 4))],
    "distinct_slices": [S(whole(0, 2, 6, 2)), S(whole(0, 2, 6), neighbours=True)],
}

# ── products ──────────────────────────────────────────────────────────────────────────────────────────────────────────

SAMPLES |= {
    "matmul": [S(real(*a), real(*b)) for a, b in
               (((2, 3), (3, 4)), ((3,), (3,)), ((3,), (3, 4)), ((2, 3), (3,)), ((2, 3, 4), (4, 2)), ((2, 3, 4), (4,)),
                ((4,), (2, 4, 3)),
                ((2, 1, 2, 3), (3, 3, 2)), ((0, 3), (3, 2)))],
    "cross": [S(real(2, 3), real(2, 3), axis=1), S(real(3, 2), real(3, 1), axis=0)],
    "euclidean_distance": [S(real(3, 2), real(4, 2)), S(real(2, 3, 2), real(2, 4, 2))],
    "linear": [S(real(4, 3), real(2, 3), real(2)), S(real(2, 4, 3), real(2, 3), real(2)),
               S(real(3), real(2, 3), real(2))],
    "linear_without_bias": [S(real(4, 3), real(2, 3)), S(real(2, 4, 3), real(2, 3)), S(real(3), real(2, 3))],
}

def hermitian(a):
    return a + a.mH


def definite(a):
    return a @ a.mH


def lower(a):
    return a.tril() + a.triu(1) * 0.01


FREE = "complex"      # eigenvectors and singular vectors of complex matrices are chosen freely
DECOMPOSED = {
    "solve_linear": [S(square(3, 3), real(3, 2)), S(square(2, 3, 3), real(2, 3, 1))],
    "solve_triangular": [S(square(3, 3), real(3, 2), upper=True),
                         S(square(3, 3), real(2, 3, 2), upper=False, unit=True)],
    "inverse_matrix": [S(square(2, 3, 3))],
    "in_columns": [S(square(2, 3, 3))],
    "pseudo_inverse": [S(square(4, 3), 0.0, 1e-3), S(square(3, 3), 1e-3, 0.0, hermitian=True).through(hermitian)],
    "determinant": [S(square(3, 3)), S(square(2, 2, 2))],
    "cofactors": [S(square(3, 3))],
    "log_determinant": [S(square(2, 3, 3))],
    "matrix_exponential": [S(between(-0.5, 0.5, 3, 3)), S(real(2, 2, 2))],
    "cholesky_factor": [S(square(2, 3, 3)).through(definite)],
    "lu_factor": [S(square(3, 3)), S(square(3, 2)), S(square(2, 3))],
    "ldl_factor": [S(square(3, 3)).through(hermitian)],
    "ldl_solve": [S(square(3, 3), np.array([1, 2, 3], "int32"), real(3, 2))],
    "pivot_order": [S(np.array([2, 3, 3], "int32"), rows=3), S(np.array([[2, 2], [1, 2]], "int32"), rows=3, back=True)],
    "qr_factor": [S(square(4, 3)), S(square(3, 3)), S(square(2, 4)), S(fixed(3, 2), mode="complete")],
    "householder_factors": [S(square(4, 3))],
    "eigh_pairs": [S(square(3, 3)).through(hermitian).without(FREE)],
    "eigh_values": [S(square(2, 3, 3), uplo="U").through(hermitian)],
    "eig_pairs": [S(square(3, 3)).through(lower).without(FREE, "dtype")],
    "eig_values": [S(square(3, 3)).without("dtype")],
    "svd_factor": [S(square(4, 3), full=False).without(FREE), S(square(3, 3), full=True).without(FREE)],
    "singular_values": [S(square(4, 3))],
}
SAMPLES |= {name: [row.without("half") for row in rows] for name, rows in DECOMPOSED.items()}

# ── spectra ───────────────────────────────────────────────────────────────────────────────────────────────────────────

SAMPLES |= {
    "fourier_transform": [S(complex_(3, 4), axes=(0, 1)).without("dtype"),
                          S(complex_(5), axes=(0,), inverse=True, norm="ortho").without("dtype")],
    "half_spectrum": [S(real(2, 5), axis=1).without("dtype"),
                      S(real(4, 2), axis=0, norm="forward", doubled=True).without("dtype")],
    "from_half_spectrum": [S(complex_(2, 3), n=5, axis=1).without("dtype"),
                           S(complex_(3, 2), n=4, axis=0, halved=True).without("dtype")],
}

# ── windows ───────────────────────────────────────────────────────────────────────────────────────────────────────────

PLAIN_1D = {"stride": (1,), "padding": (0,), "dilation": (1,)}
ODD_2D = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2)}
CUBE = {"stride": (1, 2, 1), "padding": (0, 1, 0), "dilation": (1, 1, 1)}
SAMPLES |= {
    "convolution": [S(real(2, 3, 5), real(2, 3, 2), real(2), **PLAIN_1D),
                    S(real(2, 4, 5, 4), real(2, 2, 3, 2), None, groups=2, **ODD_2D),
                    S(real(1, 2, 3, 3, 2), real(2, 2, 2, 2, 1), real(2), **CUBE),
                    S(real(2, 3, 4), real(2, 3, 1), None, **PLAIN_1D)],
    "convolution_input": [S(real(2, 2, 4), real(2, 3, 2), real(3), size=(5,), **PLAIN_1D),
                          S(real(2, 2, 3, 6), real(2, 2, 3, 2), None, size=(5, 4), groups=2, **ODD_2D)],
    "convolution_weight": [S(real(2, 2, 4), real(2, 3, 5), size=(2,), **PLAIN_1D),
                           S(real(2, 2, 3, 6), real(2, 4, 5, 4), size=(3, 2), groups=2, **ODD_2D)],
    "columns": [S(real(2, 1, 5, 4), kernel=(3, 2), **ODD_2D)],
    "columns_added": [S(real(2, 1, 3, 2, 3, 6), size=(5, 4), **ODD_2D)],
    "region_max": [S(real(2, 5, 4), index(20, 2, 3, 4), ndim=2), S(real(2, 6), index(6, 2, 3, 2), ndim=1)],
    "window_sum": [S(real(2, 5, 4), kernel=(3, 2), stride=(2, 1), widths=((1, 1), (0, 1)), scale=0.5),
                   S(real(1, 2, 6), kernel=(2,), stride=(2,), widths=((0, 0),))],
    "window_spread": [S(real(2, 3, 4), size=(5, 4), kernel=(3, 2), stride=(2, 1), widths=((1, 1), (0, 1)), scale=0.5)],
}
same("max_pool window_max", S(real(2, 5, 4), kernel=(3, 2), stride=(2, 1), widths=((1, 1), (0, 1)), dilation=(1, 1)),
     S(real(1, 2, 9), kernel=(3,), stride=(2,), widths=((0, 0),), dilation=(2,)))

# ── layers ────────────────────────────────────────────────────────────────────────────────────────────────────────────

same("softmax log_softmax", S(real(3, 4), axis=1), S(real(2, 3, 2), axis=0), S(between(-30, 30, 5), axis=0))
SAMPLES |= {
    "attention": [S(real(2, 2, 3, 2), real(2, 2, 4, 2), real(2, 2, 4, 3), None, causal=True, scale=0.7),
                  S(real(1, 2, 3, 2), real(1, 2, 2, 2), real(1, 2, 2, 2), real(1, 1, 3, 2), causal=False, scale=1.0),
                  S(real(3, 2), real(2, 2), real(2, 2), None, causal=False, scale=0.5)],
    "glu": [S(real(3, 4), axis=1), S(real(4, 2), axis=0)],
    "native_layer_norm": [S(real(3, 4), real(4), real(4), ndim=1, eps=1e-5),
                          S(real(2, 3, 2), None, None, ndim=2, eps=1e-3)],
    "native_group_norm": [S(real(2, 4, 3), real(4), real(4), groups=2, eps=1e-5),
                          S(real(2, 4), None, None, groups=1, eps=1e-3)],
    "native_batch_norm": [S(real(5, 3), real(3), real(3), eps=1e-5), S(real(2, 3, 4), None, None, eps=1e-3)],
    "affine_by_channel": [S(real(2, 3, 4), real(3), real(3), real(3), positive(3), eps=1e-5),
                          S(real(4, 3), None, None, real(3), positive(3), eps=1e-5)],
    "rms_norm": [S(real(3, 4), real(4), ndim=1, eps=1e-5), S(real(2, 3, 2), None, ndim=2, eps=1e-3)],
    "rnn_layer": [S(real(3, 2, 3), real(2, 2), real(2, 3), real(2, 2), real(2), real(2)),
                  S(real(5, 3), real(3, 2), real(2, 3), real(2, 2), None, None, relu=True, reverse=True, sizes=(3, 2))],
    "lstm_layer": [S(real(3, 2, 3), real(2, 2), real(2, 2), real(8, 3), real(8, 2), real(8), real(8), None),
                   S(real(3, 3), real(2, 1), real(2, 2), real(8, 3), real(8, 1), None, None, real(1, 2), reverse=True,
                     sizes=(2, 1))],
    "gru_layer": [S(real(3, 2, 3), real(2, 2), real(6, 3), real(6, 2), real(6), real(6)),
                  S(real(5, 3), real(3, 2), real(6, 3), real(6, 2), None, None, reverse=True, sizes=(3, 2))],
}

# ── random numbers ────────────────────────────────────────────────────────────────────────────────────────────────────

# by the parameter, a number changes as it would in being drawn, which the sample given to the op does not
SAMPLES |= {
    "standard_gamma": [S(positive(3, 4), fixed(3, 4)).without("gradient", "second")],
    "standard_gamma_grad": [S(fixed(3, 4), fixed(3, 4))],
    "dirichlet_grad": [S(between(0.1, 0.9, 3, 4), positive(3, 4), between(3.5, 5, 3, 4)),
                       S(between(0.1, 0.9, 30), between(6, 8, 30), between(16, 20, 30))],
}

# ── losses ────────────────────────────────────────────────────────────────────────────────────────────────────────────

REDUCTIONS = ("none", "mean", "sum")
WEIGHED = list(zip(REDUCTIONS, (None, fixed(3), fixed(3)), strict=True))
CTC = (between(-3, -0.5, 5, 2, 4), np.array([[1, 2, 2], [3, 1, 0]]), np.array([5, 4]), np.array([3, 2]))
SAMPLES |= {
    "mse_loss": [S(real(3, 4), real(3, 4), reduction=how) for how in REDUCTIONS],
    "smooth_l1_loss": [S(real(3, 4), real(3, 4), reduction=how, beta=0.7) for how in REDUCTIONS],
    "huber_loss": [S(real(3, 4), real(3, 4), reduction=how, delta=0.7) for how in REDUCTIONS],
    "soft_margin_loss": [S(real(3, 4), real(3, 4), reduction=how) for how in REDUCTIONS],
    "binary_cross_entropy": [S(between(0.1, 0.9, 3, 4), between(0, 1, 3, 4), w, reduction=how) for how, w in
                             zip(REDUCTIONS, (None, fixed(3, 4), None), strict=True)],
    "binary_cross_entropy_with_logits": [S(real(3, 4), between(0, 1, 3, 4), w, p, reduction=how) for how, w, p in
                                         zip(REDUCTIONS, (None, positive(3, 4), None), (None, positive(4), positive(4)),
                                             strict=True)],
    "nll_loss": [S(real(4, 3), index(3, 4), w, reduction=how, ignore_index=1) for how, w in WEIGHED]
    + [S(real(2, 3, 4), index(3, 2, 4), fixed(3), reduction="mean", ignore_index=-100)],
    "cross_entropy": [S(real(4, 3), index(3, 4), w, reduction=how, ignore_index=1) for how, w in WEIGHED],
    "multi_margin_loss": [S(real(4, 3), index(3, 4), w, p=p, margin=0.9, reduction=how)
                          for (how, w), p in zip(WEIGHED, (1, 2, 2), strict=True)],
    "multilabel_margin_loss": [S(real(2, 4), np.array([[3, 0, -1, 1], [2, -1, 0, 1]]), reduction=how)
                               for how in REDUCTIONS],
    # its gradient is that of log_softmax(x), as PyTorch's
    "ctc_loss": [S(*CTC, blank=0, zero_infinity=False).without("gradient", "second")],
    "ctc_posterior": [S(*CTC, blank=0)],
}
