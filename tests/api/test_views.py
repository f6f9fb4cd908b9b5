"""Views and writes in place, against PyTorch: random small programs have equal values and gradients, or both raise."""
import random

import numpy as np
import pytest
from side_by_side import same
from support import needed

import tensorgrad

torch = needed("torch")

VIEWS = [
    lambda t: t[0], lambda t: t[1:], lambda t: t[..., ::2], lambda t: t.t() if t.dim() <= 2 else t,
    lambda t: t.unsqueeze(0),
    lambda t: t.transpose(0, -1), lambda t: t.reshape(-1), lambda t: t.view(t.shape), lambda t: t.flatten(),
    lambda t: t.unbind(0)[0],
    lambda t: t.chunk(2, 0)[0], lambda t: t.expand(2, *t.shape), lambda t: t.detach(),
    lambda t: t.diagonal() if t.dim() > 1 else t,
    lambda t: t[:, None], lambda t: t.squeeze(), lambda t: t.narrow(0, 0, 1), lambda t: t.as_strided((2, 2), (2, 1)),
    lambda t: t.view_as(t),
    lambda t: t.data, lambda t: t.split(1)[-1], lambda t: t.movedim(0, -1), lambda t: t.select(-1, 0),
    lambda t: t.unfold(0, 2, 2),
]
FUNCTIONS = [
    lambda t: t * t, lambda t: t.exp(), lambda t: t * 2.0, lambda t: t.clone(), lambda t: t + 1.0, lambda t: t.sum(),
    lambda t: t.sigmoid(),
    lambda t: t[[0, 0]], lambda t: -t, lambda t: t / 3.0, lambda t: t.sum(0), lambda t: t.relu(),
]
WRITES = [
    lambda t, o: t.mul_(2.0), lambda t, o: t.add_(o), lambda t, o: t.mul_(o), lambda t, o: t.copy_(o),
    lambda t, o: t.zero_(),
    lambda t, o: t.fill_(3.0), lambda t, o: t.exp_(), lambda t, o: t.sigmoid_(), lambda t, o: t.__setitem__(0, 1.5),
    lambda t, o: t.__setitem__(slice(1, None), o[..., :1] if o.dim() else o), lambda t, o: t.__setitem__([0, 0], 2.0),
    lambda t, o: t.masked_fill_(t > 0, -1.0), lambda t, o: t.sub_(o.detach()), lambda t, o: t.div_(2.0),
    lambda t, o: t.relu_(),
    lambda t, o: t.__setitem__(Ellipsis, o), lambda t, o: t.__iadd__(o), lambda t, o: t.clamp_(min=0.1),
    lambda t, o: t.pow_(2),
    lambda t, o: t.__setitem__(t > 0.5, 0.25),
    lambda t, o: t.index_fill_(0, type(t).long(t.detach().reshape(-1)[:1] * 0), 4.0),
    lambda t, o: t.requires_grad_(), lambda t, o: t.unsqueeze_(0),
    lambda t, o: t.t_() if t.dim() <= 2 else t.neg_(),
]
# in no_grad mode, a change of shape makes PyTorch's backward fail where ours still gives the gradient
UNSEEN = WRITES[:-2]


class Halt(Exception):
    """The program raised at a step."""


def start(engine, seed):
    rng = np.random.default_rng(seed)
    shape = [(3, 4), (4,), (2, 3)][seed % 3]
    values = [rng.standard_normal(shape) for _ in range(3)]
    a, b, c = (engine.from_numpy(v.copy()) for v in values)
    a.requires_grad_()
    x = a * 1.5 if seed % 5 else b * 1.0
    return [a, x, b if seed % 2 else c.requires_grad_()]


def run(engine, seed, steps):
    """Play a program: what it shows, as plain values."""
    plan = random.Random(seed)
    pool, leaves = start(engine, seed), None
    leaves = [t for t in pool if t.requires_grad and t.is_leaf]
    try:
        for _ in range(steps):
            kind = plan.choices("vfwn", (4, 2, 5, 1))[0]
            i, j = plan.randrange(len(pool)), plan.randrange(len(pool))
            view, function, write = (plan.choice(VIEWS), plan.choice(FUNCTIONS),
                                     plan.choice(WRITES if kind == "w" else UNSEEN))
            if kind == "v":
                pool.append(view(pool[i]))
            elif kind == "f":
                pool.append(function(pool[i]))
            elif kind == "w":
                write(pool[i], pool[j])
            else:
                with engine.no_grad():
                    if plan.random() < 0.5:
                        write(pool[i], pool[j])
                    else:
                        pool.append(view(pool[i]))
        flags = [(t.requires_grad, t.is_leaf) for t in pool]
        values = [t.detach().numpy().copy() for t in pool]
        loss = sum((t * (k + 1)).sum() for k, t in enumerate(pool) if t.requires_grad)
        if isinstance(loss, engine.Tensor):
            loss.backward()
        return flags, values, [None if leaf.grad is None else leaf.grad.numpy() for leaf in leaves]
    except Exception as error:
        raise Halt(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}") from error


def outcome(engine, seed, steps):
    import warnings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return run(engine, seed, steps)
        except Halt as halt:
            return str(halt)


