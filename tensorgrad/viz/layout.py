"""Where boxes go: in ranks from top to bottom, in an order with few crossings, each under what leads to it.

The four classical stages of layered drawing (Sugiyama, Tagawa and Toda 1981; Gansner, Koutsofios, North and Vo 1993),
on plain numbers: ranks, orders, coordinates, routes. Coordinates are isotonic regressions: along a rank, boxes come as
    near to where their neighbours want them
as the distances between them let them.
"""
from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

# distances: between boxes of a rank, lines, ranks, and lines that end at a box
BESIDE, BESIDE_LINE, BELOW, PORT = 26.0, 16.0, 34.0, 16.0
SHARED = 4                     # more long edges than that from one box share their bends
TALL = 120                     # the height of an open group, beside which inputs of others would be far from them
ENOUGH = 600                   # boxes and bends up to which neighbours are exchanged as long as that helps

Point = tuple[float, float]
Edge = tuple[int, int]


@dataclass(slots=True)
class Layout:
    """Centres of the boxes, corners of the ways between them, and the size of the whole."""

    x: list[float]
    y: list[float]
    routes: list[list[Point]]
    width: float
    height: float
    rank: list[int] = field(default_factory=list)
    # of each rank: its boxes, and its bends, which follow these in number
    order: list[list[int]] = field(default_factory=list)
    bends: list[list[int]] = field(default_factory=list)      # of each edge
    at: list[float] = field(default_factory=list)             # x of boxes and bends
    tops: list[float] = field(default_factory=list)           # of each rank: where it begins, and how tall it is
    tall: list[float] = field(default_factory=list)
    # whether a box stands at the bottom of its rank: inputs do
    low: list[bool] = field(default_factory=list)

    def transposed(self) -> Layout:
        """Return the layout with x and y exchanged: from left to right."""
        routes = [[(y, x) for x, y in way] for way in self.routes]
        return replace(self, x=self.y, y=self.x, routes=routes, width=self.height, height=self.width)


def layout(sizes: Sequence[tuple[float, float]], edges: Sequence[Edge], top: Iterable[int] = (),
           bottom: Iterable[int] = (),
           ports: Sequence[tuple[float | None, float | None]] = (), in_order: bool = False) -> Layout:
    """Lay out boxes of these (width, height), with edges between their numbers.

    The boxes of `top` and of `bottom` have the first and the last rank to themselves, those of `top` as they are given
    if they are `in_order`. `ports` says for each edge how far from the middle of its source it begins, and of its
    target it ends, where that is fixed.

    >>> found = layout([(10, 10)] * 3, [(0, 1), (0, 2)])
    >>> found.rank, found.y[1] == found.y[2] > found.y[0], found.x[0] == (found.x[1] + found.x[2]) / 2
    ([0, 1, 1], True, True)
    """
    rank = ranks(len(sizes), edges, set(top), set(bottom), {i for i, (_, height) in enumerate(sizes) if height > TALL})
    net = Net(sizes, edges, rank)
    order = orders(net, list(top) if in_order else [])
    x = coordinates(net, order, edges, ports)
    left = min((x[i] - net.width[i] / 2 for i in range(net.count)), default=0.0)
    x = [value - left for value in x]
    found = Layout(x[:len(sizes)], [], [], max((x[i] + net.width[i] / 2 for i in range(net.count)), default=0.0), 0.0,
                   rank, order, net.bends, x)
    route(found, net, x, sizes, edges, ports)
    return found


