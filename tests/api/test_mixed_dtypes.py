"""Tensors of different dtypes: functions refuse them with PyTorch's exception and first line, or give its dtype."""
import math
import warnings

import pytest

import tensorgrad

CALLS = """
torch.einsum('ij,jk->ik', a, A.T) ; torch.einsum('ij,jk->ik', A, a.T) ; torch.einsum('ij,ij->ij', a, A)
torch.einsum('i,i->', a[0], A[0]) ; torch.einsum('ij->ji', a) ; torch.einsum('ij,jk->ik', a, n.T)
torch.einsum('i,j->ij', a[0], A[0]) ; torch.einsum('ij,jk,kl->il', a, a.T, A) ; torch.einsum('ij,jk->ik', h, a.T)
F.group_norm(x, 2, W, None) ; F.group_norm(x, 2, w, W) ; F.group_norm(x, 2, W, W) ; F.group_norm(X, 2, w, w)
F.group_norm(x.half(), 2, w, w) ; F.group_norm(x.half(), 2, w.half(), w) ; F.group_norm(x.bfloat16(), 2, w, w)
F.layer_norm(x, (3,), L, None) ; F.layer_norm(x, (3,), l, L) ; F.layer_norm(X, (3,), l, l)
F.layer_norm(x.half(), (3,), l, l) ; F.rms_norm(x, (3,), L) ; F.rms_norm(X, (3,), l) ; F.bilinear(a, a, B, None)
F.bilinear(a, A, b, None) ; F.bilinear(A, A, b, None) ; F.bilinear(a, a, b, V) ; F.bilinear(A, A, B, v)
F.bilinear(A, a, B, v) ; F.linear(a, A) ; F.linear(a, a, V2) ; F.linear(A, A, v2) ; F.linear(A, a) ; F.conv1d(x, k, W)
F.conv1d(X, k) ; F.conv_transpose1d(x, K) ; F.batch_norm(x, rm, rv, W, None, True) ; F.batch_norm(x, RM, rv)
F.batch_norm(X, rm, rv) ; F.instance_norm(x, None, None, W, None) ; F.instance_norm(X, None, None, w, w)
F.prelu(x, W) ; F.prelu(X, w) ; torch.lstm_cell(a, (s, s), wi, wh) ; torch.lstm_cell(A, (s, s), wi, wh)
torch.lstm_cell(a, (S, s), wi, wh) ; torch.lstm_cell(a, (s, S), wi, wh) ; torch.lstm_cell(a, (s, s), WI, wh)
torch.lstm_cell(a, (s, s), wi, WH) ; torch.lstm_cell(a, (s, s), wi, wh, BI, bi)
torch.lstm_cell(a, (s, s), wi, wh, bi, BI) ; torch.gru_cell(A, s, gi, gh) ; torch.gru_cell(a, S, gi, gh)
torch.gru_cell(a, s, GI, gh) ; torch.gru_cell(a, s, gi, GH) ; torch.gru_cell(a, s, gi, gh, BG, bg)
torch.gru_cell(a, s, gi, gh, bg, BG) ; torch.rnn_tanh_cell(A, s, ri, rh) ; torch.rnn_tanh_cell(a, S, ri, rh)
torch.rnn_tanh_cell(a, s, RI, rh) ; torch.rnn_tanh_cell(a, s, ri, RH) ; torch.rnn_tanh_cell(a, s, ri, rh, BR, br)
torch.rnn_relu_cell(a, s, ri, rh, br, BR) ; torch.rnn_tanh(q, s3, [ri, rh], False, 1, 0., False, False, False)
torch.rnn_tanh(Q, s3, [ri, rh], False, 1, 0., False, False, False)
torch.rnn_tanh(q, S3, [ri, rh], False, 1, 0., False, False, False)
torch.rnn_tanh(q, s3, [RI, rh], False, 1, 0., False, False, False)
torch.rnn_tanh(q, s3, [ri, RH], False, 1, 0., False, False, False)
torch.rnn_tanh(q, s3, [ri, rh, BR, br], True, 1, 0., False, False, False)
torch.rnn_tanh(q, s3, [ri, rh, br, BR], True, 1, 0., False, False, False)
torch.rnn_relu(Q, s3, [ri, rh], False, 1, 0., False, False, False)
torch.gru(Q, s3, [gi, gh], False, 1, 0., False, False, False)
torch.gru(q, S3, [gi, gh], False, 1, 0., False, False, False)
torch.gru(q, s3, [GI, gh], False, 1, 0., False, False, False)
torch.gru(q, s3, [gi, GH], False, 1, 0., False, False, False)
torch.gru(q, s3, [gi, gh, BG, bg], True, 1, 0., False, False, False)
torch.gru(q, s3, [gi, gh, bg, BG], True, 1, 0., False, False, False)
torch.lstm(Q, (s3, s3), [wi, wh], False, 1, 0., False, False, False) ; torch.nn.RNN(3, 4)(Q) ; torch.nn.LSTM(3, 4)(Q)
torch.nn.GRU(3, 4)(Q) ; torch.nn.RNN(3, 4)(q, S3) ; torch.nn.GRU(3, 4)(q, S3) ; torch.nn.LSTMCell(3, 4)(A)
torch.nn.GRUCell(3, 4)(A) ; torch.nn.RNNCell(3, 4)(A) ; torch.nn.RNNCell(3, 4)(a, S) ; torch.nn.GRUCell(3, 4)(a, S)
torch.nn.LSTMCell(3, 4)(a, (S, S)) ; torch.mm(a, A.T) ; torch.bmm(x, X.mT) ; torch.matmul(a, A.T)
torch.addmm(a[:, :2], a, A.T) ; torch.addmm(A[:, :2], a, a.T) ; torch.baddbmm(X[:, :, :2], x, x.mT)
torch.mv(a, A[0]) ; torch.dot(a[0], A[0]) ; torch.tensordot(a, A.T, 1) ; torch.chain_matmul(a, A.T)
torch.linalg.multi_dot([a, A.T]) ; torch.linalg.solve(e, E) ; torch.linalg.lstsq(e, E) ; torch.cdist(a, A)
torch.cross(a, A, 1) ; torch.lerp(a, A, .5) ; torch.lerp(a, a, A) ; torch.scatter(a, 0, i, A)
torch.index_add(a, 0, j, A) ; torch.index_copy(a, 0, j, A) ; torch.masked_scatter(a, a > 0, A)
torch.take_along_dim(a, i.int(), 0) ; torch.vdot(a[0], A[0]) ; torch.inner(a, A) ; torch.isclose(a, A)
torch.allclose(a, A) ; torch.polar(a, A) ; torch.complex(a, A) ; torch.heaviside(a, A) ; torch.histogram(a, A[0])
torch.quantile(a, A[0][:1]) ; F.huber_loss(a, A) ; F.binary_cross_entropy(p, P) ; F.cross_entropy(a, t, L)
F.nll_loss(a, t, L) ; F.multi_margin_loss(a, t, weight=L) ; F.embedding_bag(i, a, per_sample_weights=P)
F.grid_sample(img, GRID, align_corners=False) ; F.scaled_dot_product_attention(x, X, x)
F.scaled_dot_product_attention(x, x, X) ; F.scaled_dot_product_attention(x, x, x, attn_mask=X[:, :, :2] if 0 else M)
F.multi_head_attention_forward(x, x, x, 3, 1, IN, None, None, None, False, 0., OUT, None)
torch.nn.MultiheadAttention(3, 1)(X, X, X) ; torch.nn.TransformerEncoderLayer(3, 1, 4)(X) ; torch.nn.Linear(3, 2)(A)
torch.nn.Conv1d(4, 2, 1)(X) ; torch.nn.BatchNorm1d(4)(X) ; torch.nn.LayerNorm(3)(X) ; torch.nn.GroupNorm(2, 4)(X)
torch.nn.InstanceNorm1d(4, affine=True)(X) ; torch.nn.Bilinear(3, 3, 2)(A, A) ; torch.nn.PReLU()(X)
torch.nn.Embedding(3, 2)(i.float()) ; torch.nn.functional.local_response_norm(x, 2) ; torch.renorm(a, A[0, 0], 0, 1)
torch.cartesian_prod(a[0], A[0]) ; torch.meshgrid(a[0], A[0]) ; torch.index_put(a, (j,), A)
torch.put(a, j, A[0, :2]) ; torch.scatter_add(a, 0, i, A) ; torch.scatter_reduce(a, 0, i, A, 'sum')
torch.index_reduce(a, 0, j, A, 'mean') ; torch.linalg.vecdot(a, A) ; torch.linalg.cross(a, A)
torch.linalg.lu_solve(e, j.int(), E) ; torch.cholesky_solve(e, E) ; torch.triangular_solve(e, E)
torch.ormqr(e, e[0], E) ; torch.linalg.householder_product(e, E[0]) ; torch.segment_reduce(a, 'sum', lengths=j)
torch.nn.functional.embedding(i, A, max_norm=1.) ; F.batch_norm(x, rm, RV) ; F.batch_norm(x, rm, rv, w, W)
F.batch_norm(x, RM, rv, w, w) ; F.batch_norm(x, RM, RV, w, w) ; F.batch_norm(x, RM, RV, w, w, True)
F.batch_norm(x, rm, rv, W, w) ; F.batch_norm(X, RM, RV, w, w) ; F.batch_norm(X, RM, RV, W, w)
F.batch_norm(x.half(), rm, rv, w.half(), w) ; F.batch_norm(x.half(), rm, rv, w, w) ; F.batch_norm(x.half(), RM, RV)
F.batch_norm(x.half(), rm.half(), RV) ; F.batch_norm(x, None, None, w, W, True)
F.batch_norm(X, None, None, w, W, True) ; F.group_norm(X, 2, W, w) ; F.group_norm(X, 2, None, w)
F.group_norm(x, 2, None, W) ; F.group_norm(x.half(), 2, W, W) ; F.group_norm(x.half(), 2, w, w.half())
F.group_norm(x.half(), 2, w, W) ; F.layer_norm(x, (3,), None, L) ; F.layer_norm(X, (3,), None, l)
F.layer_norm(X, (3,), l, L) ; F.layer_norm(x.half(), (3,), L, l) ; F.linear(q, A, v2) ; F.linear(Q, a, v2)
F.linear(Q, a) ; F.linear(q, A) ; F.linear(a[0], A, v2) ; F.linear(a[0], A) ; torch.nn.Linear(3, 2)(Q)
torch.nn.Linear(3, 2)(A[0]) ; F.linear(q, a, V2) ; F.linear(h, a) ; F.linear(h, a, v2) ; F.linear(n, a)
F.linear(n, a, v2) ; F.conv1d(X, k, w[:2]) ; F.conv1d(X, k, None) ; F.conv1d(x, k, V2) ; F.conv1d(x.half(), k, v2)
F.conv2d(img.double(), img, None) ; F.conv2d(img.double(), img, w[:1]) ; F.conv_transpose1d(x.mT, K)
F.conv_transpose1d(X[:, :2], k, w) ; torch.addmm(A[:, :2], A, a.T) ; torch.baddbmm(x[:, :, :2], x, X.mT[:, :, :2])
torch.bmm(X, x.mT) ; torch.bmm(x.half(), x.mT) ; torch.matmul(x, X.mT) ; torch.mv(A, a[0]) ; torch.mv(a.half(), a[0])
torch.addmv(a[:, 0], a, A[0]) ; torch.addmv(A[:, 0], a, a[0]) ; torch.addbmm(a[:, :2], x.mT[:, :2, :], X[:, :, :2])
F.multi_margin_loss(a, t, weight=L, reduction='none') ; F.multi_margin_loss(A, t, weight=l) ; F.huber_loss(A, a)
F.huber_loss(a, A, reduction='none') ; F.scaled_dot_product_attention(x, x, x, attn_mask=M.half())
F.scaled_dot_product_attention(x.half(), x.half(), x.half(), attn_mask=M.half())
torch.lstm_cell(a, (s, S), wi, wh)[1] ; torch.nn.LSTM(3, 4).double()(Q, (s3, S3)) ; torch.nn.LSTM(3, 4).double()(q)
torch.nn.LSTM(3, 4)(q.half()) ; torch.nn.GRU(3, 4).double()(q) ; torch.nn.GRU(3, 4)(q.half())
torch.nn.RNN(3, 4)(q.half()) ; torch.lstm(Q, (S3, s3), [WI, WH], False, 1, 0., False, False, False)
torch.lstm(Q, (S3, S3), [wi, WH], False, 1, 0., False, False, False)
torch.lstm(Q, (S3, S3), [WI, WH, bi, BI], True, 1, 0., False, False, False)
torch.rnn_tanh(q, s3, [RI, rh, br, br], True, 1, 0., False, False, False) ; torch.gru_cell(a, S, gi, gh, bg, bg)
torch.gru_cell(a, s, GI, gh, bg, bg) ; torch.gru_cell(a, s, gi, gh, bg, None) ; torch.gru_cell(A, s, gi, gh, bg, None)
torch.gru_cell(A, S, gi, gh, None, bg) ; torch.rnn_tanh_cell(A, s, ri, rh, None, br)
torch.index_reduce(A, 0, j, a, 'amax') ; torch.einsum('bij,bjk->bik', x, X.mT) ; torch.einsum('ij,jk->ik', a, h.T)
torch.einsum('ij,j->i', a, A[0]) ; torch.einsum('ij,j->ij', a, A[0]) ; torch.einsum('i,j,k', a[0], A[0], a[0])
F.bilinear(a.half(), a, b, v) ; F.bilinear(n, n, b, v) ; torch.matmul(a[0], A[0]) ; torch.matmul(a, A[0])
torch.matmul(a[0], A.T) ; torch.matmul(x, A[0]) ; torch.matmul(x, A.T) ; torch.matmul(a[0], X.mT)
torch.matmul(a, X.mT) ; torch.matmul(x, X.mT[:1]) ; torch.matmul(n, a.T) ; torch.matmul(n.bool(), a.T) ; a @ A.T
torch.mm(n, a.T) ; torch.mm(a.half(), A.T) ; torch.conv_transpose1d(X[:, :2], k) ; F.conv1d(x.half(), k)
F.conv1d(n.reshape(2, 1, 3), k[:, :1]) ; torch.addmm(n, a, a.T) ; torch.addmm(n[:, :2], n, n.T.float())
torch.addmv(n[:, 0], a, a[0]) ; F.group_norm(x.half(), 2, None, w) ; F.layer_norm(n, (3,), l, l)
F.layer_norm(n, (3,)) ; F.group_norm(n.reshape(1, 2, 3), 2) ; F.batch_norm(n, l, l)
F.instance_norm(x, rm, RV, use_input_stats=False) ; F.instance_norm(X, rm, rv, use_input_stats=False)
F.instance_norm(x, RM, RV) ; torch.lstm_cell(A, (S, s), WI, WH) ; torch.lstm_cell(A, (S, s), WI, WH)[1]
torch.lstm(q.half(), (s3, s3), [wi, wh], False, 1, 0., False, False, False)
torch.gru(q, s3, [gi.half(), gh], False, 1, 0., False, False, False)
torch.baddbmm(X[:, :, :2], X, X.mT[:, :, :2].float()) ; torch.linalg.matmul(a, A.T)
torch.linalg.multi_dot([a, a.T, A]) ; torch.tensordot(a, A, ([1], [1])) ; torch.inner(a, A[0])
"""


