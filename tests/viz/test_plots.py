"""Pictures of trainings: what is drawn where, what is refused, and that nothing else is touched."""
import sys

import numpy as np
import pytest
from support import fresh_process, needed

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.viz import plot_grad_flow, plot_loss, plot_weights

needed("matplotlib")


def drawn(figure):
    """The figure as a picture; warnings of the drawing are errors."""
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())


def trained(*layers):
    torch.manual_seed(0)
    net = nn.Sequential(*layers)
    net(torch.randn(5, layers[0].in_features)).square().sum().backward()
    return net


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


# ── plot_loss ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("losses", [
    [3, 2.0, 1.5], (3, 2.0, 1.5), np.array([3, 2, 1.5]), torch.tensor([3, 2, 1.5]),
    [torch.tensor(3.0), torch.tensor([2.0]), 1.5],
    [np.float32(3), np.array([[2]]), torch.tensor(1.5, requires_grad=True)], iter([3, 2, 1.5]),
    torch.tensor([3, 2, 1.5], dtype=torch.bfloat16)],
    ids=lambda losses: type(losses).__name__)
def test_losses_may_be_numbers_tensors_and_lists_of_them(losses):
    (line,) = plot_loss(losses, smooth=0).axes[0].lines
    np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3])
    np.testing.assert_array_equal(line.get_ydata(), [3, 2, 1.5])


def test_the_running_mean_is_free_of_its_start():
    _, line = plot_loss([4.0, 4.0, 4.0, 0.0], smooth=0.5).axes[0].lines
    np.testing.assert_allclose(line.get_ydata(), [4, 4, 4, 4 * 7 / 15])


def test_runs_are_told_apart_by_name_and_colour():
    figure = plot_loss({f"run {i}": [i + 1.0, i + 0.5] for i in range(9)}, smooth=0)
    lines = figure.axes[0].lines
    assert legend(figure.axes[0]) == [f"run {i}" for i in range(9)]
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 9
    drawn(figure)


def test_what_is_not_finite_is_a_gap_and_said():
    nan, inf = float("nan"), float("inf")
    figure = plot_loss({"bad": [1.0, nan, 2.0, inf, -inf], "good": [1, 2, 3, 4, 5]}, smooth=0)
    bad, _ = figure.axes[0].lines
    np.testing.assert_array_equal(np.isnan(bad.get_ydata()), [False, True, False, True, True])
    assert legend(figure.axes[0]) == ["bad (3 of 5 not finite)", "good"]
    _, mean = plot_loss([1.0, nan, 3.0], smooth=0.5).axes[0].lines
    np.testing.assert_allclose(mean.get_ydata(), [1, nan, (1 * 0.25 + 3 * 0.5) / 0.75])
    drawn(plot_loss([nan, nan]))


@pytest.mark.parametrize(("losses", "scale"),
                         [([1000.0, 1.0], "log"), ([10.0, 1.0], "linear"), ([1000.0, 0.0], "linear"),
                          ([1000.0, -1.0], "linear")])
def test_the_scale_fits_the_losses(losses, scale):
    assert plot_loss(losses).axes[0].get_yscale() == scale


def test_names_are_text():
    figure = plot_loss({"$\\frac{": [1.0], "_hidden": [2.0], "<script>\0\x1b": [3.0], "long " * 3000: [4.0], "": [5.0]})
    assert len(legend(figure.axes[0])) == 5 and max(map(len, legend(figure.axes[0]))) < 60
    drawn(figure)


@pytest.mark.parametrize(("losses", "options", "error", "message"), [
    ([], {}, ValueError, "losses is empty"), ({}, {}, ValueError, "no losses"),
    ({"a": []}, {}, ValueError, r"losses\['a'\] is empty"), (3.0, {}, TypeError, "not float"),
    (torch.zeros(2, 2), {}, ValueError, "one dimension"),
    ([torch.zeros(2)], {}, ValueError, r"losses\[0\] must be a number, but has 2 elements"),
    (["x"], {}, TypeError, "real number, not str"),
    ([1j], {}, TypeError, "not complex"), ([None], {}, TypeError, "not NoneType"), ("text", {}, TypeError, "not str"),
    ([1.0], {"smooth": 1}, ValueError, "smooth"), ([1.0], {"smooth": -0.1}, ValueError, "smooth"),
    ([1.0], {"smooth": "much"}, ValueError, "smooth"),
])
def test_what_is_no_loss_is_refused(losses, options, error, message):
    with pytest.raises(error, match=message):
        plot_loss(losses, **options)


