"""Details that programs print, beside PyTorch: the lines that warnings name, last digits, the order of steps."""
import pickle
import warnings

import pytest
from support import needed

import tensorgrad

torch = needed("torch")


def both(function):
    return function(tensorgrad), function(torch)


def test_warnings_name_the_line_of_the_program():
    def lines(t):
        F, x = t.nn.functional, t.ones(2, 3)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            F.mse_loss(x, x[:1])
            F.softmax(x)
            F.kl_div(x, x)
            F.affine_grid(t.eye(2, 3)[None], (1, 1, 2, 2))
            F.dropout2d(x)
            t.range(0, 2)
            t.add(x, x, out=t.ones(2))
        return [(w.category, str(w.message).partition(" (Triggered")[0][:180], w.filename) for w in caught]
    ours, theirs = both(lines)
    assert ours == theirs and len(ours) == 7


def test_linspace_has_the_bits_of_pytorch():
    def values(t):
        return [t.linspace(a, b, n).tolist() for a, b in ((-1, 1), (0.3, 7.1), (0, -1e30)) for n in (0, 1, 2, 28, 65)]
    ours, theirs = both(values)
    assert ours == theirs


def test_the_grid_of_an_identity_hits_the_centres():
    """Bilinear weights have a kink there: one rounding moves the gradient to another element."""
    def run(t, aligned):
        theta = t.eye(2, 3)[None].requires_grad_()
        image = t.arange(28. * 28).remainder(17).reshape(1, 1, 28, 28)
        grid = t.nn.functional.affine_grid(theta, (1, 1, 28, 28), align_corners=aligned)
        out = t.nn.functional.grid_sample(image, grid, align_corners=aligned)
        (out * image.cos()).sum().backward()
        return grid.tolist(), theta.grad.flatten().tolist()
    for aligned in (False, True):
        (grid, gradient), (their_grid, their_gradient) = both(lambda t, aligned=aligned: run(t, aligned))
        assert grid == their_grid and gradient == pytest.approx(their_gradient, rel=1e-3, abs=1e-2)


def test_the_first_edge_of_a_linear_layer_is_its_bias():
    def names(t):
        step = t.nn.Linear(3, 2)(t.ones(1, 3, requires_grad=True).exp()).grad_fn
        return [f.name() for f, _ in step.next_functions[:2]]
    ours, theirs = both(names)
    assert ours == theirs


def test_former_switches():
    def values(t):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = t.has_mps, t.has_cuda
        return [type(v) for v in found], [str(w.message) for w in caught]
    ours, theirs = both(values)
    assert ours == theirs


def test_names_of_errors_and_steps():
    def names(t):
        try:
            t.linalg.inv(t.zeros(2, 2))
        except t.linalg.LinAlgError as error:
            kind = type(error).__name__
        x = t.ones(2, 3, requires_grad=True)
        return kind, t.nn.functional.cross_entropy(x, x.detach()).grad_fn.name()
    ours, theirs = both(names)
    assert ours == theirs


def test_the_first_line_for_a_file_of_no_tensors(tmp_path):
    (tmp_path / "x.pt").write_bytes(b"garbage")

    def line(t):
        with pytest.raises(pickle.UnpicklingError) as caught:
            t.load(tmp_path / "x.pt")
        return str(caught.value).splitlines()[0]
    ours, theirs = both(line)
    assert ours == theirs


def test_attention_takes_a_mask_beside_is_causal_where_fused():
    def run(t):
        q = (t.arange(60.).reshape(1, 2, 5, 6) * 0.7).sin()
        attend, mask, found = t.nn.functional.scaled_dot_product_attention, q[0, 0, :, :5], []
        for x, m in ((q, mask), (q, mask > 0.1), (q[0], mask), (q, mask.clone().requires_grad_()), (q, mask[None])):
            try:
                found.append(attend(x, x, x, attn_mask=m, is_causal=True).nan_to_num(7).flatten().tolist())
            except RuntimeError as error:
                found.append(str(error))
        return found
    for ours, theirs in zip(*both(run), strict=True):
        assert ours == (theirs if isinstance(theirs, str) else pytest.approx(theirs, abs=1e-5))


REFUSED = """
t.nn.Linear(2.5, 2) ; t.nn.Embedding(2.5, 3) ; t.nn.Linear('a', 2) ; t.zeros(2, None) ; F.unfold(t.ones(1, 1, 2, 2), 3)
F.cosine_similarity(t.ones(2), t.ones(3)) ; F.nll_loss(t.ones(2), t.tensor([1, 2]))
F.scaled_dot_product_attention(t.ones(2, 2), t.ones(2), t.ones(2, 2))
F.grid_sample(t.ones(2), t.ones(2), align_corners=True)
""".replace("\n", " ; ").strip(" ;").split(" ; ")


@pytest.mark.parametrize("expression", REFUSED)
def test_refusals(expression):
    def error(t):
        with pytest.raises(Exception) as caught:
            eval(expression, {"t": t, "F": t.nn.functional})
        return type(caught.value).__name__, str(caught.value).splitlines()[0]
    ours, theirs = both(error)
    assert ours == theirs
