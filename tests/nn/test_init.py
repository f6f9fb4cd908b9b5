"""`nn.init`: the numbers that PyTorch draws, for each way to draw them."""
import pytest
from nn_oracle import agree, cases

import tensorgrad


def filled(torch, name, shape, *args, dtype="float32", **kwargs):
    """The tensor after an initializer, and the next random number: the stream must be where PyTorch's is."""
    tensor = torch.nn.Parameter(torch.zeros(shape, dtype=getattr(torch, dtype)))
    result = getattr(torch.nn.init, name)(tensor, *args, **kwargs)
    return result is tensor, tensor, torch.rand(2)


@cases(
    lambda torch: filled(torch, "uniform_", (3, 4)),
    lambda torch: filled(torch, "uniform_", (3, 4), -2.0, 5.0, dtype="float64"),
    lambda torch: filled(torch, "normal_", (3, 7)),
    lambda torch: filled(torch, "normal_", (5, 4), 2.0, 0.5, dtype="float64"),
    lambda torch: filled(torch, "constant_", (2, 3), 0.3),
    lambda torch: filled(torch, "ones_", (2, 3)),
    lambda torch: filled(torch, "zeros_", (2, 3)),
    lambda torch: filled(torch, "eye_", (2, 3)),
    lambda torch: filled(torch, "eye_", (3, 2)),
    lambda torch: filled(torch, "eye_", (3,)),
    lambda torch: filled(torch, "dirac_", (3, 2, 4)),
    lambda torch: filled(torch, "dirac_", (4, 2, 3, 2), 2),
    lambda torch: filled(torch, "dirac_", (2, 3, 3, 2, 1)),
    lambda torch: filled(torch, "dirac_", (2, 3)),
    lambda torch: filled(torch, "dirac_", (3, 2, 4), groups=2),
    lambda torch: filled(torch, "xavier_uniform_", (3, 4)),
    lambda torch: filled(torch, "xavier_uniform_", (3, 4, 2), gain=2.0),
    lambda torch: filled(torch, "xavier_normal_", (3, 7)),
    lambda torch: filled(torch, "xavier_normal_", (3,)),
    lambda torch: filled(torch, "kaiming_uniform_", (3, 4)),
    lambda torch: filled(torch, "kaiming_uniform_", (3, 4), a=5**0.5),
    lambda torch: filled(torch, "kaiming_uniform_", (3, 4, 2), mode="fan_out", nonlinearity="relu"),
    lambda torch: filled(torch, "kaiming_uniform_", (3, 4), mode="FAN_OUT"),
    lambda torch: filled(torch, "kaiming_uniform_", (3, 4), mode="fan_up"),
    lambda torch: filled(torch, "kaiming_uniform_", (3, 4), nonlinearity="none"),
    lambda torch: filled(torch, "kaiming_uniform_", (0, 4)),
    lambda torch: filled(torch, "kaiming_normal_", (4, 5), nonlinearity="tanh"),
    lambda torch: filled(torch, "kaiming_normal_", (4, 0)),
    lambda torch: filled(torch, "kaiming_normal_", (4,)),
    lambda torch: filled(torch, "orthogonal_", (5, 4)),
    lambda torch: filled(torch, "orthogonal_", (4, 6), gain=3.0),
    lambda torch: filled(torch, "orthogonal_", (4, 2, 3)),
    lambda torch: filled(torch, "orthogonal_", (0, 3)),
    lambda torch: filled(torch, "orthogonal_", (3,)),
    lambda torch: filled(torch, "sparse_", (5, 4), 0.3),
    lambda torch: filled(torch, "sparse_", (5, 4), 0.9, std=2.0),
    lambda torch: filled(torch, "sparse_", (5,), 0.3),
    lambda torch: filled(torch, "trunc_normal_", (5, 40)),
    lambda torch: filled(torch, "trunc_normal_", (5, 40), 0.0, 2.0, -1.0, 1.5),
    lambda torch: filled(torch, "trunc_normal_", (5, 40), 0.0, 1.0, 1.5, 2.5),
    lambda torch: filled(torch, "trunc_normal_", (5, 4), 9.0, 1.0, -1.0, 1.0),
    lambda torch: filled(torch, "uniform_", (3,), generator=torch.Generator().manual_seed(3)),
    lambda torch: filled(torch, "kaiming_normal_", (3, 2), generator=torch.Generator().manual_seed(3)),
    lambda torch: filled(torch, "trunc_normal_", (3, 2), generator=torch.Generator().manual_seed(3)),
    lambda torch: filled(torch, "orthogonal_", (3, 2), generator=torch.Generator().manual_seed(3)),
    lambda torch: filled(torch, "uniform", (3,)),
    lambda torch: filled(torch, "normal", (3,), 1.0, 2.0),
    lambda torch: filled(torch, "constant", (3,), 1.0),
    lambda torch: filled(torch, "eye", (2, 2)),
    lambda torch: filled(torch, "dirac", (2, 2, 1)),
    lambda torch: filled(torch, "xavier_uniform", (2, 2)),
    lambda torch: filled(torch, "xavier_normal", (2, 2)),
    lambda torch: filled(torch, "kaiming_uniform", (2, 2)),
    lambda torch: filled(torch, "kaiming_normal", (2, 2)),
    lambda torch: filled(torch, "orthogonal", (2, 2)),
    lambda torch: filled(torch, "sparse", (4, 2), 0.5),
    lambda torch: torch.nn.init.orthogonal.__name__,
)
def test_init(program):
    agree(program)