# ── ranks ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def ranks(count: int, edges: Sequence[Edge], top: set[int], bottom: set[int], tall: set[int]) -> list[int]:
    """The rank of each box: below all that leads to it, and what has no inputs just above where it is used, but not
    beside what is tall.
    """
    into: list[list[int]] = [[] for _ in range(count)]
    out: list[list[int]] = [[] for _ in range(count)]
    for s, t in edges:
        into[t].append(s)
        out[s].append(t)
    order = topological(into, out)
    free = [not of for of in into]
    fed = [bool(tall) and any(free[s] and s not in top for s in of) for of in into]

    def apart(s: int, t: int) -> int:
        return 2 if fed[t] and s in tall else 1
    rank = [0] * count
    for i in order:
        rank[i] = max((rank[s] + apart(s, i) for s in into[i] if s not in top), default=0)
    for i in reversed(order):
        if i not in top and i not in bottom and (below := [rank[t] - apart(i, t) for t in out[i] if t not in bottom]):
            if all(s in top or free[s] for s in into[i]):      # it and its inputs go down together
                rank[i] = max(rank[i], min(below))
    inner = [rank[i] for i in range(count) if i not in top and i not in bottom] or [0]
    first, last = min(inner), max(inner)
    for i in top:
        rank[i] = first - 1
    for i in bottom:
        rank[i] = last + 1
    least = min(rank, default=0)
    return [r - least for r in rank]


def topological(into: list[list[int]], out: list[list[int]]) -> list[int]:
    """The boxes in an order in which every edge leads forward; of a cycle, one of its edges does not."""
    waiting = [len(of) for of in into]
    ready = [i for i, n in enumerate(waiting) if not n]
    done = [False] * len(into)
    order: list[int] = []
    start = 0
    while len(order) < len(into):
        if not ready:
            while done[start]:
                start += 1
            ready.append(start)
        i = ready.pop()
        if done[i]:
            continue
        done[i] = True
        order.append(i)
        for t in out[i]:
            waiting[t] -= 1
            if not waiting[t]:
                ready.append(t)
    return order


class Net:
    """Boxes and bends, and the pieces of edges between neighbouring ranks.

    There is one bend for each rank that an edge passes, as long as there are not too many: the longest edges then go
    straight. Where many long edges leave one box, they share their bends.
    """

    def __init__(self, sizes: Sequence[tuple[float, float]], edges: Sequence[Edge], rank: list[int]) -> None:
        self.boxes = len(sizes)
        self.width = [w for w, _ in sizes]
        self.rank = list(rank)
        self.up: list[list[int]] = [[] for _ in sizes]
        self.down: list[list[int]] = [[] for _ in sizes]
        self.bends: list[list[int]] = [[] for _ in edges]
        self.free = [True] * len(sizes)       # has no inputs; of bends: is on the way from such a box
        self.place: list[int] = []            # in its rank
        by_source: dict[int, list[int]] = {}
        for e, (s, t) in enumerate(edges):
            by_source.setdefault(s, []).append(e)
            self.free[t] = False
        self.inputs = list(self.free)
        left = 12 * len(sizes) + 2000
        for s, of in sorted(by_source.items(), key=lambda item: max(rank[edges[e][1]] for e in item[1])
                            - rank[item[0]]):
            targets = sorted((rank[edges[e][1]], edges[e][1], e) for e in of)
            together = sum(r > rank[s] + 1 for r, _, _ in targets) > SHARED
            for part in [targets] if together else [[target] for target in targets]:
                left -= self.trunk(s, part, left)
        self.count = len(self.width)

    def trunk(self, s: int, targets: list[tuple[int, int, int]], left: int) -> int:
        """The bends between a source and some of its targets, and the pieces from there to them.

        Returns how many there are.
        """
        start, last = self.rank[s], s
        bends: list[int] = []
        for r, t, e in targets:
            if r <= start or r - start > left:
                continue
            while start + len(bends) + 1 < r:
                bends.append(len(self.width))
                self.width.append(1.0)
                self.rank.append(start + len(bends))
                self.free.append(self.inputs[s])
                self.up.append([last])
                self.down.append([])
                self.down[last].append(bends[-1])
                last = bends[-1]
            self.bends[e] = bends[:r - start - 1]
            above = self.bends[e][-1] if self.bends[e] else s
            if t not in self.down[above]:
                self.down[above].append(t)
                self.up[t].append(above)
        return len(bends)

    def is_bend(self, i: int) -> bool:
        return i >= self.boxes



