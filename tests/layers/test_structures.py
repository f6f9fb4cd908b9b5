"""Nested structures: mapped, flattened, combined; the types of results, and the errors for different structures."""
from collections import OrderedDict, UserDict, UserList, defaultdict, namedtuple
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

import tensorgrad as torch
from tensorgrad.layers.structures import (
    StructureMismatch,
    is_mapping,
    is_sequence,
    recursive_all,
    recursive_any,
    recursive_binary_combine,
    recursive_combine,
    recursive_compare,
    recursive_flatten,
    recursive_map,
    recursive_max,
    recursive_reduce,
    recursive_sum,
    recursive_zip,
)

Pair = namedtuple("Pair", "first second")


class MyList(Sequence):
    """A sequence that inherits from no list."""

    def __init__(self, items):
        self.items = tuple(items)

    def __getitem__(self, index):
        return self.items[index]

    def __len__(self):
        return len(self.items)


class MyMap(Mapping):
    """A mapping that inherits from no dict."""

    def __init__(self, items):
        self.items_ = dict(items)

    def __getitem__(self, key):
        return self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)


def nest():
    return OrderedDict([("z", MyList([1, (2, 3)])), ("a", MyMap({"k": [4], "n": Pair(5, UserList([6]))})),
                        ("m", defaultdict(list, x=7))])


def test_types_and_order_are_kept():
    mapped = recursive_map(nest(), lambda x: 10 * x)
    assert type(mapped) is OrderedDict and list(mapped) == ["z", "a", "m"]
    assert type(mapped["z"]) is MyList and mapped["z"].items == (10, (20, 30))
    inner = mapped["a"]
    assert (type(inner) is MyMap and inner["k"] == [40] and inner["n"] == Pair(50, UserList([60]))
            and type(inner["n"]) is Pair)
    assert type(inner["n"].second) is UserList
    assert type(mapped["m"]) is defaultdict and mapped["m"].default_factory is list and mapped["m"]["x"] == 70
    assert recursive_flatten(nest()) == [1, 2, 3, 4, 5, 6, 7]
    assert recursive_map(UserDict(a=1), str) == UserDict(a="1")
    assert recursive_map(torch.Size([1, 2]), str) == ("1", "2")
    assert recursive_map(3, str) == "3" and recursive_map([], str) == [] and recursive_map({}, str) == {}


def test_the_structure_that_is_mapped_stays_as_it_is():
    structure = {"a": [1, {"b": 2}]}
    mapped = recursive_map(structure, lambda x: x + 1)
    assert structure == {"a": [1, {"b": 2}]} and mapped == {"a": [2, {"b": 3}]}
    assert mapped["a"] is not structure["a"]


def test_what_is_read_from_values():
    assert (recursive_sum(nest()) == 28 and recursive_sum(nest(), lambda x: x * x) == 140
            and recursive_sum([], start=3) == 3)
    assert recursive_max(nest()) == 7 and recursive_max(nest(), lambda x: -x) == -1
    assert (recursive_any(nest(), lambda x: x > 6) and not recursive_any(nest(), lambda x: x > 7)
            and not recursive_any([]))
    assert recursive_all(nest()) and not recursive_all([1, [0]]) and recursive_all([])
    assert recursive_reduce(["a", ["b", {"x": "c"}]], lambda a, b: a + b) == "abc"
    assert recursive_reduce([], lambda a, b: a + b, "start") == "start"
    with pytest.raises(ValueError):
        recursive_max([])
    with pytest.raises(TypeError):
        recursive_reduce([], lambda a, b: a + b)
    assert recursive_sum({"w": torch.ones(2), "b": [torch.ones(2)]}).tolist() == [2., 2.]


def test_text_is_no_structure():
    assert recursive_flatten(["ab", b"cd", range(2), bytearray(b"x")]) == ["ab", b"cd", range(2), bytearray(b"x")]
    assert (is_sequence(MyList([])) and not is_sequence(MyList([]), allow_any_type=False) and not is_sequence("ab")
            and not is_sequence(torch.ones(2)))
    assert is_mapping(MyMap({})) and not is_mapping(MyMap({}), allow_any_type=False) and not is_mapping([])


def test_options():
    assert recursive_map([(1, 2), [(3, 4)]], sum, is_base=tuple) == [3, [7]]
    assert recursive_map([(1, 2), [(3, 4)]], sum, is_base=lambda x: type(x) is tuple) == [3, [7]]
    assert recursive_map([1, 2.5], lambda x: x + 1, is_base=(int, float)) == [2, 3.5]
    assert recursive_map([1, "x"], lambda x: x + 1, is_base=int, unknown_type_handler=lambda x: f"<{x}>") == [2, "<x>"]
    assert recursive_flatten([1, "x"], is_base=int, unknown_type_handler=str.upper) == [1, "X"]
    assert recursive_combine([1, "x"], [2, 3], combinator=lambda a, b: a + b, is_base=int,
                             unknown_type_handler=lambda *v: v) == [3, ("x", 3)]
    with pytest.raises(TypeError, match=r"structure\['a'\]\[1\] is neither a structure nor one of the values that are "
                                        r"expected: str"):
        recursive_map({"a": [1, "x"]}, lambda x: x + 1, is_base=int)
    with pytest.raises(TypeError, match=r"structure\[1\] is neither"):
        recursive_flatten([1, "x"], is_base=int)
    assert (recursive_map([None, 1], str) == ["None", "1"] and recursive_map([None, 1], str, leave_none=True)
            == [None, "1"])
    assert (recursive_flatten([None, 1, {"a": None}], leave_none=True) == [1]
            and recursive_sum([None, 1], leave_none=True) == 1)
    assert recursive_zip([None, 1], [None, 2], leave_none=True) == [None, (1, 2)]
    with pytest.raises(StructureMismatch, match=r"structure\[0\]: None in one structure"):
        recursive_zip([None, 1], [3, 2], leave_none=True)
    kept = MyList([1, 2])
    assert recursive_map([kept], lambda x: x is kept, allow_any_seq_type=False) == [True]
    assert recursive_map([MyMap({})], lambda x: type(x), allow_any_dict_type=False) == [MyMap]
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        recursive_map([1], str, is_bass=int)


