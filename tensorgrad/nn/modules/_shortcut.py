"""Fast reads of `module.weight`.

Parameters, buffers and children are entries of tables, so Python's lookup fails first, and only then calls
`Module.__getattr__`. Once that has found a name, it leaves a descriptor on the class, which Python finds directly:
eight times faster. The tables remain the only source of truth.
"""


class Shortcut:
    """A class's descriptor for a name that an instance has registered.

    The descriptor has no __set__, so attributes of the instance hide it; if the instance's table lacks the name, the
    lookup continues as if the descriptor did not exist.
    """

    __slots__ = ("owner", "name", "table")

    def __init__(self, owner, name, table):
        self.owner, self.name, self.table = owner, name, table

    def __get__(self, module, cls=None):
        if module is None:
            raise AttributeError(f"type object '{cls.__name__}' has no attribute '{self.name}'")
        if cls.__getattr__ is not self.owner.__getattr__:      # a subclass that overrides __getattr__ expects the call
            raise AttributeError(self.name)
        try:
            return module.__dict__[self.table][self.name]
        except KeyError:
            return getattr(super(self.owner, module), self.name)

    def _absent(self, module, cls=None):
        raise AttributeError(self.name)

    _get = __get__

    @classmethod
    def off(cls):
        """Let all reads go to `Module.__getattr__`, for tracers."""
        cls.__get__ = cls._absent

    @classmethod
    def on(cls):
        """Undo `off`."""
        cls.__get__ = cls._get


def leave_shortcut(cls, name, table):
    """Put a Shortcut on the class, unless the name is no identifier or the class keeps data names, as dictionaries
    do.
    """
    if name.isidentifier() and not cls._keeps_names:
        setattr(cls, name, Shortcut(cls, name, table))
