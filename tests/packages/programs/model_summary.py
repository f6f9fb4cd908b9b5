"""torchinfo: tables of layers, shapes and counts, found by hooks."""
import torch
from torch import nn
from torchinfo import summary


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
        self.rnn = nn.LSTM(8 * 8, 12, num_layers=2, batch_first=True)
        self.head = nn.ModuleDict({"a": nn.Linear(12, 4), "b": nn.Linear(12, 2, bias=False)})
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x, flip=False):
        x = self.conv(x)
        x, _ = self.rnn(x.flip(2).permute(0, 2, 1, 3).flatten(2) if flip else x.permute(0, 2, 1, 3).flatten(2))
        return self.head["a"](x), self.scale * self.head["b"](x)


model = Net()
model.conv[0].weight.requires_grad_(False)
print(summary(model, input_size=(2, 3, 16, 16), verbose=0))
result = summary(model, input_data=torch.zeros(2, 3, 16, 16), flip=True, depth=1, verbose=0,
                 col_names=("input_size", "output_size", "num_params", "kernel_size", "mult_adds", "trainable"),
                 row_settings=("depth", "var_names"))
print(result, result.total_params, result.trainable_params, result.total_mult_adds)
print(summary(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).train(), input_size=(2, 5, 16), depth=2,
              verbose=0))
print(summary(nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(12, 1)), input_size=(5, 3),
              dtypes=[torch.long], verbose=0))
