"""torch.backends.mps: Metal, which is not supported. https://pytorch.org/docs → torch.backends.mps"""


def is_built() -> bool:
    """Return False: Metal is not supported."""
    return False


def is_available() -> bool:
    """Return False: Metal devices are not supported."""
    return False


def is_macos13_or_newer() -> bool:
    """Return True on macOS 13 or newer. Metal is not supported there either."""
    import platform
    version = platform.mac_ver()[0]
    return bool(version) and int(version.partition(".")[0]) >= 13


is_macos_or_newer = lambda major, minor: False  # noqa: E731
