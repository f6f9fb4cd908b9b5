"""Modules and parameters in lists and dictionaries, compared with PyTorch program by program."""
from collections import OrderedDict

import pytest
from nn_oracle import agree, cases, raising


def layers(torch, kinds):
    return [{"r": torch.nn.ReLU, "t": torch.nn.Tanh, "s": torch.nn.Sigmoid}[kind]() for kind in kinds]


def changes(lines):
    """A parametrization over expressions in `c`, a container."""
    return pytest.mark.parametrize("change", [line.strip() for line in lines.strip().splitlines()])


def after(change, c, torch):
    """Evaluate an expression: return its result or error, and the container afterwards."""
    value = raising(lambda: eval(change, {"c": c, "torch": torch, "layers": layers, "OrderedDict": OrderedDict}))
    return value, c, list(c._modules), c.state_dict()


SEQUENCE_CHANGES = """
    len(c)
    c[0]
    c[-1]
    c[3]
    c[-4]
    c[1:]
    c[::-2]
    c["0"]
    list(c)
    c.append(torch.nn.ELU())
    c.extend(layers(torch, "st"))
    c.extend(3)
    c.insert(1, torch.nn.ELU())
    c.insert(3, torch.nn.ELU())
    c.pop(0)
    c.pop(-1)
    c.pop(9)
    c.pop(slice(0, 2))
    c.__setitem__(1, torch.nn.ELU())
    c.__setitem__(-1, torch.nn.ELU())
    c.__setitem__(5, torch.nn.ELU())
    c.__setitem__(0, 3)
    c.__delitem__(0)
    c.__delitem__(slice(1, None))
    c.__delitem__(7)
    c + type(c)()
    c.__iadd__(torch.nn.Sequential(torch.nn.ELU()))
    c + 3
    c.append(3)
    torch.nn.ReLU() in c
    c[1.5]
"""


@changes(SEQUENCE_CHANGES)
def test_sequential_and_module_list(change):
    agree(lambda torch: after(change, torch.nn.Sequential(*layers(torch, "rts")), torch))
    agree(lambda torch: after(change, torch.nn.ModuleList(layers(torch, "rts")), torch))


@cases(
    lambda torch: torch.nn.Sequential(OrderedDict(a=torch.nn.ReLU(), b=torch.nn.Tanh())),
    lambda torch: torch.nn.Sequential(OrderedDict(a=torch.nn.ReLU(), b=torch.nn.Tanh()))[:1],
    lambda torch: torch.nn.Sequential(OrderedDict(a=torch.nn.ReLU(), b=torch.nn.Tanh())).a,
    lambda torch: torch.nn.Sequential(3),
    lambda torch: torch.nn.Sequential(torch.nn.ReLU()) * 2,
    lambda torch: 2 * torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()),
    lambda torch: torch.nn.Sequential(torch.nn.ReLU()) * 0,
    lambda torch: torch.nn.Sequential(torch.nn.ReLU()) * 1.5,
    lambda torch: torch.nn.Sequential(torch.nn.ReLU()).__imul__(3),
    lambda torch: torch.nn.Sequential(torch.nn.ReLU()).__imul__(0),
    lambda torch: torch.nn.Sequential(torch.nn.ReLU()).insert(0, 3)[:20],
    lambda torch: torch.nn.Sequential(torch.nn.ReLU()).insert(-1, torch.nn.Tanh()),
    lambda torch: torch.nn.Sequential(torch.nn.ReLU()).insert(5, torch.nn.Tanh()),
    lambda torch: torch.nn.Sequential()(torch.ones(2)),
    lambda torch: torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh())(torch.tensor([-1.0, 1.0])),
    lambda torch: torch.nn.ModuleList()(1),
    lambda torch: torch.nn.ModuleList([torch.nn.ReLU()]) + [torch.nn.Tanh()],
    lambda torch: torch.nn.ModuleList(3),
    lambda torch: torch.nn.ModuleList([torch.nn.Linear(1, 1)]).state_dict().keys() == {"0.weight", "0.bias"},
    lambda torch: torch.nn.Container(a=torch.nn.ReLU()),
)
def test_more_of_sequences(program):
    agree(program)


DICT_CHANGES = """
    c["a"]
    c["z"]
    len(c)
    list(c)
    "a" in c
    list(c.keys())
    list(c.values())
    [key for key, _ in c.items()]
    c.pop("a")
    c.pop("z")[:10]
    c.clear()
    c.__delitem__("b")
    c.__setitem__("a", torch.nn.ELU())
    c.__setitem__("x", 3)
    c.update({"q": torch.nn.ELU(), "a": torch.nn.ELU()})
    c.update([("q", torch.nn.ELU())])
    c.update(3)
    c.update([3])
    c.update([(1, 2, 3)])
    c.update(torch.nn.ModuleDict({"q": torch.nn.ELU()}))
    c.__setitem__(3, torch.nn.ELU())
    c(1)
"""


@changes(DICT_CHANGES)
def test_module_dict(change):
    agree(lambda torch: after(change, torch.nn.ModuleDict({"b": torch.nn.ReLU(), "a": torch.nn.Tanh()}), torch))


PARAMETER_LIST_CHANGES = """
    len(c)
    c[0]
    c[-1]
    c[7]
    c[:2]
    list(c)
    c.append(torch.zeros(1))
    c.append("text")
    c.extend([torch.zeros(1), 5])
    c.extend(torch.zeros(2))
    c.extend(3)
    c.__setitem__(0, torch.zeros(3))
    c.__setitem__(-1, torch.zeros(3))
    c.__iadd__([torch.zeros(1)])
    c()
    [n for n in dir(c) if n.isdigit()]
    list(c.parameters())
"""


@changes(PARAMETER_LIST_CHANGES)
def test_parameter_list(change):
    def program(torch):
        values = [torch.ones(2), torch.nn.Parameter(torch.ones(1)), 3]
        return after(change, torch.nn.ParameterList(values), torch)
    agree(program)


PARAMETER_DICT_CHANGES = """
    c["a"]
    c["z"]
    len(c)
    list(c)
    "a" in c
    list(c.keys())
    list(c.values())
    [key for key, _ in c.items()]
    list(reversed(c))
    c.copy()
    c.setdefault("a", 1)
    c.setdefault("n", torch.ones(1))
    c.get("a")
    c.get("z", 4)
    c.pop("a")
    c.pop("z")
    c.popitem()
    c.clear()
    c.__delitem__("b")
    c.__setitem__("a", torch.zeros(3))
    c.__setitem__(3, torch.zeros(3))
    c.fromkeys(["k", "l"], torch.ones(1))
    c.update({"q": torch.ones(1), "e": 2})
    c.update([("q", torch.ones(1)), ("e", 2)])
    c.update(OrderedDict(q=1, e=2))
    c.update(torch.nn.ParameterDict({"q": 1}))
    c.update(3)
    c.update([3])
    c.update([(1, 2, 3)])
    c | torch.nn.ParameterDict({"q": torch.ones(1)})
    c.__ior__({"q": torch.ones(1)})
    c.__ror__(torch.nn.ParameterDict({"q": torch.ones(1)}))
    c(1)
"""


@changes(PARAMETER_DICT_CHANGES)
def test_parameter_dict(change):
    def program(torch):
        values = {"b": torch.ones(2), "a": torch.ones(1), "c": 3}
        return after(change, torch.nn.ParameterDict(values), torch)
    agree(program)
