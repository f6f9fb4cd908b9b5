"""Programs to trace, for any package that has PyTorch's API."""
import math
from collections import namedtuple
from math import sqrt

Pair = namedtuple("Pair", "a b")


def modules(torch):
    """{name: module} of programs that use what tracing has to record."""
    nn, F = torch.nn, torch.nn.functional

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.ones(3))
            self.register_buffer("shift", torch.zeros(3))

        def forward(self, x):
            return x * self.scale + self.shift

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 3)
            self.inner = Inner()
            self.rest = nn.Sequential(nn.ReLU(), nn.Linear(3, 3), nn.Dropout(0.1))

        def forward(self, x: torch.Tensor, scale: float = 2.0, mask=None) -> torch.Tensor:
            x = self.inner(self.inner(self.linear(x)))
            return self.rest(x) * scale

    class Operators(nn.Module):
        def forward(self, x, y):
            a, b = x.chunk(2)
            c = (a + 1, 2 - b, a * b, 3 / a, a // 2, 7 % b, a ** 2, 2 ** b, -a, +b, ~(a > b), a @ b)
            d = ((a < b) & (a <= b) | (a == b) ^ (a != b), a >= 1, abs(a), a[0], a[:, None], a[1:, ::2], a[..., -1])
            x.weight = 1
            return c, [d, {"y": y, "n": None}], x.shape[0] + x.size(-1), x.mean(dim=(0, 1), keepdim=True), y.T

    class Functions(nn.Module):
        def forward(self, x, w):
            y = F.relu(F.linear(x, w)) + torch.relu(x) + F.gelu(x, approximate="tanh") + torch.sigmoid(x)
            z = F.softmax(F.layer_norm(y, (3,)), dim=-1) + F.dropout(y, 0.5) + F.silu(y) + F.hardswish(x)
            z = torch.cat([z, y], dim=1) + torch.einsum("ij,jk->ik", y, w) + torch.stack((x, y)).sum(0)
            z = z + torch.linalg.norm(z) + torch.fft.fft(z).real + torch.special.expit(z) + torch.where(z > 0, z, 0.)
            z = F.max_pool2d(z[None], 2) + F.avg_pool2d(z[None], 2) + F.pad(z, (1, 1)) + F.one_hot(x.long())
            z = F.interpolate(z, scale_factor=2) + F.cross_entropy(z, x) + F.embedding(x, w) + F.batch_norm(z, w, w)
            z = torch.split(z, 2), torch.tensor([1., 2.]) + x, torch.max(z, 1)
            return z, x + torch.ones(3, dtype=torch.float64)

    class Values(nn.Module):
        def forward(self, x, *args, key=1, **kwargs):
            y = x.to(torch.float64).to("cpu", non_blocking=True).view(torch.Size([2, -1]))
            y = y.masked_fill(x > 0, float("-inf")).type_as(x) + math.sqrt(x.size(0)) + sqrt(key) + float("nan")
            return Pair(y, x), getattr(x, "T", 0), y.new_zeros((2, 3), dtype=torch.int64, device=x.device), args, kwargs

    class Root(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(2, 2), nn.Sequential(nn.Conv1d(2, 2, 1), nn.BatchNorm1d(2))])
            self.table = {"x": torch.arange(3)}
            self.constant = torch.arange(4.)

        def forward(self, input, in_=0, torch_relu=None):
            for layer in self.layers:
                input = layer(input)
            return input + self.constant + self.table["x"] + self.layers[0].weight
    return {"layers": Layers(), "operators": Operators(), "functions": Functions(), "values": Values(), "root": Root(),
            "sequential": nn.Sequential(nn.Linear(2, 2), nn.Tanh()), "function": lambda x: x + 1,
            "annotated": annotated(torch)}


def annotated(torch):
    def program(x: torch.Tensor, pair: tuple[int, torch.Tensor], names: list[str],
                n: int | None = None) -> dict[str, int]:
        return {"x": x, "n": n, "p": pair[1], "names": names[0]}
    return program


def asserting(x):
    (a, b), c = x
    assert a > b
    return a + c
