"""The architectures of the examples: as many parameters as they should have, and one and the same network in all the
ways they are written.
"""
import ast
import copy
import inspect
import re
import subprocess
import sys

import pytest
from support import ROOT

import tensorgrad as torch
from examples.architectures import encoder_decoder, lstm_tagger, resnet, two_heads, vgg, wide_resnet
from examples.architectures.__main__ import ARCHITECTURES, main, ways
from examples.architectures.comparing import copy_weights, parameter_count, same_outputs
from tensorgrad import nn

PARAMETERS = {encoder_decoder: 28_529, vgg: 9_413_066, resnet: 223_242, wide_resnet: 2_750_698, lstm_tagger: 405,
              two_heads: 614_228}
OUTPUTS = {encoder_decoder: (None, 1, 28, 28), vgg: (None, 10), resnet: (None, 10), wide_resnet: (None, 10),
           lstm_tagger: (None, None, 3),
           two_heads: ((None, 10), (None, 10))}


def short(module):
    return module.__name__.rpartition(".")[2]


WRITTEN = [pytest.param(architecture, way, id=f"{short(architecture)}-{way}") for architecture in ARCHITECTURES
           for way in ways(architecture)]


@pytest.fixture(autouse=True)
def seeded():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


def stirred(model):
    """The model, with running statistics that are not those of a new one."""
    for buffer in model.buffers():
        buffer.copy_(torch.rand(buffer.shape) + 0.5 if buffer.is_floating_point() else buffer + 3)
    return model


def test_none_is_left_out():
    folder = ROOT / "examples" / "architectures"
    assert ({path.stem for path in folder.glob("*.py")} - {"__init__", "__main__", "comparing"}
            == {short(a) for a in ARCHITECTURES})
    assert set(PARAMETERS) == set(OUTPUTS) == set(ARCHITECTURES)


@pytest.mark.parametrize("architecture, way", WRITTEN)
def test_parameters_are_counted(architecture, way):
    model = getattr(architecture, way)()
    assert parameter_count(model) == parameter_count(architecture.plain()) == PARAMETERS[architecture]
    assert f"{PARAMETERS[architecture]:,} parameters" in architecture.__doc__


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=short)
def test_shapes_are_known_before_the_first_call(architecture):
    model = architecture.symbolic()
    assert model.output_shape == OUTPUTS[architecture]
    assert f"Total params: {PARAMETERS[architecture]}\n" in model.summary(return_string=True)


@pytest.mark.parametrize("architecture, way", WRITTEN)
def test_from_the_same_weights_come_the_same_outputs(architecture, way):
    plain, model = stirred(architecture.plain()), getattr(architecture, way)()
    inputs = architecture.inputs()
    assert not same_outputs(plain, model, inputs)
    copy_weights(plain, model)
    assert same_outputs(plain, model, inputs)


@pytest.mark.parametrize("architecture, way", WRITTEN)
def test_they_learn_the_same(architecture, way):
    """Gradients and running statistics, in training mode, of a batch that the two are given with the same random
    numbers.
    """
    plain, model = architecture.plain(), getattr(architecture, way)()
    copy_weights(plain, model)
    inputs = architecture.inputs()
    for network in (plain, model):
        torch.manual_seed(1)
        outputs = network.train()(*inputs)
        sum((output * torch.rand(output.shape)).sum()
            for output in (outputs if isinstance(outputs, tuple) else (outputs,))).backward()
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-3, atol=1e-4)
    for ours, theirs in zip(model.buffers(), plain.buffers(), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("notation", [resnet.symbolic, resnet.chained])
def test_the_toy_resnet_has_sixteen_lines(notation):
    (function,) = ast.parse(inspect.getsource(notation)).body
    body = function.body[1:]                                  # without the docstring
    assert len(body) == body[-1].end_lineno - body[0].lineno + 1 == 16


def test_an_autoencoder_is_made_of_two_models():
    model = encoder_decoder.symbolic(channels=1)
    encoder, decoder = model.children()
    pictures = torch.rand(2, 1, 28, 28)
    assert encoder(pictures).shape == (2, 16) and torch.equal(decoder(encoder(pictures)), model(pictures))


def test_the_tagger_learns_its_lessons():
    model = lstm_tagger.symbolic()
    before = copy.deepcopy(model)
    assert lstm_tagger.train(model, epochs=300) < 0.2
    assert lstm_tagger.tag(model, "the cat watched a bird") == [0, 1, 2, 0, 1]
    assert all(lstm_tagger.tag(model, sentence) == tags for sentence, tags in lstm_tagger.LESSONS.items())
    assert any(lstm_tagger.tag(before, sentence) != tags for sentence, tags in lstm_tagger.LESSONS.items())


def test_the_tagger_tags(capsys):
    lstm_tagger.main()
    assert capsys.readouterr().out == "the cat watched a bird [0, 1, 2, 0, 1]\nchildren love the snow [1, 2, 0, 1]\n"


def test_weights_of_another_network_are_refused():
    source, target = (nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)),
                      nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3, track_running_stats=False)))
    before = copy.deepcopy(target.state_dict())
    with pytest.raises(ValueError, match="buffers of the two"):
        copy_weights(source, target)
    assert all(torch.equal(value, before[name]) for name, value in target.state_dict().items())
    with pytest.raises(ValueError, match="parameters of the two"):
        copy_weights(nn.Linear(3, 2), nn.Linear(2, 3))


def test_outputs_that_differ_are_seen():
    same, other = nn.Linear(3, 3), nn.Linear(3, 3)
    x = torch.rand(4, 3)
    assert same_outputs(same, same, (x,)) and not same_outputs(same, other, (x,))
    assert not same_outputs(nn.Identity(), nn.Flatten(0), (x,))


def test_a_difference_is_reported(monkeypatch, capsys):
    def spoilt():
        return nn.Sequential(lstm_tagger.plain(), nn.ReLU())
    monkeypatch.setattr(lstm_tagger, "symbolic", spoilt)
    with pytest.raises(SystemExit, match="They differ"):
        main([])
    assert re.search(r"lstm_tagger +405   symbolic: NO, layers: yes\n$", capsys.readouterr().out)


def test_the_table():
    done = subprocess.run([sys.executable, "-W", "error", "-m", "examples.architectures"], cwd=ROOT,
                          capture_output=True, encoding="utf-8", timeout=120)
    assert done.returncode == 0, done.stderr
    rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()[1:]]
    assert ({name: int(count.replace(",", "")) for name, count, _ in rows}
            == {short(a): n for a, n in PARAMETERS.items()})
    assert all(set(re.findall(r"(\w+): yes", verdicts)) == set(ways(a))
               for a, (_, _, verdicts) in zip(ARCHITECTURES, rows, strict=True))
    assert "NO" not in done.stdout
