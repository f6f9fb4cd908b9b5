"""tensordict: dictionaries of tensors that behave like one, a module over them, stacking, saving."""
import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule

torch.manual_seed(0)
data = TensorDict({"x": torch.randn(4, 3), "nested": {"y": torch.arange(4)}}, batch_size=[4])
print(data.shape, sorted(map(str, data.keys(True, True))), data[1:3]["x"].shape)
print(torch.stack([data, data]).shape, data.apply(lambda t: t * 2)["nested", "y"].tolist())
module = TensorDictModule(torch.nn.Linear(3, 2), in_keys=["x"], out_keys=["z"])
module(data)["z"].sum().backward()
print([round(v, 4) for v in module.module.weight.grad[0].tolist()])
print(sorted(TensorDict.from_module(torch.nn.Linear(2, 1)).keys()))
