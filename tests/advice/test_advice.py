"""Advice of errors after PyTorch's message: the program's line, what led there, and the command that shows it."""
import gc
import linecache
import os
import re
import runpy
import subprocess
import sys
import traceback
import weakref

import pytest
from support import ROOT

import tensorgrad
from tensorgrad.advice import places, source, texts
from tensorgrad.viz import watch

# programs, each with what its error's notes have to say; the text after `#:` of a line is the name of that line
PROGRAMS = {
    "backward twice": ("""
        w = torch.rand(3, requires_grad=True)
        loss = (w * w).sum()
        loss.backward()                                  #: first
        y = loss * 2
        loss.backward()                                  #: again
        """, ["`MulBackward0` was freed by {first}: `loss.backward()`", "and is needed again by {again}: `loss.backward()`"]),  # noqa: E501
    "two losses": ("""
        w = torch.rand(3, requires_grad=True)
        h = w.exp()
        a, b = h.sum(), (h * h).sum()
        torch.autograd.grad(a, w)                        #: first
        b.backward()                                     #: again
        """, ["`ExpBackward0` was freed by {first}: `torch.autograd.grad(a, w)`", "again by {again}: `b.backward()`", "retain_graph=True"]),  # noqa: E501
    "a state that goes on": ("""
        w, h = torch.rand(2, 2, requires_grad=True), torch.zeros(2)
        for _ in range(3):
            h = torch.tanh(w @ h + 1)
            h.sum().backward()                           #: loop
        """, ["was freed by {loop}: `h.sum().backward()`", "runs again", "detach()"]),
    "saved tensors": ("""
        w = torch.rand(3, requires_grad=True)
        y = w.exp()
        y.sum().backward()                               #: first
        y.grad_fn._saved_result                          #: again
        """, ["freed by {first}", "again by {again}: `y.grad_fn._saved_result`"]),
    "+=": ("""
        w = torch.rand(3, requires_grad=True)
        h = w.exp()
        h += 1                                           #: write
        h.sum().backward()
        """, ["written to by {write}: `h += 1`", "`ExpBackward0` needs it as it was", "`h = h + 1` makes a new tensor"]),  # noqa: E501
    "an element": ("""
        w = torch.rand(3, requires_grad=True)
        h = w.sigmoid()
        h[0] = 0                                         #: write
        h.sum().backward()
        """, ["written to by {write}: `h[0] = 0`", "`h = h.clone()` before it"]),
    "a method that has no other form": ("""
        w = torch.rand(3, 2, requires_grad=True)
        h = w.exp()
        h.view(2, 3).T[0].zero_()                        #: write
        h.sum().backward()
        """, ["written to by {write}: `h.view(2, 3).T[0].zero_()`", "`h = h.clone()` before it"]),
    "a view": ("""
        w = torch.rand(3, requires_grad=True)
        h = w * 1
        y = (h * h).sum()
        h[1:].mul_(2)                                    #: write
        y.backward()
        """, ["written to by {write}: `h[1:].mul_(2)`", "mul() without the underscore"]),
    "an optimizer's step": ("""
        w, x = torch.rand(2, 2, requires_grad=True), torch.rand(2, 2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        loss = (x @ w).sum()
        loss.backward(retain_graph=True)
        optimizer.step()                                 #: write
        loss.backward()
        """, ["written to by {write}: `optimizer.step()`", "after every backward() that needs the parameters"]),
    "under no_grad": ("""
        w, x = torch.rand(2, 2, requires_grad=True), torch.rand(2, 2, requires_grad=True)
        loss = (x @ w).sum()
        with torch.no_grad():
            w -= 1                                       #: write
        loss.backward()
        """, ["written to by {write}: `w -= 1`"]),
    "a layer in place": ("""
        net = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Sigmoid(), torch.nn.ReLU(inplace=True))
        out = net(torch.rand(2, 3))                      #: write
        out.sum().backward()
        """, ["written to by {write}: `out = net(torch.rand(2, 3))`"]),
    "a leaf": ("""
        w = torch.rand(3, requires_grad=True)
        w *= 2                                           #: here
        """, ["{here}: `w *= 2`", "torch.no_grad()"]),
    "detached": ("""
        w = torch.rand(3, requires_grad=True)
        h = (w * 2).detach()                             #: cut
        loss = h.sum()                                   #: made
        loss.backward()                                  #: here
        """, ["{here}: `loss.backward()`", "loss was made in {made}: `loss = h.sum()`", "h was made in {cut}: `h = (w * 2).detach()`: detach() cuts"]),  # noqa: E501
    "no_grad": ("""
        w = torch.rand(3, requires_grad=True)
        with torch.no_grad():
            loss = (w * 2).sum()                         #: made
        loss.backward()
        """, ["loss was made in {made}: `loss = (w * 2).sum()`, under `with torch.no_grad():`"]),
    "a decorated function": ("""
        w = torch.rand(3, requires_grad=True)
        @torch.no_grad()
        def evaluate():
            loss = (w * 2).sum()
            loss.backward()
        evaluate()
        """, ["grad mode is off here"]),
    "a number": ("""
        w = torch.rand(3, requires_grad=True)
        loss = torch.tensor(w.sum().item())              #: made
        loss.backward()
        """, ["loss was made in {made}", "without the history"]),
    "argmax": ("""
        w = torch.rand(3, requires_grad=True)
        loss = w.argmax().float()                        #: made
        loss.backward()
        """, ["{made}", "argmax has no gradient"]),
    "a comparison": ("""
        w, y = torch.rand(3, requires_grad=True), torch.rand(3)
        loss = ((w > 0.5) == (y > 0.5)).float().mean()   #: made
        loss.backward()
        """, ["{made}", "comparisons have no gradient"]),
    "cut in a forward": ("""
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.head = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
            def forward(self, x):                        #: forward
                print(self.body(x).mean().item(), end="")
                return self.head(self.body(x)).detach()  #: cut
        net, x, y = Net(), torch.rand(2, 3), torch.rand(2, 1)
        out = net(x)                                     #: made
        loss = ((out - y) ** 2).mean()
        loss.backward()
        """, ["out was made in {made}: `out = net(x)`", "in Net.forward, {forward}: {cut}: `return self.head(self.body(x)).detach()`: detach() cuts"]),  # noqa: E501
    "switched off in a function": ("""
        net, x = torch.nn.Linear(3, 1), torch.rand(2, 3)
        @torch.no_grad()
        def evaluated(x):
            return net(x)
        loss = evaluated(x).mean()                       #: made
        loss.backward()
        """, ["{made}", "in evaluated, program.py, line", "`@torch.no_grad() def evaluated` (line", "switches recording off"]),  # noqa: E501
    "frozen": ("""
        net = torch.nn.Linear(3, 1)
        for p in net.parameters():
            p.requires_grad_(False)
        loss = net(torch.rand(2, 3)).mean()
        loss.backward()
        """, ["no parameter of net requires grad"]),
    "no parameter": ("""
        x, y = torch.rand(3), torch.rand(3)
        ((x - y) ** 2).mean().backward()                 #: here
        """, ["{here}: `((x - y) ** 2).mean().backward()`", "x and y do not require grad"]),
    "several elements": ("""
        w = torch.rand(3, requires_grad=True)
        loss = w * 2
        loss.backward()                                  #: here
        """, ["{here}", "loss has shape (3,), 3 elements", "mean() or sum()"]),
    "matmul": ("""
        a, b = torch.rand(4, 3), torch.rand(2, 3)
        y = 1 + a @ b                                    #: here
        """, ["{here}: `y = 1 + a @ b`", "a has shape (4, 3), b has shape (2, 3)", "a @ b.T would fit"]),
    "broadcasting": ("""
        a, b = torch.rand(4, 1), torch.rand(4, 3)
        y = a * (b + torch.rand(2))                      #: here
        """, ["{here}", "b has shape (4, 3)"]),
    "a layer": ("""
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.body = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(10, 5))
            def forward(self, x):
                return self.body(x.relu())               #: here
        Net()(torch.rand(2, 3, 4))
        """, ["{here}: `return self.body(x.relu())`", "in the layer Net.body.1, Linear(in_features=10", "shape (2, 12): Linear(12, 5) would take it"]),  # noqa: E501
    "channels": ("""
        net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3))
        net(torch.rand(2, 1, 8, 8))                      #: here
        """, ["{here}", "in the layer net.0, Conv2d(3, 4", "shape (2, 1, 8, 8)"]),
    "cat": ("""
        parts = [torch.rand(2, 3), torch.rand(2, 4)]
        torch.cat(parts)                                 #: here
        """, ["{here}: `torch.cat(parts)`", "parts[0] has shape (2, 3), parts[1] has shape (2, 4)"]),
    "elements": ("""
        batch = {"x": torch.rand(2, 3), "y": torch.rand(2, 4)}
        pair = [batch["x"], torch.rand(5)]
        batch["y"] - pair[0]                             #: here
        """, ["{here}", "batch['y'] has shape (2, 4), pair[0] has shape (2, 3)"]),
    "classes": ("""
        out, y = torch.rand(4, 3), torch.tensor([0, 1])
        loss = torch.nn.functional.cross_entropy(out, y) #: here
        """, ["{here}", "out has shape (4, 3), y has shape (2,)"]),
    "a column": ("""
        out, y = torch.rand(4, 1), torch.rand(4)
        loss = torch.nn.functional.binary_cross_entropy(out, y)  #: here
        """, ["{here}", "out has shape (4, 1), y has shape (4,)", "out.squeeze(-1) would have the shape"]),
    "view": ("""
        x = torch.rand(4, 3)
        x.view(5, -1)                                    #: here
        """, ["{here}: `x.view(5, -1)`", "x has shape (4, 3)"]),
    "a NaN under anomaly mode": ("""
        import warnings
        warnings.simplefilter("ignore")
        w = torch.zeros(3, requires_grad=True)
        with torch.autograd.detect_anomaly():
            loss = (w.sqrt() * 0).sum()                  #: made
            loss.backward()                              #: here
        """, ["`SqrtBackward0` ({made}: `loss = (w.sqrt() * 0).sum()", "called by {here}: `loss.backward()`", "Where it came from"]),  # noqa: E501
    "in a hook": ("""
        w = torch.rand(3, requires_grad=True)
        def scaled(g):
            return g * torch.ones(4)                     #: hook
        h = w * 2
        h.register_hook(scaled)
        h.sum().backward()                               #: here
        """, ["{hook}: `return g * torch.ones(4)`", "in the hook `scaled`, for the gradient of `MulBackward0`, called by {here}: `h.sum().backward()`"]),  # noqa: E501
    "what a hook returns": ("""
        w = torch.rand(3, requires_grad=True)
        def first(g):                                    #: hook
            return g[:1]
        h = w * 2
        h.register_hook(first)
        h.sum().backward()                               #: here
        """, ["the hook `first` ({hook})", "called by {here}: `h.sum().backward()`"]),
    "a module's hook": ("""
        net = torch.nn.Linear(3, 3)
        def first(module, given, got):                   #: hook
            return got[0][:1],
        net.register_full_backward_hook(first)
        net(torch.rand(2, 3, requires_grad=True)).sum().backward()          #: here
        """, ["the hook `first` ({hook})", "called by {here}"]),
    "another dtype from a module's hook": ("""
        net = torch.nn.Linear(3, 3)
        net.register_full_backward_hook(lambda module, given, got: (got[0].double(),))
        net(torch.rand(2, 3, requires_grad=True)).sum().backward()          #: here
        """, ["called by {here}"]),
    "in a Function": ("""
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod
            def backward(ctx, g):
                return g @ torch.ones(2, 2)              #: rule
        Twice.apply(torch.rand(3, requires_grad=True)).sum().backward()     #: here
        """, ["{rule}: `return g @ torch.ones(2, 2)`", "in the backward of the Function Twice, called by {here}"]),
    "in a Function's forward": ("""
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x @ x                             #: rule
        y = Twice.apply(torch.rand(3, 2))                #: here
        """, ["{rule}: `return x @ x`", "in the forward of the Function Twice, called by {here}: `y = Twice.apply(torch.rand(3, 2))`"]),  # noqa: E501
    "what a Function returns": ("""
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
            @staticmethod                                #: rule
            def backward(ctx, g):
                return g, g
        Twice.apply(torch.rand(3, requires_grad=True)).sum().backward()     #: here
        """, ["Twice.backward ({rule}) is the backward of `TwiceBackward`", "called by {here}"]),
}


