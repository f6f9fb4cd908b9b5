"""The elementwise, reducing, sorting and matrix functions beside PyTorch: values, dtypes, warnings, the first line of
errors, and gradients.
"""
import numpy as np
import pytest
from side_by_side import compare, outcome, same
from support import needed

import tensorgrad

oracle = needed("torch")
nan, inf = float("nan"), float("inf")


def given(torch):
    """The names that expressions are written in."""
    return {"torch": torch, "np": np, "nan": nan, "inf": inf,
            "x": torch.tensor([[1.0, 2.0], [3.0, 4.0]]), "z": torch.tensor(2.0), "o": torch.zeros(3),
            "E": torch.zeros(0), "E3": torch.zeros(0, 3),
            "i": torch.tensor([1, 2]), "v": torch.tensor([1, 2]), "u": torch.tensor([1, 2], dtype=torch.uint8),
            "b": torch.tensor([True, False]), "c": torch.tensor([1 + 1j])}


# ── expressions that come to the same: a value, or an error ───────────────────────────────────────────────────────────

EXPRESSIONS = {
    "arithmetic": """
    torch.clamp_min(b, b) ; torch.lerp(x, x.double(), .5) ; torch.addcdiv(i, i, i) ; torch.addcmul(i, i, i, value=1.5)
    torch.addcmul(x, x, x.double()) ; torch.addcmul(b, b, b) ; torch.heaviside(x, x.double()) ; torch.heaviside(i, i)
    torch.polar(x, x.double()) ; torch.complex(x, x.double()) ; torch.complex(i, i) ; torch.polar(i, i) ; torch.imag(x) ; torch.real(x)
    torch.view_as_complex(x) ; torch.view_as_real(x) ; torch.ldexp(x, i) ; torch.ldexp(i, i) ; torch.frexp(i) ; torch.copysign(i, -1)
    torch.atan2(i, i) ; torch.hypot(i, i) ; torch.nextafter(x, x.double()) ; torch.gcd(i, 4)
    torch.gcd(i, torch.tensor(4, dtype=torch.int32)) ; torch.sqrt(i) ; torch.signbit(b) ; torch.round(i) ; torch.round(x, decimals=1)
    torch.round(i, decimals=1) ; torch.trunc(b) ; torch.floor(c) ; torch.positive(b) ; torch.square(b) ; torch.reciprocal(b) ; torch.neg(b)
    torch.nan_to_num(i, nan=3) ; torch.nan_to_num(c*float('nan')) ; torch.clamp(b, 0, 1) ; torch.clamp(c, 0, 1)
    torch.clamp(x, 0, torch.tensor(1.)) ; torch.clamp(i, min=.5) ; torch.clamp(i, min=torch.tensor([.5, .5])) ; torch.float_power(i, 2)
    torch.float_power(x, c) ; torch.float_power(2, x) ; torch.remainder(c, 1) ; torch.remainder(5, i) ; 5%i ; 5//i ; 5.5//i
    torch.floor_divide(5, i) ; divmod(i, 2) ; i.__divmod__(2) ; torch.div(5, i) ; 5/i ; pow(2, i) ; torch.maximum(x, 1) ; torch.fmax(x, i)
    x.mul_(1j) ; i.add_(1.5) ; i.div_(2) ; b.add_(1) ; torch.add(x, i, alpha=2.5) ; torch.add(i, i, alpha=2.5) ; torch.add(b, b, alpha=True)
    torch.sub(x, 1, alpha=2) ; torch.rsub(x, 1) ; torch.rsub(x, x, alpha=3) ; x.__rsub__(1) ; torch.add(x, other=1) ; x.add(x, alpha=1j)
    2*i.to(torch.uint8) ; 300*i.to(torch.uint8) ; i.to(torch.uint8)+300 ; -1+i.to(torch.uint8) ; torch.logaddexp(i, i) ; torch.atan2(x, 1)
    torch.hypot(x, 1) ; torch.fmod(x, 0) ; torch.logit(x, 1.5) ; torch.deg2rad(i) ; torch.angle(i) ; torch.sgn(b) ; torch.conj_physical(x)
    x.conj() is x ; torch.angle(torch.tensor([float('nan')])) ; torch.tensor([1])//torch.tensor([0]) ; torch.tensor([2])**-1
    torch.tensor([True])**2 ; torch.tensor([5, -5, 5, -5])//torch.tensor([3, 3, -3, -3]) ; torch.tensor([2], dtype=torch.uint8)-3
    torch.tensor([1, 2]).clamp() ; x*np.float64(2) ; x*"a" ; "a"*x ; x+None ; x+[1, 2] ; torch.mul(x, None) ; torch.mul(x, "a")
    torch.mul(2, x) ; torch.exp(2) ; torch.ones(3)+torch.ones(4) ; torch.ones(2, 3)*torch.ones(2, 4)
    torch.ones(2, 3).add_(torch.ones(5, 2, 3)) ; -b ; b-b ; x-b ; b-1 ; 1-b ; b.abs() ; b.exp() ; torch.rsub(b, b) ; torch.sub(x, b)
    b.sign() ; torch.tensor([float('nan')]).sign() ; b.floor() ; i.floor() ; x//0 ; x%0 ; (-x)//2 ; (-x)%3 ; torch.fmod(-x, 3) ; (-x)**0.5
    (-x)**3 ; x**-2 ; x**0 ; 2**x ; (-2.)**x ; x**i ; i**i ; i**2 ; i**0.5 ; torch.tensor([2, 1, -1, 0])**torch.tensor([-1, -1, -1, -1])
    x/0 ; i/0 ; torch.div(i,2,rounding_mode='trunc') ; torch.div(-x,2,rounding_mode='floor') ; torch.div(x,2,rounding_mode='x')
    torch.square(x) ; torch.rsqrt(x) ; torch.lerp(x, -x, .3) ; torch.lerp(x, -x, x) ; torch.sinc(x/2) ; torch.frac(-x/3)
    torch.sgn(torch.tensor([3+4j, 0j])) ; torch.angle(torch.tensor([1j, -1+0j])) ; torch.frexp(x) ; torch.logaddexp(x, -x)
    torch.logaddexp2(x, -x) ; torch.logaddexp(torch.tensor([inf, -inf, inf]), torch.tensor([inf, -inf, -inf])) ; torch.copysign(x, -0.)
    torch.heaviside(x-2, x) ; torch.gcd(i*6, i*4) ; torch.lcm(i*6, i*4) ; torch.hypot(x, x) ; torch.clamp(x, 2, 3) ; torch.clamp(x, 3, 2)
    torch.clamp(x, max=2) ; torch.clip(x, min=x.flip(0)) ; torch.clamp(torch.tensor([nan, 1.]), 0, .5) ; torch.maximum(x, x.flip(0))
    torch.fmin(torch.tensor([nan, 1.]), torch.tensor([1., nan])) ; torch.nan_to_num(torch.tensor([nan, inf, -inf, 2.]))
    torch.nan_to_num(torch.tensor([nan, inf, -inf]), 1., posinf=5.) ; torch.addcdiv(x, x, x+1, value=.5) ; torch.true_divide(i, 2)
    torch.ldexp(x, x) ; torch.float_power(x, -1) ; torch.absolute(c) ; torch.square(c) ; torch.reciprocal(c) ; c**2 ; c**c ; torch.exp(c)
    torch.sqrt(c) ; torch.tanh(c) ; x*c ; x+1j ; i+1j ; b+b ; b*b ; b+1 ; b*2.5 ; u+250 ; u*-1 ; u-3 ; -u ; x+u ; torch.arctan2(x, -x)
    torch.deg2rad(x) ; torch.expm1(x) ; torch.log1p(x) ; torch.exp2(i) ; torch.log2(x) ; torch.log10(i) ; torch.sigmoid(-x*50)
    torch.round(x*2.5) ; torch.ceil(x/3) ; x.clone().add_(1).mul_(2).sub_(x).div_(3) ; x.add(2, alpha=3)
    x.clone().pow_(2).neg_().abs_().sqrt_() ; torch.positive(x) ; +x ; abs(-x) ; torch.view_as_complex(x).imag ; torch.imag(c)
    """,  # noqa: E501
    "comparisons": """
    torch.isposinf(c) ; torch.isreal(c) ; i<<True ; 1<<i ; 3&i ; 3|i ; True^b ; b&True ; b&1 ; b<<b ; torch.bitwise_and(i, 2.5)
    torch.bitwise_and(2, i) ; i<<64 ; i>>64 ; torch.bitwise_not(x) ; torch.logical_not(x) ; torch.logical_and(x, 1) ; b.logical_and(x)
    torch.isclose(x, x.double()) ; torch.isclose(x, x, rtol=-1) ; torch.isclose(i, i) ; torch.allclose(x, x+1e-9) ; torch.equal(x, i)
    torch.equal(x, x.double()) ; torch.equal(x, 1) ; torch.isin(i, torch.tensor([1])) ; torch.isin(1, i) ; torch.isin(i, 1)
    torch.isin(b, b) ; i.to(torch.uint8)<300 ; i.to(torch.uint8)==-1 ; x==None ; x=="a" ; x!=None ; x<None ; x==[1, 2] ; x==np.ones(2) ; ~x
    x&1 ; b<<1 ; x<<1
    """,  # noqa: E501
    "reductions": """
    x.sum(()) ; x.sum([]) ; x.amax(()) ; E.sum() ; E.prod() ; E.mean() ; E3.mean(0) ; E3.mean(1) ; E.var() ; E3.std(0) ; E.logsumexp(0)
    E3.logsumexp(0) ; E3.logsumexp(1) ; i.logsumexp(0) ; x.logsumexp((0, 1)) ; E.max() ; E.norm() ; E.norm(float('inf'))
    E3.norm(float('inf'),dim=0) ; E3.norm(float('inf'),dim=1) ; i.norm() ; x.norm('fro',dim=(0,1)) ; x.norm('x') ; x.norm(dim=(0, 1, 0))
    x.norm(2, dim=0, dtype=torch.float64) ; c.norm() ; z.norm() ; b.all(0) ; u.all() ; u.any(0) ; x.all((0, 1)) ; x.all(()) ; E.all()
    E.any() ; c.any() ; torch.any(x, dim=[0, 1]) ; i.sum(dtype=torch.float32) ; i.prod(dtype=torch.int8) ; u.sum() ; u.prod() ; b.sum()
    b.prod() ; i.mean(dtype=torch.float32) ; b.max() ; b.max(0) ; b.argmax() ; b.amax() ; c.argmax() ; i.var() ; torch.var(x, True)
    torch.var(x, False) ; torch.var(x, 0, False) ; torch.var(x, 0, unbiased=False, keepdim=True) ; torch.var(x, 0, correction=0)
    torch.var(x, [0, 1]) ; torch.var(x, dim=(), correction=2) ; x.argmax(0, True) ; x.argmax(keepdim=True) ; x.argmin(dim=None) ; z.argmax()
    z.argmax(0) ; z.max(0) ; x.max(dim=0, keepdim=True) ; torch.max(x, 1, True) ; x.max(keepdim=True) ; torch.aminmax(x)
    torch.aminmax(x, dim=0) ; x.aminmax(dim=0, keepdim=True) ; E.aminmax() ; E3.aminmax(dim=0) ; x.count_nonzero() ; x.count_nonzero(0)
    x.count_nonzero((0, 1)) ; c.count_nonzero() ; torch.renorm(x, 2, 0, 1.) ; torch.renorm(torch.ones(3), 2, 0, 1.) ; torch.dist(x, x+1, 3)
    torch.nansum(x) ; torch.nansum(i) ; torch.nanmean(i) ; torch.nansum(c) ; x.std(keepdim=True) ; torch.sum(x, 1, dtype=torch.int64)
    x.mean(0, dtype=torch.float64) ; x.mean((0, 1), True) ; x.mean(()) ; torch.sum(3) ; x.any(dim=2) ; torch.max(x, i) ; torch.max(x, x+1)
    x.max(i) ; torch.min(c, c) ; torch.tensor([1, 2]).mean() ; torch.tensor([1j]).max() ; x.sum(5) ; x.sum((0, 0)) ; x.sum((0, -2))
    z.sum(1) ; z.sum(0) ; x.max(7) ; E3.max(0) ; torch.zeros(3, 0).max(0) ; E.amax() ; E3.amax(0) ; E.argmax() ; E3.argmax(0) ; x.sum(1)
    x.sum(-1, keepdim=True) ; x.sum((0, 1)) ; x.sum(axis=0) ; x.sum(dim=0, keepdims=True) ; torch.sum(x, axis=1, keepdim=True) ; x.mean()
    x.mean(-1) ; x.prod(1) ; x.prod() ; x.amax(1) ; x.amin((0, 1)) ; x.max() ; x.min(1) ; x.max(1).values ; torch.min(x, 0).indices
    torch.tensor([1., nan, 3.]).max() ; torch.tensor([1., nan, 3.]).max(0) ; torch.tensor([1., nan, 3.]).amin()
    torch.tensor([3., 1., 3.]).argmax() ; torch.tensor([[1, 1], [1, 1]]).max(1) ; x.var(0) ; x.std(1, correction=0)
    x.var((0, 1), keepdim=True) ; torch.std_mean(x, 1) ; torch.var_mean(x) ; x.norm() ; x.norm(1) ; x.norm(3, 1) ; x.norm(inf)
    x.norm(-inf, 0) ; x.norm(0) ; x.norm(0.5) ; torch.norm(x, dim=1, keepdim=True) ; torch.dist(x, 2*x)
    torch.nansum(torch.tensor([1., nan])) ; torch.nanmean(torch.tensor([1., nan])) ; x.logsumexp(1, keepdim=True)
    torch.tensor([-inf, -inf]).logsumexp(0) ; torch.tensor([inf, 1.]).logsumexp(0) ; x.all() ; x.any(1) ; torch.all(b, 0, True) ; u.max()
    i.max(0) ; i.argmin() ; torch.aminmax(i) ; x.half().sum() ; x.half().mean(0) ; x.bfloat16().sum(1) ; x.double().var()
    torch.count_nonzero(b) ; c.sum() ; c.mean() ; c.prod()
    """,  # noqa: E501
    "running": """
    u.cumsum(0) ; b.cumsum(0) ; b.cumprod(0) ; x.cumsum(3) ; z.cumsum(0) ; x.cummax(1) ; E3.cummax(0) ; E3.cummax(1) ; z.cummax(0)
    x.logcumsumexp(0) ; i.logcumsumexp(0) ; x.diff() ; b.diff() ; z.diff() ; x.diff(n=5) ; x.diff(prepend=z) ; x.diff(n=-1)
    torch.trapezoid(x) ; torch.trapezoid(i) ; torch.trapezoid(x, dx=2) ; torch.trapezoid(z) ; torch.trapezoid(x, torch.ones(3))
    torch.cumulative_trapezoid(x) ; torch.gradient(x) ; torch.gradient(x, spacing=2.) ; torch.gradient(torch.ones(3), edge_order=2)
    torch.gradient(torch.ones(2), edge_order=2) ; x.diff(prepend=torch.zeros(3, 3)) ; torch.trapezoid(x, dim=3)
    torch.trapezoid(torch.zeros(2, 0)) ; torch.trapezoid(torch.zeros(0, 2)) ; torch.cumulative_trapezoid(torch.zeros(0, 2))
    torch.cumulative_trapezoid(x, torch.tensor([0., 2.])) ; torch.gradient(x, spacing=[1., 2.], dim=(0, 1))
    torch.gradient(x, spacing=(torch.tensor([0., 2.]), torch.tensor([0., 3.]))) ; torch.gradient(x, spacing=[1., 2., 3.])
    torch.gradient(x, spacing=1, dim=3) ; torch.gradient(x, edge_order=3) ; torch.gradient(torch.ones(1)) ; torch.gradient(i)
    torch.gradient(x, dim=0) ; x.cumsum(0, dtype=torch.float64) ; x.cumprod(dim=1) ; x.cumsum(0) ; x.cumprod(-1) ; x.cummin(0)
    torch.tensor([1., 1., nan, 2., nan]).cummax(0) ; torch.tensor([2, 1, 1, 3]).cummin(0) ; x.logcumsumexp(1) ; x.diff(dim=0) ; x.diff(n=2)
    x.diff(n=0) ; i.diff(append=i) ; torch.cumulative_trapezoid(x, dx=.5) ; torch.trapezoid(x, x.flip(0))
    torch.gradient(torch.tensor([1., 4., 9., 16.]), edge_order=2)
    torch.gradient(torch.tensor([1., 4., 9.]), spacing=(torch.tensor([0., 1., 4.]), ), edge_order=2) ; torch.cumsum(c, 0)
    x.clone().cumsum_(0) ; z.clone().cumprod_(0)
    """,  # noqa: E501
    "order": """
    E.median() ; E3.median(0) ; E3.median(1) ; E.kthvalue(1) ; x.kthvalue(3) ; x.kthvalue(0) ; z.kthvalue(1) ; x.topk(3) ; x.topk(-1)
    z.topk(1) ; x.topk(1, dim=5) ; E.mode() ; E3.mode(0) ; E3.mode(1) ; torch.unique(x) ; torch.unique(x, return_inverse=True)
    torch.unique(x, return_inverse=True, return_counts=True, dim=0) ; torch.unique_consecutive(i, return_counts=True)
    torch.searchsorted(i, 2) ; torch.searchsorted(i, torch.tensor([2, 5])) ; torch.searchsorted(x, x)
    torch.searchsorted(x, torch.ones(3, 2)) ; torch.searchsorted(i, 2.5) ; torch.searchsorted(i,i,right=True,side='left')
    torch.searchsorted(i,i,side='foo') ; torch.searchsorted(z, z) ; torch.searchsorted(i, i, out_int32=True)
    torch.searchsorted(i, i, sorter=torch.tensor([0, 1])) ; torch.bucketize(x, i) ; torch.bucketize(x, torch.tensor([1., 2.]))
    torch.bucketize(2.5, torch.tensor([1., 2.])) ; x.sort() ; x.sort(0, True) ; x.sort(descending=True) ; x.sort(stable=True, dim=0)
    z.sort() ; x.argsort(descending=True) ; torch.msort(x) ; c.sort() ; x.nanmedian() ; i.median() ; b.median() ; x.mode()
    torch.unique(torch.tensor([3, 1, 1]), sorted=False) ; torch.unique(torch.tensor([[3, 1, 1], [2, 2, 2]]), dim=1, return_counts=True)
    torch.unique_consecutive(torch.tensor([1, 1, 2, 1]), return_inverse=True) ; torch.unique(z) ; torch.unique(torch.zeros(0))
    torch.unique(torch.zeros(0, 2), dim=0) ; torch.unique(torch.zeros(2, 0), dim=0) ; torch.unique(x, dim=5)
    torch.unique_consecutive(torch.zeros(0, 2), dim=0) ; torch.bucketize(x, x)
    torch.bucketize(x, torch.tensor([1, 2]), right=True, out_int32=True)
    torch.searchsorted(torch.tensor([[1, 2], [3, 4]]), torch.tensor([[1], [4]]), right=True)
    torch.searchsorted(torch.tensor([[1, 2], [3, 4]]), 5) ; torch.searchsorted(torch.tensor([1., 2.]), torch.tensor([1, 2]))
    torch.searchsorted(torch.tensor([3, 1, 2]), torch.tensor([1, 2]), sorter=torch.tensor([1, 2, 0]))
    torch.searchsorted(torch.tensor([3, 1, 2]), torch.tensor([1, 2]), sorter=torch.tensor([1., 2, 0]))
    torch.searchsorted(torch.tensor([3, 1, 2]), torch.tensor([1, 2]), sorter=torch.tensor([1, 2]))
    torch.searchsorted(torch.tensor([3, 1, 2]), torch.tensor([1, 2]), sorter=torch.tensor([1, 2, 9])) ; torch.topk(i, 1, 0, False)
    torch.topk(x, k=1, dim=0, largest=True, sorted=False) ; torch.tensor([1., nan, 0.]).sort()
    torch.tensor([1., nan, 0.]).sort(descending=True) ; torch.tensor([1., nan, 0.]).topk(2)
    torch.tensor([1., nan, 0.]).topk(2, largest=False) ; torch.tensor([1., nan, 0.]).kthvalue(3).values ; x.median() ; x.median(1, True)
    torch.tensor([1., nan, 3.]).median() ; torch.tensor([1., nan, 3.]).median(0) ; torch.tensor([nan, 1., nan, 3.]).nanmedian(0)
    torch.tensor([1., 2., 2., 1., 3.]).mode() ; torch.tensor([3, 2, 2, 2, 3, 3]).mode() ; x.mode(0, True)
    torch.tensor([[2, 1, 2], [1, 1, 3]]).sort(dim=1, stable=True, descending=True) ; torch.tensor([True, False]).sort()
    torch.tensor([3, 1, 2]).argsort() ; torch.unique(b, return_counts=True)
    torch.unique_consecutive(torch.tensor([[1, 1], [1, 1], [2, 1]]), dim=0, return_inverse=True, return_counts=True)
    torch.searchsorted(torch.tensor([1.,2.,2.,3.]),torch.tensor([[2.,nan],[0.,9.]]),side='right')
    """,  # noqa: E501
    "statistics": """
    x.quantile(.5) ; x.quantile(torch.tensor([.1, .5], dtype=torch.float64)) ; x.quantile(1.5) ; x.quantile(torch.tensor([[.1]]))
    x.quantile(.5,interpolation='foo') ; i.quantile(.5) ; x.quantile(torch.tensor([.5]), dim=0, keepdim=True) ; E.quantile(.5)
    x.quantile(torch.tensor([.25, .5]), dim=0) ; torch.tensor([float('nan'),1.,2]).nanquantile(.5)
    torch.tensor([float('nan'),float('nan')]).nanquantile(.5) ; torch.cov(x) ; torch.cov(z) ; torch.cov(torch.ones(2, 2, 2))
    torch.cov(x, fweights=i) ; torch.cov(x, aweights=torch.tensor([.5, .5])) ; torch.corrcoef(x) ; torch.histc(x, 4) ; torch.histc(i)
    torch.histc(x, 4, 1, 0) ; torch.histc(x, 0) ; torch.histc(torch.tensor([float('nan')]),4) ; torch.bincount(i) ; torch.bincount(x)
    torch.bincount(i, minlength=-1) ; torch.bincount(torch.tensor([-1])) ; torch.bincount(torch.zeros(0, dtype=torch.int64))
    torch.bincount(i, torch.tensor([.5, 1.])) ; torch.bincount(i, torch.tensor([1])) ; torch.bincount(i, i) ; torch.histogram(x, 4)
    torch.histogram(x, torch.tensor([0., 1., 2.])) ; torch.histogram(i, 4) ; torch.histc(x, 4, min=0, max=0)
    torch.histc(torch.tensor([2., 2.]), 4) ; torch.histc(torch.zeros(0), 4) ; torch.histc(x, 3, 1, 4) ; torch.histogram(x, 0)
    torch.histogram(x, 3, range=(0., 3.)) ; torch.histogram(x, 3, weight=x, density=True) ; torch.histogram(x, 3, weight=torch.ones(1))
    torch.histogramdd(x, [2, 2]) ; torch.histogramdd(x, 2) ; torch.histogramdd(x, [2, 2], range=[0., 1., 0., 1.])
    torch.histogramdd(x, [torch.tensor([0., 1., 2.]), torch.tensor([0., 1., 2., 5.])]) ; torch.histogramdd(x, [2, 2, 2])
    torch.cov(x, correction=0) ; torch.cov(x, correction=5) ; torch.cov(x, fweights=torch.tensor([1., 2.]))
    torch.cov(x, fweights=torch.tensor([1, -2])) ; torch.cov(x, fweights=torch.tensor([1, 2, 3]))
    torch.cov(x, aweights=torch.tensor([1, 2])) ; torch.cov(torch.tensor([True, False])) ; torch.cov(i) ; torch.corrcoef(torch.ones(3))
    torch.corrcoef(z) ; torch.quantile(x,.5,dim=1,interpolation='nearest')
    """,  # noqa: E501
    "products": """
    torch.mm(x, i) ; torch.mm(x, torch.ones(3, 2)) ; torch.mm(x, x.double()) ; x@torch.ones(3) ; x@x.double() ; x@torch.ones(3, 2)
    torch.ones(2, 2, 3)@torch.ones(3, 3, 2) ; torch.ones(2, 2, 3)@torch.ones(2, 2, 2) ; z@x ; torch.matmul(x, 2) ; torch.bmm(x, x)
    torch.bmm(torch.ones(2, 2, 3), torch.ones(3, 3, 2)) ; torch.bmm(torch.ones(2, 2, 3), torch.ones(2, 2, 2)) ; torch.mv(x, torch.ones(3))
    torch.mv(x, x) ; torch.dot(torch.ones(2), torch.ones(3)) ; torch.dot(x, x) ; torch.dot(torch.ones(2), torch.ones(2).double())
    torch.vdot(torch.ones(2), x) ; torch.inner(x, torch.ones(3)) ; torch.inner(x, z) ; torch.outer(x, x)
    torch.ger(torch.ones(2), torch.ones(3)) ; torch.addmm(x, x, torch.ones(3, 3)) ; torch.addmm(x, x, x, beta=0, alpha=2)
    torch.addmm(torch.ones(5, 5), x, x) ; torch.addmm(x*float('nan'),x,x,beta=0) ; torch.addmm(i, x, x)
    torch.addmv(torch.ones(2), x, torch.ones(2), beta=.5) ; torch.addmv(torch.ones(2), x, x)
    torch.addbmm(x, torch.ones(3, 2, 2), torch.ones(3, 2, 2)) ; torch.baddbmm(x, torch.ones(3, 2, 2), torch.ones(3, 2, 2))
    torch.baddbmm(x, torch.ones(3, 2, 2), torch.ones(3, 3, 2)) ; torch.addr(x, torch.ones(2), torch.ones(2))
    torch.addr(x, x, torch.ones(2)) ; torch.tensordot(x, x) ; torch.tensordot(x, x, 1) ; torch.tensordot(x, x, dims=([0], [1]))
    torch.tensordot(x, x, 3) ; torch.tensordot(x, x, dims=([0, 1], [1])) ; torch.tensordot(x, torch.ones(3, 3), 1)
    torch.tensordot(x, x, -1) ; torch.kron(x, i) ; torch.cross(torch.ones(2, 3), torch.ones(3), dim=1) ; torch.matrix_power(x, 3)
    torch.matrix_power(x, 0) ; torch.matrix_power(torch.ones(2, 3), 2) ; torch.matrix_power(i.diag(), 2) ; torch.cdist(x, x)
    torch.cdist(x, torch.ones(2, 3)) ; torch.cdist(x, x, p=-1) ; torch.cdist(i, i) ; torch.cdist(x, x.double()) ; torch.trace(x)
    torch.trace(torch.ones(2)) ; torch.tensor([[1, 2]])@torch.tensor([[1], [2]])
    torch.tensor([1.], dtype=torch.float16)@torch.tensor([1.], dtype=torch.float16) ; torch.addmm(i, i, i, beta=.6, alpha=.2)
    torch.addmm(i, i, i, beta=2.6, alpha=1.2) ; torch.addmv(v, i, v, beta=2.6) ; torch.addr(i, v, v, beta=.5)
    torch.addr(b, b, b, beta=3, alpha=2) ; x@2 ; x@x ; x@x[0] ; x[0]@x ; x[0]@x[1] ; torch.ones(2, 1, 2, 3)@torch.ones(3, 3, 2)
    torch.ones(4, 2, 3)@torch.ones(3, 2) ; torch.ones(4, 2, 3)@torch.ones(3) ; torch.ones(3)@torch.ones(4, 3, 2)
    torch.ones(0, 2)@torch.ones(2, 3) ; torch.ones(2, 0)@torch.ones(0, 3) ; torch.zeros(0)@torch.zeros(0) ; i@i ; u@u ; c@c
    torch.vdot(c, c) ; torch.dot(i, i) ; torch.inner(x, x) ; torch.outer(i, x[0]) ; torch.mv(x, x[0])
    torch.baddbmm(z, x[None], x[None], beta=0, alpha=.5) ; torch.kron(x, x) ; torch.kron(i, x) ; torch.cdist(x, -x, p=1)
    torch.cdist(x, -x, p=inf) ; torch.cdist(x[None], x) ; torch.tensordot(x, x, ([0, 1], [1, 0]))
    torch.cross(torch.ones(3, 3), x[0, 0]*torch.eye(3), dim=1) ; torch.trace(torch.tensor([[1, 2], [3, 4]])) ; x.clone().addmm_(x, x)
    """,  # noqa: E501
    "einsum": """
    torch.einsum('ij,jk',x,x) ; torch.einsum('ij,jk->x',x,x) ; torch.einsum('ij',x,x) ; torch.einsum('ijk',x) ; torch.einsum('i j -> j i',x)
    torch.einsum('ii->i',torch.ones(2,3)) ; torch.einsum('ij,kj',x,torch.ones(2,3)) ; torch.einsum('i.j',x) ; torch.einsum('ij->ii',x)
    torch.einsum('...j,j',x,torch.ones(2)) ; torch.einsum(x, [0, 1], x, [1, 2]) ; torch.einsum(x, [0, 1], x, [1, 2], [0, 2])
    torch.einsum(x, [Ellipsis, 0], [0, Ellipsis]) ; torch.einsum('iJ,Jk',x,x) ; torch.einsum('ab,bc') ; torch.einsum('a$,bc',x,x)
    torch.einsum('ij,jk',[x,x]) ; torch.einsum('',z) ; torch.einsum(',',z,z) ; torch.einsum('ii',x) ; torch.einsum('ii->i',x)
    torch.einsum('ij->',x) ; torch.einsum('ij->j',x) ; torch.einsum('i,j',x[0],x[1]) ; torch.einsum('ij,ij->ij',x,x)
    torch.einsum('ij,ij->i',x,x) ; torch.einsum('bij,bjk->bik',x[None],x[None])
    torch.einsum('...ij,...jk->...ik',torch.ones(2,1,2,3),torch.ones(3,3,2)) ; torch.einsum('ij,jk,kl->il',x,x,x)
    torch.einsum('ij,kl,jk->il',x,x,x) ; torch.einsum('i...,i...->...',x,x) ; torch.einsum('ab,cd->dcba',x,x)
    torch.einsum('ij,j->ij',x,torch.ones(1)) ; torch.einsum('...i->...',x) ; torch.einsum('ijk,ilm,njm,nlk,abc->',*[torch.ones(2,2,2)]*5)
    """,  # noqa: E501
    "special": """
    torch.xlogy(i, i) ; torch.xlogy(2, x) ; torch.xlogy(x, 2) ; torch.special.xlog1py(2, x) ; torch.erf(x) ; torch.erfinv(i)
    torch.digamma(b) ; torch.special.psi(x) ; torch.polygamma(2, x) ; torch.polygamma(-1, x) ; x.polygamma(1)
    torch.special.polygamma(1, i) ; torch.mvlgamma(x, 2) ; torch.mvlgamma(x, 0) ; torch.special.multigammaln(i+2, 2)
    torch.special.zeta(2, x) ; torch.special.zeta(x+1, 2) ; torch.igamma(x, x) ; torch.igamma(x, 2) ; torch.igamma(i, i)
    torch.special.gammaincc(x, x) ; torch.special.entr(i) ; torch.special.airy_ai(i) ; torch.special.chebyshev_polynomial_t(x, 3)
    torch.special.chebyshev_polynomial_u(x, i) ; torch.special.chebyshev_polynomial_v(2, i) ; torch.special.chebyshev_polynomial_w(x, -1)
    torch.special.hermite_polynomial_h(x, 2.7) ; torch.special.laguerre_polynomial_l(x, -3) ; torch.special.legendre_polynomial_p(x, i)
    torch.special.hermite_polynomial_he(x, 4) ; torch.special.shifted_chebyshev_polynomial_t(x, 4)
    torch.special.shifted_chebyshev_polynomial_u(x, 4) ; torch.special.shifted_chebyshev_polynomial_v(x, 4)
    torch.special.shifted_chebyshev_polynomial_w(x, 4) ; torch.special.expit(i) ; torch.special.round(x, decimals=0)
    torch.special.logsumexp(x, 0) ; torch.special.logit(x/5, eps=.3) ; torch.special.spherical_bessel_j0(x) ; torch.special.gammaln(x)
    torch.special.modified_bessel_i0(x) ; torch.special.bessel_y1(x) ; torch.special.scaled_modified_bessel_k1(x)
    torch.special.log_ndtr(-x*9) ; torch.special.ndtri(x/5) ; torch.special.erfcx(x*9) ; torch.special.i1e(x) ; x.clone().erfc_()
    x.clone().i0_()
    """,  # noqa: E501
    "results_given": """
    torch.mm(x, x, out=torch.zeros(2, 2).double()) ; torch.mm(x, x, out=torch.zeros(2, 2, dtype=torch.int64))
    torch.add(x, x, out=torch.zeros(2, 2).double()) ; torch.add(x, x, out=torch.zeros(2, 2, dtype=torch.int64))
    torch.cumsum(x, 0, out=torch.zeros(2, 2).double()) ; torch.max(x, 0, out=(torch.zeros(2).double(), torch.zeros(2).long()))
    torch.max(x, 0, out=(torch.zeros(2), torch.zeros(2))) ; torch.sort(x, 0, out=(torch.zeros(2, 2), torch.zeros(2, 2)))
    torch.topk(x, 1, out=(torch.zeros(2, 1).double(), torch.zeros(2, 1).long())) ; torch.mean(x, out=torch.zeros(()).double())
    torch.var(x, out=torch.zeros(()).double()) ; torch.argmax(x, out=torch.zeros(())) ; torch.any(x, out=torch.zeros((), dtype=torch.uint8))
    torch.eq(x, x, out=torch.zeros(2, 2)) ; torch.matmul(x, x, out=torch.zeros(2, 2).double())
    torch.bmm(x[None], x[None], out=torch.zeros(1, 2, 2).double()) ; torch.addmm(x, x, x, out=torch.zeros(2, 2).double())
    torch.outer(x[0], x[0], out=torch.zeros(2, 2).double()) ; torch.logsumexp(x, 0, out=torch.zeros(2).double())
    torch.aminmax(x, dim=0, out=(torch.zeros(2).double(), torch.zeros(2))) ; torch.norm(x, out=torch.zeros(()).double())
    torch.cross(torch.ones(3), torch.ones(3), dim=0, out=torch.zeros(3).double()) ; torch.kron(x, x, out=torch.zeros(4, 4).double())
    torch.diff(x, out=torch.zeros(2, 1).double()) ; torch.sigmoid(x, out=torch.zeros(2, 2).double())
    torch.kthvalue(o, 2, out=(o, torch.zeros((), dtype=torch.int64))) ; torch.add(o[:2], o[1:], out=o[1:]) ; torch.add(o[:2], 1, out=o[1:])
    torch.exp(o[:2], out=o[1:]) ; torch.exp(x, out=3) ; torch.exp(x, out=torch.zeros(3))
    torch.exp(x.requires_grad_(), out=torch.zeros(2, 2))
    """,  # noqa: E501
}


