"""The device scope: what it sets and puts back, in which thread; its helpers; modules on several devices and in several
processes.
"""
import ast
import contextlib
import os
import subprocess
import sys
import threading

import pytest
from support import DEVICE, ROOT, fresh_process

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.layers import scope as scopes
from tensorgrad.layers.manager import DistributedManager
from tensorgrad.layers.module import Module
from tensorgrad.layers.parallel import DataParallel, DistributedDataParallel
from tensorgrad.layers.scope import (
    CPU_DEVICE,
    CUDA_DEVICE,
    cuda_memory,
    device_scope,
    device_to_int,
    get_default_device_dtype,
    get_scope_device_dtype,
    get_torchx_device_dtype,
    id_to_device,
    ids_to_devices,
    in_device_scope,
    new_tensor,
    set_default_device_dtype,
)

CPU = torch.device("cpu")
no_cuda = pytest.mark.skipif(DEVICE != "cpu" or torch.cuda.is_available(), reason="about machines without CUDA")


def made():
    """The devices and dtypes of tensors from many functions."""
    x = torch.zeros(2)
    tensors = [x, torch.ones(1), torch.tensor([0.5]), torch.randn(2), torch.rand(2), torch.full((1,), 2.),
               torch.ones_like(x), x.new_zeros(1), torch.eye(2), torch.linspace(0, 1, 3), torch.arange(0., 2.),
               torch.empty(1), torch.tensor(1) * 2.5,
               torch.as_tensor([1.]), new_tensor([1])]
    return {(str(t.device), t.dtype) for t in tensors}


# ── the scope ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("device", [-1, None, "cpu", CPU, [-1], ["cpu"], [None], (CPU,)], ids=str)
def test_the_cpu_in_all_spellings(device):
    with device_scope(device, torch.float64) as found:
        assert found == CPU and type(found) is torch.device and made() == {("cpu", torch.float64)}
        assert (torch.finfo().bits == 64 and torch.get_default_dtype() == torch.float64
                and torch.tensor([1j]).dtype == torch.complex128)
        assert torch.tensor([1]).dtype == torch.int64
    assert made() == {("cpu", torch.float32)}


def test_scopes_nest():
    assert not in_device_scope()
    with device_scope(-1, torch.float64):
        with device_scope(-1):
            assert made() == {("cpu", torch.float32)}
            with device_scope(-1, dtype=torch.float64):
                assert made() == {("cpu", torch.float64)} and in_device_scope()
            assert made() == {("cpu", torch.float32)}
        assert made() == {("cpu", torch.float64)} and get_scope_device_dtype() == ([CPU], torch.float64)
    assert (made() == {("cpu", torch.float32)} and not in_device_scope()
            and get_scope_device_dtype() == ([CPU], torch.float32))


def test_a_scope_may_respect_the_one_around_it(two_devices):
    with device_scope(1, torch.float64), device_scope(-1, torch.float32, override_parent=False) as found:
        assert found == "cuda:1" and made() == {("cuda:1", torch.float64)}
    with torch.device("cuda:1"), device_scope(-1, override_parent=False) as found:
        assert found == "cuda:1" and made() == {("cuda:1", torch.float32)}
    with device_scope(1, torch.float64, override_parent=False) as found:
        assert found == "cuda:1" and made() == {("cuda:1", torch.float64)}
    assert made() == {("cpu", torch.float32)}


def test_an_error_inside_leaves_nothing_behind(two_devices):
    with contextlib.suppress(KeyError), device_scope([0, 1], torch.float64):
        with device_scope(1), torch.device("cpu"):
            raise KeyError
    assert made() == {("cpu", torch.float32)} and not in_device_scope()


