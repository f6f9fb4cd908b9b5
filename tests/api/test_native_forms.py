"""Functions of PyTorch's root that its own code calls."""
from support import Programs, cpu_only

pytestmark = cpu_only
program = Programs()


@program
def softmax_in_other_forms(torch):
    x, mask = torch.tensor([[1.0, 2, -1], [0, 3, 0]]), torch.tensor([[0, 1, 0], [0, 0, 1]]).bool()
    infinite = torch.tensor([[1.0, 2], [-float("inf"), -float("inf")]])
    return [torch._softmax(x, 1, False), torch._log_softmax(x, 0, False), torch._masked_softmax(x, mask, 1, 2),
            torch._safe_softmax(infinite, 1)]


@program
def convolutions(torch):
    x, w = torch.arange(16.0).reshape(1, 2, 2, 4), torch.arange(8.0).reshape(2, 2, 1, 2)
    options = [1, 1], [0, 1], [1, 1]
    return [torch.convolution(x, w, torch.ones(2), *options, False, [0, 0], 1),
            torch.convolution(x, w, None, [2, 2], [0, 1], [1, 1], True, [1, 0], 1),
            torch._convolution(x, w, None, *options, False, [0, 0], 1, False, False, True, True)]


@program
def others(torch):
    x, i = torch.tensor([[1.0, 2, -1], [0, 3, 0]]), torch.tensor([3, 1, 3])
    return [torch._unique(i), torch._unique(i, True, True), torch._unique2(i, True, False, True),
            torch._dim_arange(x, 1), torch._shape_as_tensor(x), torch._euclidean_dist(x, x + 1),
            torch._stack([x, x], 1), torch._weight_norm(x, torch.ones(1, 3), 1), torch._is_all_true(x > 0),
            torch._is_any_true(x > 0),
            torch._trilinear(torch.ones(2), torch.tensor([1.0, 2, 3]), x, [1], [0], [], [0]),
            torch._conj(x + 1j).resolve_conj()]


@program
def images(torch):
    x, seen = torch.arange(32.0).reshape(1, 2, 4, 4), []
    calls = [
        lambda of: of.reflection_pad1d(x[0], (1, 2)), lambda of: of.reflection_pad2d(x, (1, 1, 0, 1)),
        lambda of: of.replication_pad3d(x, [1] * 6), lambda of: of.replication_pad1d(x[0], (1, 1, 1, 1)),
        lambda of: of.upsample_nearest2d(x, (8, 6), 2.0, 1.6),
        lambda of: of.upsample_nearest2d(x, None, [2.0, 1.6]),
        lambda of: of.upsample_nearest1d(x[0], (8,)), lambda of: of._upsample_nearest_exact2d(x, (2, 3)),
        lambda of: of.upsample_bilinear2d(x, (8, 6), True),
        lambda of: of.upsample_bilinear2d(x, (8, 6), False, 2.0, 1.7),
        lambda of: of.upsample_bilinear2d(x, None, False, [2.0, 1.7]),
        lambda of: of.upsample_linear1d(x[0], (8,), False),
        lambda of: of.upsample_trilinear3d(x[None], (2, 2, 2), False),
        lambda of: of._upsample_bilinear2d_aa(x, (2, 2), False), lambda of: of.upsample_nearest2d(x[0], (8, 6)),
        lambda of: of.upsample_nearest2d(x, (8,)), lambda of: of.silu_(x.clone())]
    for of in (torch._C._nn, torch.ops.aten):
        for call in calls:
            try:
                seen.append(call(of))
            except RuntimeError as error:
                seen.append(str(error).splitlines()[0])
    out = torch.empty(1, 2, 8, 8, memory_format=torch.channels_last)
    torch._C._nn.upsample_nearest2d(x, (8, 8), scales_h=2.0, scales_w=2.0, out=out)
    target = torch.tensor([[[0, 1, 1, 0]] * 4])
    return seen, out, out.stride(), torch._C._nn.nll_loss2d(x, target), torch._C._nn.nll_loss2d(x, target, None, 1)


@program
def scales_of_gradients(torch):
    gradients, found = [torch.tensor([2.0, 4.0]), torch.tensor([float("inf")])], torch.zeros(1)
    torch._amp_foreach_non_finite_check_and_unscale_(gradients, found, torch.tensor(0.5))
    scale, tracker, steps = torch.tensor(8.0), torch.tensor(0, dtype=torch.int32), []
    for infinite in (0.0, 0.0, 1.0, 0.0):
        torch._amp_update_scale_(scale, tracker, torch.tensor(infinite), 2.0, 0.5, 2)
        steps.append((float(scale), int(tracker)))
    return gradients, found, steps


test_programs = program.test(rtol=1e-6, atol=1e-7)