@pytest.mark.parametrize("expression", [e.strip() for text in EXPRESSIONS.values() for line in text.strip().splitlines()
                                        for e in line.split(" ; ")])
def test_expression(expression):
    def program(torch):
        return eval(expression, given(torch))
    compare(outcome(program, tensorgrad), outcome(program, oracle), 2e-5, 1e-6, expression)


# ── gradients, where they are not obvious: ties, zeros, infinities, broadcasting ──────────────────────────────────────

POINTS = {
    "ties": [[3.0, 1.0, 3.0], [2.0, 2.0, 2.0]],
    "zeros": [[0.0, 2.0, 3.0], [0.0, 0.0, 4.0], [1.5, 2.0, -3.0]],
    "mixed": [[-2.0, 0.0, 0.5], [1.0, -1.0, 3.0]],
    "positive": [[0.5, 1.0, 2.0], [3.0, 0.1, 1.5]],
    "row": [0.5, -1.0, 2.0],
    "square": [[1.0, 2.0, 0.5], [-1.0, 0.3, 2.0], [0.7, 1.1, -0.4]],
    "stack": [[[1.0, 2.0], [0.5, -1.0]], [[0.3, 2.0], [0.7, 1.1]]],
    "complex": [[1 + 2j, -0.5j], [0.3 - 1j, 2 + 0.1j]],
    "other": [[0.5 - 1j, 2j], [1.3 + 1j, -2 + 0.5j]],
}
GRADIENTS = """
    ties.max() ; ties.min() ; ties.amax(1) ; ties.amin((0, 1)) ; ties.max(1).values ; ties.min(0).values ; ties.median() ; ties.median(1).values
    torch.aminmax(ties, dim=1).max ; ties.cummax(1).values ; ties.cummin(0).values ; torch.maximum(ties, row) ; torch.minimum(ties, ties.flip(1))
    torch.fmax(ties, row) ; torch.fmin(ties, row) ; ties.mode(1).values ; ties.sort(1).values ; ties.topk(2, 1).values
    zeros.prod() ; zeros.prod(1) ; zeros.prod(0, keepdim=True) ; zeros.cumprod(1) ; zeros.cumprod(0) ; zeros.abs() ; zeros.norm() ; zeros.norm(2, 1)
    zeros.norm(1, 0) ; zeros.norm(3) ; zeros.norm(inf, 1) ; (zeros ** 2) ; (zeros ** 0) ; (zeros ** 3) ; zeros.sign() ; torch.sgn(zeros)
    zeros.relu()
    torch.sinc(zeros) ; torch.pow(zeros.abs(), positive[:1]) ; torch.pow(positive, row) ; torch.pow(positive[:1], zeros) ; torch.pow(2.0, mixed)
    torch.where(mixed > 0, mixed.abs().sqrt(), 0.0) ; torch.where(mixed > 0, mixed, row) ; mixed.clamp(-1, 1) ; mixed.clamp(min=row)
    mixed.clamp(row, row + 1)
    mixed.clamp(max=0) ; torch.atan2(mixed, row) ; torch.atan2(zeros, zeros) ; torch.hypot(positive, row) ; torch.fmod(positive, row)
    torch.remainder(mixed, row)
    torch.div(mixed, row, rounding_mode='floor') ; torch.copysign(mixed, row) ; torch.xlogy(zeros[:2], positive) ; torch.lerp(mixed, row, positive)
    torch.addcmul(mixed, row, positive, value=2) ; torch.addcdiv(mixed, row, positive) ; torch.logaddexp(mixed, row) ; torch.logaddexp2(mixed, row)
    torch.logit(positive / 4) ; torch.logit(mixed, eps=0.2) ; torch.nan_to_num(mixed / zeros[:2]) ; torch.frac(mixed) ; mixed.round()
    mixed.sigmoid()
    torch.special.xlog1py(zeros[:2], positive) ; torch.special.entr(positive) ; torch.special.zeta(2.5, positive)
    torch.igamma(row.abs().detach(), positive)
    positive.lgamma() ; positive.digamma() ; torch.polygamma(1, positive) ; (mixed / 4).erfinv() ; mixed.erf() ; mixed.i0() ; torch.special.i1(zeros)
    torch.special.i1e(mixed) ; torch.special.log_ndtr(mixed) ; positive.mvlgamma(1) ; torch.special.ndtri(positive / 4) ; torch.special.erfcx(mixed)
    mixed.var() ; mixed.var(1, correction=0) ; mixed.std(0) ; torch.std_mean(mixed, 1)[0] ; torch.var_mean(mixed, 1)[1] ; ties.std(1)
    mixed.mean((0, 1))
    mixed.logsumexp(1) ; mixed.logcumsumexp(1) ; mixed.cumsum(0) ; mixed.sum(0) ; torch.nansum(mixed / zeros[:2]) ; mixed.renorm(2, 0, 1.0)
    torch.dist(mixed, row)
    mixed.quantile(0.3) ; mixed.quantile(torch.tensor([0.2, 0.9], dtype=torch.float64), dim=1) ; mixed.nanmedian(1).values ; mixed.diff()
    mixed.diff(n=2, prepend=mixed)
    torch.trapezoid(mixed, row) ; torch.cumulative_trapezoid(mixed, dx=0.5) ; torch.gradient(square)[0]
    torch.gradient(square, spacing=(row.sort()[0],), dim=1)[0]
    torch.cov(mixed) ; torch.corrcoef(square) ; torch.cdist(mixed, positive) ; torch.cdist(mixed, mixed) ; torch.cdist(mixed, positive, p=1)
    torch.cdist(zeros, zeros, 3)
    square @ square ; square @ row ; row @ square ; row @ row ; stack @ stack ; stack @ square[:2, :2] ; square[:2, :2] @ stack ; stack @ row[:2]
    row[:2] @ stack
    torch.addmm(row, square, square, beta=0.5, alpha=2) ; torch.addmm(square, square, square, beta=0) ; torch.addmv(row, square, row)
    torch.addr(square, row, row)
    torch.baddbmm(stack, stack, stack) ; torch.addbmm(square[:2, :2], stack, stack) ; torch.outer(row, row) ; torch.inner(square, mixed)
    torch.kron(mixed, row)
    torch.tensordot(stack, stack, 2) ; torch.tensordot(stack, stack, ([0, 1], [1, 2])) ; torch.cross(square, mixed[:1].expand(3, 3), dim=1)
    torch.matrix_power(square, 3)
    torch.trace(square) ; torch.einsum('ii', square) ; torch.einsum('ii->i', square) ; torch.einsum('bij,bjk->bik', stack, stack)
    torch.einsum('ij,j->i', square, row) ; torch.einsum('ij,kj,k->', square, square, row) ; torch.einsum('...i,i->...', stack, row[:2])
    torch.einsum('i,j->ij', row, row)
    complex.abs() ; complex.angle() ; complex.sgn() ; complex * other ; complex / other ; complex ** 2 ; complex.exp() ; complex.log()
    complex.sqrt() ; complex.tanh()
    complex @ other ; complex.prod() ; complex.cumprod(0) ; complex.sum(1) ; complex.var() ; complex.std(0) ; complex.norm() ; complex.norm(3, 1)
    complex.conj() * other
    complex.real ; complex.imag ; torch.view_as_real(complex) ; torch.polar(positive, mixed) ; torch.complex(positive, mixed)
    torch.vdot(complex[0], other[0])
    complex.mean() * 2 ; complex.reciprocal() ; torch.pow(complex, other) ; complex.acos() ; complex.atan() ; complex.sigmoid()
    complex.logsumexp(0) ; positive * complex[:, :1]
"""  # noqa: E501


