"""Two graphs whose nodes belong to groups: a karate club that split, and blocks of nodes that are drawn at random.

The club: W. Zachary, An Information Flow Model for Conflict and Fission in Small Groups, 1977. Blocks: P. Holland,
K. Laskey and S. Leinhardt, Stochastic Blockmodels: First Steps, 1983.
"""

from typing import NamedTuple

import tensorgrad as torch

INSTRUCTOR, ADMINISTRATOR = 1, 34
# Of each member, the acquaintances with a higher number.
CLUB = {
    1: [2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 18, 20, 22, 32], 2: [3, 4, 8, 14, 18, 20, 22, 31],
    3: [4, 8, 9, 10, 14, 28, 29, 33], 4: [8, 13, 14], 5: [7, 11], 6: [7, 11, 17], 7: [17], 9: [31, 33, 34], 10: [34],
    14: [34], 15: [33, 34], 16: [33, 34], 19: [33, 34], 20: [34], 21: [33, 34], 23: [33, 34], 24: [26, 28, 30, 33, 34],
    25: [26, 28, 32], 26: [32], 27: [30, 34], 28: [34], 29: [32, 34], 30: [33, 34], 31: [33, 34], 32: [33, 34],
    33: [34],
}
# Those who stayed with the instructor; the others followed the administrator.
STAYED = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14, 17, 18, 20, 22}


class Graph(NamedTuple):
    """Nodes with features (N, F) and groups (N); edges (2, E) in both directions; True where a group is known (N)."""

    features: torch.Tensor
    groups: torch.Tensor
    edges: torch.Tensor
    known: torch.Tensor


def both_ways(pairs):
    """Edges (2, 2 E) from pairs of nodes (E, 2)."""
    return torch.cat([pairs, pairs.flip(1)]).T


def karate_club():
    """34 members, of whom two have a known side: the instructor and the administrator. A feature says who one is."""
    pairs = torch.tensor([(a - 1, b - 1) for a, others in CLUB.items() for b in others])
    sides = torch.tensor([int(member not in STAYED) for member in range(1, 35)])
    known = torch.zeros(34, dtype=torch.bool)
    known[[INSTRUCTOR - 1, ADMINISTRATOR - 1]] = True
    return Graph(torch.eye(34), sides, both_ways(pairs), known)


def blocks(nodes=600, groups=4, features=8, within=0.03, between=0.004, noise=1.5, known=0.05):
    """Draw nodes whose edges are more likely within a group, and whose features are a mean of the group and noise."""
    members = torch.arange(nodes) % groups
    chance = torch.where(members[:, None] == members, within, between)
    pairs = (torch.rand(nodes, nodes) < chance).triu(1).nonzero()
    means = torch.randn(groups, features)
    return Graph(means[members] + noise * torch.randn(nodes, features), members, both_ways(pairs),
                 torch.rand(nodes) < known)


GRAPHS = {"club": karate_club, "blocks": blocks}
