"""Layered layout: ranks lead downwards, boxes do not overlap, lines do not cross needlessly and pass no box."""
import random
import time
from itertools import pairwise

import pytest

from tensorgrad.viz.layout import BESIDE, Net, crossings, layout, ranks, settle


def random_graph(seed, count=40, most=2):
    chance = random.Random(seed)
    sizes = [(chance.uniform(20, 120), chance.uniform(15, 60)) for _ in range(count)]
    edges = sorted({(chance.randrange(max(0, t - 8), t), t) for t in range(1, count)
                    for _ in range(chance.randint(0, most))})
    return sizes, edges


def crossing(found, sizes, edges):
    net = Net(sizes, edges, found.rank)
    place = [0] * net.count
    for row in found.order:
        settle(row, place)
    return crossings(net, found.order, place)


@pytest.mark.parametrize("seed", range(12))
def test_edges_lead_down_and_boxes_keep_apart(seed):
    sizes, edges = random_graph(seed)
    found = layout(sizes, edges)
    for s, t in edges:
        assert found.rank[s] < found.rank[t] and found.y[s] < found.y[t]
    for row in found.order:
        boxes = [i for i in row if i < len(sizes)]
        for a, b in pairwise(boxes):
            assert found.x[b] - found.x[a] >= (sizes[a][0] + sizes[b][0]) / 2 + BESIDE - 1e-6
    for (w, h), x, y in zip(sizes, found.x, found.y):
        assert (-1e-6 <= x - w / 2 and x + w / 2 <= found.width + 1e-6 and -1e-6 <= y - h / 2
                and y + h / 2 <= found.height + 1e-6)


@pytest.mark.parametrize("seed", range(12))
def test_lines_pass_no_box(seed):
    """A line is upright within each rank that it passes, and beside its boxes; between ranks there are none."""
    sizes, edges = random_graph(seed)
    found = layout(sizes, edges)
    for (s, t), way in zip(edges, found.routes):
        assert (way[0][1] == pytest.approx(found.y[s] + sizes[s][1] / 2)
                and way[-1][1] == pytest.approx(found.y[t] - sizes[t][1] / 2))
        assert abs(way[-1][0] - found.x[t]) <= sizes[t][0] / 2
        for (x, y), (nx, ny) in pairwise(way):
            assert y <= ny + 1e-6
            for i, (w, h) in enumerate(sizes):
                if i not in (s, t) and min(ny, found.y[i] + h / 2) - max(y, found.y[i] - h / 2) > 1:
                    assert x == pytest.approx(nx) and abs(x - found.x[i]) >= w / 2


def test_no_crossing_that_need_not_be():
    tree = [((i - 1) // 2, i) for i in range(1, 63)]
    sizes = [(30, 20)] * 63
    chance = random.Random(0)
    numbers = list(range(63))
    chance.shuffle(numbers)
    for edges in (tree, [(numbers[a], numbers[b]) for a, b in tree], [(numbers[b], numbers[a]) for a, b in tree]):
        assert crossing(layout(sizes, edges), sizes, edges) == 0
    ladder = [(i, i + 2) for i in range(20)] + [(i, i + 3) for i in range(0, 18, 2)]
    assert crossing(layout([(30, 20)] * 22, ladder), [(30, 20)] * 22, ladder) == 0


def test_a_chain_is_straight_and_inputs_stand_beside_it():
    chain = [(i, i + 1) for i in range(9)]
    inputs = [(10 + i, i + 1) for i in range(9)]
    found = layout([(60, 30)] * 19, chain + inputs)
    assert max(found.x[1:10]) - min(found.x[1:10]) < 1
    assert all(found.rank[s] == found.rank[t] - 1 for s, t in inputs)


def test_a_skipping_line_is_straight_where_there_is_room():
    edges = [(i, i + 1) for i in range(8)] + [(0, 8)]
    found = layout([(60, 30)] * 9, edges)
    bends = [found.at[b] for b in found.bends[-1]]
    assert len(bends) == 7 and max(bends) - min(bends) < 1


def test_ports_have_ranks_of_their_own():
    sizes, edges = [(1, 0), (40, 20), (40, 20), (1, 0)], [(0, 1), (2, 1), (1, 3)]
    found = layout(sizes, edges, top=[0], bottom=[3], ports=[(None, None), (None, 12.0), (5.0, None)])
    assert found.rank == [0, 2, 1, 3]
    assert (found.routes[1][-1][0] == pytest.approx(found.x[1] + 12) and found.routes[2][0][0]
            == pytest.approx(found.x[1] + 5))


def test_nothing_one_box_cycles_and_twins():
    assert layout([], []).width == 0 and layout([(10, 5)], []).height == 5
    found = layout([(10, 5)] * 3, [(0, 1), (1, 2), (2, 0)])
    assert len(set(found.rank)) == 3 and len(found.routes) == 3
    twins = layout([(40, 10)] * 2, [(0, 1), (0, 1)])
    assert twins.routes[0][-1] != twins.routes[1][-1]


def test_ranks_of_inputs_of_what_follows_something_tall():
    assert ranks(3, [(0, 1), (2, 1)], set(), set(), set()) == [0, 1, 0]
    assert ranks(4, [(3, 0), (0, 1), (2, 1)], set(), set(), {0}) == [1, 3, 2, 0]      # below it, not beside it


@pytest.mark.parametrize("reach", [3, 400])
def test_large_graphs_take_no_long_time(reach):
    chance = random.Random(1)
    edges = sorted({(chance.randrange(max(0, t - reach), t), t) for t in range(1, 5000) for _ in range(2)})
    start = time.process_time()
    found = layout([(60, 24)] * 5000, edges)
    assert time.process_time() - start < 20 and len(found.routes) == len(edges)
    assert sum(map(len, found.bends)) < 20 * 5000
