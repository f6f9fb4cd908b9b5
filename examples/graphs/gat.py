"""Tell the groups of a graph's nodes by its edges, with a graph attention network: `python -m examples.graphs.gat`.

A node's new features are a mean of its neighbours', with weights that the network computes for each edge from the
features at both ends: the softmax of a·h, among the edges that end in a node (P. Veličković and others, Graph Attention
Networks, 2018). Features go to the edges by indexing, and from the edges to the nodes by `index_add`.
"""

import tensorgrad as torch
import tensorgrad.nn.functional as F
from examples.graphs.data import GRAPHS
from examples.graphs.gcn import accuracy
from examples.toolkit.options import basic_options, positive
from tensorgrad import nn


def softmax_among(scores, ends, nodes):
    """Softmax of the scores (E, heads) among the edges that end in a node."""
    with torch.no_grad():
        places = ends[:, None].expand_as(scores)
        highest = torch.zeros(nodes, scores.shape[1]).scatter_reduce(0, places, scores, "amax", include_self=False)
    shares = (scores - highest[ends]).exp()
    sums = torch.zeros(nodes, scores.shape[1]).index_add(0, ends, shares)
    return shares / sums[ends]


class Attention(nn.Module):
    """A layer of `heads` that look at the neighbours, side by side: (N, features) to (N, heads, width)."""

    def __init__(self, features, heads, width):
        super().__init__()
        self.shape = heads, width
        self.linear = nn.Linear(features, heads * width, bias=False)
        self.start, self.end = (nn.Parameter(torch.empty(heads, width)) for _ in range(2))
        for weight in (self.linear.weight, self.start, self.end):
            nn.init.xavier_uniform_(weight)

    def forward(self, x, edges):
        starts, ends = edges
        h = self.linear(x).reshape(len(x), *self.shape)
        scores = (h * self.start).sum(2)[starts] + (h * self.end).sum(2)[ends]
        weights = softmax_among(F.leaky_relu(scores, 0.2), ends, len(x))
        return torch.zeros_like(h).index_add(0, ends, weights[:, :, None] * h[starts])


class GAT(nn.Module):
    """Two layers of attention: features (N, F) to scores of groups (N, G)."""

    def __init__(self, features, heads, width, groups):
        super().__init__()
        self.first = Attention(features, heads, width)
        self.second = Attention(heads * width, 1, groups)

    def forward(self, x, edges):
        x = F.elu(self.first(x, edges).flatten(1))
        x = F.dropout(x, 0.5, self.training)
        return self.second(x, edges)[:, 0]


def main(argv=None):
    parser = basic_options("Tell the groups of a graph's nodes by its edges, with attention.")
    parser.add_argument("--graph", choices=GRAPHS, default="blocks", help="a karate club, or blocks drawn at random")
    parser.add_argument("--epochs", type=positive, default=100, metavar="N", help="steps over the whole graph")
    parser.add_argument("--heads", type=positive, default=4, metavar="N", help="heads of the first layer")
    parser.add_argument("--width", type=positive, default=8, metavar="N", help="features of a head")
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate")
    args = parser.parse_args(argv)
    torch.manual_seed(args.seed)
    graph = GRAPHS[args.graph]()
    nodes, groups = len(graph.groups), int(graph.groups.max()) + 1
    print(f"{nodes} nodes, {graph.edges.shape[1] // 2} edges, {groups} groups, {int(graph.known.sum())} nodes known")
    edges = torch.cat([graph.edges, torch.arange(nodes).expand(2, nodes)], dim=1)       # each node sees itself, too
    model = GAT(graph.features.shape[1], args.heads, args.width, groups)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=5e-4)
    for epoch in range(1, args.epochs + 1):
        loss = F.cross_entropy(model(graph.features, edges)[graph.known], graph.groups[graph.known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch == 1 or epoch % 20 == 0:
            print(f"epoch {epoch:3} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        right = accuracy(model(graph.features, edges), graph)
    print(f"{100 * right:.1f} % of the other nodes right")


if __name__ == "__main__":
    main()
