"""timm: models of several families with random weights, features, a training step with its optimizer and schedule."""
import tempfile

import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3

x = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
for name, options in {"resnet18": {}, "efficientnet_b0": {}, "mobilenetv3_small_100": {}, "convnext_atto": {},
                      "vit_tiny_patch16_224": {"img_size": 64}, "swin_tiny_patch4_window7_224": {"img_size": 64},
                      "mixer_s32_224": {"img_size": 64}, "regnety_002": {}}.items():
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=7, **options).eval()
    with torch.no_grad():
        out = model(x)
    count = sum(p.numel() for p in model.parameters())
    print(name, count, f"{out.abs().mean().item():.4f}", [round(v, 4) for v in out[0, :3].tolist()])
torch.manual_seed(0)
features = timm.create_model("resnet18", features_only=True, out_indices=(1, 3)).eval()
print("features", [(tuple(f.shape), round(f.mean().item(), 4)) for f in features(x)], features.feature_info.channels())
model = timm.create_model("resnet18", num_classes=7, drop_path_rate=0.0).train()
optimizer = create_optimizer_v2(model, opt="lamb", lr=0.01, weight_decay=0.02)
schedule, ema = CosineLRScheduler(optimizer, t_initial=10, warmup_t=2, warmup_lr_init=1e-3), ModelEmaV3(model, decay=0.9)
mixed, targets = Mixup(mixup_alpha=0.0, cutmix_alpha=0.0, num_classes=7, prob=0.0)(x, torch.tensor([1, 5]))
for step in range(3):
    loss = SoftTargetCrossEntropy()(model(mixed), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step(step)
    ema.update(model)
    print("step", step, f"{loss.item():.4f} rate {optimizer.param_groups[0]['lr']:.5f}")
with tempfile.TemporaryDirectory() as folder:
    torch.save(model.state_dict(), folder + "/model.pt")
    again = timm.create_model("resnet18", num_classes=7, checkpoint_path=folder + "/model.pt").eval()
    print("saved and loaded", torch.equal(again(x), model.eval()(x)))
print("listed", len(timm.list_models("resnet*")) > 30, timm.data.resolve_model_data_config(model)["input_size"])
