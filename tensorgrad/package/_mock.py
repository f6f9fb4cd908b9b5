"""Objects in place of the modules that a package leaves out: any use of them is an error.

The file is copied into packages, so it imports nothing of this library.
"""
_BINARY = "add sub mul truediv floordiv mod divmod pow lshift rshift and xor or matmul"
_METHODS = """abs bool bytes call ceil complex contains copy deepcopy delattr delitem dir enter eq exit float floor ge
getattr getitem getstate gt hash index instancecheck int invert iter le len lt ne neg pos reduce reversed round setattr
setitem sizeof subclasscheck trunc"""


class MockedObject:
    """An object that was left out of a package."""

    def __new__(cls, *args, **kwargs):
        if not kwargs.get("_suppress_err"):
            raise NotImplementedError(f"Object '{cls._name}' was mocked out during packaging but it is being used in "
                                      "'__new__'. If this error is happening during 'load_pickle', please ensure that "
                                      "your pickled object doesn't contain any mocked objects.")
        return super().__new__(cls)

    def __init__(self, name, _suppress_err):
        self.__dict__["_name"] = name

    def __repr__(self):
        return f"MockedObject({self._name})"


def _refuse(name):
    def method(self, *args, **kwargs):
        raise NotImplementedError(f"Object '{self._name}' was mocked out during packaging but it is being used in "
                                  f"{name}")
    setattr(MockedObject, name, method)


for _method in (*_METHODS.split(), *(p + name for name in _BINARY.split() for p in ("", "r", "i"))):
    _refuse(f"__{_method}__")
