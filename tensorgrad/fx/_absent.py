"""Classes of torch.fx that are not there, and why."""
REASON = "programs are not traced into graphs; Tensor.render draws what autograd recorded"


def absent(name):
    """Return a class that packages may derive others from, but not make."""
    def __init__(self, *args, **kwargs):
        raise NotImplementedError(f"tensorgrad has no torch.fx.{name}: {REASON}")
    return type(name, (), {"__init__": __init__, "__module__": __package__,
                           "__doc__": f"Not there: {REASON}. https://pytorch.org/docs → torch.fx.{name}"})
