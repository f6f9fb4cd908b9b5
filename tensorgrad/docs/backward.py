"""docs/backward.svg: README's first picture, a neuron forward and back."""


def draw() -> str:
    """The moving picture, from the lines that README prints."""
    import tensorgrad as torch
    x, w, b = (torch.tensor(value, requires_grad=True) for value in (2.0, -3.0, 5.0))
    loss = (torch.tanh(w * x + b) - 1) ** 2
    return torch.viz.explain(loss).svg()
