"""torchvision: models with random weights, transforms of tensors, box functions, a training step: its Python parts."""
import torch
from torchvision import models, ops, transforms
from torchvision.models.feature_extraction import create_feature_extractor
from torchvision.transforms import functional as F
from torchvision.transforms import v2
from torchvision.utils import make_grid

x = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
for name in ("resnet18", "mobilenet_v3_small", "efficientnet_b0", "shufflenet_v2_x0_5", "squeezenet1_1", "densenet121",
             "convnext_tiny", "vgg11", "swin_t", "regnet_y_400mf", "mnasnet0_5"):
    torch.manual_seed(0)
    model = getattr(models, name)(num_classes=5).eval()
    with torch.no_grad():
        out = model(x)
    print(name, f"{out.abs().mean().item():.4f}", [round(v, 3) for v in out[0].tolist()])
torch.manual_seed(0)
segmentation = models.segmentation.lraspp_mobilenet_v3_large(num_classes=4, weights=None, weights_backbone=None).eval()
with torch.no_grad():
    print("segmentation", {k: (tuple(v.shape), round(v.mean().item(), 4)) for k, v in segmentation(x).items()})
pipeline = transforms.Compose([transforms.Resize(48), transforms.CenterCrop(40), transforms.RandomHorizontalFlip(1.0),
                               transforms.ColorJitter(0.2, 0.2, 0.2), transforms.Normalize([0.5] * 3, [0.2] * 3)])
torch.manual_seed(1)
print("transforms", f"{pipeline(x).mean().item():.4f} {pipeline(x).std().item():.4f}")
torch.manual_seed(1)
second = v2.Compose([v2.RandomResizedCrop(32), v2.RandomRotation(20), v2.GaussianBlur(3), v2.ToDtype(torch.float32)])
print("v2", tuple(second(x).shape), f"{second(x).mean().item():.4f}")
print("functional", f"{F.affine(x, 10.0, [1, 2], 1.1, [3.0]).mean().item():.4f} {F.adjust_hue(x, 0.1).mean().item():.4f} "
      f"{F.equalize((x * 255).byte()).float().mean().item():.4f} {F.rgb_to_grayscale(x).std().item():.4f}")
boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 40]])
print("boxes", [round(v, 4) for v in ops.box_iou(boxes, boxes).flatten().tolist()], ops.box_area(boxes).tolist(),
      ops.box_convert(boxes, "xyxy", "cxcywh")[2].tolist(),
      [round(v, 4) for v in ops.generalized_box_iou(boxes[:1], boxes[1:]).flatten().tolist()])
print("losses", f"{ops.sigmoid_focal_loss(x - 0.5, (x > 0.5).float(), reduction='mean').item():.5f} "
      f"{ops.complete_box_iou_loss(boxes[:2], boxes[1:], reduction='mean').item():.4f}")
print("grid", tuple(make_grid(x, 2).shape), tuple(ops.StochasticDepth(0.0, "row")(x).shape), tuple(ops.SqueezeExcitation(3, 2)(x).shape))
model = models.resnet18(num_classes=5).train()
torch.manual_seed(0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for step in range(2):
    loss = torch.nn.functional.cross_entropy(model(x), torch.tensor([1, 3]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, f"{loss.item():.4f}")
features = create_feature_extractor(model.eval(), {"layer2": "middle", "flatten": "end"})
print("features", {k: tuple(v.shape) for k, v in features(x).items()})
