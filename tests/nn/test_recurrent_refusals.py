"""States, weights and packed sequences that do not fit a recurrent network: PyTorch's exception and its first line,
never a read past an array.
"""
import pytest
from side_by_side import same

import tensorgrad

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def weights(torch, gates, changed, shape):
    shapes = [(4 * gates, 3), (4 * gates, 4), (4 * gates,), (4 * gates,)]
    if changed is not None:
        shapes[changed] = shape
    return [torch.ones(s) / 8 for s in shapes]


def layers(torch, name, hidden=(1, 2, 4), cell=(1, 2, 4), input=(5, 2, 3), changed=None, shape=None, dtype="float32",
           count=4):
    h, c = (torch.ones(s, dtype=getattr(torch, dtype)) for s in (hidden, cell))
    given = weights(torch, GATES[name], changed, shape)[:count]
    return list(getattr(torch, name)(torch.ones(input), (h, c) if name == "lstm" else h, given, True, 1, 0., False,
                                     False, False))


CASES = [dict(hidden=(1, 3, 4)), dict(hidden=(1, 2, 5)), dict(hidden=(2, 4)), dict(hidden=(1, 1, 4)),
         dict(hidden=(0, 2, 4)), dict(input=(5, 2, 4)), dict(input=(0, 2, 3)), dict(input=(5, 0, 3)), dict(count=0),
         dict(count=3), dict(changed=0, shape=(3,)),
         dict(dtype="float64")]


@pytest.mark.parametrize("name", ["gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_layers(name, case):
    same(lambda torch: layers(torch, name, **case))


@pytest.mark.parametrize("name", ["gru", "rnn_tanh"])
@pytest.mark.parametrize("changed, more, tail",
                         [(0, 1, (3,)), (0, 0, (2,)), (1, 1, (4,)), (1, -1, (4,)), (1, 0, (5,)), (2, 1, ()),
                          (3, -1, ())])
def test_weights_of_layers(name, changed, more, tail):
    same(lambda torch: layers(torch, name, changed=changed, shape=(4 * GATES[name] + more, *tail)))


@pytest.mark.parametrize("name", ["gru", "rnn_tanh"])
def test_biases_that_are_numbers(name):
    same(lambda torch: layers(torch, name, changed=2, shape=(1,)))


@pytest.mark.parametrize("case", [*CASES[:-3], dict(cell=(1, 3, 4)), dict(cell=(1, 2, 5)), dict(cell=(1, 1, 4)),
                                  dict(changed=1, shape=(15, 4)),
                                  dict(changed=0, shape=(17, 3)), dict(changed=3, shape=(15,))], ids=str)
def test_lstm(case):
    """PyTorch reads past the states and weights of some: here each is refused."""
    with pytest.raises(IndexError if len(case.get("hidden", ())) == 2 else RuntimeError):
        layers(tensorgrad, "lstm", **case)


CELLS = {"LSTMCell": 4, "GRUCell": 3, "RNNCell": 1}


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("shape", [(3, 5), (2, 4), (1, 4), (4,), (2, 2, 5), (0, 5)], ids=str)
def test_states_of_cells(name, shape):
    def program(torch):
        torch.manual_seed(0)
        cell, h = getattr(torch.nn, name)(3, 5), torch.ones(shape)
        return list(cell(torch.ones(2, 3), (h, torch.ones(2, 5)) if name == "LSTMCell" else h))
    same(program)


@pytest.mark.parametrize("shape", [(3, 5), (2, 4), (1, 4), (0, 5)], ids=str)
def test_cell_states(shape):
    same(lambda torch: torch.nn.LSTMCell(3, 5)(torch.ones(2, 3), (torch.ones(2, 5), torch.ones(shape))))


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("weight, rows, tail",
                         [("bias_ih", 3, ()), ("bias_hh", 21, ()), ("weight_hh", 3, (5,)), ("weight_ih", 21, (3,)),
                          ("weight_ih", 1, (3,))])
def test_weights_of_cells(name, weight, rows, tail):
    def program(torch):
        cell = getattr(torch.nn, name)(3, 5)
        setattr(cell, weight, torch.nn.Parameter(torch.ones(rows, *tail)))
        return cell(torch.ones(2, 3))
    same(program)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("sizes", [[2, 3, 1], [3, -1, 4], [-1, 3], [0, 3, 3], [3, 2, 0], [3, 2], [3, 2, 1, 1],
                                   [3, 2, 1]], ids=str)
def test_packed_sequences(name, sizes):
    def program(torch):
        torch.manual_seed(0)
        packed = torch.nn.utils.rnn.PackedSequence(torch.ones(6, 3), torch.tensor(sizes))
        output, hidden = getattr(torch.nn, name)(3, 5)(packed)
        return output.data, hidden
    same(program, rtol=1e-5)
