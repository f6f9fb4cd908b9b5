"""Run the tests of one of PyTorch's files with PyTorch, or with this package as `torch`: see pytorch_tests.py.

    python pytorch_tests_worker.py torch|tensorgrad FILE LOG SECONDS EVERY REGEX

LOG gets a line when a test starts, and one when it ends; tests that it names already are skipped.
"""
from __future__ import annotations

import ast
import faulthandler
import json
import re
import signal
import sys
import traceback
import unittest
import warnings
from importlib import import_module
from importlib.machinery import PathFinder, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

HELPERS = "torch.testing._internal", "torch.testing._comparison", "torch._vendor"
# names that decorators of tests mention, before any test runs: PyTorch's kernels, and a layout of theirs
MENTIONED = ("_mkldnn", "_C._ConvBackend")
# functions of torch.nn.functional that are methods of PyTorch's compiled module torch._C._nn
COMPILED = "avg_pool2d|avg_pool3d|gelu|linear|logsigmoid|one_hot|scaled_dot_product_attention|softplus|softshrink"
WITHOUT_EFFECT = {"torch._logging.scribe.open_source_signpost"}         # a count of runs


class Absent:
    """The value of a name that a helper imports and this package does not have: a test that uses it fails."""

    loading = 0         # helpers that are being imported: these may call it

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return []
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and callable(args[0]) and not kwargs:
            return args[0]                      # a decorator
        if Absent.loading or self.__name__ in WITHOUT_EFFECT:
            return Absent(f"{self.__name__}()")
        raise NotImplementedError(f"this package has no {self.__name__}")

    def __radd__(self, others: Any) -> Any:
        return others

    __ror__ = __or__ = __radd__

    def __bool__(self) -> bool:
        return False

    def __instancecheck__(self, value: Any) -> bool:
        return False

    def __subclasscheck__(self, cls: Any) -> bool:
        return False

    def __iter__(self) -> Any:
        return iter(())

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()


