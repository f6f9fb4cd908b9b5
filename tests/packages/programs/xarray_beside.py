"""xarray beside torch: tensors as data, and a network that is trained on a data set's values."""
import numpy as np
import torch
import xarray as xr

rng = np.random.default_rng(0)
data = xr.Dataset({"rain": (("time", "place"), rng.random((20, 3))), "heat": (("time", "place"), rng.random((20, 3)))},
                  coords={"time": np.arange(20), "place": ["a", "b", "c"]})
print(dict(data.sizes), round(float(data["rain"].mean()), 4))
x = torch.from_numpy(data["rain"].values).float()
y = torch.as_tensor(data["heat"].values, dtype=torch.float32)
torch.manual_seed(0)
net = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    loss = torch.nn.functional.mse_loss(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, f"{loss.item():.5f}")
predicted = data.assign(predicted=(("time", "place"), net(x).detach().numpy()))
print(round(float(predicted["predicted"].sel(place="b").mean()), 4))
array = xr.DataArray(torch.arange(6.0).reshape(2, 3).numpy(), dims=("i", "j"))
print((array * 2 + 1).sum("j").values.tolist())
wrapped = xr.DataArray(torch.arange(6.0).reshape(2, 3), dims=("i", "j"))
print(type(wrapped.data).__name__, wrapped.shape)