def test_what_a_scope_refuses():
    for dtype in torch.float16, torch.int64, torch.bfloat16, float, None:
        with pytest.raises(AssertionError, match="float32 or torch.float64"):
            device_scope(-1, dtype)
    for devices in [], ["cpu", "cuda:0"], [0, -1], ["cuda:all"], ["cuda:0", "cuda:all"], [-1, -1]:
        with pytest.raises(AssertionError):
            device_scope(devices)
    for device in 1.5, True, {}, ["cpu", 2.5]:
        with pytest.raises((TypeError, AssertionError)):
            device_scope(device)
    with pytest.raises(RuntimeError):
        device_scope("nowhere")
    assert made() == {("cpu", torch.float32)}


@no_cuda
@pytest.mark.parametrize("device", [0, 2, "cuda:1", "gpu:1", "cuda", [0, 1], torch.device("cuda", 0)], ids=str)
def test_without_cuda_there_is_a_warning_and_the_cpu(device):
    with pytest.warns(UserWarning, match="there is no CUDA device: the CPU takes the place of cuda") as said:
        scope = device_scope(device)
    assert os.path.samefile(said[0].filename, __file__)
    with scope as found:
        assert found == CPU and made() == {("cpu", torch.float32)}
    with device_scope("cuda:all") as found:
        assert found == CPU


@no_cuda
def test_the_warning_goes_to_stderr():
    ran = subprocess.run([sys.executable, "-c",
                          "from tensorgrad.layers.scope import device_scope\nwith device_scope(2) as d: print(d)"],
                         cwd=ROOT, capture_output=True, text=True, timeout=100,
                         env={k: v for k, v in os.environ.items() if k != "TENSORGRAD_SIMULATED_CUDA"})
    assert ran.stdout == "cpu\n" and "there is no CUDA device" in ran.stderr


@pytest.mark.parametrize("device, first, all_", [
    (1, "cuda:1", ["cuda:1"]), ("cuda:1", "cuda:1", ["cuda:1"]), ("gpu:1", "cuda:1", ["cuda:1"]),
    ("cuda", "cuda:0", ["cuda:0"]), ("gpu", "cuda:0", ["cuda:0"]), (torch.device("cuda", 1), "cuda:1", ["cuda:1"]),
    ([1, "cuda:0"], "cuda:1", ["cuda:1", "cuda:0"]), ("cuda:all", "cuda:0", ["cuda:0", "cuda:1"]),
    ("gpu:all", "cuda:0", ["cuda:0", "cuda:1"]),
    ([1, "gpu:1"], "cuda:1", ["cuda:1"])], ids=str)
def test_cuda_in_all_spellings(two_devices, device, first, all_):
    with device_scope(device) as found:
        assert (found == first and made() == {(first, torch.float32)} and get_scope_device_dtype()
                == (all_, torch.float32))
        with torch.device("cpu"):
            assert get_scope_device_dtype()[0] == [CPU]
        with device_scope(-1):
            assert get_torchx_device_dtype()[0] == [CPU]
    with pytest.raises(RuntimeError, match="there is no device cuda:2: there are 2"):
        device_scope(2)


def test_the_default_device_is_the_same_one(two_devices):
    torch.set_default_device("cuda:0")
    try:
        with device_scope("cuda:1"):
            assert torch.get_default_device() == "cuda:1"
        assert torch.get_default_device() == "cuda:0" and get_scope_device_dtype()[0] == ["cuda:0"]
        with torch.device("cuda:1"):
            assert get_default_device_dtype() == ("cuda:1", torch.float32)
    finally:
        torch.set_default_device(None)


def test_threads_have_scopes_of_their_own():
    inside, done, found = threading.Barrier(3, timeout=60), threading.Barrier(3, timeout=60), {}

    def work(dtype):
        with device_scope(-1, dtype):
            inside.wait()
            found[dtype] = made()
            done.wait()
    threads = [threading.Thread(target=work, args=(dtype,)) for dtype in (torch.float64, torch.float32)]
    for thread in threads:
        thread.start()
    inside.wait()
    assert made() == {("cpu", torch.float32)} and torch.get_default_dtype() == torch.float32 and not in_device_scope()
    done.wait()
    for thread in threads:
        thread.join()
    assert found == {dtype: {("cpu", dtype)} for dtype in (torch.float64, torch.float32)}


