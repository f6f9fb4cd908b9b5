"""torch.utils.backcompat: warnings about habits of long ago, which are not given."""


class Warning:  # noqa: A001
    """A warning that is never given."""

    enabled = False


broadcast_warning, keepdim_warning = Warning(), Warning()
__all__ = ["broadcast_warning", "keepdim_warning"]
