"""Absent classes of torch.fx, and the reason."""
REASON = "programs are not traced into graphs; Tensor.render draws what autograd recorded"


def absent(name):
    """Return a class that packages may subclass, but not instantiate."""
    def __init__(self, *args, **kwargs):
        raise NotImplementedError(f"tensorgrad has no torch.fx.{name}: {REASON}")
    return type(name, (), {"__init__": __init__, "__module__": __package__,
                           "__doc__": f"Not there: {REASON}. https://pytorch.org/docs → torch.fx.{name}"})
