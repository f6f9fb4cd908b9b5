"""Results have the same bits whatever other threads do: loops are parted by their sizes and the number of threads,
never by who is free.
"""
import os
import subprocess
import sys

import pytest
from support import ROOT, cpu_only

from tensorgrad.runtime.native import native

pytestmark = cpu_only

PROGRAM = """
import sys, threading
import tensorgrad as torch
import tensorgrad.nn.functional as F

times = int(sys.argv[1])
torch.set_num_threads(3)
torch.manual_seed(0)

def grads(f, *shapes, dtype=torch.float32):
    inputs = [torch.randn(shape, dtype=dtype) for shape in shapes]
    upstream = torch.randn(tuple(f(*inputs).shape), dtype=dtype)
    def run():
        leaves = [x.clone().requires_grad_() for x in inputs]
        out = f(*leaves)
        return [out, *torch.autograd.grad(out, leaves, upstream)]
    return run

def recurrent(net):
    x, upstream = torch.randn(8, 16, 32), torch.randn(8, 16, 64)
    def run():
        out = net(x)[0]
        return [out, *torch.autograd.grad(out, [*net.parameters()], upstream)]
    return run

labels = torch.arange(300) % 200
CASES = {
    "convolution": grads(lambda x, w, b: F.conv2d(x, w, b, padding=1), (16, 8, 28, 28), (16, 8, 3, 3), (16,)),
    "steps": grads(lambda x, w: F.conv2d(x, w, stride=2, padding=2), (16, 3, 32, 32), (8, 3, 5, 5)),
    "many channels": grads(lambda x, w: F.conv2d(x, w, padding=1), (4, 32, 16, 16), (32, 32, 3, 3)),
    "transposed": grads(lambda x, w: F.conv_transpose2d(x, w, stride=2), (4, 8, 12, 12), (8, 6, 3, 3)),
    "depthwise": grads(lambda x, w: F.conv2d(x, w, padding=1, groups=16), (8, 16, 20, 20), (16, 1, 3, 3)),
    "sum": grads(lambda x: x.sum().reshape(1), (300001,)), "sums": grads(lambda x: x.sum(0), (700, 300)), "variance": grads(lambda x: x.var(1), (700, 300)),
    "norm": grads(lambda x: torch.linalg.vector_norm(x).reshape(1), (300001,)), "scan": grads(lambda x: x.cumsum(1), (300, 400)),
    "product": grads(torch.matmul, (130, 170), (170, 190)), "double": grads(torch.matmul, (130, 170), (170, 190), dtype=torch.float64),
    "vector": grads(torch.matmul, (700, 600), (600,)), "stack": grads(torch.matmul, (8, 40, 50), (8, 50, 60)),
    "complex": grads(lambda x: (torch.complex(x, x.mT) @ torch.complex(x.mT, x)).real, (150, 150)),
    "linear": grads(F.linear, (64, 300), (200, 300), (200,)),
    "attention": grads(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *[(4, 4, 64, 32)] * 3),
    "mean square": grads(lambda a, b: F.mse_loss(a, b).reshape(1), (200000,), (200000,)),
    "logits": grads(lambda x: F.binary_cross_entropy_with_logits(x, torch.ones(200000)).reshape(1), (200000,)),
    "softmax": grads(lambda x: x.softmax(1), (300, 200)), "cross entropy": grads(lambda x: F.cross_entropy(x, labels).reshape(1), (300, 200)),
    "layer norm": grads(lambda x, w, b: F.layer_norm(x, (300,), w, b), (400, 300), (300,), (300,)),
    "group norm": grads(lambda x: F.group_norm(x, 4), (16, 20, 20, 20)),
    "batch norm": grads(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (16, 20, 20, 20), (20,), (20,)),
    "largest": grads(lambda x: F.max_pool2d(x, 3, 2, 1), (8, 8, 32, 32)), "means": grads(lambda x: F.avg_pool2d(x, 3, 2, 1), (8, 8, 32, 32)),
    "embedding": grads(lambda w: F.embedding(torch.arange(20000) % 97, w), (97, 32)),
    "LSTM": recurrent(torch.nn.LSTM(32, 64)), "GRU": recurrent(torch.nn.GRU(32, 64)),
}

def bits(run):
    return [t.detach().numpy().tobytes() for t in run()]

alone, stop = {name: bits(run) for name, run in CASES.items()}, threading.Event()

def compute():
    x, y, w = torch.randn(SIZE, SIZE), torch.randn(8, 4, 20, 20), torch.randn(8, 4, 3, 3)
    while not stop.is_set():
        (x @ x).softmax(1).sum()
        F.conv2d(y, w)

other = threading.Thread(target=compute)
other.start()
found = {name: sum(bits(run) != alone[name] for _ in range(times)) for name, run in CASES.items()}
stop.set()
other.join()
print({name: number for name, number in found.items() if number}, len(found))
"""  # noqa: E501


@pytest.mark.parametrize(("pure", "times", "size"),
                         [pytest.param("0", "20", "200",
                                       marks=pytest.mark.skipif(native is None, reason="not compiled")),
                          ("1", "1", "200")])
def test_bits_are_the_same_beside_a_thread_that_computes(pure, times, size):
    done = subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM.replace("SIZE", size), times],
                          capture_output=True, text=True, timeout=100,
                          cwd=ROOT,
                          env={**os.environ, "TENSORGRAD_PURE": pure, "OMP_NUM_THREADS": "3",
                               "OPENBLAS_NUM_THREADS": "3"})
    assert done.stdout == "{} 29\n", done.stdout + done.stderr
