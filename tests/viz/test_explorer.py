"""The parts of the page to explore: typeset formulas, arrays in base 64, the list of steps; and the page of a small
GPT.
"""
import json
import re
from base64 import b64decode
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest

import tensorgrad as torch
from tensorgrad.ops.base import OPS
from tensorgrad.viz import explain, formulas
from tensorgrad.viz.explorer.markup import cases
from tensorgrad.viz.explorer.numbers import packed
from tensorgrad.viz.formulas import BY_DEFINITION
from tensorgrad.viz.mathml import Letter, mathml
from tensorgrad.viz.text import Value

nn, F = torch.nn, torch.nn.functional


# ── formulas ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def linear(found):
    """The letters, numbers and signs of MathML, from left to right."""
    return "".join(e.text or "" for e in ElementTree.fromstring(f"<a>{found}</a>").iter() if not len(e)).replace("\xa0",
                                                                                                                 " ")


@pytest.mark.parametrize("formula, parts", [
    ("g · x / n", "<mfrac><mrow><mi>g</mi><mo>·</mo><mi>x</mi></mrow><mi>n</mi></mfrac>"),
    ("a − (b − c)", "<mrow><mi>a</mi><mo>−</mo><mrow><mo>(</mo><mrow><mi>b</mi><mo>−</mo><mi>c</mi></mrow><mo>)</mo>"
                    "</mrow></mrow>"),
    ("exp(−x²)", "<msup><mi>e</mi><mrow><mo>−</mo><msup><mi>x</mi><mn>2</mn></msup></mrow></msup>"),
    ("gᵀ @ w", "<mrow><msup><mi>g</mi><mo>T</mo></msup><mo>@</mo><mi>w</mi></mrow>"),
    ("1 / √(x + ε)", "<mfrac><mn>1</mn><msqrt><mrow><mi>x</mi><mo>+</mo><mi>ε</mi></mrow></msqrt></mfrac>"),
    ("|x|", "<mrow><mo>|</mo><mi>x</mi><mo>|</mo></mrow>"),
    ("w[target]", "<mrow><mi>w</mi><mrow><mo>[</mo><mi>target</mi><mo>]</mo></mrow></mrow>"),
])
def test_formulas_are_typeset(formula, parts):
    assert mathml(formula) == f"<math>{parts}</math>"


def test_cases_have_a_row_each():
    found = mathml("0 where x < 0, else 0.5 · g where x = 0, else g")
    assert (found.count("<mtr>") == 3 and found.count("<mo>{</mo>") == 1
            and linear(found) == "{0where x<00.5·gwhere x=0gelse")
    assert list(cases("0 where x ≤ 0, else g")) == [((("x", "≤", "0", True),), "0"), ((("x", "≤", "0", False),), "g")]


def test_letters_are_names_and_numbers():
    letters = {"g": Letter("−2", "g:1"), "b": Letter("−3", "v:0"), "w": Letter("0.weight")}
    assert linear(mathml("g · b", letters)) == "−2·(−3)" and linear(mathml("w − g / b", letters)) == "0.weight−−2−3"
    assert mathml("b²", letters) == '<math><msup><mn data-number="v:0">(−3)</mn><mn>2</mn></msup></math>'
    assert "<script" not in mathml("g", {"g": Letter("<script>")})


@pytest.mark.parametrize("text", ["A copy.", "each g goes to the place", "g ·", "(g", "g)", "", "x ? y", "a b"])
def test_prose_is_not_typeset(text):
    assert mathml(text) is None


RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹ᵀᴴⁿ", "0123456789THn", "Σ")


def squashed(text):
    return re.sub(r"\W|else", "", text)


def test_nothing_of_a_formula_is_lost():
    """Of every rule of every op that is typeset, all letters and digits are there, in their order; and most rules are
    formulas.
    """
    seen = prose = 0
    for op in OPS.values():
        told = formulas(op)
        for rule in [told.forward, *told.rules.values()]:
            found = mathml(rule)
            prose += found is None
            if found is not None:
                seen += 1
                assert squashed(linear(found)) == squashed(re.sub(r"\bexp\(", "e(", rule).translate(RAISED)), rule
    assert seen > 2.5 * prose


# ── arrays ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def unpacked(shape, kind, size, text):
    raw = np.frombuffer(b64decode(text), np.uint8).reshape(-1, size)
    whole = np.zeros((len(raw), 4), np.uint8)
    whole[:, 4 - size:] = raw
    return whole.view("<f4").reshape(shape)


def test_arrays_are_packed():
    small = np.array([[1 / 3, -2e30, np.nan], [np.inf, -0.0, 1e-40]], np.float32)
    assert np.array_equal(unpacked(*packed(Value(small))), small, equal_nan=True)
    large = np.random.default_rng(0).standard_normal((40, 40)).astype(np.float32) * 10.0 ** np.arange(-20, 20)
    large[0, :4] = np.inf, -np.inf, np.nan, np.finfo(np.float32).max
    shape, kind, size, text = packed(Value(large))
    found = unpacked(shape, kind, size, text)
    assert ((size, kind) == (3, "f") and np.array_equal(np.isfinite(found), np.isfinite(large))
            and np.array_equal(np.isnan(found), np.isnan(large)))
    np.testing.assert_allclose(found, large, rtol=2.0 ** -16)
    assert packed(Value(np.array([True, False])))[:2] == [[2], "b"] and packed(Value(np.arange(3)))[1] == "i"


# ── a small GPT ───────────────────────────────────────────────────────────────────────────────────────────────────────


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads
        self.qkv, self.out, self.up, self.down = (nn.Linear(width, 3 * width), nn.Linear(width, width),
                                                  nn.Linear(width, 4 * width), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, letters=65, width=32, context=16, layers=2, heads=4):
        super().__init__()
        self.letters, self.places = nn.Embedding(letters, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, letters, bias=False)

    def forward(self, index):
        x = self.letters(index) + self.places(torch.arange(index.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def test_a_small_gpt_is_a_small_page():
    torch.manual_seed(0)
    model, text = GPT(), torch.randint(0, 65, (1, 17))
    with torch.viz.watch(model):
        loss = F.cross_entropy(model(text[:, :-1]).view(-1, 65), text[:, 1:].reshape(-1))
    found = explain(loss, module=model, names={})
    html = found.html()
    assert len(html) < 2_000_000
    rules = [unescape(rule) for rule in re.findall(r'class="told" [^>]*data-rule="([^"]*)"', html)]
    assert len(rules) == sum(len(step.gives) for step in found.steps) and len(found.steps) >= 40
    assert not [rule for rule in rules if not rule or rule.startswith("see ") or rule == BY_DEFINITION]
    numbers = json.loads(re.search(r'id="numbers">([^<]*)<', html)[1])
    attention = next(step for step in found.forward if step.op == "scaled_dot_product_attention")
    np.testing.assert_allclose(unpacked(*numbers[f"v:{found.keys[attention.node]}"]), attention.values[0].dots,
                               rtol=2.0 ** -16)
    assert '<details class="parts"' in html and re.search(r"<summary>blocks <small>", html)
