"""kornia: colours, filters, geometry, augmentations, losses and metrics of pictures."""
import kornia as K
import torch

x = torch.rand(2, 3, 24, 24, generator=torch.Generator().manual_seed(0))


def show(name, value):
    print(name, tuple(value.shape), f"{value.double().mean().item():.5f} {value.double().std().item():.5f}")


for name in ("rgb_to_grayscale", "rgb_to_hsv", "rgb_to_lab", "rgb_to_ycbcr", "rgb_to_luv", "rgb_to_xyz"):
    show(name, getattr(K.color, name)(x))
show("blur", K.filters.gaussian_blur2d(x, (5, 5), (1.5, 1.5)))
show("sobel", K.filters.sobel(x))
show("median", K.filters.median_blur(x, (3, 3)))
show("canny", K.filters.canny(x)[0])
show("laplacian", K.filters.laplacian(x, 3))
show("unsharp", K.filters.unsharp_mask(x, (3, 3), (1.0, 1.0)))
show("bilateral", K.filters.bilateral_blur(x, (3, 3), 0.1, (1.5, 1.5)))
show("rotate", K.geometry.rotate(x, torch.tensor([30.0, -10.0])))
show("warp", K.geometry.warp_perspective(x, torch.eye(3).repeat(2, 1, 1) + 0.01, (20, 20)))
show("resize", K.geometry.resize(x, (12, 16)))
show("pyramid", K.geometry.pyrdown(x))
show("quaternion", K.geometry.quaternion_to_rotation_matrix(torch.tensor([[1.0, 0.2, 0.3, 0.1]])))
show("homography", K.geometry.find_homography_dlt(torch.rand(1, 6, 2, generator=torch.Generator().manual_seed(1)),
                                                  torch.rand(1, 6, 2, generator=torch.Generator().manual_seed(2))))
show("distance", K.contrib.distance_transform((x[:, :1] > 0.5).float()))
show("corners", K.feature.harris_response(x[:, :1]))
show("dilate", K.morphology.dilation(x, torch.ones(3, 3)))
show("equalize", K.enhance.equalize(x))
show("jpeg", K.enhance.jpeg_codec_differentiable(x[..., :16, :16], torch.tensor([50.0])))
show("ssim", K.metrics.ssim(x, x.flip(0), 5))
show("psnr", K.metrics.psnr(x, x.flip(0), 1.0))
torch.manual_seed(0)
augment = K.augmentation.AugmentationSequential(
    K.augmentation.RandomAffine(20.0, p=1.0), K.augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
    K.augmentation.RandomHorizontalFlip(p=0.5), K.augmentation.RandomErasing(p=1.0), data_keys=["input", "mask"])
show("augmented", torch.cat(augment(x, (x > 0.5).float()), 1))
logits = torch.randn(2, 4, 6, 6, generator=torch.Generator().manual_seed(3)).requires_grad_()
for name in ("focal_loss", "dice_loss", "tversky_loss"):
    options = {"focal_loss": {"alpha": 0.5, "reduction": "mean"}, "tversky_loss": {"alpha": 0.5, "beta": 0.5}}.get(name, {})
    loss = getattr(K.losses, name)(logits, torch.randint(4, (2, 6, 6), generator=torch.Generator().manual_seed(4)), **options)
    (gradient,) = torch.autograd.grad(loss, logits)
    print(name, f"{loss.item():.5f} {gradient.abs().sum().item():.5f}")
show("total variation", K.losses.total_variation(x))
