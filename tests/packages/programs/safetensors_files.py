"""safetensors.torch: tensors and models in files, whole and in slices."""
import json
import os
import tempfile

import torch
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model

torch.manual_seed(0)
folder = tempfile.mkdtemp()
path = os.path.join(folder, "x.safetensors")
tensors = {"a": torch.randn(4, 3), "b": torch.arange(6).reshape(2, 3), "c": torch.randn(5).bfloat16(),
           "d": torch.tensor([True, False]), "e": torch.randn(3).half(), "f": torch.tensor(2.5, dtype=torch.float64),
           "g": torch.arange(4, dtype=torch.uint8), "h": torch.zeros(0, 2)}
save_file(tensors, path, metadata={"who": "me"})
print(os.path.getsize(path), {name: (value.dtype, torch.equal(value, tensors[name]))
                              for name, value in sorted(load_file(path).items())})
with safe_open(path, framework="pt", device="cpu") as file:
    print(sorted(file.keys()), file.metadata(), file.get_tensor("b"))
    part = file.get_slice("a")
    print(part.get_shape(), part.get_dtype(), part[1:3], part[:, 1:])
print(load(save({"y": torch.ones(2, 2)})))
model = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.BatchNorm1d(4),
                            torch.nn.Linear(4, 4, bias=False))
model[2].weight = model[0].weight
save_model(model, path)
other = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.BatchNorm1d(4),
                            torch.nn.Linear(4, 4, bias=False))
other[2].weight = other[0].weight
print(load_model(other, path), torch.equal(model[2].weight, other[0].weight))
with open(path, "rb") as file:
    size = int.from_bytes(file.read(8), "little")
    print(json.loads(file.read(size)))
for bad in ({"x": model[0].weight, "y": model[2].weight}, {"x": torch.ones(2, 3).t()}, {"x": 3}, {3: torch.ones(1)}):
    try:
        save_file(bad, path)
    except Exception as error:
        print(type(error).__name__, str(error).strip().splitlines()[0][:60])