# ── orders ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def orders(net: Net, first: list[int]) -> list[list[int]]:
    """The order of each rank: sorted by where the neighbours are, downwards and upwards in turn; the one with fewest
    crossings stays.

    The order of the first rank may be given.
    """
    order: list[list[int]] = [[] for _ in range(max(net.rank, default=-1) + 1)]
    for i in first_order(net):
        order[net.rank[i]].append(i)
    if first:
        order[0] = first
    free = order[1:] if first else order
    place = [0] * net.count
    for row in order:
        settle(row, place)
    best, least = [row[:] for row in order], crossings(net, order, place)
    for turn in range(12 if net.count <= ENOUGH else 4):
        if not least:
            break
        down = turn % 2 == 0
        near, far = (net.up, net.down) if down else (net.down, net.up)
        for row in free if down else reversed(free):
            sort_row(net, row, near, far, place)
        if net.count <= ENOUGH:
            exchange(net, free, place)
        if (found := crossings(net, order, place)) < least:
            best, least = [row[:] for row in order], found
    return best


def first_order(net: Net) -> list[int]:
    """Depth first from below: what is used together comes together."""
    seen = [False] * net.count
    found: list[int] = []
    for root in sorted(range(net.count), key=lambda i: -net.rank[i]):
        todo = [root]
        while todo:
            i = todo.pop()
            if not seen[i]:
                seen[i] = True
                found.append(i)
                todo.extend(j for j in reversed(net.up[i]) if not seen[j])
    return found


def settle(row: list[int], place: list[int]) -> None:
    for k, i in enumerate(row):
        place[i] = k


def sort_row(net: Net, row: list[int], near: list[list[int]], far: list[list[int]], place: list[int]) -> None:
    """Sort a rank by the medians of its boxes' neighbours; what has none stays beside what it is used with."""
    def median(i: int) -> float:
        of = near[i] or far[i]
        if not of:
            return float(place[i])
        places = sorted(map(place.__getitem__, of))
        half = len(places) // 2
        return float(places[half]) if len(places) % 2 else (places[half - 1] + places[half]) / 2
    row.sort(key=lambda i: (median(i), net.free[i]))
    settle(row, place)


def crossings(net: Net, order: list[list[int]], place: list[int]) -> int:
    """How many pairs of pieces cross."""
    total = 0
    for row in order:
        ends: list[int] = []
        for i in row:
            for p in sorted(place[j] for j in net.down[i]):
                total += len(ends) - bisect_right(ends, p)
                insort(ends, p)
    return total


def exchange(net: Net, order: list[list[int]], place: list[int]) -> None:
    """Exchange neighbours in a rank as long as that saves crossings."""
    for _ in range(4):
        better = False
        for row in order:
            for k in range(len(row) - 1):
                a, b = row[k], row[k + 1]
                if _inversions(net, b, a, place) < _inversions(net, a, b, place):
                    row[k], row[k + 1] = b, a
                    place[a], place[b] = k + 1, k
                    better = True
        if not better:
            return


def _inversions(net: Net, left: int, right: int, place: list[int]) -> int:
    """How many pieces of two neighbours cross if the one stands left of the other."""
    return sum(place[i] > place[j] for of in (net.up, net.down) for i in of[left] for j in of[right])


# ── coordinates ───────────────────────────────────────────────────────────────────────────────────────────────────────


def coordinates(net: Net, order: list[list[int]], edges: Sequence[Edge],
                ports: Sequence[tuple[float | None, float | None]]) -> list[float]:
    """The x of each box and bend: in turn, each rank is brought under the one above it, and over the one below."""
    shift: dict[Edge, float] = {}      # how much further right the lower end of a piece shall be than its upper end
    for e, (s, t) in enumerate(edges):
        if e < len(ports):
            begin, end = ports[e]
            first, last = (net.bends[e][0], net.bends[e][-1]) if net.bends[e] else (t, s)
            if begin:
                shift[s, first] = shift.get((s, first), 0.0) + begin
            if end:
                shift[last, t] = shift.get((last, t), 0.0) - end
    rows = [(row, spread(row, net)) for row in order]
    net.place = [0] * net.count
    for row in order:
        settle(row, net.place)
    x = [0.0] * net.count
    for row, offsets in rows:
        for i, o in zip(row, offsets):
            x[i] = o - offsets[-1] / 2
    rounds = 10 if net.count <= ENOUGH else 4
    for turn in range(2 * rounds + 2):
        down = turn % 2 == 0
        both = turn >= 2 * rounds
        for row, offsets in rows if down else reversed(rows):
            place_row(row, offsets, net, x, shift, down or both, not down or both)
    for chain in sorted(chains(net, shift), key=len, reverse=True):
        straighten(chain, net, rows, x)
    return x