def derivatives(torch, expression):
    """The value, the gradients of all that it is made of, and the gradients of those (PyTorch has none for cdist)."""
    points = {name: torch.tensor(value, dtype=torch.complex128 if "j" in str(value) else torch.float64,
                                 requires_grad=True)
              for name, value in POINTS.items() if name in expression}
    leaves, twice = list(points.values()), "cdist" not in expression
    out = eval(expression, given(torch) | points)
    first = torch.autograd.grad(out, leaves, weights(torch, out), create_graph=twice, allow_unused=True)
    moving = [g for g in first if g is not None and g.requires_grad]
    second = (torch.autograd.grad(moving, leaves, [weights(torch, g) for g in moving], allow_unused=True) if moving
              else [])
    return [[None if g is None else g.detach().clone().resolve_conj().numpy() for g in part]
            for part in ([out], first, second)]


def weights(torch, tensor):
    """Unequal numbers in the shape of a tensor."""
    wave = np.cos(1.7 * np.arange(tensor.numel()) + 0.4).reshape(tuple(tensor.shape)) + 0.1
    return torch.tensor(wave, dtype=torch.float64).to(tensor.dtype)


@pytest.mark.parametrize("expression", [e.strip() for line in GRADIENTS.strip().splitlines()
                                        for e in line.split(" ; ")])