def tensors(torch):
    """The names that the expressions use: of float32 in small letters, of float64 in capital ones."""
    def numbers(*shape):
        return torch.arange(1., 1 + math.prod(shape)).reshape(shape) / 7
    shapes = {"a": (2, 3), "b": (2, 3, 3), "bg": (12,), "bi": (16,), "br": (4,), "e": (2, 2), "gh": (12, 4),
              "gi": (12, 3), "k": (2, 4, 1), "l": (3,), "q": (5, 2, 3), "rh": (4, 4), "ri": (4, 3), "rm": (4,),
              "rv": (4,), "s": (2, 4), "s3": (1, 2, 4), "v": (2,), "v2": (2,), "w": (4,), "wh": (16, 4), "wi": (16, 3),
              "x": (2, 4, 3)}
    found = {name: numbers(*shape) for name, shape in shapes.items()}
    found |= {name.upper(): t.double() for name, t in found.items()}
    return found | {"torch": torch, "F": torch.nn.functional, "p": found["a"] / 2, "P": found["A"] / 2,
                    "n": torch.arange(6).reshape(2, 3), "h": numbers(2, 3).half(),
                    "i": torch.tensor([[0, 1, 1], [1, 0, 0]]), "j": torch.tensor([0, 1]),
                    "t": torch.tensor([0, 1]), "lp": numbers(5, 1, 3).log_softmax(-1),
                    "TT": torch.tensor([[1, 2]]).int(), "il": torch.tensor([5]), "tl": torch.tensor([2]),
                    "img": numbers(1, 1, 4, 4), "GRID": numbers(1, 2, 2, 2).double(),
                    "M": numbers(2, 4, 4).double(),
                    "K2": numbers(1, 3, 4).double(),
                    "IN": numbers(9, 3).double(), "OUT": numbers(3, 3)}


def outcome(torch, expression):
    """The dtype of the (first) result, or the exception with its first line."""
    try:
        result = eval(expression, tensors(torch))
    except Exception as error:
        return type(error).__name__, str(error).split("\n")[0]
    while isinstance(result, (tuple, list)):
        result = result[0]
    return str(getattr(result, "dtype", result))


def test_the_outcome_is_pytorchs():
    torch = pytest.importorskip("torch")
    expressions = CALLS.strip().replace("\n", " ; ").split(" ; ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outcomes = {e: (outcome(tensorgrad, e), outcome(torch, e)) for e in expressions}
    assert len(outcomes) > 250 and {e: both for e, both in outcomes.items() if both[0] != both[1]} == {}
