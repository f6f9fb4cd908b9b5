"""Trees of containers as PyTorch takes them apart: structures, paths, JSON, classes; weak dictionaries."""
import dataclasses
import enum
import gc
import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
from side_by_side import attempt
from support import Programs

program = Programs()
Point = namedtuple("Point", "x y")
TREE = {"a": [1, (2, None)], "b": Point(3, {"k": deque([4], maxlen=3)}), "c": OrderedDict(z=5),
        "d": defaultdict(int, q=6)}


class Color(enum.Enum):
    RED = 1


def pytree_of(torch):
    return importlib.import_module(f"{torch.__name__}.utils._pytree")


@program
def structures(torch):
    pytree = pytree_of(torch)
    spec = pytree.tree_structure([1, (2, 3), {"a": 4}])
    others = ([1, (2,), {"a": 4}], [1, [2, 3], {"a": 4}], [1, (2, 3), {"b": 4}], [1, (2, 3), OrderedDict(a=4)], 3)
    leaf = pytree.treespec_leaf()
    return (str(pytree.tree_structure(TREE)), pytree.treespec_pprint(spec),
            [attempt(lambda o=o: spec.flatten_up_to(o)) for o in others],
            attempt(lambda: pytree.tree_structure(Point(1, 2)).flatten_up_to((1, 2))), spec.is_leaf(),
            pytree.TreeSpec(list, None, [leaf]) == pytree.tree_structure([0]),
            str(pytree.treespec_dict(b=leaf)),
            attempt(lambda: pytree.treespec_tuple([3])), pytree.tree_flatten(torch.Size([1, 2]))[0],
            attempt(lambda: pytree.tree_map_only(3, str, [1])), pytree.tree_map_only((int, str), str, [1, 2.0]),
            [pytree._broadcast_to_and_flatten(a, pytree.tree_structure(b))
             for a, b in ((1, (1, 2)), ((1, 2), ([1, 2], 3)), ([1], (1,)))],
            attempt(lambda: pytree.tree_unflatten([1], "x")),
            [name for name in pytree.__all__ if not hasattr(pytree, name)])


@program
def paths(torch):
    pytree = pytree_of(torch)
    found, spec = pytree.tree_flatten_with_path(TREE)
    keys = pytree.SequenceKey(1), pytree.MappingKey("a"), pytree.GetAttrKey("x")
    return ([(pytree.keystr(path), leaf) for path, leaf in found], spec == pytree.tree_structure(TREE), repr(keys),
            [pytree.key_get(TREE, path) for path, _ in found], keys[0] == pytree.MappingKey(1),
            pytree.tree_map_with_path(lambda path, a, b: (pytree.keystr(path), a + b), [1, {"a": 2}], [3, {"a": 4}]),
            len(pytree.tree_leaves_with_path([1, {"a": [2, 3]}], is_leaf=lambda v: isinstance(v, dict))))


@program
def specs_as_json(torch):
    pytree = pytree_of(torch)
    Other = namedtuple("Other", "x y")
    trees = TREE["a"], TREE["d"], deque([1], maxlen=4), 3, {Color.RED: 1}, Other(1, 2)
    before = [attempt(lambda t=t: pytree.treespec_dumps(pytree.tree_structure(t))) for t in trees]
    pytree._register_namedtuple(Other, serialized_type_name="tests.Other")
    after = [pytree.treespec_dumps(pytree.tree_structure(t)) for t in trees]
    texts = '[1, {"type": "nope", "context": "null", "children_spec": []}]', "nonsense", "[7, null]"
    return (before, after[-1], [pytree.treespec_loads(a) == pytree.tree_structure(t) for a, t in zip(after, trees)],
            [attempt(lambda t=t: pytree.treespec_loads(t)) for t in texts], attempt(lambda: pytree.treespec_dumps("x")))


@program
def classes_of_the_program(torch):
    pytree = pytree_of(torch)

    @dataclasses.dataclass
    class Pair:
        x: int
        y: object = None

    @dataclasses.dataclass(frozen=True)
    class Setting:
        name: str

    class Box:
        def __init__(self, *parts):
            self.parts = parts
    pytree.register_dataclass(Pair, serialized_type_name="tests.Pair")
    pytree.register_constant(Setting)
    rules = (lambda box: (list(box.parts), None), lambda parts, _: Box(*parts))
    one_sided = attempt(lambda: pytree.register_pytree_node(bytes, *rules, to_dumpable_context=str))[0]
    pytree.register_pytree_node(Box, *rules)
    tree = [Pair(1), Setting("a"), Box(2)]
    leaves, spec = pytree.tree_flatten(tree)
    result = (leaves, str(spec), [str(path) for path, _ in pytree.tree_flatten_with_path(Pair(1, [2]))[0]], one_sided,
              attempt(lambda: pytree.tree_flatten_with_path(tree))[0], attempt(lambda: pytree.register_constant(Box)),
              attempt(lambda: pytree.treespec_dumps(pytree.tree_structure(Box())))[0],
              attempt(lambda: pytree.register_dataclass(Pair, field_names=["x"])),
              attempt(lambda: pytree.register_dataclass(int)))
    pytree._deregister_pytree_node(Box)
    values = Point(1, 2), Point, (1, 2), torch.max(torch.ones(2, 2), 0)
    return (result, len(pytree.tree_leaves(Box(1, 2))),
            [(pytree.is_namedtuple(v), pytree.is_structseq(v)) for v in values])


@program
def weak_dictionaries(torch):
    weak = importlib.import_module(f"{torch.__name__}.utils.weak")
    one, two, three = (torch.ones(2) for _ in range(3))
    notes = weak.WeakTensorKeyDictionary({one: 1, two: [2]})
    notes[three] = 3
    other = notes.copy() | {two: 4}
    reference = weak.TensorWeakRef(three)
    before = len(notes), notes[two], two in notes, 3 in notes, notes == notes.copy(), notes == other
    del three
    gc.collect()
    return (before, len(notes), len(other), reference() is None, other.pop(two), two in other, notes.setdefault(two, 9),
            attempt(lambda: other[two])[0], attempt(lambda: notes.__setitem__(3, 4))[0],
            attempt(lambda: weak.TensorWeakRef(3))[0],
            weak.WeakIdRef(one) == weak.WeakIdRef(one), weak.WeakIdRef(one) == weak.WeakIdRef(two))


test_programs = program.test()


def test_json_imports_nothing():
    from tensorgrad.utils._pytree import treespec_loads
    context = '{"default_factory_module": "this", "default_factory_name": "s", "dict_context": []}'
    with pytest.raises(ValueError, match="this.s, which is not imported"):
        treespec_loads(f'[1, {{"type": "collections.defaultdict", "context": {context}, "children_spec": []}}]')


def test_dictionaries_with_their_keys():
    from tensorgrad.utils import _pytree
    assert _pytree._dict_flatten_with_keys({"b": 1, "a": 2}) == (
        [(_pytree.MappingKey("b"), 1), (_pytree.MappingKey("a"), 2)], ["b", "a"])