def test_gradients(expression):
    (value, first, second), (its_value, its_first, its_second) = (derivatives(torch, expression)
                                                                  for torch in (tensorgrad, oracle))
    for ours, theirs in zip(value + first, its_value + its_first, strict=True):
        assert (ours is None) is (theirs is None)
        if ours is not None:
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)
    for ours, theirs in zip(second, its_second, strict=False):
        ours, theirs = (np.zeros(()) if g is None else g for g in (ours, theirs))
        known = ~np.isnan(theirs)       # at some points where PyTorch says NaN there is a derivative
        np.testing.assert_allclose(np.where(known, ours, 0), np.where(known, theirs, 0), rtol=1e-8, atol=1e-9)


# ── operators and classes of operands ─────────────────────────────────────────────────────────────────────────────────


class Foreign:
    """A class with reflected operators for tensors on the left."""

    def __radd__(self, other):
        return "added"


def test_operators_leave_foreign_classes_to_themselves():
    x = tensorgrad.ones(2)
    assert x + Foreign() == "added"
    for operation in ("x + 'a'", "x @ 2", "x - None", "[1] + x", "x < None", "x ** 'a'", "x & 'a'"):
        with pytest.raises(TypeError):
            eval(operation, {"x": x})
    assert (x == "a") is False and (x != None) is True  # noqa: E711


