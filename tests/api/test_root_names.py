"""Names of the root package that old programs use: functions in place, recurrent networks as functions, what PyTorch
took away.
"""
import pytest
from support import Programs

import tensorgrad as tg

program = Programs()


@program
def functions_in_place(torch):
    x = torch.tensor([0.5, -0.25])
    y = torch.abs_(x)
    return (y is x, torch.exp_(x), torch.clamp_(x, 1.4, 1.5), torch.sqrt_(x), torch.neg_(x), torch.round_(x),
            torch.zero_(x))


@program
def recurrent_layers(torch):
    torch.manual_seed(0)
    module, x, h, c = (torch.nn.LSTM(3, 4, 2, bidirectional=True), torch.randn(5, 2, 3), torch.randn(4, 2, 4),
                       torch.randn(4, 2, 4))
    gru, rnn = torch.nn.GRU(3, 4, batch_first=True), torch.nn.RNN(3, 4, nonlinearity="relu", bias=False)
    return (torch.lstm(x, (h, c), module._flat_weights, True, 2, 0.0, False, True, False),
            torch._VF.gru(x, h[:1, :1].expand(1, 5, 4).contiguous(), gru._flat_weights, True, 1, 0.0, False, False,
                          True),
            torch.rnn_relu(x, h[:1], rnn._flat_weights, False, 1, 0.0, True, False, False))


@program
def a_packed_sequence(torch):
    torch.manual_seed(0)
    module = torch.nn.GRU(3, 4)
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.randn(5, 2, 3), torch.tensor([5, 3]))
    return torch.gru(packed.data, packed.batch_sizes, torch.zeros(1, 2, 4), module._flat_weights, True, 1, 0.0, False,
                     False)


@program
def cells(torch):
    torch.manual_seed(0)
    x, h, c = torch.randn(2, 3), torch.randn(2, 4), torch.randn(2, 4)
    w = {k: (torch.randn(4 * k, 3), torch.randn(4 * k, 4), torch.randn(4 * k), torch.randn(4 * k)) for k in (1, 3, 4)}
    return (torch.lstm_cell(x, (h, c), *w[4]), torch.gru_cell(x, h, *w[3]), torch.rnn_tanh_cell(x, h, *w[1]),
            torch.rnn_relu_cell(x, h, *w[1][:2]))


@program
def norms_and_the_rest(torch):
    x = torch.arange(6.).reshape(2, 3)
    torch.manual_seed(0)
    return (torch.frobenius_norm(x, (0, 1)), torch.nuclear_norm(x), torch.norm_except_dim(x, 2, 1),
            torch.norm_except_dim(x, 2, -1), torch.is_distributed(x), torch.native_dropout(x, 0.5, True),
            torch.native_dropout(x, 0.5, False), torch.sym_max(2, 3),
            torch.sym_int(2.5), torch.sym_not(True))


test_programs = program.test()


@pytest.mark.parametrize("name", ["eig", "solve", "lstsq", "symeig", "matrix_rank"])
def test_what_is_gone_says_what_took_its_place(name):
    with pytest.raises(RuntimeError, match="deprecated since version 1.9 and is now removed"):
        getattr(tg, name)(tg.ones(2, 2))
