"""torchao: weights of a model quantized to 8 bits, and its output."""
import torch
from torchao.quantization import Int8WeightOnlyConfig, quantize_

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
x = torch.randn(3, 32)
before = model(x)
quantize_(model, Int8WeightOnlyConfig())
print(f"{(model(x) - before).abs().max().item() < 0.1}")
for _ in range(4):
    print(tuple(model(x).shape))