@pytest.mark.parametrize("number", [np.float64(2), np.float32(2), np.int64(2)], ids=repr)
@pytest.mark.parametrize("sign", ["x + n", "n + x", "x - n", "n - x", "x * n", "n / x", "x ** n"])
def test_numpy_operands(number, sign):
    """NumPy's scalars count as Python numbers on either side."""
    x = tensorgrad.tensor([1.0, 4.0], requires_grad=True)
    out = eval(sign, {"x": x, "n": number})
    expected = eval(sign, {"x": np.array([1.0, 4.0]), "n": number})
    assert isinstance(out, tensorgrad.Tensor) and out.requires_grad and out.dtype is tensorgrad.float32
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-6)


def test_in_place_operators_keep_identity_and_history():
    x = tensorgrad.tensor([1.0, 2.0], requires_grad=True)
    y = z = x * 1
    y += 1
    y *= x
    y -= 0.5
    y /= 2
    assert y is z and y._version == 4
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [(2 * 1 + 1) / 2, (2 * 2 + 1) / 2])


def test_in_place_writes_are_seen_by_views_and_by_the_tape():
    base = tensorgrad.zeros(4)
    view = base[1:3]
    base += 1
    view *= 3
    assert base.tolist() == [1, 3, 3, 1]
    x = tensorgrad.ones(2, requires_grad=True)
    held = tensorgrad.full((2,), 3.0)
    out = x * held
    held += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_named_results():
    found = tensorgrad.tensor([[1.0, 5.0], [7.0, 3.0]]).max(1)
    assert repr(found) == repr(oracle.tensor([[1.0, 5.0], [7.0, 3.0]]).max(1))
    values, indices = found
    assert found.values is values and found[1] is indices is found.indices
    assert type(found) is tensorgrad.return_types.max and type(found)(found) == found