@pytest.mark.parametrize("nonlinearity", ["linear", "conv2d", "conv_transpose3d", "sigmoid", "tanh", "relu", "selu",
                                          "leaky_relu", "gelu"])
def test_gain(nonlinearity):
    agree(lambda torch: torch.nn.init.calculate_gain(nonlinearity))


@pytest.mark.parametrize("slope", [0, 1, 0.2, True, "x"])
def test_gain_of_leaky_relu(slope):
    agree(lambda torch: torch.nn.init.calculate_gain("leaky_relu", slope))


def test_fillings_of_our_own():
    init, tensor = tensorgrad.nn.init, tensorgrad.nn.Parameter(tensorgrad.empty(3))
    assert init.zeros(tensor) is tensor and tensor.tolist() == [0, 0, 0]
    assert init.ones(tensor) is tensor and tensor.tolist() == [1, 1, 1]


@pytest.mark.parametrize("shape, bound", [((400,), 0.05), ((50, 4), 0.5), ((10, 4, 2, 2), 0.25)])
def test_uniform_fan_in(shape, bound):
    tensor = tensorgrad.nn.init.uniform_fan_in(tensorgrad.empty(shape))
    assert 0.9 * bound < tensor.abs().max() <= bound


def test_uniform_fan_in_of_other_shapes():
    with pytest.raises(ValueError, match="Fan in"):
        tensorgrad.nn.init.uniform_fan_in(tensorgrad.empty(2, 3, 4))
    tensor = tensorgrad.nn.init.uniform_fan_in(tensorgrad.empty(20, 3, 4), fan_in=100)
    assert 0.09 < tensor.abs().max() <= 0.1


def test_skip_init():
    before = tensorgrad.get_rng_state()
    layer = tensorgrad.nn.utils.skip_init(tensorgrad.nn.Linear, 3, out_features=2, dtype=tensorgrad.float64)
    assert tensorgrad.equal(tensorgrad.get_rng_state(), before)
    assert layer.weight.shape == (2, 3) and layer.weight.dtype is tensorgrad.float64 and layer.weight.requires_grad


@cases(
    lambda torch: torch.nn.utils.skip_init(int, 3),
    lambda torch: torch.nn.utils.skip_init(torch.nn.ReLU),
)
def test_skip_init_errors(program):
    agree(program)