class Missing(Absent):
    """The value of a private name that a file of tests imports and this package does not have."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if Absent.loading or self.__name__ in WITHOUT_EFFECT:
            return super().__call__(*args, **kwargs)
        raise NotImplementedError(f"this package has no {self.__name__}")


class Partial:
    """A module of this package as helpers see it: with an `Absent` for each name that it lacks."""

    def __init__(self, module: Any) -> None:
        vars(self)["_module"] = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name, None)
        if found is None and not hasattr(self._module, name):
            return Absent(f"{self._module.__name__}.{name}")
        return Partial(found) if isinstance(found, ModuleType) else found

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._module, name, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._module(*args, **kwargs)        # torch.autograd.gradcheck is a module, too


def whole(value: Any) -> Any:
    """Return the module of a `Partial`, or the value itself."""
    return vars(value)["_module"] if type(value) is Partial else value


# `getattr` and `hasattr` as helpers see them: asked for a name that may be absent, they say so.
ASKING = {"hasattr": lambda value, name: hasattr(whole(value), name),
          "getattr": lambda value, name, *default: getattr(whole(value) if default else value, name, *default)}


def imported(module: str, name: str | None, package: str) -> Any:
    """The value of `from module import name`, or of `import module` if there is no name."""
    absent = Absent if f"{module}.{name}".startswith((*HELPERS, *WITHOUT_EFFECT, "torch._custom_op.", ".")) else Missing
    try:
        found = import_module(module, package)
        if name is None:
            return Partial(found)
        try:
            found = getattr(found, name)
            return Partial(found) if isinstance(found, ModuleType) else found
        except AttributeError:
            return import_module(f"{module}.{name}" if module.strip(".") else module + name, package)
    except ImportError:
        return absent(f"{module}.{name}" if name else module)


class Imports(ast.NodeTransformer):
    """Turns `from torch.x import y` into `y = imported("torch.x", "y", __package__)`, for some modules."""

    def __init__(self, modules: tuple[str, ...]) -> None:
        self.modules = modules

    @staticmethod
    def assigned(node: Any, target: str, module: str, name: str | None) -> Any:
        text = f"{target} = __imported__({module!r}, {name!r}, __package__)"
        return ast.copy_location(ast.parse(text).body[0], node)

    def visit_ImportFrom(self, node: Any) -> Any:
        module = "." * node.level + (node.module or "")
        if not f"{module}.".startswith(self.modules) or node.names[0].name == "*":
            return node
        return [self.assigned(node, name.asname or name.name, module, name.name) for name in node.names]

    def visit_Import(self, node: Any) -> Any:
        return [self._of_module(node, name) for name in node.names]

    def _of_module(self, node: Any, name: Any) -> Any:
        if not f"{name.name}.".startswith(self.modules):
            return ast.copy_location(ast.Import([name]), node)
        if name.asname:
            return self.assigned(node, name.asname, name.name, None)
        load = f"torch = (__imported__({name.name!r}, None, None), __imported__('torch', None, None))[1]"
        return ast.copy_location(ast.parse(load).body[0], node)


class Tables(ast.NodeTransformer):
    """Turns `{torch.x: y}` into `{**entry(lambda: {torch.x: y})}`, so that a table lacks functions that are absent."""

    def visit_Dict(self, node: Any) -> Any:
        if not any(isinstance(key, ast.Attribute) for key in node.keys):
            return node
        none = ast.arguments([], [], None, [], [], None, [])
        entries = [ast.Call(ast.Name("__entry__", ast.Load()), [ast.Lambda(none, ast.Dict([key], [value]))], [])
                   for key, value in zip(node.keys, node.values)]
        return ast.copy_location(ast.Dict([None] * len(entries), entries), node)

    def visit_ClassDef(self, node: Any) -> Any:
        """Leave decorators and statements of the class itself: a lambda does not see the names of a class."""
        for function in node.body:
            if isinstance(function, ast.FunctionDef):
                function.body = [self.visit(statement) for statement in function.body]
        return node


def entry(make: Any) -> Any:
    """The entry of a table; none if its key is absent."""
    try:
        return make()
    except AttributeError:
        return {}


class Lenient(SourceFileLoader):
    """Loads a file, of whose imports some may be absent: those of any module of torch in a helper."""

    modules: tuple[str, ...] = ("torch.", "functorch.", ".")

    def get_code(self, fullname: str) -> Any:
        tree = Tables().visit(Imports(self.modules).visit(ast.parse(Path(self.path).read_text(), self.path)))
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)

    def exec_module(self, module: Any) -> None:
        vars(module).update(ASKING, __imported__=imported, __entry__=entry)
        Absent.loading += 1
        try:
            super().exec_module(module)
        finally:
            Absent.loading -= 1


class TestLoader(Lenient):
    """Loads a file of tests, which may be of another release than the helpers: these may lack some that it imports."""

    modules = ("torch._", "torch.testing._internal.", "torch.export.", "torch.fx.")


class Helpers:
    """Finds the helpers of PyTorch's tests in the installed PyTorch, while `torch` is another package."""

    def __init__(self) -> None:
        found: Any = PathFinder.find_spec("torch")
        self.root = Path(found.origin).parent

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith(HELPERS):
            return None
        spec = PathFinder.find_spec(name, [str(self.root.joinpath(*name.split(".")[1:-1]))])
        if spec is not None and spec.origin is not None:
            spec.loader = Lenient(name, spec.origin)
        return spec


class TooSlow(BaseException):
    """The time of a test is over."""


def too_slow(*_: Any) -> None:
    raise TooSlow


