"""The simulation of thousands of ranks against closed forms, and two ranks that measure."""
import numpy as np
import pytest
from support import cpu_only

from benchmarks import distributed, simulation
from benchmarks.pairs import Case, Pair
from benchmarks.scaling import ALGORITHMS, Bucket, Fabric, Model, Timeline, flat, overtakes, quickest, simulate, takes
from benchmarks.timing import Budget
from tensorgrad.viz import collectives
from tensorgrad.viz.collectives import Network
from tensorgrad.viz.collectives.network import predicted
from tensorgrad.viz.collectives.schedules import COLLECTIVES

pytestmark = cpu_only
NETWORK = Network(3e-6, 2e9)
LINE = Timeline(0.010, 0.020, 0.001, (Bucket(0.005, 1 << 20), Bucket(0.012, 25 << 20), Bucket(0.020, 3 << 20)))


@pytest.mark.parametrize("name", ["ring", "halving", "tree"])
def test_an_all_reduce_takes_what_the_formulas_say(name):
    for n in (2, 4, 64, 4096):
        assert takes(name, n, 1e6, flat(NETWORK)) == pytest.approx(
            predicted(COLLECTIVES["all_reduce"][name], n, 1e6, NETWORK), rel=1e-9)


@pytest.mark.parametrize("name", ["ring", "halving", "tree"])
def test_an_all_reduce_takes_what_its_messages_take(name):
    ran = collectives.all_reduce([[1.0] * 32] * 8, name, network=NETWORK)
    assert takes(name, 8, 128.0, flat(NETWORK)) == pytest.approx(ran.seconds, rel=1e-12)


def test_nodes_share_their_connection():
    inside, between, k, n, m = Network(1e-6, 8e9), Network(20e-6, 1e9), 8, 64, 4e6
    fabric, nodes = Fabric("cluster", k, inside, between), n // k
    in_nodes = 2 * inside.takes(k - 1, (k - 1) / k * m)
    assert takes("hierarchical", n, m, fabric) == pytest.approx(in_nodes
                                                                + Network(20e-6, 1e9 / k).takes(2 * (nodes - 1),
                                                                                                2 * (nodes - 1) / nodes
                                                                                                * m / k))
    # its slowest way
    assert takes("ring", n, m, fabric) == pytest.approx(between.takes(2 * (n - 1), 2 * (n - 1) / n * m))
    powers = [1 << i for i in range(6)]
    in_steps = sum(2 * (inside if d < k else Network(20e-6, 1e9 / k)).takes(1, m / (2 * d)) for d in powers)
    assert takes("halving", n, m, fabric) == pytest.approx(in_steps)
    assert (quickest(n, m, fabric) == min(ALGORITHMS, key=lambda name: takes(name, n, m, fabric))
            and quickest(8, 100.0, flat(NETWORK)) in ("halving", "tree"))


def test_ranks_wait_for_those_that_they_hear_from():
    late = np.array([0.0, 5.0, 0.0, 0.0])
    for algorithm in ALGORITHMS.values():
        ended = algorithm(late, 8.0, Fabric("two nodes", 2, NETWORK, NETWORK))
        assert (ended > 5.0).all() and (late == [0.0, 5.0, 0.0, 0.0]).all()


def test_buckets_travel_while_the_backward_goes_on():
    fast, slow = (flat(Network(0.0, bandwidth)) for bandwidth in (1e15, 1e8))
    hidden = simulate(LINE, 2, fast)
    assert (hidden.step == pytest.approx(LINE.alone, rel=1e-4) and simulate(LINE, 1, slow).step == LINE.alone
            and simulate(LINE, 1, slow).communication == 0.0)
    # two ranks send, and receive, all bytes once
    each = [bucket.nbytes / 1e8 for bucket in LINE.buckets]
    found = simulate(LINE, 2, slow, algorithm="ring")
    assert (found.communication == pytest.approx(sum(each)) and found.step
            == pytest.approx(0.010 + max(0.005 + each[0], 0.012) + each[1] + each[2] + 0.001))
    one_by_one = simulate(LINE, 2, slow, algorithm="ring", overlap=False)
    assert one_by_one.step == pytest.approx(LINE.alone + sum(each)) and one_by_one.waited == pytest.approx(sum(each))
    spread = [simulate(LINE, 64, fast, spread=0.1, seed=seed).step for seed in range(2)]
    assert min(spread) > 1.1 * LINE.alone and spread[0] != spread[1]            # all wait for the slowest


def test_times_follow_the_batch_in_a_line():
    half = LINE.scaled(0.5)
    model = Model("any", (2, 4), (half, LINE))
    assert (model.at(4) == LINE and model.at(3).backward == pytest.approx(0.015)
            and model.at(6).forward == pytest.approx(0.015))
    assert model.at(3).buckets[1] == Bucket(pytest.approx(0.009), 25 << 20) and half.nbytes == LINE.nbytes == 29 << 20
    rows = [simulate(LINE, n, flat(NETWORK)) for n in (2, 8)]
    assert (overtakes(rows, [rows[0].communication + 1, rows[1].communication / 2]) == 8
            and overtakes(rows, [1e9, 1e9]) is None)


def test_a_model_is_measured_and_drawn(tmp_path):
    model = simulation.measured("char-GPT, 4 layers of 128", (2, 4), runs=1, tiny=True)
    for line in model.timelines:
        assert (line.forward > 0 and [b.ready for b in line.buckets] == sorted(b.ready for b in line.buckets)
                and line.buckets[-1].ready <= line.backward)
    fabrics = [Fabric("any network", 2, NETWORK, NETWORK)]
    told = "\n".join(simulation.report([model], fabrics, 50.0, (2, 16)))
    assert told.count("any network |") == 3 and "buckets: 0." in told
    pytest.importorskip("matplotlib")
    simulation.draw([model], fabrics, 50.0, tmp_path / "a" / "scaling.png", (2, 16))
    assert (tmp_path / "a" / "scaling.png").read_bytes().startswith(b"\x89PNG")


def test_the_report_keeps_the_other_half(tmp_path):
    path, simulated = tmp_path / "B.md", "### Thousands of ranks, by simulation"
    assert distributed.kept(path) == ""
    path.write_text(distributed.written_into("# Benchmark\n\nrows\n", ["", "two ranks", ""], False), encoding="utf-8")
    both = distributed.written_into(path.read_text(encoding="utf-8"), [simulated, "", "many"], True)
    assert both == f"# Benchmark\n\nrows\n\n## Several processes\n\ntwo ranks\n\n{simulated}\n\nmany\n"
    again = distributed.written_into(both, ["two ranks anew"], False)
    assert again == both.replace("two ranks", "two ranks anew")
    assert distributed.written_into(again, [simulated, "", "more"], True) == again.replace("many", "more")
    path.write_text(both, encoding="utf-8")
    assert distributed.kept(path) == "\n" + both.partition("rows\n\n")[2]


def test_two_ranks_answer():
    pair = Pair("gloo")
    try:
        assert pair.ask("all_reduce", "sum", 4096) == [3.0, 3.0] and pair.ask("ping_pong", "there", 64) == [0.0, 0.0]
        for name in ("sum", "there"):
            assert Case(pair, name).block(2, Budget()) > 0
        row = "char-GPT, 4 layers of 128, batch 12"
        together, whole = (pair.ask("losses", row, together, 2, "float64", True) for together in (True, False))
        assert [sum(halves) / 2 for halves in zip(*together)] == pytest.approx(whole[0], rel=1e-12)
    finally:
        pair.stop()
    assert all(process.returncode == 0 for process in pair.processes)
