"""Draw docs/backward.svg: README's first picture, a neuron forward and backward."""


def draw() -> str:
    """Return the animation, from the lines that README prints."""
    from ..api import tanh, tensor
    from ..viz import explain
    x, w, b = (tensor(value, requires_grad=True) for value in (2.0, -3.0, 5.0))
    loss = (tanh(w * x + b) - 1) ** 2
    return explain(loss, names={"x": x, "w": w, "b": b, "loss": loss}).svg()