class Log(unittest.TestResult):
    """Writes the outcome of each test."""

    def __init__(self, path: Path, seconds: int) -> None:
        super().__init__()
        self.file, self.seconds = path.open("a"), seconds
        self.running, self.status = "", ("passed", "")

    def write(self, name: str, status: str, text: str = "") -> None:
        self.file.write(json.dumps([name, status, text]) + "\n")
        self.file.flush()

    def startTest(self, test: Any) -> None:
        self.running, self.status = short(test), ("passed", "")
        self.write(self.running, "started")
        signal.alarm(self.seconds)

    def stopTest(self, test: Any) -> None:
        signal.alarm(0)
        self.write(short(test), *self.status)

    def addSkip(self, test: Any, reason: str) -> None:
        self.status = "skipped", reason[:300]

    def addFailure(self, test: Any, error: Any) -> None:
        self.addError(test, error)

    def addError(self, test: Any, error: Any) -> None:
        kind, value, trace = error
        if issubclass(kind, TooSlow):
            self.status = "timeout", ""
            return
        frames = traceback.extract_tb(trace)
        own = [frame for frame in frames if "/test/" in frame.filename or "/test_" in frame.filename]
        line = f" [{own[-1].name}:{own[-1].lineno}]" if own else ""
        text = " ".join(str(value).partition("To execute this test")[0].split())[:300]
        place = f"<{Path(frames[-1].filename).name}:{frames[-1].lineno}>"
        self.status = "failed", f"{kind.__name__}: {text}{line} {place}"

    def addExpectedFailure(self, test: Any, error: Any) -> None:
        self.status = "expected failure", ""

    def addUnexpectedSuccess(self, test: Any) -> None:
        self.status = "unexpected success", ""

    def addSubTest(self, test: Any, subtest: Any, error: Any) -> None:
        if error is not None:
            self.addError(test, error)


def short(test: Any) -> str:
    # tests of a function, or of a class of modules, may be named after its module
    found = test.id().replace("test_tensorgrad", "test_torch").replace("_tensorgrad_nn_", "_nn_")
    found = re.sub(r"test_torch_(fft|linalg|special)_(?=\1_)", r"test_torch__C__\1_", found)
    found = re.sub(rf"test_torch_nn_functional_({COMPILED})$", r"test_torch__C__nn_\1", found)
    found = found.replace("__nn_logsigmoid", "__nn_log_sigmoid")
    return found.split(".", 1)[1] if "." in found else found


def each(suite: Any) -> Any:
    """The tests of a suite, one after the other."""
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from each(item)
        else:
            yield item


def module_of(file: Path) -> Any:
    """Import a file of tests, with its folder and the folders above it on the path."""
    sys.path[:0] = [str(folder) for folder in file.parents[:3]]
    name = file.stem
    spec: Any = spec_from_file_location(name, file, loader=TestLoader(name, str(file)))
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_helpers() -> None:
    """Let this package, as `torch`, have the helpers of PyTorch's tests."""
    for name in MENTIONED:
        owner, _, last = f"torch.{name}".rpartition(".")
        if not hasattr(module := import_module(owner), last):
            setattr(module, last, Absent(f"torch.{name}"))
    sys.meta_path.insert(0, Helpers())      # type: ignore[arg-type]


def main() -> None:
    library, file, path, seconds, every, only = sys.argv[1:]
    sys.argv[:] = [file]                    # files of tests compare it with where they are
    faulthandler.enable()
    warnings.simplefilter("ignore")
    if library == "tensorgrad":
        import tensorgrad
        tensorgrad.install_as_torch()
        find_helpers()
    before = {json.loads(line)[0] for line in Path(path).read_text().splitlines()}
    log = Log(Path(path), int(seconds))
    signal.signal(signal.SIGALRM, too_slow)
    try:
        module = module_of(Path(file))
    except BaseException as error:
        places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)
                  if "importlib" not in frame.filename]
        log.write("import", "failed", f"{type(error).__name__}: {str(error)[:300]} <{' '.join(places[-4:])}>")
        return
    tests = list(each(unittest.defaultTestLoader.loadTestsFromModule(module)))
    tests = [test for test in tests[::int(every)] if short(test) not in before and re.search(only, short(test))]
    while tests:
        try:
            unittest.TestSuite(tests).run(log)
            break
        except TooSlow:                     # it came between two of unittest's own handlers
            signal.alarm(0)
            log.status = "timeout", ""
            log.write(log.running, *log.status)
            tests = tests[1 + [short(test) for test in tests].index(log.running):]


if __name__ == "__main__":
    main()
elif __name__ == "__mp_main__" and "tensorgrad" in sys.modules:         # a spawned process of a test
    find_helpers()
