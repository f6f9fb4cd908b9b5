"""MONAI: networks, losses, metrics, transforms of volumes, sliding windows, a cached data set, a training step."""

import warnings

import numpy as np
import torch
from monai.data import CacheDataset, DataLoader, MetaTensor, decollate_batch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, DiceFocalLoss, DiceLoss, FocalLoss, SSIMLoss, TverskyLoss
from monai.metrics import DiceMetric, HausdorffDistanceMetric, MeanIoU, PSNRMetric, SurfaceDistanceMetric
from monai.networks.nets import UNETR, AttentionUnet, BasicUNet, DenseNet121, SegResNet, SwinUNETR, UNet
from monai.networks.utils import one_hot
from monai.transforms import (
    Activations,
    AsDiscrete,
    Compose,
    EnsureChannelFirstd,
    GaussianSmooth,
    RandAffined,
    RandCropByPosNegLabeld,
    RandFlipd,
    RandGaussianNoised,
    Resize,
    Rotate90,
    ScaleIntensityd,
    Spacing,
    Zoom,
)
from monai.utils import set_determinism

warnings.simplefilter("ignore")
set_determinism(0)
volume = np.random.RandomState(0).rand(20, 20, 20).astype("float32")
label = (np.indices((20, 20, 20)).sum(0) % 7 < 3).astype("float32")
transform = Compose(
    [
        EnsureChannelFirstd(["image", "label"], channel_dim="no_channel"),
        ScaleIntensityd("image"),
        RandCropByPosNegLabeld(["image", "label"], "label", (16, 16, 16), pos=1, neg=1, num_samples=2),
        RandFlipd(["image", "label"], prob=1.0, spatial_axis=1),
        RandAffined(["image", "label"], prob=1.0, rotate_range=0.3, mode=("bilinear", "nearest")),
        RandGaussianNoised("image", prob=1.0, std=0.05),
    ]
)
transform.set_random_state(3)
data = CacheDataset([{"image": volume, "label": label}] * 2, transform, progress=False)
batch = next(iter(DataLoader(data, batch_size=2)))
print("batch", tuple(batch["image"].shape), type(batch["image"]).__name__, batch["image"].mean(), batch["label"].sum())
torch.manual_seed(0)
model = UNet(spatial_dims=3, in_channels=1, out_channels=2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1)
optimizer, criterion = torch.optim.Adam(model.parameters(), 1e-2), DiceCELoss(to_onehot_y=True, softmax=True)
for _ in range(3):
    optimizer.zero_grad()
    loss = criterion(model(batch["image"]), batch["label"])
    loss.backward()
    optimizer.step()
    print("loss", loss.item())
model.eval()
with torch.no_grad():
    out = sliding_window_inference(
        torch.as_tensor(volume)[None, None], (16, 16, 16), 2, model, overlap=0.5, mode="gaussian"
    )
print("windows", tuple(out.shape), out.mean(), out.std())
dice, distance = DiceMetric(include_background=False), HausdorffDistanceMetric(percentile=95)
predicted = torch.stack([AsDiscrete(argmax=True, to_onehot=2)(part) for part in decollate_batch(out)])
truth = one_hot(torch.as_tensor(label)[None, None], 2)
for metric in (dice, MeanIoU(), distance, SurfaceDistanceMetric()):
    metric(predicted, truth)
    print(type(metric).__name__, metric.aggregate())
print("PSNR", PSNRMetric(1.0)(torch.zeros(1, 1, 4, 4), torch.full((1, 1, 4, 4), 0.1)))
logits, target = (
    torch.randn(1, 2, 12, 12, requires_grad=True),
    (torch.arange(144).reshape(1, 1, 12, 12) % 3 == 0).float(),
)
for criterion in (
    DiceLoss(sigmoid=True, to_onehot_y=True),
    FocalLoss(to_onehot_y=True),
    TverskyLoss(softmax=True, to_onehot_y=True),
    DiceFocalLoss(softmax=True, to_onehot_y=True),
):
    loss = criterion(logits, target)
    print(type(criterion).__name__, loss, torch.autograd.grad(loss, logits)[0].abs().sum())
print("SSIM", SSIMLoss(2)(torch.rand(1, 1, 16, 16), torch.rand(1, 1, 16, 16)))
picture = torch.rand(1, 24, 24, generator=torch.Generator().manual_seed(2))
for change in (Resize((12, 18)), Rotate90(), Zoom(1.3), GaussianSmooth(1.0)):
    print(type(change).__name__, tuple(change(picture).shape), change(picture).mean(), change(picture)[0, 3, 4:7])
placed = MetaTensor(picture, affine=torch.diag(torch.tensor([2.0, 2.0, 1.0])))
spaced = Spacing((1.0, 1.0))(placed)
print("spacing", tuple(spaced.shape), spaced.mean(), spaced.affine[0], (placed + 1).affine[0, 0])
print("activations", Activations(sigmoid=True)(picture)[0, 0, :2])
for net, size in (
    (BasicUNet(2, 1, 2, features=(4, 4, 8, 8, 8, 4)), (1, 1, 32, 32)),
    (AttentionUnet(2, 1, 2, (4, 8), (2,)), (1, 1, 16, 16)),
    (SegResNet(2, 8, 1, 2), (1, 1, 32, 32)),
    (DenseNet121(2, 1, 3), (2, 1, 32, 32)),
    (UNETR(1, 2, 32, feature_size=8, hidden_size=24, mlp_dim=32, num_heads=2, spatial_dims=2), (1, 1, 32, 32)),
    (SwinUNETR(1, 2, feature_size=12, spatial_dims=2), (1, 1, 64, 64)),
):
    torch.manual_seed(1)
    for parameter in net.parameters():
        torch.nn.init.uniform_(parameter, -0.1, 0.1)
    out = net.eval()(torch.rand(size))
    print(type(net).__name__, tuple(out.shape), out.mean(), out.std())