def test_the_default_dtype_under_a_scope():
    torch.set_default_dtype(torch.float64)
    try:
        with device_scope(-1):
            assert made() == {("cpu", torch.float32)}
        assert made() == {("cpu", torch.float64)} and (torch.tensor(1) + 0.5).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


# ── helpers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_devices_and_their_numbers(two_devices):
    assert (CPU_DEVICE == "cpu" and CUDA_DEVICE == "cuda" and scopes.cuda_count() == scopes.gpu_count() == 2
            and scopes.has_cuda() and scopes.has_gpu())
    assert ([id_to_device(i) for i in (-1, 0, 1, None, "gpu:1", "cpu")]
            == ["cpu", "cuda:0", "cuda:1", "cpu", "cuda:1", "cpu"])
    assert ids_to_devices([0, 1]) == ids_to_devices("cuda:all") == ["cuda:0", "cuda:1"] and ids_to_devices(-1) == [CPU]
    assert ([device_to_int(d) for d in ("cpu", "cuda:1", "gpu:1", torch.device("cuda", 1), CPU, None, -1, 1, "cuda")]
            == [-1, 1, 1, 1, -1, -1, -1, 1, 0])
    for i in (-1, 0, 1):
        assert device_to_int(id_to_device(i)) == i
    for wrong in 0.5, True, [0]:
        with pytest.raises(TypeError, match="a device is a number"):
            id_to_device(wrong)
    with pytest.raises(RuntimeError):
        id_to_device(-2)


def test_devices_that_are_not_there_are_named():
    """X62: a number or name never becomes another device without a word; a scope looks whether it is there."""
    assert (ids_to_devices("cuda:4") == [torch.device("cuda:4")] and ids_to_devices(7) == [torch.device("cuda:7")]
            and ids_to_devices(None) == [CPU])
    assert ids_to_devices([0, "cuda:5", CPU]) == [torch.device("cuda:0"), torch.device("cuda:5"), CPU]
    for wrong in [0, "cuda:all"], []:
        with pytest.raises(AssertionError, match="a list of devices has one device at least"):
            ids_to_devices(wrong)
    with pytest.raises(AssertionError, match="the CPU does not work together with CUDA devices"), device_scope(
        [0, "cpu"]):
        pass


def test_scopes_on_devices_that_are_not_there(two_devices):
    """X62: with CUDA devices, another one is an error."""
    for ask in lambda: device_scope("cuda:4"), lambda: device_scope([0, 2]), lambda: set_default_device_dtype(4):
        with pytest.raises(RuntimeError, match=r"there is no device cuda:[24]: there are 2"):
            ask()
    with device_scope(["cuda", 1, 0]):
        assert get_scope_device_dtype()[0] == ["cuda:0", "cuda:1"]


def test_defaults_of_the_program(two_devices):
    set_default_device_dtype("cuda:1", torch.float64)
    try:
        assert (get_default_device_dtype() == ("cuda:1", torch.float64)
                == (torch.get_default_device(), torch.get_default_dtype()))
        with device_scope(-1):
            assert get_default_device_dtype() == ("cpu", torch.float32)
        with pytest.raises(AssertionError):
            set_default_device_dtype(-1, torch.int64)
        assert get_default_device_dtype() == ("cuda:1", torch.float64)
    finally:
        set_default_device_dtype(None)
        torch.set_default_device(None)


def test_new_tensors(two_devices):
    with device_scope(1, torch.float64):
        t = new_tensor([[1, 2]])
        assert (t.dtype == torch.float64 and t.device == "cuda:1" and t.tolist() == [[1., 2.]]
                and new_tensor(1, torch.int64).dtype == torch.int64)
        assert torch.tensor([1.5]).device == "cuda:1" and torch.tensor([1.5]).dtype == torch.float64