def test_deviations_beyond_the_range_of_squares():
    """The squares of these numbers are out of their dtype's range; the deviation is not, and has a gradient.

    Large arrays take other kernels.
    """
    def program(torch):
        x = torch.tensor([[1e30, -1e30, 2.], [1e-30, 3e-30, -1e-30], [1., 2., 4.]], requires_grad=True)
        large = torch.arange(1., 5001.).reshape(50, 100) * 1e20
        half = torch.tensor([300., -300., 2.], dtype=torch.float16)
        found = [x.std(), x.std(1), x[1].std() * 1e30, x.std(0, correction=0), large.std(), large.std(0), large.std(1),
                 half.std()]
        return [*found, half.to(torch.bfloat16).std(), torch.std_mean(half)[0], half.var(correction=0),
                torch.autograd.grad(x.std(1), x, torch.tensor([1., 2., 3.]))[0][::2]]
    same(program, rtol=1e-3)


def test_integers_beside_floats_in_gradients_of_special_functions():
    def program(torch):
        a, x = (torch.tensor([1, 2, 3, 5], dtype=torch.int16),
                torch.tensor([.5, 1., 2., 7.], dtype=torch.float64, requires_grad=True))
        return [torch.autograd.grad(f(a, x).sum(), x) for f in (torch.special.gammainc, torch.special.gammaincc)]
    same(program)


def test_orders_of_memory_and_of_products():
    """Noise for transposed logits is drawn in rows; a step beyond float32 meets a sum; an empty result of unpooling
    requires a gradient.
    """
    def program(torch):
        F = torch.nn.functional
        torch.manual_seed(0)
        empty = F.max_unpool1d(torch.ones(1, 2, 3, requires_grad=True), torch.zeros(1, 2, 3, dtype=torch.int64), 0)
        return (F.gumbel_softmax(torch.zeros(4, 3).T), torch.trapezoid(torch.tensor([1., -2., 6.]), dx=1e300),
                empty.requires_grad, empty.shape)
    same(program)