# ── plot_grad_flow ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_gradients_stand_in_the_order_of_the_layers():
    net = trained(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    (axes,) = plot_grad_flow(net).axes
    means, peaks = (points.get_offsets() for points in axes.collections[1:3])
    sizes = [p.grad.abs() for p in net.parameters()]
    np.testing.assert_allclose(means, [(s.mean().item(), i) for i, s in enumerate(sizes)], rtol=1e-6)
    np.testing.assert_allclose(peaks, [(s.max().item(), i) for i, s in enumerate(sizes)], rtol=1e-6)
    assert axes.get_xscale() == "log" and axes.yaxis_inverted()
    assert [t.get_text() for t in axes.get_yticklabels()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert legend(axes) == ["mean |gradient|", "max |gradient|"]


def test_gradients_that_do_not_arrive_are_marked_with_the_reason():
    net = trained(nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2))
    net[0].weight.grad, net[0].bias.grad = None, torch.zeros(4)
    net[1].weight.grad.fill_(1e-12)
    net[1].bias.grad[0] = float("nan")
    (axes,) = plot_grad_flow(net).axes
    assert [text.get_text() for text in axes.texts] == ["no gradient", "zero", "vanished: 1e-12", "not finite: 1 of 4"]
    assert len(axes.collections[1].get_offsets()) == 2
    assert ([t.get_text() for t in plot_grad_flow(net, vanished=0).axes[0].texts]
            == ["no gradient", "zero", "not finite: 1 of 4"])
    drawn(axes.figure)


def test_gradients_that_are_all_zero_are_drawn():
    net = nn.Linear(3, 4)
    net.weight.grad = torch.zeros(4, 3)
    drawn(plot_grad_flow(net))


def test_many_parameters_fit():
    net = nn.Sequential(*[nn.Linear(2, 2) for _ in range(200)])
    net(torch.ones(1, 2)).sum().backward()
    figure = plot_grad_flow(net)
    assert len(figure.axes[0].get_yticklabels()) <= 60
    assert drawn(figure).shape[0] < 2500


# ── plot_weights ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_parameter_has_its_histograms():
    net = trained(nn.Linear(20, 30), nn.Linear(30, 1))
    net[1].bias.grad = None
    figure = plot_weights(net, bins=10)
    standing = [axes for axes in figure.axes if axes.get_title()]
    assert ([axes.get_title() for axes in standing] == ["0.weight  (30, 20)", "0.bias  (30,)", "1.weight  (1, 30)",
                                                        "1.bias  (1,)"])
    counts, edges, _ = standing[0].patches[0].get_data()
    expected, places = np.histogram(net[0].weight.detach().numpy().astype("float64"), bins=10)
    np.testing.assert_allclose(counts, expected / expected.max())
    np.testing.assert_allclose(edges, places)
    assert [sum(patch.get_data().values.max() <= 0 for patch in axes.patches)
            for axes in figure.axes if axes not in standing] == [1, 1, 1, 0]
    assert [text.get_text() for axes in figure.axes for text in axes.texts] == ["no gradient"]
    drawn(figure)


def test_weights_that_are_hard_to_draw():
    odd = {"nan": torch.tensor([1.0, float("nan"), float("inf")]), "none": torch.zeros(0), "one": torch.tensor(3.0),
           "same": torch.ones(50), "complex": torch.tensor([3 + 4j]), "int": torch.arange(5),
           "all nan": torch.full((2,), float("nan"))}
    figure = plot_weights(odd)
    assert [a.get_title() for a in figure.axes if a.get_title()][0] == "nan  (3,)  2 not finite"
    drawn(figure)


def test_too_many_parameters_are_cut_and_said():
    figure = plot_weights({f"p{i}": torch.ones(2) for i in range(30)})
    assert len([a for a in figure.axes if a.get_title()]) == 24
    assert figure.get_supxlabel() == "the first 24 of 30 parameters"


# ── of all ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_axes_of_the_program_are_drawn_on():
    from matplotlib.figure import Figure
    net = trained(nn.Linear(3, 4))
    figure = Figure()
    first, second, third, fourth = figure.subplots(2, 2).flatten()
    assert plot_loss([2.0, 1.0], ax=first) is figure and first.lines
    assert plot_grad_flow(net, ax=second) is figure and second.collections
    assert plot_weights(net, ax=[third, fourth]) is figure and third.patches and fourth.get_title() == "0.bias  (4,)"
    with pytest.raises(ValueError, match="2 parameters need as many axes, but got 1"):
        plot_weights(net, ax=third)


@pytest.mark.parametrize("plot", [plot_grad_flow, plot_weights])
def test_what_has_no_parameters_is_refused(plot):
    with pytest.raises(ValueError, match="no parameters"):
        plot(nn.Tanh())
    for wrong in (3, [1, 2], {"a": 3}, None, "text"):
        with pytest.raises(TypeError, match="expected a Module"):
            plot(wrong)


def test_gradients_must_be_there():
    with pytest.raises(RuntimeError, match="Call backward"):
        plot_grad_flow(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="bins"):
        plot_weights(nn.Linear(2, 2), bins=0)


def test_nothing_of_the_program_changes():
    net = trained(nn.Linear(3, 4))
    before = [(p.detach().clone(), p.grad.clone()) for p in net.parameters()]
    plot_weights(net), plot_grad_flow(net)
    assert all(torch.equal(p, w) and torch.equal(p.grad, g) for p, (w, g) in zip(net.parameters(), before, strict=True))


def test_pyplot_is_left_alone_and_figures_show_themselves():
    fresh_process("import sys, tensorgrad as torch\n"
                  "figure = torch.viz.plot_loss([2.0, 1.0])\n"
                  "assert figure._repr_png_().startswith(b'\\x89PNG')\n"
                  "assert 'matplotlib.pyplot' not in sys.modules")


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for draw in (lambda: plot_loss([1.0]), lambda: plot_weights(nn.Linear(1, 1)),
                 lambda: plot_grad_flow(trained(nn.Linear(2, 2)))):
        with pytest.raises(ImportError, match=r"pip install matplotlib \(the extra \[plot\]\)"):
            draw()
