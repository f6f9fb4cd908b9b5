"""accelerate: prepared model, optimizer, loader and schedule; accumulated gradients, clipping, gathering, state on disk."""
import tempfile

import torch
from accelerate import Accelerator, init_empty_weights, load_checkpoint_and_dispatch
from accelerate.utils import set_seed

set_seed(1)
accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)
x = torch.randn(64, 5)
data = torch.utils.data.TensorDataset(x, (x @ torch.arange(5.0)).tanh())
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
for epoch in range(3):
    for inputs, targets in loader:
        with accelerator.accumulate(model):
            loss = torch.nn.functional.mse_loss(model(inputs).squeeze(1), targets)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                norm = accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
    mean = accelerator.gather_for_metrics(loss.detach().reshape(1)).mean()
    print("epoch", epoch, f"{mean.item():.5f} norm {norm.item():.5f} rate {schedule.get_last_lr()[0]:.6f}")
with tempfile.TemporaryDirectory() as folder:
    accelerator.save_state(folder)
    kept = [p.detach().clone() for p in model.parameters()]
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
    accelerator.load_state(folder)
    print("restored", all(torch.equal(a, b) for a, b in zip(kept, model.parameters())))
    accelerator.save_model(model, folder + "/model")
    with init_empty_weights():
        empty = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    print("empty", {p.device.type for p in empty.parameters()})
    full = load_checkpoint_and_dispatch(empty, folder + "/model/model.safetensors", device_map={"": "cpu"})
    print("dispatched", torch.equal(full(x), accelerator.unwrap_model(model)(x)))
print("device", accelerator.device, accelerator.num_processes, accelerator.mixed_precision)