def test_memory():
    found = fresh_process("""
import tensorgrad as torch
from tensorgrad.layers.scope import cuda_memory
before = cuda_memory([0, 1])
x = torch.ones(1 << 18, device='cuda:1')
after = cuda_memory('all')
print([b - a for a, b in zip(before, after)], cuda_memory(1, 'KB') - before[1] / 1024, cuda_memory(1, 'mb', 'cache') >= 1, cuda_memory('cuda:1', 'gb') < 1)
peak = cuda_memory(1, is_max=True)
del x
print(cuda_memory(1) == before[1], cuda_memory(1, is_max=True) == peak >= 1 << 20, cuda_memory([0], 'b', 'cache', True) == [0.0])
""", TENSORGRAD_SIMULATED_CUDA="2")  # noqa: E501
    assert found == "[0.0, 1048576.0] 1024.0 True True\nTrue True True\n"
    for wrong in {"unit": "tb"}, {"mode": "all"}:
        with pytest.raises(ValueError, match="must be"):
            cuda_memory("all", **wrong)


# ── several devices ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_on_the_cpu_a_module_is_not_wrapped():
    model = nn.Linear(2, 2)
    assert DataParallel(model) is model
    with device_scope(-1):
        assert DataParallel(model, dim=1) is model


class Following(Module):
    def __init__(self):
        self.linear, self.seen = nn.Linear(3, 2), []

    def forward(self, x):
        self.seen.append((str(x.device), str(self.linear.weight.device)))
        return self.linear(x)


def test_a_module_on_all_devices_of_the_scope(two_devices):
    model = Following()
    x = torch.arange(12.).reshape(4, 3)
    expected = model(x)
    expected.pow(2).sum().backward()
    gradient = model.linear.weight.grad.clone()
    model.zero_grad()
    model.seen.clear()
    with device_scope("cuda:all"):
        parallel = DataParallel(model)
        assert type(parallel) is nn.DataParallel and parallel.module is model
        out = parallel(x.cuda())
        assert out.device == "cuda:0" and sorted(model.seen) == [("cuda:0", "cuda:0"), ("cuda:1", "cuda:1")]
        out.pow(2).sum().backward()
        assert parallel(x[:1].cuda()).shape == (1, 2)
    torch.testing.assert_close(out.cpu(), expected)
    torch.testing.assert_close(model.linear.weight.grad.cpu(), gradient)
    with device_scope([1, 0]):
        assert DataParallel(Following())(x.cuda(1)).device == "cuda:1"
        assert DataParallel(Following(), output_device=0)(x.cuda(1)).device == "cuda:0"
    with device_scope(1):
        alone = DataParallel(Following())
        assert alone.device_ids == [1] and alone(x).device == "cuda:1"


def test_each_process_has_one_device(two_devices):
    with device_scope("cuda:all"), pytest.raises(AssertionError, match="the scope has 2: cuda:0, cuda:1"):
        DistributedDataParallel(nn.Linear(1, 1))
    with device_scope(-1), pytest.raises(ValueError, match="init_process_group"):
        DistributedDataParallel(nn.Linear(1, 1))


# ── several processes ─────────────────────────────────────────────────────────────────────────────────────────────────


def script(tmp_path, text, *arguments, backend="tcp", procs=4):
    """The command for a script with a manager in front, and its environment."""
    path = tmp_path / "script.py"
    path.write_text(f"""
import os, sys
import tensorgrad as torch
import tensorgrad.distributed as dist
from tensorgrad.layers.manager import DistributedManager
from tensorgrad.layers.parallel import DistributedDataParallel
manager = DistributedManager({backend!r}, {procs}, master_port=0)
manager.parser.add_argument('--scale', type=float, default=1.0)
""" + text, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("LOCAL_RANK", "RANK", "WORLD_SIZE", "PMI_"))}
    return {"args": [sys.executable, "-W", "error", str(path), *arguments],
            "env": environment | {"PYTHONPATH": str(ROOT)}, "text": True}


