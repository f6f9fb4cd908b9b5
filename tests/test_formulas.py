"""Formulas call ops only: each `forward` and `grad_*` runs on values that have a shape, a dtype and operators, and nothing else."""
from types import SimpleNamespace

import numpy as np
import pytest
from samples import SAMPLES
from sampling import Values
from support import cpu_only

from tensorgrad.interpret._batched_ops import runner
from tensorgrad.ops.base import OPS, input_name
from tensorgrad.storage.base import MAKERS, attach_operators
from tensorgrad.storage.cpu import NumpyStorage

pytestmark = cpu_only
CASES = [pytest.param(OPS[name], row, id=f"{name}{row}") for name, rows in SAMPLES.items() for row in rows if name in OPS]


class Opaque:
    """A value of a formula. Subscripts read a part of it by integers, slices, None and dots: the op `get_slice`."""

    __slots__ = ("_array",)
    __array_ufunc__ = None          # NumPy's arrays leave operators to this class
    __hash__ = None
    shape = property(lambda self: self._array.shape)
    dtype = property(lambda self: self._array.dtype)
    ndim = property(lambda self: self._array.ndim)

    def __init__(self, array):
        self._array = array

    def __getitem__(self, index):
        parts = index if isinstance(index, tuple) else (index,)
        assert all(part is None or part is Ellipsis or isinstance(part, (int, np.integer, slice)) for part in parts), "subscripts are no arrays"
        return Opaque(np.asarray(self._array[index]))

    def __bool__(self):
        raise AssertionError("a formula does not look at values")

    def __iter__(self):
        raise AssertionError("a formula does not go through values one by one")


def bare(value):
    if isinstance(value, (tuple, list)):
        return type(value)(map(bare, value))
    return value._array if isinstance(value, Opaque) else value


def covered(value):
    if isinstance(value, (tuple, list)):
        return tuple(map(covered, value))
    return Opaque(np.asarray(value)) if isinstance(value, (np.ndarray, np.generic)) else value


attach_operators(Opaque, lambda function, operands, self: covered(function(*map(bare, operands))))


class OnlyOps:
    """`xp` that has the ops of the table and what makes new arrays."""

    def __getattr__(self, name):
        if name in MAKERS:
            function = getattr(np, name)
        elif name in OPS:
            op, count = OPS[name], len(OPS[name].inputs)
            kernel = runner(op, NumpyStorage)

            def function(*args, **params):
                if op.arity is not None or op.sequence:
                    args, params = args[:count], dict(zip(op.parameters, args[count:]), **params)
                return kernel(*args, **params)
        else:
            raise AttributeError(f"a formula asks for {name!r}, which is no op of the table")
        return lambda *args, **params: covered(function(*map(bare, args), **{key: bare(value) for key, value in params.items()}))


only_ops = OnlyOps()


def drawn(row):
    rng = np.random.default_rng(5)
    return [each.draw(rng, np.dtype("float64")) if isinstance(each, Values) else each for each in row.inputs]


def results_of(op, inputs, params):
    found = runner(op, NumpyStorage)(*([inputs] if op.sequence else inputs), **params)
    return tuple(found) if op.several else (found,)


def same(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(bare(one)), other, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(("op", "row"), CASES)
def test_definitions_call_ops_only(op, row, request):
    if op.host or op.opname in TO_MEND:
        pytest.skip("its definition computes on the host" if op.host else "its definition has methods of arrays in it")
    inputs = row.prepared(drawn(row))
    expected = results_of(op, inputs, row.params)
    given = covered(list(inputs))
    found = op.forward(only_ops, *([list(given)] if op.sequence else given), **row.params)
    same(found if op.several else (found,), expected)


@pytest.mark.parametrize(("op", "row"), [case for case in CASES if case.values[0].differentiable])
def test_gradients_call_ops_only(op, row):
    if op.opname in GRADIENTS_TO_MEND:
        pytest.skip("its gradients have methods of arrays in them")
    inputs = row.prepared(drawn(row))
    wanted = [i for i, each in enumerate(row.inputs) if isinstance(each, Values) and each.kind in "fc" and each.learnt and
              hasattr(op, f"grad_{input_name(op, i)}")]
    if not wanted:
        return
    results = covered(results_of(op, inputs, row.params))
    args = covered(list(inputs))
    plan = op.plans.of(sum(1 << i for i in wanted), args)
    step = SimpleNamespace(params=row.params, edges=[a if isinstance(a, Opaque) else None for a in args])
    values = list(plan.save(args, results))
    for extra in plan.extras:
        values.append(extra(step, values))
    g = [Opaque(np.full(out.shape, 0.7, out.dtype)) for out in results]
    for i, formula, wants in plan.steps:
        ge = formula(only_ops, g if op.several else g[0], *[values[place] for place in wants])
        assert isinstance(ge, Opaque), f"grad_{input_name(op, i)} gave a {type(ge).__name__}"


# What is left to mend: these lists may only become shorter.
TO_MEND = set("""
    add_axis airy_ai angle as_strided average bessel_j0 bessel_j1 bessel_y0 bessel_y1 binary_cross_entropy border broadcast_to cast
    chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w cholesky_factor clone cofactors columns
    columns_added concat contiguous convolution convolution_input convolution_weight copied count_norm ctc_loss ctc_posterior cummax cummin
    determinant diagonal diagonal_place digamma dirichlet_grad distinct distinct_slices eig_pairs eig_values eigh_pairs eigh_values embedding
    embedding_add embedding_bag erf erfc erfcx erfinv flip fourier_transform from_half_spectrum gather half_spectrum hardsigmoid hardswish
    hardtanh heaviside hermite_polynomial_h hermite_polynomial_he histc householder_factors i0 i0e i1 i1e igamma igammac in_columns index
    index_add_into index_put index_select inverse_matrix kthvalue laguerre_polynomial_l ldl_factor ldl_solve legendre_polynomial_p lgamma linear
    linear_without_bias log_determinant log_ndtr logcumsumexp lu_factor make_complex matrix_exponential median_dim median_of_all mode
    modified_bessel_k0 modified_bessel_k1 multi_margin_loss multilabel_margin_loss nanmedian_dim nanmedian_of_all ndtr ndtri nll_loss
    pad_constant permute_dims pivot_order place_along_axis place_slice polygamma power pseudo_inverse qr_factor recurrence region_max resample
    reshape restride scaled_modified_bessel_k0 scaled_modified_bessel_k1 scatter scatter_add scatter_extreme search_sorted set_view
    shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v shifted_chebyshev_polynomial_w sinc
    singular_values solve_linear solve_triangular sort_dim standard_gamma standard_gamma_grad svd_factor swapaxes t take_axis threshold
    to_device topk trunc_divide unfold unfold_add view view_as_complex view_as_real window_max window_spread window_sum zeta
    """.split())
GRADIENTS_TO_MEND = set("""
    cholesky_factor ctc_loss eig_pairs eigh_pairs eigh_values pseudo_inverse
    """.split())
