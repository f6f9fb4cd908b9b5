"""The dtype of `out=`: which ones functions take, and PyTorch's errors for others."""
import re
from functools import partial
from operator import attrgetter

import pytest
from side_by_side import attempt, same

from tensorgrad.api import _out_dtypes

CALLS = """
neg(x) ; floor(x) ; ceil(x) ; round(x, decimals=1) ; sign(x) ; trunc(x) ; bitwise_not(i) ; cos(x) ; cos(i) ; exp(i) ; abs(c) ; angle(c)
linalg.inv(m) ; linalg.cholesky(m) ; linalg.det(m) ; linalg.eigvalsh(m) ; linalg.svdvals(m) ; linalg.vector_norm(x) ; linalg.cross(x[:3], x[:3]) ; linalg.solve(m, m)
linalg.norm(x) ; linalg.matrix_norm(m) ; linalg.vecdot(x, x) ; linalg.multi_dot([m, m]) ; linalg.solve_triangular(m, m, upper=True) ; linalg.pinv(m) ; linalg.cond(m)
linalg.eigvals(m) ; linalg.matrix_rank(m) ; linalg.matrix_power(m, 3) ; linalg.householder_product(m, x[:2]) ; linalg.tensorinv(m, ind=1) ; linalg.tensorsolve(m, x[:2])
diff(x) ; logcumsumexp(x, 0) ; float_power(x, 2) ; where(x > 1, x, x) ; nan_to_num(x) ; quantile(x, 0.5) ; nanquantile(x, 0.5) ; histc(x)
all(x) ; any(x, 0) ; isneginf(x) ; isposinf(i) ; signbit(x) ; logsumexp(x, 0) ; cholesky_inverse(m) ; mvlgamma(x + 3, 2) ; ldexp(x, x)
fft.fft(x) ; fft.ifftn(x) ; fft.rfft(x) ; fft.rfft2(m) ; fft.ihfft(x) ; fft.hfft(c) ; fft.irfft(c) ; fft.irfftn(c) ; fft.hfft2(c.view(2, 2))
searchsorted(x, x) ; searchsorted(x, x, out_int32=True) ; bucketize(x, x) ; take(x, i) ; index_select(x, 0, i) ; masked_select(x, x > 1) ; nonzero(x) ; narrow_copy(x, 0, 0, 2)
dot(x, x) ; inner(x, x) ; tensordot(x, x, 1) ; amax(x, 0) ; complex(x, x) ; polar(x, x) ; slice_scatter(x, x[:2], 0, 0, 2) ; mean(x, 0) ; sum(i, 0) ; cumsum(i, 0)
add(x, x) ; add(i, i) ; logical_and(x, x) ; eq(x, x) ; mm(m, m) ; gather(x, 0, i) ; cat([x, x]) ; sort(x) ; topk(x, 2) ; max(x, 0) ; cummax(x, 0) ; mode(x) ; kthvalue(x, 2)
frexp(x) ; linalg.eigh(m) ; linalg.qr(m) ; linalg.slogdet(m) ; linalg.lu_factor(m) ; linalg.inv_ex(m) ; linalg.eig(m) ; geqrf(m) ; histogram(x, 3) ; aminmax(x)
"""  # noqa: E501


@pytest.mark.parametrize("line", CALLS.strip().splitlines())
def test_dtypes(line):
    def program(torch):
        def call(text):
            x = torch.tensor([1.5, 0.5, 2., 3.])
            names = {"x": x, "i": torch.tensor([0, 1, 2, 3]), "m": torch.tensor([[2., 0.5], [0.5, 3.]]),
                     "c": x + 1j * x}
            name = re.match(r"[\w.]+", text).group()
            function = attrgetter(name)(torch)
            def run(**more):
                return eval(f"function{text[len(name):-1]}, **more)", names | {"function": function, "more": more})

            result = attempt(run)
            count = len(result) if isinstance(result, tuple) else 1
            found = []
            for kind in ("int32", "int64", "bool", "float32", "float64", "complex64"):
                outs = tuple(torch.empty(0, dtype=getattr(torch, kind)) for _ in range(count))
                made = attempt(partial(run, out=outs[0] if count == 1 else outs))
                found.append(made if not isinstance(made, torch.Tensor) else str(made.dtype))
            return found
        return [(text, call(text.strip())) for text in line.split(" ; ")]
    same(program, rtol=1e-4, atol=1e-5)


def test_rows():
    rows = _out_dtypes._rows()
    assert len(rows) > 90 and {rule for rule, _ in rows.values()} == {*_out_dtypes.FITS, 'both'}
    assert all(messages and all(messages) or rule == "any" for rule, messages in rows.values())
