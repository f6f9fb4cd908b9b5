"""The gradients of convolutions, as functions (PyTorch: ``torch.nn.grad``)."""
from ..api.convolution import several
from ..core.dispatch import xp

__all__ = []


def _input(n):
    def gradient(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
        return xp.convolution_input(grad_output, weight, None, size=tuple(input_size[2:]),
                                    stride=several(stride, n, "stride"), padding=several(padding, n, "padding"),
                                    dilation=several(dilation, n, "dilation"),
                                    groups=groups)
    gradient.__name__ = gradient.__qualname__ = f"conv{n}d_input"
    gradient.__doc__ = (f"The gradient of conv{n}d for an input of this size: Σ over output channels of grad_output "
                        f"spread by the weight. https://pytorch.org/docs → torch.nn.grad.conv{n}d_input")
    return gradient


def _weight(n):
    def gradient(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
        return xp.convolution_weight(grad_output, input, size=tuple(weight_size[2:]),
                                     stride=several(stride, n, "stride"), padding=several(padding, n, "padding"),
                                     dilation=several(dilation, n, "dilation"),
                                     groups=groups)
    gradient.__name__ = gradient.__qualname__ = f"conv{n}d_weight"
    gradient.__doc__ = (f"The gradient of conv{n}d for a weight of this size: Σ over the batch of grad_output "
                        f"correlated with the input. https://pytorch.org/docs → torch.nn.grad.conv{n}d_weight")
    return gradient


conv1d_input, conv2d_input, conv3d_input = map(_input, (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = map(_weight, (1, 2, 3))