def compare(seed, steps):
    want, got = outcome(torch, seed, steps), outcome(tensorgrad, seed, steps)
    if isinstance(want, str) or isinstance(got, str):
        assert isinstance(want, str) and isinstance(got, str), (
            f"seed {seed}: PyTorch {want if isinstance(want, str) else 'runs'}; "
            f"here {got if isinstance(got, str) else 'it runs'}")
        return
    assert got[0] == want[0], f"seed {seed}: requires_grad and is_leaf"
    for mine, theirs in zip(got[1], want[1], strict=True):
        np.testing.assert_allclose(mine, theirs, err_msg=f"seed {seed}: values")
    for mine, theirs in zip(got[2], want[2], strict=True):
        assert (mine is None) == (theirs is None), f"seed {seed}: gradient present"
        if mine is not None:
            np.testing.assert_allclose(mine, theirs, err_msg=f"seed {seed}: gradients")


@pytest.mark.parametrize("block", range(25))
def test_random_programs(block):
    for seed in range(block * 200, (block + 1) * 200):
        compare(seed, 2 + seed % 2)


def test_unsafe_pieces_may_be_written_to():
    x = tensorgrad.ones(6, requires_grad=True)
    first, second = tensorgrad.unsafe_chunk(x * 2, 2)
    first.add_(1)
    (first * first + second).sum().backward()
    assert x.grad.tolist() == [12.0] * 3 + [2.0] * 3


def test_a_quotient_may_be_written_to():
    x = tensorgrad.tensor([2.0, 4.0], requires_grad=True)
    y = 1 / x / x
    y += 1
    y.sum().backward()
    assert x.grad.tolist() == [-0.25, -0.03125]


def test_strides_that_do_not_fit_in_64_bits_lead_nowhere():
    far, x = tensorgrad.tensor(2 ** 62), tensorgrad.zeros(3)
    for size, stride, offset in (((3,), (2 ** 62,), tensorgrad.tensor(1)), ((tensorgrad.tensor(3),), (far,), 0),
                                 ((1,), (1,), tensorgrad.tensor(2 ** 63 - 1))):
        for view in (x.as_strided, x.clone().as_strided_):
            with pytest.raises(RuntimeError, match="out of bounds for storage"):
                view(size, stride, offset)


def test_gradient_of_as_strided_where_elements_share_memory():
    """The gradient of a memory location is divided among the elements that share it."""
    def program(torch):
        x, y = torch.tensor([2.], requires_grad=True), torch.arange(6., requires_grad=True)
        (x.expand(2, 2, 2).as_strided((2,), (0,)) * torch.tensor([3., 4.])).sum().backward()
        (y.as_strided((3, 2), (1, 1)).as_strided((2, 2), (1, 2)) * torch.tensor([[1., 2.], [3., 5.]])).sum().backward()
        return x.grad, y.grad
    same(program)


@pytest.mark.parametrize("ask", [lambda other: other.requires_grad_(),
                                 lambda other: other.requires_grad_().view_as(other),
                                 lambda other: other.mul_(tensorgrad.ones(3, requires_grad=True).exp().log())])
def test_a_view_keeps_its_history_when_another_tensor_in_its_memory_gets_one(ask):
    x = tensorgrad.arange(3.0)
    leaf = x.detach().requires_grad_()
    view = leaf.view_as(leaf)
    step = view.grad_fn
    loss = (view * 2).sum()
    kept = ask(x.detach())
    assert view.grad_fn is step and kept is not None
    assert tensorgrad.autograd.grad(loss, view)[0].tolist() == [2, 2, 2]


# ── parts of complex numbers ──────────────────────────────────────────────────────────────────────────────────────────
PARTS = {
    "all": lambda t, z: t.view_as_real(z),
    "imaginary of a slice": lambda t, z: z[1:].imag,
    "real of a reshaped": lambda t, z: z.reshape(2, 2).real[1],
    "one column of pairs": lambda t, z: t.view_as_real(z[::2])[:, 1],
    "complex again": lambda t, z: t.view_as_complex(t.view_as_real(z)[2:]),
}


@pytest.mark.parametrize("name", PARTS)
def test_writes_to_parts_of_complex_numbers(name):
    def program(t):
        x = t.view_as_complex(t.arange(8, dtype=t.float64).reshape(4, 2)).requires_grad_()
        z = x * (2 - 1j)
        PARTS[name](t, z).mul_(3)
        weights = t.view_as_complex(t.arange(8, dtype=t.float64).reshape(4, 2).sin())
        (z * weights).sum().abs().backward()
        return x.grad.numpy()
    np.testing.assert_allclose(program(tensorgrad), program(torch), rtol=1e-12)


def test_second_gradients_of_a_write_to_an_imaginary_part():
    def write(x):
        z = x * (2 - 1j)
        z[1:].imag.mul_(3).add_(x.real.sum())
        return z * z
    x = tensorgrad.tensor([1 + 2j, 2 - 1j], dtype=tensorgrad.complex128, requires_grad=True)
    assert tensorgrad.autograd.gradcheck(write, x, check_forward_ad=True)
    assert tensorgrad.autograd.gradgradcheck(write, x)


def test_a_slice_of_an_expanded_transpose_may_be_written_to():
    def program(torch):
        x = torch.arange(12.).reshape(3, 4)
        x.T.expand(2, 4, 3)[1].mul_(2)
        x.T.expand(2, 4, 3)[0, 1:].reshape(3, 3).fill_(1)
        return x
    same(program)
