"""Functions over lists of tensors, beside PyTorch: every form, gradients, and errors that change nothing."""
import pytest
from side_by_side import attempt, same

import tensorgrad as tg

CALLS = """
abs(a) ; abs([]) ; abs(1) ; abs([1]) ; abs(a[0]) ; round(a) ; sigmoid(a) ; exp([i]) ; log1p(a) ; sign(tuple(a)) ; clone(a) ; trunc(a)
abs(3, 4) ; norm(3, 4, 5, 6) ; copy_(3) ; zero_(a, 1) ; add(3, 4, 5) ; lerp() ; mul(a, 'a') ; pow('a', a) ; addcmul(a, a)
add([], 1) ; add(a, []) ; add(a, [1]) ; add(a, [1, 2.5]) ; add(a, 1.5) ; add(a, [t(1), t(2.)]) ; add(a, [t(1)]) ; add(a, a, alpha=2)
add(a, a, alpha=2.5) ; add(a, t(1.), alpha=2.5) ; add(a, t([1.])) ; add(a, t([1., 2.])) ; add(a, 2, alpha=2) ; add(self=a, scalars=[1, 2])
add(self=a, other=a) ; add(tensors=a, scalar=1) ; sub(a, 2) ; sub(a, t(2)) ; sub([t([True])], [t([True])]) ; sub([t([True])], True)
mul(a, t(2.)) ; mul(a, t([2.])) ; mul(a, [2, 3]) ; mul(a, a) ; div(a, t(2)) ; div(a, [1, 2]) ; div(a, a) ; pow(a, 2) ; pow(2.5, a) ; pow(a, a)
pow(a, [2, 3]) ; pow(self=2, exponent=a) ; maximum(a, 2) ; maximum(a, [1, 2]) ; maximum(a, a) ; minimum(a, t(2.)) ; clamp_max(a, t(2.)) ; clamp_min(a, [2, 3])
addcmul(a, a, a) ; addcmul(a, a, a, 2) ; addcmul(a, a, a, [1, 2]) ; addcmul(a, a, a, scalars=t([1, 2])) ; addcmul(a, a, a, t([1., 2, 3]))
addcmul(a, a, a, t([[1., 2]])) ; addcmul(a, a, a[:1]) ; addcmul(a, a, a, [1]) ; addcdiv(a, a, a) ; addcdiv(f, f, f, value=3)
lerp(f, f, .5) ; lerp(f, f, f) ; lerp(f, f, [.5, 1]) ; lerp(f, a, [.5]) ; lerp(f, f[:1], f)
norm(f) ; norm(f, 1) ; norm(f, float('inf')) ; norm(f, 2, dtype=torch.float64) ; norm(a) ; norm([]) ; norm([t([])], float('inf')) ; norm([t([])])
max(a) ; max([t([])]) ; powsum(f, 3) ; powsum(f) ; powsum(a) ; mm([m], [m]) ; mm([m], [])
abs_(a) ; add_(a, 1.5) ; add_(f, 1.5) ; add_(f, [1, 2]) ; add_(f, f, alpha=2) ; sub_(f, f) ; mul_(f, t(2.)) ; mul_(f, f) ; div_([i], [2]) ; pow_(f, 2)
exp_([i]) ; exp_(f) ; maximum_(a, 2) ; minimum_(f, f) ; clamp_min_(a, [2, 3]) ; addcdiv_(f, f, f, [3, 2]) ; lerp_(f, f, [.1, .2]) ; lerp_(f, g, f) ; zero_(a) ; zero_([])
copy_(f, a) ; copy_(f, [t(5), t(4)]) ; copy_(f, [t(5)]) ; add_([t([1.]), i], [1, 1.5]) ; add_([leaf], 1)
"""  # noqa: E501


@pytest.mark.parametrize("line", CALLS.strip().splitlines())
def test_forms_and_errors(line):
    def program(torch):
        t = torch.tensor

        def call(text):
            names = {"torch": torch, "t": t, "a": [t([1., 2.]), t([3])], "f": [t([1.5, -2.]), t([[3.]])],
                     "g": [t([7., 2.]), t([[5.]])], "i": t([1]), "m": t([[1., 2.], [3., 5.]]),
                     "leaf": t([1.]).requires_grad_(), "float": float}
            result = attempt(lambda: eval(f"torch._foreach_{text}", names))
            return result, None if text.startswith("add_(a") else names["a"], names["f"]
        return [call(text.strip()) for text in line.split(" ; ")]
    same(program)


@pytest.mark.parametrize("name", ["add", "lerp", "addcmul", "norm", "sqrt_", "mul_", "maximum_", "addcdiv_"])
def test_gradients(name):
    def program(torch):
        leaves = [torch.tensor(values, requires_grad=True) for values in ([1., 2.], [[3.]], [0.5, 4.], [[1.5]])]
        x, y = [leaves[0] * 1.5, leaves[1] * 2], [leaves[2] * 3, leaves[3] * 4]
        arguments = {"add": (y,), "lerp": (y, 0.3), "addcmul": (y, y, [2, 3]), "norm": (), "sqrt_": (), "mul_": (y,),
                     "maximum_": (y,), "addcdiv_": (y, y, 0.5)}[name]
        out = getattr(torch, f"_foreach_{name}")(x, *arguments)
        sum((part * torch.arange(1., part.numel() + 1).view(part.shape) * weight).sum()
            for part, weight in zip(out, (2., 3.))).backward()
        return out, [leaf.grad for leaf in leaves]
    same(program)


def test_writes_all_or_nothing():
    """In mixed lists, a later tensor refuses its result: PyTorch has written to the earlier ones by then."""
    mixed = [tg.tensor([1.]), tg.tensor([2])]
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        tg._foreach_add_(mixed, 1.5)
    shapes = [tg.ones(2), tg.ones(3)]
    with pytest.raises(RuntimeError, match="must match the size|broadcast"):
        tg._foreach_mul_(shapes, [tg.full((2,), 2.), tg.full((2,), 2.)])
    leaf = tg.ones(2, requires_grad=True)
    some = [leaf * 1, leaf]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        tg._foreach_mul_(some, 2)
    assert [x.tolist() for x in (*mixed, *shapes, *some)] == [[1.], [2], [1., 1.], [1., 1., 1.], [1., 1.], [1., 1.]]


def test_all_are_there():
    torch = pytest.importorskip("torch")
    theirs = {name for name in dir(torch) if name.startswith("_foreach_")}
    assert len(theirs) > 80 and not [name for name in theirs if not callable(getattr(tg, name))]
    assert not hasattr(tg, "_foreach_zero") and not hasattr(tg, "_foreach_max_")
