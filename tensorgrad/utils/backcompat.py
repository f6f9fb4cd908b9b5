"""torch.utils.backcompat: switches of warnings about old behaviour, which are never issued here."""


class Warning:  # noqa: A001
    """A switch of a warning that is never issued."""

    enabled = False


broadcast_warning, keepdim_warning = Warning(), Warning()
__all__ = ["broadcast_warning", "keepdim_warning"]
