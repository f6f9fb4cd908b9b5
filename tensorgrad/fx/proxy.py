"""The class of the values while a program is traced, in PyTorch's place for it."""
__all__ = ["Proxy"]


class Proxy:
    """The class of the values while a program is traced: nothing here is one."""
