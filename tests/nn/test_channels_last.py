"""Memory formats: results and gradients of images in channels_last have PyTorch's strides and values."""
import numpy as np
import pytest
from side_by_side import same
from support import cpu_only

pytestmark = cpu_only
FORMATS = {4: "channels_last", 5: "channels_last_3d"}


def array(torch, *shape, last=False):
    """Unequal numbers, in channels_last or contiguous."""
    x = torch.tensor(np.random.RandomState(sum(shape)).randn(*shape).astype(np.float32))
    return x.to(memory_format=getattr(torch, FORMATS[len(shape)])) if last else x


OPS = {
    "conv": lambda torch, F, x: F.conv2d(x, array(torch, 6, 4, 3, 3), array(torch, 1, 1, 1, 6).flatten(), padding=1),
    "conv by its weight": lambda torch, F, x: F.conv2d(x.contiguous(), array(torch, 6, 2, 3, 3, last=True), groups=2),
    "conv_transpose": lambda torch, F, x: F.conv_transpose2d(x, array(torch, 4, 6, 3, 3), stride=2),
    "max_pool": lambda torch, F, x: F.max_pool2d(x, 2),
    "max_pool with indices": lambda torch, F, x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
    "avg_pool": lambda torch, F, x: F.avg_pool2d(x, 2),
    "avg_pool, some counted": lambda torch, F, x: F.avg_pool2d(x, 3, padding=1, count_include_pad=False),
    "lp_pool": lambda torch, F, x: F.lp_pool2d(x, 2., 2),
    "adaptive_avg_pool": lambda torch, F, x: F.adaptive_avg_pool2d(x, (4, 3)),
    "adaptive_max_pool": lambda torch, F, x: F.adaptive_max_pool2d(x, 2),
    "fractional_max_pool": lambda torch, F, x: F.fractional_max_pool2d(
        x, 2, output_size=2, _random_samples=torch.full((2, 4, 2), 0.3)),
    "max_unpool": lambda torch, F, x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
    "nearest": lambda torch, F, x: F.interpolate(x, scale_factor=2),
    "bilinear": lambda torch, F, x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "area": lambda torch, F, x: F.interpolate(x, (4, 3), mode="area"),
    "pad": lambda torch, F, x: F.pad(x, (1, 2, -1, 1)),
    "reflect": lambda torch, F, x: F.pad(x, (1, 2, 1, 1), mode="reflect"),
    "circular": lambda torch, F, x: F.pad(x, (1, 2, 1, 1), mode="circular"),
    "cat": lambda torch, F, x: torch.cat([x, 2 * x], 1),
    "cat with contiguous": lambda torch, F, x: torch.cat([x, x.contiguous()], 1),
    "group_norm": lambda torch, F, x: F.group_norm(x, 2),
    "batch_norm": lambda torch, F, x: F.batch_norm(x, None, None, torch.arange(4.), torch.ones(4), training=True),
    "batch_norm after training": lambda torch, F, x: F.batch_norm(x, torch.ones(4), torch.arange(1., 5)),
    "layer_norm": lambda torch, F, x: F.layer_norm(x, x.shape[2:]),
    "instance_norm": lambda torch, F, x: F.instance_norm(x),
    "pixel_shuffle": lambda torch, F, x: F.pixel_shuffle(torch.cat([x, x + 1], 1), 2),
    "pixel_unshuffle": lambda torch, F, x: F.pixel_unshuffle(x, 2).relu(),
    "channel_shuffle": lambda torch, F, x: F.channel_shuffle(x, 2).relu(),
    "relu": lambda torch, F, x: F.relu(x),
    "roll": lambda torch, F, x: x.roll(1, 2),
    "conv3d": lambda torch, F, x: F.conv3d(volumes(x), array(torch, 3, 4, 2, 1, 1), stride=2),
    "max_pool3d": lambda torch, F, x: F.max_pool3d(volumes(x), 2),
    "avg_pool3d": lambda torch, F, x: F.avg_pool3d(volumes(x), 2),
    "nearest, volumes": lambda torch, F, x: F.interpolate(volumes(x), scale_factor=2),
}


def volumes(x):
    """Make images of three dimensions, in the format of x."""
    return x.reshape(*x.shape[:2], 3, 2, x.shape[-1])


def strides(x):
    return [step for step, n in zip(x.stride(), x.shape) if n > 1]


FOLLOWING = {"nearest, volumes", "pixel_unshuffle", "channel_shuffle"}     # their gradients' format differs


@pytest.mark.parametrize("name", OPS)
def test_format_is_kept(name):
    def program(torch):
        x = array(torch, 2, 4, 6, 8, last=True).requires_grad_()
        found = OPS[name](torch, torch.nn.functional, x)
        y, *rest = found if isinstance(found, tuple) else (found,)
        g = torch.cos(torch.arange(y.numel())).reshape(y.shape).to(y.dtype)
        g = g.to(memory_format=getattr(torch, FORMATS[y.dim()]))
        gx, = torch.autograd.grad(y, x, g)
        return strides(y), y, rest, gx, *([] if name in FOLLOWING else [strides(gx)])
    same(program, rtol=1e-4, atol=1e-5)


def test_gradients_take_the_format_of_the_input():
    """The format of a step's results does not depend on that of the gradient that reaches it."""
    def program(torch):
        x, w = array(torch, 2, 4, 6, 8, last=True).requires_grad_(), array(torch, 6, 4, 3, 3).requires_grad_()
        y = torch.nn.functional.max_pool2d(torch.nn.functional.conv2d(x, w), 2)
        gx, gw = torch.autograd.grad(y, (x, w), array(torch, *y.shape), retain_graph=True)
        y.backward(array(torch, *y.shape))
        return [strides(t) for t in (gx, gw, x.grad, w.grad)]
    same(program)


@pytest.mark.parametrize("shape", [(2, 1, 3, 4), (2, 3, 1, 1), (1, 1, 1, 1), (1, 3, 2, 2), (2, 3, 0, 2)])
def test_strides_of_short_axes_decide(shape):
    def program(torch):
        found = []
        for x in (torch.ones(shape), torch.empty(shape).to(memory_format=torch.channels_last),
                  torch.ones(shape[0], *shape[2:], shape[1]).permute(0, 3, 1, 2)):
            y = torch.nn.functional.pad(x, (1, 1, 1, 1))
            found.append((strides(y), y.is_contiguous(memory_format=torch.channels_last)))
        return found
    same(program)


def test_higher_gradients():
    def program(torch):
        x = array(torch, 2, 2, 4, 4, last=True).requires_grad_()
        w = array(torch, 3, 2, 2, 2).requires_grad_()
        y = torch.nn.functional.avg_pool2d(torch.nn.functional.conv2d(x, w, padding=1), 2)
        gx, = torch.autograd.grad(y.square().sum(), x, create_graph=True)
        return strides(gx), torch.autograd.grad(gx.square().sum(), (x, w))
    same(program, rtol=1e-4, atol=1e-4)
