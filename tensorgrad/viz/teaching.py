"""The rules of ops whose backward is no formula of the table: whole layers that a kernel differentiates, loops, and factorizations.

Each function gives the rules of one op, {input: rule}, for the options that the op was applied with; an optional input that was not there is None. Rules are
written as courses derive them, for real numbers. g is the gradient of the result, g₀, g₁ … are those of several results.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Options = Mapping[str, Any]
NOT_THERE = "not implemented, as in PyTorch"
SHARES = {"mean": "g / n", "sum": "g", "none": "g", "": "(g / n if reduction = mean, else g)"}
NORMED = "z = (x − mean(x)) / σ, σ = √(var(x) + ε)"


def weighted(o: Options, g: str) -> tuple[str, str]:
    """The gradient of a normalized input by its name, and the definition of that name: g itself without a weight."""
    return (g, "") if o.get("w", ...) is None else ("h", f"h = {g} · w, ")


# ── losses ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def cross_entropy(o: Options) -> dict[str, str]:
    """For class indices. C. M. Bishop, Pattern Recognition and Machine Learning (2006), (4.109)"""
    share, skipped = SHARES[o.get("reduction", "")], o.get("ignore_index", -100)
    skipped = f"target = {skipped}".replace("-", "−")
    weight, number = ("", f"count({skipped.replace('=', '≠')})") if o.get("w") is None else ("w[target] · ", f"Σ(w[target]) but where {skipped}")
    mean = f", with n = {number}" if "n" in share else ""
    return {"x": f"{weight}(softmax(x) − onehot(target)) · {share}{mean}, and 0 where {skipped}"}


def multi_margin_loss(o: Options) -> dict[str, str]:
    slope = "w[t] · [m > 0]" if o.get("p", 1) == 1 else "w[t] · 2 · m"
    return {"x": f"in each row d[i] · g / n, and −Σ(d) · g / n for the target class t, with d[i] = {slope} for the other classes, "
                 "m = max(0, margin − x[t] + x[i])"}


def multilabel_margin_loss(o: Options) -> dict[str, str]:
    return {"x": "in each row g / n times: how many listed classes t a class i that is not listed comes too near, 1 − x[t] + x[i] > 0; "
                 "and minus how many come too near it, for a class that is listed"}


def ctc_loss(o: Options) -> dict[str, str]:
    """A. Graves et al., Connectionist temporal classification (2006), (16)"""
    return {"x": "g · (exp(x) − p), with p[t, k] the probability that class k is read at time t, given the labels (forward times backward sums)"}


# ── normalization ─────────────────────────────────────────────────────────────────────────────────────────────────────


def normalized(o: Options, over: str, g: str = "g", of_w: str = "Σ") -> dict[str, str]:
    """The gradient of (x − μ) / σ, less its parts along 1 and along z, which μ and σ take away."""
    h, definition = weighted(o, g)
    return {"x": f"({h} − mean({h}) − z · mean({h} · z)) / σ, with {definition}{NORMED}, mean and var over {over}",
            "w": f"{of_w}({g} · z), with {NORMED}", "b": f"{of_w}({g})"}


def layer_norm(o: Options) -> dict[str, str]:
    """J. L. Ba, J. R. Kiros, G. E. Hinton (2016)"""
    last = o.get("ndim", 1)
    return normalized(o, "the last axis" if last == 1 else f"the last {last} axes")


def group_norm(o: Options) -> dict[str, str]:
    """Y. Wu, K. He (2018)"""
    return normalized(o, "each group of channels")


def batch_norm(o: Options) -> dict[str, str]:
    """S. Ioffe, C. Szegedy (2015), section 3, where nothing comes back to the mean and the variance."""
    rules = normalized(o, "all but the channels", "g₀")
    return rules | {"x": f"{rules['x']}; mean and variance add (g₁ + 2 · (x − mean(x)) · g₂) / n"}


def affine_by_channel(o: Options) -> dict[str, str]:
    h, definition = weighted(o, "g")
    scale = f"with {definition}σ = √(variance + ε)"
    return {"x": f"{h} / σ, {scale}", "w": "Σ(g · (x − mean)) / σ, with σ = √(variance + ε)", "b": "Σ(g)",
            "mean": f"−Σ({h}) / σ, {scale}", "variance": f"−Σ({h} · (x − mean)) / (2 · σ³), {scale}"}


def rms_norm(o: Options) -> dict[str, str]:
    """B. Zhang, R. Sennrich (2019)"""
    h, definition = weighted(o, "g")
    last = o.get("ndim", 1)
    normed = f"z = x / r, r = √(mean(x²) + ε), mean over the last {'axis' if last == 1 else f'{last} axes'}"
    return {"x": f"({h} − z · mean({h} · z)) / r, with {definition}{normed}", "w": f"Σ(g · z), with {normed}"}


# ── layers ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def max_pool(o: Options) -> dict[str, str]:
    return {"x": "g at the place of each window's largest value, the first of equal ones, added up where windows overlap; 0 elsewhere"}


def convolution(o: Options) -> dict[str, str]:
    """V. Dumoulin, F. Visin, A guide to convolution arithmetic (2016)"""
    return {"x": "each place adds up g · w over the windows that it is in: g convolved with w turned round",
            "w": "Σ over windows of g · the part of x in the window: x correlated with g", "b": "Σ(g) of each channel"}


def transposed_convolution(o: Options) -> dict[str, str]:
    return {"y": "Σ over its window of g · w: g correlated with w", "w": "Σ over windows of y · the part of g in the window: g correlated with y",
            "b": "Σ(g) of each channel"}


def weight_of_convolution(o: Options) -> dict[str, str]:
    return {"y": "Σ over its window of x · g: x correlated with g", "x": "each place adds up y · g over the windows that it is in"}


def attention(o: Options) -> dict[str, str]:
    """T. Dao et al., FlashAttention (2022), appendix B.4"""
    scores = "scale · query @ keyᵀ" + ("" if o.get("mask", ...) is None else " + mask") + (", −∞ above the diagonal" if o.get("causal") else "")
    soft = f"P = softmax({scores})"
    slope = f"S = P · (g @ valueᵀ − Σ(P · (g @ valueᵀ))), {soft}"
    return {"query": f"scale · S @ key, with {slope}", "key": f"scale · Sᵀ @ query, with {slope}", "value": f"Pᵀ @ g, with {soft}", "mask": f"S, with {slope}"}


def through_time(gradient: str, hidden: str = "d") -> dict[str, str]:
    """Of a recurrent layer, given d[t], the gradient of what goes into its gates at time t. P. J. Werbos (1990)"""
    return {"x": f"d[t] @ w_ih at each t, with {gradient}", "w_ih": f"Σ(d[t]ᵀ @ x[t]) over t, with {gradient}", "b_ih": f"Σ(d[t]) over t, with {gradient}",
            "w_hh": f"Σ({hidden}[t]ᵀ @ h[t−1]) over t, with {gradient}", "b_hh": f"Σ({hidden}[t]) over t, with {gradient}"}


def rnn(o: Options) -> dict[str, str]:
    slope = "[y[t] > 0]" if o.get("relu") else "(1 − y[t]²)"
    gradient = f"d[t] = (g₀[t] + d[t+1] @ w_hh) · {slope}, and g₁ added at the end"
    return through_time(gradient) | {"h": f"d[1] @ w_hh, with {gradient}"}


def lstm(o: Options) -> dict[str, str]:
    """S. Hochreiter, J. Schmidhuber (1997), with forget gates: F. A. Gers et al. (2000)"""
    hidden = "g₀[t] + d[t+1] @ w_hh" if o.get("w_hr") is None else "(g₀[t] + d[t+1] @ w_hh) @ w_hr"
    gradient = (f"d[t] = [e · u · i · (1 − i), e · c[t−1] · f · (1 − f), e · i · (1 − u²), s · tanh(c[t]) · o · (1 − o)] of gates i, f, u, o, s = {hidden}, "
                "e[t] = s · o · (1 − tanh²(c[t])) + e[t+1] · f[t+1]; g₁ and g₂ added at the end")
    return through_time(gradient) | {"h": f"d[1] @ w_hh, with {gradient}", "c": f"e[1] · f[1], with {gradient}",
                                     "w_hr": f"Σ((g₀[t] + d[t+1] @ w_hh)ᵀ @ (o · tanh(c[t]))) over t, with {gradient}"}


def gru(o: Options) -> dict[str, str]:
    """K. Cho et al. (2014)"""
    gradient = ("d[t] = [q · m · r · (1 − r), s · (h[t−1] − n) · z · (1 − z), q] of gates r, z, n, q = s · (1 − z) · (1 − n²), m = h[t−1] @ w_hnᵀ + b_hn, "
                "k[t] = d[t] with q · r as its last part, s = g₀[t] + s[t+1] · z[t+1] + k[t+1] @ w_hh; g₁ added at the end")
    return through_time(gradient, "k") | {"h": f"s[1] · z[1] + k[1] @ w_hh, with {gradient}"}


# ── what has no formula of its own, or a loop ─────────────────────────────────────────────────────────────────────────


def as_strided(o: Options) -> dict[str, str]:
    return {"x": "g added up at the place in memory that each of its elements was read from; elements of x that share memory share it evenly"}


def logcumsumexp(o: Options) -> dict[str, str]:
    return {"x": "Σ(g[i] · exp(x[j] − out[i])) over i ≥ j, at each place j"}


def scatter_extreme(o: Options) -> dict[str, str]:
    if o.get("reduce") == "prod":
        both = "g · the product of the other factors"
    else:
        both = "g / k where it equals the largest or smallest of what was reduced, k being how many do; 0 elsewhere"
    return {"x": both, "value": both}


def factor_qr(o: Options) -> dict[str, str]:
    """Lower: the lower half, its diagonal halved. M. Seeger et al., Auto-differentiating linear algebra (2017)"""
    return {"a": "(g₀ + Q @ (M + Mᵀ)) @ R⁻ᵀ, with M = the lower half of R @ g₁ᵀ − g₀ᵀ @ Q, its diagonal halved; "
                 "for more columns than rows, of the square part, and Q @ g₁ for the rest"}


def eigenpairs(o: Options) -> dict[str, str]:
    """M. B. Giles, An extended collection of matrix derivative results (2008), 3.1"""
    return {"a": "V⁻ᴴ @ (diag(g₀) + E) @ Vᴴ, with E[i, j] = (Vᴴ @ g₁)[i, j] / conj(λ[j] − λ[i]) for i ≠ j, less what would change the lengths of V"}


def singular_values(o: Options) -> dict[str, str]:
    """J. Townsend, Differentiating the singular value decomposition (2016)"""
    return {"a": "U @ (diag(g₁) + (A − Aᵀ) / E · S + S · (B − Bᵀ) / E) @ Vh, with A = Uᵀ @ g₀, B = Vh @ g₂ᵀ, E[i, j] = S[j]² − S[i]²; "
                 "plus what of g₀ and g₂ is at right angles to U and Vh, over S"}


RULES: dict[str, Callable[[Options], dict[str, str]]] = {
    "cross_entropy": cross_entropy, "multi_margin_loss": multi_margin_loss, "multilabel_margin_loss": multilabel_margin_loss, "ctc_loss": ctc_loss,
    "native_layer_norm": layer_norm, "native_group_norm": group_norm, "native_batch_norm": batch_norm, "affine_by_channel": affine_by_channel,
    "rms_norm": rms_norm, "max_pool": max_pool, "convolution": convolution, "convolution_input": transposed_convolution,
    "convolution_weight": weight_of_convolution, "attention": attention,
    "rnn_layer": rnn, "lstm_layer": lstm, "gru_layer": gru, "as_strided": as_strided, "logcumsumexp": logcumsumexp, "scatter_extreme": scatter_extreme,
    "qr_factor": factor_qr, "eig_pairs": eigenpairs, "svd_factor": singular_values,
    "igamma": lambda o: {"a": NOT_THERE}, "igammac": lambda o: {"a": NOT_THERE}, "standard_gamma_grad": lambda o: {"alpha": NOT_THERE, "x": NOT_THERE},
}


def taught(opname: str, options: Options) -> dict[str, str]:
    """The rules of an op that are written here; none for most ops.

    >>> taught("cross_entropy", {"reduction": "sum"})
    {'x': '(softmax(x) − onehot(target)) · g, and 0 where target = −100'}
    """
    return RULES[opname](options) if opname in RULES else {}