def run_script(*args, **kwargs):
    """Run a script, and return the completed process."""
    return subprocess.run(**script(*args, **kwargs), capture_output=True, timeout=60)


def test_one_failing_process_fails_the_command(tmp_path):
    done = run_script(tmp_path, """
manager.entry()
if manager.local_rank() == 1:
    sys.exit(3)
dist.barrier()          # the others would wait here for ever
""", "--num-procs", "2", backend=None)
    assert done.returncode == 3, done.stderr


@pytest.mark.skipif(os.name != "posix", reason="about signals")
def test_processes_end_with_the_command(tmp_path):
    waiting = """
import time
manager.entry()
print(f"{os.getpid()}\\n", end="", flush=True)           # in one piece
time.sleep(120)
"""
    with subprocess.Popen(**script(tmp_path, waiting, procs=2), stdout=subprocess.PIPE) as running:
        try:
            numbers = [int(running.stdout.readline()) for _ in range(2)]
        finally:
            running.terminate()
        assert running.wait(60) == 143
    for number in numbers:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)


PARTS = """
def sgd_parts(torch):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))
    x, y = torch.randn(8, 3), torch.randn(8, 3)
    return model, x, y


def sgd_loss(model, x, y):
    return (model(model(x)) - y).square().mean()            # each parameter is used twice
"""
COLLECTIVES = PARTS + """
manager.entry()
scale, rank, ranks, t = manager.parse_args().scale, dist.get_rank(), range(4), torch.full((1,), float(dist.get_rank() + 1))
found = {"local": manager.local_rank()}
for name, call in {"broadcast": lambda x: dist.broadcast(x, 0), "sum": dist.all_reduce,
                   "product": lambda x: dist.all_reduce(x, dist.ReduceOp.PRODUCT)}.items():
    x = t.clone()
    call(x)
    found[name] = x.item()
x = t.clone()
dist.reduce(x, 0)
found["reduce"] = x.item() if rank == 0 else None       # elsewhere, what comes is not said
lists = [torch.zeros(1) for _ in ranks]
dist.all_gather(lists, t)
found["all_gather"] = torch.cat(lists).tolist()
lists = [torch.zeros(1) for _ in ranks] if rank == 0 else None
dist.gather(t, lists)
found["gather"] = lists and torch.cat(lists).tolist()
x = torch.zeros(1)
dist.scatter(x, [torch.full((1,), i + 1.) for i in ranks] if rank == 0 else None)
found["scatter"] = x.item()
if rank < 2:
    x = torch.full((1,), 5. if rank == 0 else 7.)
    if rank == 0:
        dist.send(x, 1)
        found["from"] = dist.recv(x), x.item()          # from whom, recv says
    else:
        y = torch.zeros(1)
        found["from"] = dist.recv(y), y.item()
        dist.send(x, 0)
model = torch.nn.Linear(3, 1, bias=False)
with torch.no_grad():
    model.weight.fill_(1.0)
with manager.device_scope(use_cpu=True):
    model = DistributedDataParallel(model)
    x = torch.full((4, 3), float(rank + 1)) * torch.tensor([10., 14., 20.])
    (model(x).sum() * 10 * scale).backward()
found["gradient"] = model.module.weight.grad.tolist()


def early(p):                   # reduces a gradient while backward goes on to the others
    works.append(dist.all_reduce(p.grad, async_op=True))


model, x, y = sgd_parts(torch)
optimizer, counts = torch.optim.SGD(model.parameters(), 0.1), []
for p in model.parameters():
    p.register_post_accumulate_grad_hook(early)
for step in range(3):
    works = []
    optimizer.zero_grad()
    sgd_loss(model, x[rank::4], y[rank::4]).backward()
    counts.append(len(works))
    for work, p in zip(works, model.parameters()):
        work.wait()
    for p in model.parameters():
        p.grad /= 4
    optimizer.step()
found["hooks"], found["weights"] = counts, [round(v, 5) for p in model.parameters() for v in p.flatten().tolist()]
objects = [None] * 4
dist.all_gather_object(objects, found)
if rank == 0:
    print(*objects, dist.get_backend(), sep="\\n")
"""  # noqa: E501