def test_several_structures():
    first, second = {"a": [1, (2,)], "b": MyMap({"k": 3})}, {"b": {"k": 30}, "a": ([10, [20]])}
    assert recursive_flatten(recursive_combine(first, second, combinator=lambda a, b: a + b)) == [11, 22, 33]
    combined = recursive_combine(first, second, first, combinator=lambda *v: sum(v))
    assert type(combined["b"]) is MyMap and combined["a"] == [12, (24,)] and combined["b"]["k"] == 36
    assert recursive_binary_combine([1, [2]], [3, [4]], combinator=lambda a, b: a * b) == [3, [8]]
    assert recursive_zip(Pair(1, 2), (3, 4), [5, 6]) == Pair((1, 3, 5), (2, 4, 6))
    with pytest.raises(TypeError, match="at least one"):
        recursive_zip()


def test_combinators_of_a_tuple_and_names_of_arguments():
    """X46: a combinator that needs one argument gets the values as a tuple; `struct=` and `func=` name the
    arguments.
    """
    first, second = {"a": [1, (2,)], "b": MyMap({"k": 3})}, {"b": {"k": 30}, "a": ([10, [20]])}
    assert recursive_combine([1, [2]], [3, [4]], combinator=lambda pair: pair[0] * pair[1]) == [3, [8]]
    assert (recursive_combine([1, [2]], [3, [4]], combinator=sum) == [4, [6]]
            == recursive_combine([1, [2]], [3, [4]], combinator=lambda a, b: a + b))
    assert (recursive_combine([2, [5]], [3, [4]], combinator=max) == [3, [5]]
            and recursive_combine([1], [2], combinator=tuple) == [(1, 2)])
    assert recursive_flatten(recursive_combine(first, second, combinator=sum)) == [11, 22, 33]
    assert (recursive_map(struct=[1, (2,)], func=lambda x: -x) == [-1, (-2,)]
            and recursive_flatten(struct=[1, [2]]) == [1, 2])
    assert (recursive_sum(struct=[1, [2]], func=lambda x: x * x) == 5
            and recursive_max(struct=[1, [2]], func=lambda x: -x) == -1)
    assert (recursive_any(struct=[0, [2]], func=lambda x: x > 1)
            and not recursive_all(struct=[0, [2]], func=lambda x: x > 1))
    assert recursive_reduce(struct=[1, [2]], reduce_op=sum, func=lambda x: x * x) == 5
    assert recursive_compare([1, 2], [1, 3], mode="any") and not recursive_compare([1, 2], [1, 3])
    with pytest.raises(AssertionError, match="mode: 'all' or 'any'"):
        recursive_compare([1], [1], mode="some")


@pytest.mark.parametrize("a, b, message", [
    ([1, 2], [1], r"structure: lengths 2 and 1 do not match"),
    ({"x": [1, 2]}, {"x": [1, 2, 3]}, r"structure\['x'\]: lengths 2 and 3 do not match"),
    ({"x": 1}, {"y": 1}, r"structure: key 'x' is missing in the second structure"),
    ([{"x": 1}], [{"x": 1, "y": 1}], r"structure\[0\]: key 'y' is missing in the first structure"),
    ([1, [2]], [1, 2], r"structure\[1\]: list does not match int"),
    ([1, 2], [1, (2,)], r"structure\[1\]: int does not match tuple"),
    ([5], {0: 5}, r"structure: list does not match dict"),
])
def test_where_structures_differ(a, b, message):
    with pytest.raises(StructureMismatch, match=message):
        recursive_zip(a, b)
    assert not recursive_compare(a, b) and issubclass(StructureMismatch, ValueError)


def test_comparing():
    t = torch.tensor([1., 2.])
    assert recursive_compare({"a": t, "b": [np.arange(3), 1]}, {"a": t.clone(), "b": (np.arange(3), 1)})
    assert (not recursive_compare([t], [t + 1]) and not recursive_compare([t], [t[:1]])
            and not recursive_compare([t], [1.]))
    assert not recursive_compare([np.arange(3)], [np.arange(4)])
    assert (recursive_compare([1, 2], [3, 4], comparator=lambda a, b: b - a == 2)
            and not recursive_compare([1, 2], [1, 3]))
    assert recursive_compare(torch.Size([1, 2]), (1, 2)) and recursive_compare(nest(), nest())


def test_a_type_that_cannot_be_made_from_its_parts():
    class Fixed(MyList):
        def __init__(self):
            super().__init__([1])
    with pytest.raises(TypeError, match="a Fixed cannot be made from its parts"):
        recursive_map(Fixed(), str)
    assert recursive_flatten(Fixed()) == [1]
