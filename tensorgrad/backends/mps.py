"""torch.backends.mps: Metal, which is not supported. https://pytorch.org/docs → torch.backends.mps"""


def is_built() -> bool:
    """Whether Metal is supported: no."""
    return False


def is_available() -> bool:
    """Whether there is a Metal device: none that can be used."""
    return False


def is_macos13_or_newer() -> bool:
    """Whether the system is such a macOS; Metal is not supported on it either."""
    import platform
    version = platform.mac_ver()[0]
    return bool(version) and int(version.partition(".")[0]) >= 13


is_macos_or_newer = lambda major, minor: False  # noqa: E731