@pytest.mark.parametrize("backend", ["tcp", "mpi"])
def test_what_processes_do_together(tmp_path, backend):
    """The numbers of the demo, and training in step: by means of gradients, and by sums that begin while backward goes
    on; as one process does it.
    """
    if backend == "mpi":
        pytest.importorskip("mpi4py")
    done = run_script(tmp_path, COLLECTIVES, "--scale", "2", backend=backend)
    if backend == "mpi" and "needs mpiexec, which is not there" in done.stderr:
        pytest.skip("mpiexec is not there")
    assert done.returncode == 0, done.stderr
    *found, name = done.stdout.splitlines()
    exec(PARTS, parts := {})
    model, x, y = parts["sgd_parts"](torch)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        optimizer.zero_grad()
        parts["sgd_loss"](model, x, y).backward()
        optimizer.step()
    weights = [v for p in model.parameters() for v in p.flatten().tolist()]
    alike = {"broadcast": 1.0, "sum": 10.0, "product": 24.0, "all_gather": [1.0, 2.0, 3.0, 4.0],
             "gradient": [[2000.0, 2800.0, 4000.0]]}
    assert name == {"tcp": "gloo", "mpi": "mpi"}[backend]
    for rank, line in enumerate(found):
        first = {"reduce": 10.0, "gather": [1.0, 2.0, 3.0, 4.0]} if rank == 0 else {"reduce": None, "gather": None}
        pair = {0: {"from": (1, 7.0)}, 1: {"from": (0, 5.0)}}.get(rank, {})
        told = ast.literal_eval(line)
        assert told.pop("hooks") == [4, 4, 4] and told.pop("weights") == pytest.approx(weights, abs=2e-5)
        assert told == {**alike, **first, **pair, "local": rank, "scatter": rank + 1.0}


def test_several_machines_are_for_mpi(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["script", "--num-nodes", "2", "--lr", "1"])
    manager = DistributedManager("gloo", 4)
    manager.parser.add_argument("--lr")
    for name in ("RANK", "LOCAL_RANK", "PMI_RANK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="mpiexec -n 8 -ppn 4 -hosts host0,host1 python script --num-nodes 2 --lr 1"):
        manager.entry()


def test_before_the_processes_are_there(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["script", "--num-procs", "2", "--node-rank", "1", "--num-nodes", "3",
                                      "--master-port", "5"])
    manager = DistributedManager(None, 4)
    assert manager.backend == "gloo"
    manager.set_backend("tcp")
    assert manager.backend == "gloo"
    found = manager.parse_args()
    assert vars(found) == {"num_procs": 2, "node_rank": 1, "num_nodes": 3, "master_addr": "localhost", "master_port": 5}
    monkeypatch.setattr(sys, "argv", ["script", "--num-procs", "9"])
    assert manager.parse_args() is found
    for early in manager.local_rank, manager.device_scope:
        with pytest.raises(RuntimeError, match=r"call entry\(\) first"):
            early()
    with pytest.raises(TypeError, match="a name or None"):
        manager.set_backend(3)
    for wrong in ["--num-procs", "0"], ["--node-rank", "1"], ["--num-nodes", "0"]:
        monkeypatch.setattr(sys, "argv", ["script", *wrong])
        with pytest.raises(ValueError, match="is impossible"):
            DistributedManager("gloo", 4).parse_args()
