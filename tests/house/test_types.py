"""Type checkers and editors see the types: mypy and basedpyright read programs as their users would."""
import json
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest
from support import ROOT

pytestmark = pytest.mark.skipif(find_spec("mypy") is None or find_spec("basedpyright") is None,
                                reason="mypy or basedpyright is not installed (pip install 'tensorgrad[test]')")

HEAD = """
import tensorgrad as torch
import tensorgrad.nn.functional as F
from tensorgrad import nn, optim
from tensorgrad.distributions import Normal
from tensorgrad.utils.data import DataLoader, Dataset, TensorDataset

class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
    def forward(self, x: torch.Tensor, scale: float = 1.0) -> tuple[torch.Tensor, int]:
        return self.first(x) * scale, 1

x, m, net = torch.randn(3, 4), nn.Linear(4, 2), Net()
optimizer = optim.Adam(m.parameters(), lr=0.1)
scheduler = optim.lr_scheduler.StepLR(optimizer, 1)
loader = DataLoader(TensorDataset(x, x), batch_size=2)
"""

# {expression: its type}; names without their modules, as both checkers print them.
TYPES = {
    "torch.randn(3, 4)": "Tensor", "torch.zeros((2, 3))": "Tensor", "torch.zeros(2, 3, dtype=torch.float64)": "Tensor",
    "torch.arange(0, 10, 2)": "Tensor", "torch.linspace(0, 1, 5)": "Tensor", "torch.full((2,), 1.0)": "Tensor",
    "torch.tensor([1.0])": "Tensor", "torch.from_numpy(x.numpy())": "Tensor", "torch.sin(x)": "Tensor",
    "x + 1": "Tensor", "1 - x": "Tensor", "2 ** x": "Tensor", "x @ x.T": "Tensor", "-x": "Tensor", "~(x > 0)": "Tensor",
    "x < 1": "Tensor", "x == 1": "Tensor", "x[0]": "Tensor", "x[:, None, ...]": "Tensor", "x[x > 0]": "Tensor",
    "x.sum()": "Tensor", "x.sum(0, keepdim=True)": "Tensor", "x.mean(dim=(0, 1))": "Tensor", "x.view(-1)": "Tensor",
    "x.reshape(2, -1)": "Tensor", "x.permute(1, 0)": "Tensor", "x.to('cpu', torch.float64)": "Tensor",
    "x.add_(1)": "Tensor", "x.shape": "Size", "x.shape[0]": "int", "x.shape[1:]": "Size", "x.size()": "Size",
    "x.size(0)": "int", "x.stride()": "tuple[int, ...]", "x.dim()": "int", "x.numel()": "int", "x.dtype": "dtype",
    "x.device": "device", "x.requires_grad": "bool", "x.grad": "Tensor | Any", "torch.max(x)": "Tensor",
    "torch.max(x, 0)": "max", "torch.max(x, x)": "Tensor", "x.max(1).values": "Tensor", "x.sort().indices": "Tensor",
    "torch.linalg.svd(x).S": "Tensor", "torch.fft.fft(x)": "Tensor", "torch.special.expit(x)": "Tensor",
    "torch.where(x > 0)": "tuple[Tensor, ...]", "torch.where(x > 0, x, 0)": "Tensor",
    "x.split(1)": "tuple[Tensor, ...]", "torch.nonzero(x)": "Tensor", "F.relu(x)": "Tensor",
    "F.cross_entropy(x, x)": "Tensor", "F.max_pool2d(x, 2, return_indices=True)": "tuple[Tensor, Tensor]",
    "m": "Linear", "m(x)": "Tensor", "net(x)": "tuple[Tensor, int]", "nn.Sequential(m, nn.ReLU())(x)": "Tensor",
    "nn.CrossEntropyLoss()(x, x)": "Tensor", "m.weight": "Parameter", "m.in_features": "int", "m.train()": "Linear",
    "m.to('cpu')": "Linear", "m.state_dict()": "dict[str, Any]", "next(m.parameters())": "Parameter",
    "optimizer": "Adam", "optim.SGD(m.parameters())": "SGD", "scheduler": "StepLR",
    "Normal(0.0, 1.0).sample()": "Tensor", "torch.device('cpu')": "device", "torch.float32": "dtype",
    "torch.Generator()": "Generator", "torch.manual_seed(0)": "Generator", "torch.is_tensor(x)": "bool",
    "nn.init.zeros_(x)": "Tensor", "len(x)": "int", "float(x)": "float",
}

# Each line is one mistake.
MISTAKES = """
torch.sinn(x)
torch.sin("x")
torch.randn("3")
torch.cat(x, x)
nn.Linear("a", 3)
nn.Linear(3)
nn.Linear(3, 4, biass=True)
nn.Lineear(3, 4)
nn.Conv2d(3, 8, kernel=3)
nn.Dropout("high")
x.summ()
x.sum(dimension=0)
x + "1"
x.reshape("2")
x.shapes
m("x")
net(x, scale="x")
F.reluu(x)
F.softmax(x, dimm=1)
optim.Adam(lr=0.1)
optim.Adam(m.parameters(), lr="x")
optim.Addam(m.parameters())
optim.lr_scheduler.StepLR(m, 1)
torch.linalg.svdd(x)
torch.load()
TensorDataset("x")
""".strip().split("\n")

