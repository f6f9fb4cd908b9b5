"""`python -m tensorgrad.distributed.run`: variables, output, failures, restarts, signals; and that nothing is left
behind, whoever is killed.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import ROOT, cpu_only, is_running, nothing_is_left, shared_memory, until

from tensorgrad.distributed import launch, run
from tensorgrad.distributed.elastic.agent import Stopped
from tensorgrad.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record
from tensorgrad.multiprocessing import _process_cleanup

pytestmark = [cpu_only, pytest.mark.skipif(os.name != "posix", reason="about processes and signals of POSIX")]

LIMIT = 60      # seconds, which no test needs


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch):
    """No variable of another launcher, and one thread for each worker."""
    for name in list(os.environ):
        if name.startswith(("PET_", "TORCHELASTIC_", "SLURM_", "PMI")) or name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def python(program):
    """Words for the launcher that run a program of Python's library alone, which starts in milliseconds."""
    return ["--no-python", sys.executable, "-I", "-S", "-c", program]


# ── what workers are told ─────────────────────────────────────────────────────────────────────────────────────────────

TELL = "import json, os, sys; print(json.dumps({**os.environ, 'stdin': sys.stdin.read()}))"
TORCHRUN = """RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE ROLE_RANK ROLE_WORLD_SIZE
MASTER_ADDR TORCHELASTIC_RUN_ID
TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS OMP_NUM_THREADS""".split()


def test_workers_have_the_variables_of_torchrun(capfd, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setenv("PET_MAX_RESTARTS", "2")
    monkeypatch.setattr(sys, "stdin", None)
    run.main(["--nproc_per_node", "2", "--rdzv-backend=c10d", "--rdzv-endpoint", "localhost", "--rdzv-id", "a/b",
              "--start-method", "fork", "--node-rank", "0", "--monitor-interval", "0.01", "--local-addr", "127.0.0.1",
              *python(TELL.replace("sys.stdin.read()", "''"))])
    out, err = capfd.readouterr()
    told = [json.loads(line.partition(": ")[2]) for line in sorted(out.splitlines())]
    assert [[one[name] for name in TORCHRUN] for one in told] == [
        [rank, rank, "2", "2", "0", "1", rank, "2", "localhost", "a/b", "0", "2", "1"] for rank in "01"]
    assert told[0]["MASTER_PORT"] == told[1]["MASTER_PORT"] and len(bytes.fromhex(told[0]["TENSORGRAD_SECRET"])) == 32
    assert told[0]["TENSORGRAD_SECRET"] == told[1]["TENSORGRAD_SECRET"] and "RANK" not in os.environ
    assert "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default" in err


def test_options_are_those_of_torchrun(monkeypatch):
    theirs = pytest.importorskip("torch.distributed.run").get_args_parser()
    ours = run.get_args_parser()
    known = {option: action for action in theirs._actions for option in action.option_strings}
    for action in ours._actions:
        for option in action.option_strings:
            assert option in known, option
    for words in ([], ["--standalone", "--nproc-per-node=4", "-m", "--max_restarts", "3"],
                  ["--nnodes", "1", "-r", "3", "-t", "0:1", "--no-python"]):
        mine, others = (vars(parser.parse_args([*words, "script", "--lr", "1", "-m"])) for parser in (ours, theirs))
        assert mine == {name: others[name] for name in mine}
    monkeypatch.setenv("PET_NPROC_PER_NODE", "3")
    monkeypatch.setenv("PET_MODULE", "1")
    found = run.parse_args(["script"])
    assert (found.nproc_per_node, found.module, found.standalone) == ("3", True, False)


def test_unchanged_programs_run_and_a_killed_worker_leaves_nothing(tmp_path):
    """A program for PyTorch, under the name that its launcher has there.

    Rank 1 kills itself while rank 0 waits for it.
    """
    before = shared_memory()
    program = tmp_path / "program.py"
    program.write_text("""
import os, signal, sys, time
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
if __name__ == "__main__":
    dist.init_process_group("gloo")
    x = torch.ones(2).share_memory_() * (dist.get_rank() + 1)
    dist.all_reduce(x)
    print(torch.__name__, x.tolist(), sys.argv[1:])
    told = __file__ + ".told"
    if dist.get_rank() == 0:
        open(told, "w").close()
    else:
        while not os.path.exists(told):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)
    dist.barrier()
    raise SystemExit("a dead rank was not noticed")
""")
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(program), "--lr", "1"]
    ran = subprocess.run([sys.executable, "-m", "tensorgrad", *words], env=os.environ | {"PYTHONPATH": str(ROOT)},
                         capture_output=True, text=True,
                         timeout=LIMIT)
    assert ran.returncode == 1, ran.stderr
    assert sorted(ran.stdout.splitlines()) == [f"[rank{i}]: torch [3.0, 3.0] ['--lr', '1']" for i in range(2)]
    assert ("program.py FAILED" in ran.stderr and "rank      : 1 (local_rank: 1)" in ran.stderr
            and "exitcode  : -9 (pid: " in ran.stderr)
    assert "(SIGKILL)" in ran.stderr
    until(lambda: nothing_is_left(before))


