"""thop, ptflops, torchsummary: operations and parameters of models, counted by hooks and by a mode of operators."""

import contextlib
import io
import warnings

import torch
from ptflops import get_model_complexity_info
from thop import clever_format, profile
from torch import nn
from torchsummary import summary

warnings.simplefilter("ignore")
torch.manual_seed(0)


class Block(nn.Module):
    """Two convolutions round which the input goes as well."""

    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, groups=2),
        )

    def forward(self, x):
        return torch.relu(x + self.inner(x))


model = nn.Sequential(
    nn.Conv2d(3, 8, 3, stride=2),
    Block(8),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(8 * 49, 10),
    nn.LayerNorm(10),
    nn.Softmax(-1),
)
x = torch.randn(2, 3, 30, 30)
print(
    "thop",
    profile(model, inputs=(x,), verbose=False),
    clever_format(profile(model, inputs=(x,), verbose=False), "%.2f"),
)
for backend in ("pytorch", "aten"):
    print(
        "ptflops",
        backend,
        get_model_complexity_info(model, (3, 30, 30), as_strings=False, print_per_layer_stat=False, backend=backend),
    )
with contextlib.redirect_stdout(io.StringIO()) as printed:
    summary(model, (3, 30, 30), device="cpu")
print(printed.getvalue())
for layer, data in (
    (nn.LSTM(4, 6, 2), torch.randn(5, 2, 4)),
    (nn.MultiheadAttention(8, 2), None),
    (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), torch.randn(2, 5, 8)),
):
    inputs = (torch.randn(5, 2, 8),) * 3 if data is None else (data,)
    print(type(layer).__name__, profile(layer, inputs=inputs, verbose=False))