# Lines on which a checker is right about the program, or which PyTorch's types refuse as well: {file: parts of lines}.
ACCEPTED = {
    "actor_critic.py": ("returns",), "neural_style.py": ("loss.backward()", "style_score.item()"),
    "lesson2_neuron.py": ("1.0 * w.grad", "1.0 * b.grad"), "lesson3_xor.py": ("steepness.append",),
    "__main__.py": ("sys.stdout.reconfigure",), "plotting.py": ("curves, digits",), "collectives.py": ("work.wait()",),
}


def of_pytorch(text):
    """Return a program that imports torch as one that imports tensorgrad."""
    text = re.sub(r"^( *)import torch\.(\S+) as", r"\1import tensorgrad.\2 as", text, flags=re.MULTILINE)
    text = re.sub(r"^( *)import torch(\.\S+)?$", r"\1import tensorgrad as torch", text, flags=re.MULTILINE)
    return re.sub(r"^( *)from torch(\.\S+)? import", r"\1from tensorgrad\2 import", text, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the programs that are checked."""
    folder = tmp_path_factory.mktemp("checked")
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"),
                        flags=re.DOTALL | re.MULTILINE)
    (folder / "readme.py").write_text("\n".join(blocks), encoding="utf-8")
    (folder / "revealed.py").write_text(HEAD + "\n".join(f"reveal_type({text})" for text in TYPES)
                                        + "\nfor batch in loader: pass\n", encoding="utf-8")
    (folder / "mistakes.py").write_text(HEAD + "\n".join(MISTAKES) + "\n", encoding="utf-8")
    for place, change in ((ROOT / "examples", str), (ROOT / "tests" / "as_torch" / "programs", of_pytorch)):
        for file in place.rglob("*.py"):
            copy = folder / place.name / file.relative_to(place)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def mypy(folder):
    """Return the complaints of mypy: (file, line, kind, text)."""
    (folder / "mypy.ini").write_text(f"[mypy]\nmypy_path = {ROOT}\nfollow_imports = silent\nignore_missing_imports = "
                                     "True\nexplicit_package_bases = True\nallow_redefinition = True\n"
                                     "disable_error_code = var-annotated\n", encoding="utf-8")
    ran = subprocess.run([sys.executable, "-m", "mypy", "--no-color-output", "--no-error-summary",
                          "--show-absolute-path", "readme.py", "revealed.py", "mistakes.py", "examples", "programs"],
                         cwd=folder, capture_output=True, text=True, timeout=600)
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    return [(file, int(line), kind, text) for file, line, kind, text in
            re.findall(r"^(.+?):(\d+): (error|note): (.*)$", ran.stdout, flags=re.MULTILINE)]


@pytest.fixture(scope="module")
def pyright(folder):
    """Return the complaints of basedpyright, in the mode that editors call standard."""
    (folder / "pyrightconfig.json").write_text(json.dumps({
        "include": ["."], "extraPaths": [str(ROOT)], "typeCheckingMode": "standard",
        "reportIncompatibleMethodOverride": False, "reportPossiblyUnboundVariable": False}), encoding="utf-8")
    ran = subprocess.run([sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson", "-p",
                          "."],
                         cwd=folder, capture_output=True, text=True, timeout=600)
    said = json.loads(ran.stdout)["generalDiagnostics"]
    assert said, ran.stderr
    return [(d["file"], d["range"]["start"]["line"] + 1, d["severity"], d["message"]) for d in said]


def revealed(said, pattern):
    """Return the types in a checker's notes, one for each line of revealed.py that asks."""
    start = HEAD.count("\n") + 1
    found = {line - start: re.search(pattern, text) for file, line, _, text in said
             if file.endswith("revealed.py") and "ype" in text}
    texts = [found[i][1] if found.get(i) else "nothing" for i in range(len(TYPES))]
    texts = [re.sub(r"^tuple\[.*fallback=([\w.]+)\]$", r"\1", text) for text in texts]
    return {expression: re.sub(r"\b(\w+\.)+(?=\w)", "", text) for expression, text in zip(TYPES, texts, strict=True)}


def complaints(said, folder):
    """Return the errors in README, examples and programs that are not ACCEPTED."""
    found = []
    for file, line, kind, text in said:
        name = file.replace("\\", "/").rpartition("/")[2]
        if kind == "error" and name not in ("revealed.py", "mistakes.py"):
            source = (folder / file).read_text(encoding="utf-8").split("\n")[line - 1]
            if not any(part in source for part in ACCEPTED.get(name, ())):
                found.append(f"{name}:{line}: {text}: {source.strip()}")
    return found


def test_mypy_and_basedpyright_know_the_types_of_expressions(mypy, pyright):
    assert len(TYPES) >= 60
    assert revealed(mypy, r'Revealed type is "(.*)"') == TYPES
    assert revealed(pyright, r'is "(.*)"$') == TYPES


def test_mypy_and_basedpyright_find_mistakes(mypy, pyright):
    start = HEAD.count("\n") + 1
    for said in (mypy, pyright):
        lines = {line for file, line, kind, _ in said if file.endswith("mistakes.py") and kind == "error"}
        assert [text for i, text in enumerate(MISTAKES) if i + start not in lines] == []
        assert not [line for line in lines if line < start]


def test_mypy_and_basedpyright_find_nothing_wrong_in_programs(mypy, pyright, folder):
    assert complaints(mypy, folder) == []
    assert complaints(pyright, folder) == []


def test_few_lines_of_the_stub_of_tensor_say_any():
    text = (ROOT / "tensorgrad" / "_tensor" / "tensor.pyi").read_text(encoding="utf-8")
    assert sum("Any" in line for line in text.splitlines()) < 100