# ── what they print ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_lines_come_whole_with_their_rank_and_all_bytes(capfdbinary):
    run.main(["--nproc-per-node", "2", *python("""if 1:
        import os, sys
        rank = int(os.environ["RANK"])
        for i in range(300):
            for part in (b"%d:%d " % (rank, i), b"x" * 700, b"\\n"):
                os.write(1, part)
        os.write(1, b"10%\\r20%\\r\\n\\n" + bytes(b for b in range(256) if b not in (10, 13)))
        os.write(2, b"an error")
    """)])
    out, err = capfdbinary.readouterr()
    for rank in (b"0", b"1"):
        prefix = b"[rank" + rank + b"]: "
        whole = [line for line in out.split(b"\n") if line.startswith(prefix)]
        assert whole[:300] == [prefix + b"%s:%d " % (rank, i) + b"x" * 700 for i in range(300)]
        assert whole[300:] == [prefix + b"10%\r" + prefix + b"20%\r", prefix,
                               prefix + bytes(b for b in range(256) if b not in (10, 13))]
        assert prefix + b"an error\n" in err
    assert len(out.split(b"\n")) == 2 * 303 + 1


def test_streams_go_to_files_and_to_the_screen(capfd, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "<${role_name}${rank}> ")
    run.main(["--nproc-per-node", "3", "--log-dir", str(tmp_path / "logs"), "-r", "0:1", "--tee", "1:3,2:1",
              "--local-ranks-filter", "0,1", "--role", "r",
              *python("import os, sys; print(os.environ['RANK'], 'out'); print(os.environ['RANK'], 'err', "
                      "file=sys.stderr)")])
    out, err = capfd.readouterr()
    assert (out, sorted(err.splitlines())) == ("<r1> 1 out\n", ["<r0> 0 err", "<r1> 1 err"])
    files = {str(path.relative_to(next((tmp_path / "logs").iterdir()))): path.read_text()
             for path in tmp_path.rglob("*.log")}
    assert files == {"attempt_0/0/stdout.log": "0 out\n", "attempt_0/1/stdout.log": "1 out\n",
                     "attempt_0/1/stderr.log": "1 err\n",
                     "attempt_0/2/stdout.log": "2 out\n"}


def test_a_reader_that_leaves_ends_the_job():
    launcher = started("--nproc-per-node", "2", *python("while True: print('line')"))
    assert launcher.stdout.readline().endswith(": line\n")
    launcher.stdout.close()
    assert launcher.wait(LIMIT) == 1 and launcher.stderr.read() == ""
    launcher.stderr.close()


# ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_failure_ends_the_others_and_is_told(tmp_path, capfd):
    pid = tmp_path / "pid"
    words = ["--nproc-per-node", "3", "--shutdown-timeout", "0.05", *python(f"""if 1:
        import json, os, signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)       # of what is ended, one does not listen
        path = {str(pid)!r} + os.environ["RANK"]
        with open(path + "+", "w") as file:
            file.write(str(os.getpid()))
        os.replace(path + "+", path)            # whoever sees it reads it whole
        while not all(os.path.exists({str(pid)!r} + r) for r in "012"):
            time.sleep(0.01)
        if os.environ["RANK"] == "1":
            with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
                json.dump({{"message": {{"message": "E: x", "extraInfo": {{"py_callstack": "Trace\\nE: x", "timestamp": "5"}}}}}}, file)
            raise SystemExit(7)
        time.sleep({LIMIT})
    """)]  # noqa: E501
    with pytest.raises(ChildFailedError) as caught:
        run.main(words)
    rank, failure = caught.value.get_first_failure()
    assert ((rank, failure.local_rank, failure.exitcode, failure.timestamp, list(caught.value.failures))
            == (1, 1, 7, 5, [1]))
    pids = [int((tmp_path / f"pid{i}").read_text()) for i in range(3)]
    assert failure.pid == pids[1] and not any(map(is_running, pids))
    lines = str(caught.value).splitlines()
    assert lines[2].endswith(" FAILED") and f"  exitcode  : 7 (pid: {pids[1]}) " in lines and lines[-4:-1] == [
        f"  error_file: {failure.error_file}", "  traceback : Trace", "  E: x"]
    assert json.loads(Path(failure.error_file).read_text())["message"]["message"] == "E: x"
    assert f"0.05 s after SIGTERM, SIGKILL ends rank 0 (pid {pids[0]}), 2 (pid {pids[2]})" in capfd.readouterr().err
    shutil.rmtree(Path(failure.error_file).parents[2])