def written(tmp_path, text):
    """A program in a file, and its lines by name."""
    lines = [line[8:] for line in text.strip("\n").split("\n")][:-1]
    path = tmp_path / "program.py"
    path.write_text("\n".join(lines) + "\n")
    named = {found[1]: f"program.py, line {n}" for n, line in enumerate(lines, 1)
             if (found := re.search("#: (.+)", line))}
    return path, named


def error_of(path, torch):
    with pytest.raises(Exception) as caught:
        runpy.run_path(str(path), {"torch": torch})
    return caught.value


def notes(error):
    return "\n".join(error.__notes__)


@pytest.mark.parametrize("name", PROGRAMS)
def test_errors_name_the_line(tmp_path, name):
    text, expected = PROGRAMS[name]
    path, lines = written(tmp_path, text)
    error = error_of(path, tensorgrad)
    for part in expected:
        assert part.format(**lines) in notes(error), error.__notes__
    assert len(set(error.__notes__)) == len(error.__notes__) and "\n  " in "".join(traceback.format_exception(error))
    oracle = pytest.importorskip("torch")
    theirs = error_of(path, oracle)
    assert (type(error), str(error)) == (type(theirs), str(theirs))


def test_the_users_own_errors_keep_their_message(tmp_path):
    path, lines = written(tmp_path, """
        w = torch.rand(3, requires_grad=True)
        def strict(g):
            raise LookupError("mine", 3)
        h = w * 2
        h.register_hook(strict)
        h.sum().backward()                               #: here
        """)
    error = error_of(path, tensorgrad)
    assert error.args == ("mine", 3)
    assert error.__notes__ == [f"  in the hook `strict`, for the gradient of `MulBackward0`, called by "
                               f"{lines['here']}: `h.sum().backward()`"]


