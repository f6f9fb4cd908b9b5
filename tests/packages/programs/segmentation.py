"""segmentation-models-pytorch: networks of several architectures, losses, metrics, a training step, files."""

import tempfile

import segmentation_models_pytorch as smp
import torch

image = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
mask = (torch.arange(2 * 64 * 64).reshape(2, 1, 64, 64) % 5 < 2).long()
for name, options in {
    "Unet": {"decoder_attention_type": "scse"},
    "FPN": {},
    "Linknet": {},
    "PSPNet": {},
    "DeepLabV3Plus": {},
    "UnetPlusPlus": {},
    "UPerNet": {},
    "Segformer": {},
}.items():
    torch.manual_seed(0)
    model = getattr(smp, name)("resnet18", encoder_weights=None, classes=1, **options).eval()
    with torch.no_grad():
        out = model(image)
    print(name, sum(p.numel() for p in model.parameters()), tuple(out.shape), out.mean(), out.std(), out[0, 0, 9, 5:8])
torch.manual_seed(0)
model = smp.Unet(
    "resnet18",
    encoder_weights=None,
    classes=1,
    decoder_channels=(32, 16, 16, 8, 8),
    aux_params={"classes": 4, "dropout": None},
)
model.encoder.eval()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
for name in ("DiceLoss", "JaccardLoss", "LovaszLoss", "FocalLoss", "TverskyLoss"):
    criterion = getattr(smp.losses, name)(mode="binary")
    out, label = model(image)
    loss = criterion(out, mask.float() if name != "LovaszLoss" else mask) + label.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(name, loss, label[0])
print(
    "others",
    smp.losses.SoftBCEWithLogitsLoss(smooth_factor=0.1)(out, mask.float()),
    smp.losses.SoftCrossEntropyLoss(smooth_factor=0.1)(torch.cat([out, -out], 1), mask[:, 0]),
    smp.losses.MCCLoss()(out.sigmoid(), mask.float()),
)
counts = smp.metrics.get_stats((out.sigmoid() > 0.5).long(), mask, mode="binary")
print(
    "metrics",
    [smp.metrics.iou_score(*counts, reduction=r) for r in ("micro", "macro", "micro-imagewise")],
    smp.metrics.f1_score(*counts, reduction="micro"),
)
with tempfile.TemporaryDirectory() as folder:
    model.save_pretrained(folder)
    again = smp.from_pretrained(folder).eval()
    print("loaded", torch.equal(again(image)[0], model.eval()(image)[0]), type(again).__name__)