def test_restarts_go_on_from_the_last_checkpoint(tmp_path, capfd):
    """Rank 0 saves its step; in the first two starts a rank fails after some steps."""
    run.main(["--nproc-per-node", "2", "--max-restarts", "3", *python(f"""if 1:
        import os, sys, time
        path, rank, restart = {str(tmp_path / "step")!r}, os.environ["RANK"], int(os.environ["TORCHELASTIC_RESTART_COUNT"])
        step = int(open(path).read()) if os.path.exists(path) else 0
        print("from", step, os.environ["MASTER_PORT"], os.environ["TENSORGRAD_SECRET"], os.environ["TORCHELASTIC_MAX_RESTARTS"], flush=True)
        while step < 6:
            if step == 2 * restart + 2 and restart < 2:
                if rank == "1":
                    os.abort()
                time.sleep({LIMIT})
            step += 1
            if rank == "0":
                with open(path + "+", "w") as file:
                    file.write(str(step))
                os.replace(path + "+", path)
            else:
                while not os.path.exists(path) or int(open(path).read()) < step:
                    time.sleep(0.005)
    """)])  # noqa: E501
    out, err = capfd.readouterr()
    lines = [line.split()[2:] for line in out.splitlines() if line.startswith("[rank0]")]
    assert [(step, most) for step, _, _, most in lines] == [("0", "3"), ("2", "3"), ("4", "3")]
    assert (len({secret for _, _, secret, _ in lines}) == 3
            and err.count("failed: SIGABRT; all workers start again, restart") == 2)


def test_records_of_errors(tmp_path, monkeypatch):
    """The files are those that PyTorch's launcher reads, and the text of several failures is its."""
    path = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))

    @record
    def fails(what):
        raise what
    with pytest.raises(ZeroDivisionError):
        fails(ZeroDivisionError("é"))
    assert fails(SystemExit(0)) is None
    failure = ProcessFailure(1, 12, 1, str(path))
    assert (failure.message["message"] == "ZeroDivisionError: é"
            and "in fails" in failure.message["extraInfo"]["py_callstack"])
    path.write_text('{"mess')               # killed while it wrote
    assert ProcessFailure(1, 12, -9, str(path)).message == "Signal 9 (SIGKILL) received by PID 12"
    theirs = pytest.importorskip("torch.distributed.elastic.multiprocessing.errors")
    path.write_text(json.dumps({"message": {"message": "E", "extraInfo": {"py_callstack": "a\nb", "timestamp": "9"}}}))
    texts = []
    for library in (theirs, sys.modules[record.__module__]):
        failures = {3: library.ProcessFailure(3, 13, 2, str(path)), 0: library.ProcessFailure(0, 10, -15, "")}
        for each in failures.values():
            each.timestamp = min(each.timestamp, 10)
        lines = str(library.ChildFailedError("x.py", failures)).splitlines()
        texts.append([line.split() for line in lines if "host" not in line and set(line) - set("=-")])
    assert texts[0] == texts[1]
    with pytest.raises(AssertionError):
        ChildFailedError("x", {})


# ── what cannot be ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_several_machines_are_for_mpi(capsys):
    for words in (["--nnodes=2"], ["--nnodes", "1:3"], ["--rdzv-endpoint", "192.0.2.1:29500"],
                  ["--master-addr", "192.0.2.1"]):
        with pytest.raises(SystemExit) as caught:
            run.main([*words, "--nproc-per-node", "4", "train.py", "--lr", "0.1"])
        said = capsys.readouterr().err
        machines = 3 if "1:3" in words else 2
        assert caught.value.code == 2 and f"mpiexec -n {4 * machines} -ppn 4 -hosts host0,host1" in said
        assert f"srun --nodes={machines} --ntasks-per-node=4 python -m tensorgrad train.py --lr 0.1\n" in said


def test_wrong_words(capsys):
    for words, text in ((["--nproc-per-node", "x"], "Unsupported nproc_per_node value: x"),
                        (["--nproc-per-node", "0"], "at least 1"),
                        (["--nproc-per-node", "gpu"], "Cuda is not available"),
                        (["--nnodes", "a"], 'nnodes=a is not in "MIN:MAX" format'),
                        (["--nnodes", "2:1"], "min_nodes must be > 0"),
                        (["--max-restarts", "-1"], "max_restarts must be >= 0"),
                        (["-r", "4"], "4 does not match"),
                        (["--local-ranks-filter", "a"], "comma-separated list of integers"),
                        (["--no-python", "-m"], "Don't use both"), (["--node-rank", "1"], "node_rank must be 0")):
        with pytest.raises((ValueError, RuntimeError, AssertionError), match=text):
            run.main([*words, "script.py"])
    assert run.command_line(lambda: run.main(["--no-python", "--nproc-per-node", "2", "/no/such/command"])) == 1
    assert "FileNotFoundError" in capsys.readouterr().err
    with pytest.raises(ValueError, match="--use-env"):
        launch.launch(launch.parse_args(["--no-python", "command"]))


