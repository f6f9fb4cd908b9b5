"""Reading `module.weight` fast.

Parameters, buffers and children live in tables, so Python looks for them in vain, raises, catches, and only then asks
`Module.__getattr__`. Once that has found a name, it leaves a descriptor on the class, which is found at once: eight
times faster. The tables stay the only truth.
"""


class Shortcut:
    """What stands on a class for a name that an instance has registered.

    It has no __set__, so attributes of the instance hide it; and where its table lacks the name, the search goes on as
    if it were not there.
    """

    __slots__ = ("owner", "name", "table")

    def __init__(self, owner, name, table):
        self.owner, self.name, self.table = owner, name, table

    def __get__(self, module, cls=None):
        if module is None:
            raise AttributeError(f"type object '{cls.__name__}' has no attribute '{self.name}'")
        if cls.__getattr__ is not self.owner.__getattr__:      # a class below, with one of its own: it wants to be asked
            raise AttributeError(self.name)
        try:
            return module.__dict__[self.table][self.name]
        except KeyError:
            return getattr(super(self.owner, module), self.name)


def leave_shortcut(cls, name, table):
    """Only for names that programs write as attributes: those of lists and dictionaries of modules are too many."""
    if name.isidentifier() and not cls._keeps_names:
        setattr(cls, name, Shortcut(cls, name, table))
