"""Check that two implementations of a network are equivalent."""

import tensorgrad as torch


def parameter_count(model):
    """Count the weights; a shared one counts once."""
    return sum(p.numel() for p in model.parameters())


def copy_weights(source, target):
    """Copy the parameters and buffers of `source` to `target`, in order: names may differ, order and shapes may not."""
    pairs = []
    for kind in ("parameters", "buffers"):
        theirs, ours = list(getattr(source, kind)()), list(getattr(target, kind)())
        if [t.shape for t in theirs] != [t.shape for t in ours]:
            raise ValueError(f"the {kind} of the two networks have not the same shapes in the same order")
        pairs += zip(ours, theirs, strict=True)
    with torch.no_grad():
        for own, other in pairs:
            own.copy_(other)


@torch.no_grad()
def same_outputs(one, other, inputs):
    """Return True if two networks, in evaluation mode, compute equal outputs up to rounding."""
    ours, theirs = one.eval()(*inputs), other.eval()(*inputs)
    if not isinstance(ours, tuple):
        ours, theirs = (ours,), (theirs,)
    return (len(ours) == len(theirs) and all(a.shape == b.shape and torch.allclose(a, b, atol=1e-6)
                                             for a, b in zip(ours, theirs, strict=True)))