def test_commands_of_workers():
    def command(*words):
        return run._command(launch.parse_args([*words, "a.py", "b"]))(3)[-6:]
    assert run._command(launch.parse_args(["a.py"]))(0)[0] == sys.executable
    assert command("--use-env")[-5:] == ["-u", "-m", "tensorgrad", "a.py", "b"]
    assert command() == ["-u", "-m", "tensorgrad", "a.py", "--local-rank=3", "b"]
    assert command("-m", "--use-env") == ["-u", "-m", "tensorgrad", "-m", "a.py", "b"]
    assert command("--run-path", "--use-env")[1:] == ["tensorgrad", "-c", run.RUN_PATH, "a.py", "b"]
    assert command("--no-python", "--use-env") == ["a.py", "b"]
    with pytest.warns(FutureWarning, match=r"torch\.distributed\.launch is deprecated"):
        launch.main(["--no-python", "--use-env", "true"])


# ── signals and sudden ends ───────────────────────────────────────────────────────────────────────────────────────────

FAMILY = f"""if 1:
    import os, signal, subprocess, sys, time
    folder, launcher, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    def told(number, frame):
        print("told", number, flush=True)
        sys.exit(0)
    if launcher:
        for each in (2, 15):
            signal.signal(each, told)
    child = "import os, sys, time; open(sys.argv[1] + '/' + str(os.getpid()), 'w').close(); time.sleep({LIMIT})"
    for apart in (False, True):         # one of the children goes out of its way
        subprocess.Popen([sys.executable, "-I", "-S", "-c", child, folder], start_new_session=apart)
    open(folder + "/" + str(os.getpid()), "w").close()
    if launcher and os.environ["RANK"] == "0":
        while len(os.listdir(folder)) < 6:
            time.sleep(0.01)
        os.kill(launcher, number)
    time.sleep({LIMIT})
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_passed_on(tmp_path, capfd, number):
    """The handlers that this process had are there again afterwards."""
    def handler(number, frame):
        raise AssertionError("the launcher did not take the signal")
    before = signal.signal(number, handler), signal.getsignal(signal.SIGCHLD)
    try:
        with pytest.raises(Stopped, match=f"got signal: {number.name}") as stopped:
            run.main(["--nproc-per-node", "2", *python(FAMILY), str(tmp_path), str(os.getpid()), str(int(number))])
    finally:
        after = signal.signal(number, before[0]), signal.getsignal(signal.SIGCHLD)
    assert after == (handler, before[1]) and stopped.value.number == number
    assert sorted(capfd.readouterr().out.splitlines()) == [f"[rank{i}]: told {int(number)}" for i in range(2)]
    assert len(os.listdir(tmp_path)) == 6 and not any(is_running(pid) for pid in os.listdir(tmp_path))


def started(*words, **environment):
    return subprocess.Popen([sys.executable, "-m", "tensorgrad.distributed.run", *words], cwd=ROOT,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env=os.environ | environment)


def test_nothing_is_left_when_the_launcher_is_killed(tmp_path):
    before, pids, own = shared_memory(), tmp_path / "pids", tmp_path / "own"
    for folder in (pids, own):
        folder.mkdir()
    launcher = started("--nproc-per-node", "2", *python(FAMILY), str(pids), "0", "0", TMPDIR=str(own))
    until(lambda: len(os.listdir(pids)) == 6 and os.listdir(own), "six processes start")
    os.kill(launcher.pid, signal.SIGKILL)
    launcher.communicate(timeout=LIMIT)
    until(lambda: not any(map(is_running, os.listdir(pids))) and not os.listdir(own), "they end, and their folder")
    until(lambda: nothing_is_left(before))


@pytest.mark.skipif(not _process_cleanup.IN_PROC, reason="needs /proc")
def test_processes_are_found_by_their_mark():
    outer = _process_cleanup.marked({}, "outer")
    inner = _process_cleanup.marked(outer, "inner")
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", f"import time; time.sleep({LIMIT})"],
                               env=os.environ | inner)
    until(lambda: _process_cleanup.members("inner"), "the process starts")
    assert _process_cleanup.members("outer") == [process.pid] and not _process_cleanup.members("inn")
    _process_cleanup.sweep("outer", grace=LIMIT)
    assert process.wait(LIMIT) == -signal.SIGTERM and not _process_cleanup.members("inner")