def test_steps_that_were_watched_have_their_lines(tmp_path):
    path, lines = written(tmp_path, PROGRAMS["+="][0].replace("h = w.exp()", "h = w.exp()   #: made"))
    with pytest.raises(RuntimeError) as caught, watch():
        runpy.run_path(str(path), {"torch": tensorgrad})
    assert f"`ExpBackward0` ({lines['made']}: `w.exp()`) needs it" in notes(caught.value)
    with pytest.warns(UserWarning, match="Error detected"), tensorgrad.autograd.set_detect_anomaly(True):
        error = error_of(path, tensorgrad)
    assert f"`ExpBackward0` ({lines['made']}: `h = w.exp()" in notes(error)


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────────────


def command(folder, *arguments):
    """Run a command in a separate process."""
    return subprocess.run([sys.executable, "-W", "error", *arguments], cwd=folder, capture_output=True,
                          encoding="utf-8", timeout=120,
                          env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"})


def test_the_command_that_is_offered_shows_the_error(tmp_path):
    path, lines = written(tmp_path, "        import torch\n" + PROGRAMS["+="][0].lstrip("\n"))
    run = command(tmp_path, "-m", "tensorgrad", "program.py", "--epochs", "2 or 3")
    offered = run.stderr.splitlines()[-1]
    assert run.returncode == 1 and offered == \
        "  A picture of the graph, with the lines of the program: python -m tensorgrad.viz program.py --epochs '2 or 3'"
    drawn = command(tmp_path, "-m", "tensorgrad.viz", "program.py", "--out", "graph.svg")
    assert "python -m" not in drawn.stderr and f"written to by {lines['write']}" in drawn.stderr
    picture = (tmp_path / "graph.svg").read_text()
    assert ("backward failed" in picture and f"it was written to by {lines['write']}" in picture
            and "python -m" not in picture)


def test_the_command_names_the_first_of_two_backwards(tmp_path):
    (tmp_path / "twice.py").write_text("import torch\nx = torch.ones(3, requires_grad=True)\nloss = (x * "
                                       "x).sum()\nloss.backward()\nloss.backward()\n")
    drawn = command(tmp_path, "-m", "tensorgrad.viz", "twice.py", "--out", "graph.svg")
    assert ("was freed by twice.py, line 4: `loss.backward()`" in drawn.stderr
            and "needed again by twice.py, line 5" in drawn.stderr), drawn.stderr


def test_where_no_file_is_the_program(monkeypatch):
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    with pytest.raises(RuntimeError, match=r"watch\(\) as seen"):
        tensorgrad.rand(2, 3) @ tensorgrad.rand(2, 3)


# ── nothing else changes ──────────────────────────────────────────────────────────────────────────────────────────────


def test_source_that_cannot_be_read():
    code = compile("x = torch.rand(3, requires_grad=True)\ny = x.exp()\ny += 1\ny.sum().backward()", "no such file.py",
                   "exec")
    with pytest.raises(RuntimeError, match=r"inplace operation(.|\n)*no such file.py, line 3"):
        exec(code, {"torch": tensorgrad})


class Hostile:
    """An object that lets nobody look at it."""

    def __getattribute__(self, name):
        raise SystemError(name)


def test_variables_that_raise(tmp_path):
    """PyTorch's error comes whatever the program's variables are like."""
    for name, (text, _) in PROGRAMS.items():
        path, _ = written(tmp_path, text)
        with pytest.raises(Exception) as caught:
            runpy.run_path(str(path), {"torch": tensorgrad, "hostile": Hostile(), "self": Hostile()})
        assert not isinstance(caught.value, SystemError), name


def test_advice_that_fails(monkeypatch):
    def broken(*facts):
        raise ZeroDivisionError
    monkeypatch.setattr(texts, "of_shapes", broken)
    with pytest.raises(RuntimeError, match=r"^The size of tensor a \(2\) must match the size of tensor b \(3\) at "
                                           r"non-singleton dimension 0$"):
        tensorgrad.rand(2) + tensorgrad.rand(3)


def test_a_step_of_training_leaves_two_notes():
    """All that is done before an error: one note for the backward, one for each kernel that writes parameters."""
    net = tensorgrad.nn.Sequential(tensorgrad.nn.Linear(3, 4), tensorgrad.nn.ReLU(), tensorgrad.nn.Linear(4, 1))
    optimizer = tensorgrad.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        places.WAYS.clear()
        places.WRITES.clear()
        optimizer.zero_grad()
        net(tensorgrad.rand(2, 3)).sum().backward()
        assert len(places.WAYS) == 1 and not places.WRITES
        optimizer.step()
    # without compiled kernels, one for each parameter
    assert len(places.WAYS) == 1 and 1 <= len(places.WRITES) <= 4


def test_notes_hold_no_variables():
    """Nothing lives longer, and the notes are few."""
    class Local:
        pass

    def train():
        local, w = Local(), tensorgrad.rand(3, requires_grad=True)
        for _ in range(places.RECALLED + 10):
            h = w * 2
            h += 1
            h.sum().backward()
        return weakref.ref(local)
    assert train()() is None
    assert len(places.WAYS) == len(places.WRITES) == places.RECALLED
    assert not [kept for kept in gc.get_referents(*places.WAYS, *places.WRITES) if type(kept).__name__ == "frame"]


def test_errors_hold_no_variables(tmp_path):
    """After an error, a program can free the objects that the error's frames held."""
    path, _ = written(tmp_path, """
        import weakref
        def train():
            net, big = torch.nn.Sequential(torch.nn.Linear(3, 1)), torch.rand(2, 4)
            freed = weakref.ref(big)
            try:
                net(big)
            except RuntimeError as error:
                assert any("net.0" in note for note in error.__notes__)
            del big
            assert freed() is None
        train()
        """)
    runpy.run_path(str(path), {"torch": tensorgrad})


def test_statements():
    """The statement at a column of a line; a block's head alone."""
    lines = "if True:\n    a = 1; b = (2 +\n        3)\n    for i in [1]: pass\n"
    file = "<statements>"
    linecache.cache[file] = len(lines), None, lines.splitlines(True), file
    try:
        assert (source.statement(file, 2, 4) == "a = 1" and source.statement(file, 2, 11) == "b = (2 + 3)"
                == source.statement(file, 3, 8))
        assert source.statement(file, 1, 0) == "if True:" and source.statement(file, 4, 8) == "for i in [1]:"
    finally:
        del linecache.cache[file]