def chains(net: Net, shift: dict[Edge, float]) -> list[list[int]]:
    """Boxes and bends that lead to each other alone: they belong under each other. Inputs do not count."""
    follow: dict[int, int] = {}
    for i in range(net.count):
        bend = net.is_bend(i)
        if net.free[i] and not bend:
            continue
        # the way on, or off where there is none
        below = [j for j in net.down[i] if net.is_bend(j) == bend] or net.down[i]
        if len(below) == 1 and (i, below[0]) not in shift:
            j = below[0]
            above = [k for k in net.up[j] if not net.free[k]] or net.up[j]
            if above == [i]:
                follow[i] = j
    found = []
    for start in follow.keys() - set(follow.values()):
        chain = [start]
        while chain[-1] in follow:
            chain.append(follow[chain[-1]])
        found.append(chain)
    return found


def straighten(chain: list[int], net: Net, rows: list[tuple[list[int], list[float]]], x: list[float]) -> None:
    """Bring a chain into as few upright pieces as the boxes beside it allow."""
    piece: list[int] = []
    low, high = float("-inf"), float("inf")
    for i in [*chain, -1]:
        left, right = (low, high) if i < 0 else room(i, net, rows, x)
        if i < 0 or max(low, left) > min(high, right):
            middle = sorted(x[j] for j in piece)[len(piece) // 2]
            for j in piece:
                x[j] = min(max(middle, low), high)
            piece, low, high = [], float("-inf"), float("inf")
        piece.append(i)
        low, high = max(low, left), min(high, right)


def room(i: int, net: Net, rows: list[tuple[list[int], list[float]]], x: list[float]) -> tuple[float, float]:
    """How far to the left and right a box may go before it comes too near to its neighbours."""
    row, offsets = rows[net.rank[i]]
    k = net.place[i]
    left = x[row[k - 1]] + offsets[k] - offsets[k - 1] if k else float("-inf")
    right = x[row[k + 1]] - offsets[k + 1] + offsets[k] if k + 1 < len(row) else float("inf")
    return min(left, x[i]), max(right, x[i])


def spread(row: list[int], net: Net) -> list[float]:
    """The least distance of each member of a rank from its first."""
    offsets, last = [0.0] * len(row), None
    for k, i in enumerate(row):
        if last is not None:
            gap = BESIDE_LINE if net.is_bend(i) or net.is_bend(last) else BESIDE
            offsets[k] = offsets[k - 1] + (net.width[last] + net.width[i]) / 2 + gap
        last = i
    return offsets


def place_row(row: list[int], offsets: list[float], net: Net, x: list[float], shift: dict[Edge, float], above: bool,
              below: bool) -> None:
    """Bring a rank to where its neighbours want it: an isotonic regression, by pooling adjacent violators."""
    pools: list[list[float]] = []      # weight, mean of (wanted − offset), how many
    for i, offset in zip(row, offsets):
        wanted, weight = wish(i, net, x, shift, above, below)
        pool = [weight, wanted - offset, 1]
        while pools and pools[-1][1] > pool[1]:
            other = pools.pop()
            total = other[0] + pool[0]
            pool = [total, (other[0] * other[1] + pool[0] * pool[1]) / total, other[2] + pool[2]]
        pools.append(pool)
    k = 0
    for _, mean, number in pools:
        for _ in range(int(number)):
            x[row[k]] = mean + offsets[k]
            k += 1


def wish(i: int, net: Net, x: list[float], shift: dict[Edge, float], above: bool, below: bool) -> tuple[float, float]:
    """Where a box or bend wants to be, and how much: bends under bends, so that long lines are straight; inputs make
    way.
    """
    total, weight = 1e-3 * x[i], 1e-3
    bend = i >= net.boxes
    if above:
        for j in net.up[i]:
            strength = ((8.0 if j >= net.boxes else 2.0) if bend else 0.01 if net.free[j] else 2.0 if j >= net.boxes
                        else 1.0)
            total += strength * (x[j] + (shift.get((j, i), 0.0) if shift else 0.0))
            weight += strength
    if below:
        free = not bend and net.free[i]
        for j in net.down[i]:
            strength = (8.0 if bend else 2.0) if j >= net.boxes else 2.0 if bend else 0.03 if free else 1.0
            total += strength * (x[j] - (shift.get((i, j), 0.0) if shift else 0.0))
            weight += strength
    return total / weight, weight


# ── routes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def route(found: Layout, net: Net, x: list[float], sizes: Sequence[tuple[float, float]], edges: Sequence[Edge],
          ports: Sequence[tuple[float | None, float | None]]) -> None:
    """Heights, and the ways of the edges: upright along ranks, curved between them."""
    found.tall = tall = [max((sizes[i][1] for i in row if i < net.boxes), default=0.0) for row in found.order]
    tops, y = found.tops, 0.0
    for r, row in enumerate(found.order):
        tops.append(y)
        reach = max((abs(x[i] - x[j]) for i in row for j in net.down[i]), default=0.0)
        if r + 1 < len(found.order):
            border = not tall[r] or not tall[r + 1]      # of a group: what enters and leaves it
            y += tall[r] + min(90.0, BELOW / (2 if border else 1) + max(0.0, reach - 150) * 0.07)
        else:
            y += tall[r]
    found.height = y
    found.low = [net.inputs[i] and bool(net.down[i]) for i in range(net.boxes)]
    found.y = [tops[r] + (tall[r] - h / 2 if low else tall[r] / 2)
               for r, (_, h), low in zip(found.rank, sizes, found.low)]
    ends = landings(net, x, edges, ports)
    for e, (s, t) in enumerate(edges):
        begin = x[s] + ((ports[e][0] or 0.0) if e < len(ports) else 0.0)
        way = [(begin, found.y[s] + sizes[s][1] / 2)]
        if (edge := tops[net.rank[s]] + tall[net.rank[s]]) > way[0][1] + 0.5:
            way.append((begin, edge))
        for b in net.bends[e]:
            way += [(x[b], tops[net.rank[b]]), (x[b], tops[net.rank[b]] + tall[net.rank[b]])]
        end = found.y[t] - sizes[t][1] / 2
        if (edge := tops[net.rank[t]]) < end - 0.5:
            way.append((ends[e], edge))
        way.append((ends[e], end))
        found.routes.append(way)


def landings(net: Net, x: list[float], edges: Sequence[Edge],
             ports: Sequence[tuple[float | None, float | None]]) -> list[float]:
    """Where along the top of its target each edge ends: side by side, in the order in which they come."""
    ends = [0.0] * len(edges)
    arriving: list[list[int]] = [[] for _ in range(net.boxes)]
    for e, (_, t) in enumerate(edges):
        if e < len(ports) and ports[e][1] is not None:
            ends[e] = x[t] + (ports[e][1] or 0.0)
        else:
            arriving[t].append(e)
    for t, of in enumerate(arriving):
        of.sort(key=lambda e: (x[net.bends[e][-1] if net.bends[e] else edges[e][0]], e))
        mains = [k for k, e in enumerate(of) if not net.free[edges[e][0]]]
        middle = float(mains[0]) if len(mains) == 1 else (len(of) - 1) / 2
        room = max(0.0, net.width[t] / 2 - 10)
        step = min(PORT, room / max(middle, len(of) - 1 - middle)) if len(of) > 1 else 0.0
        for k, e in enumerate(of):
            ends[e] = x[t] + (k - middle) * step
    return ends
