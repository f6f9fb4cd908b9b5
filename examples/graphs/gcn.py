"""Tell the groups of a graph's nodes by its edges, with a graph convolutional network: `python -m examples.graphs.gcn`.

A layer mixes the features of each node with those of its neighbours, and then maps them linearly: H' = Â H W, where
Â = D^(-½) (A + 1) D^(-½) is a sparse matrix (T. Kipf and M. Welling, Semi-Supervised Classification with Graph
Convolutional Networks, 2017). The network sees the groups of few nodes, and is tested on the others.
"""

import tensorgrad as torch
import tensorgrad.nn.functional as F
from examples.graphs.data import GRAPHS
from examples.toolkit.options import basic_options, positive
from tensorgrad import nn


def normalized(edges, nodes):
    """The sparse matrix Â of edges (2, E), each node being its own neighbour, too."""
    loops = torch.arange(nodes).expand(2, nodes)
    edges = torch.cat([edges, loops], dim=1)
    neighbours = torch.bincount(edges[0], minlength=nodes).float()
    weights = (neighbours[edges[0]] * neighbours[edges[1]]).rsqrt()
    return torch.sparse_coo_tensor(edges, weights, (nodes, nodes), check_invariants=True).coalesce()


class GCN(nn.Module):
    """Two layers of graph convolution: features (N, F) to scores of groups (N, G)."""

    def __init__(self, features, width, groups):
        super().__init__()
        self.first = nn.Linear(features, width)
        self.second = nn.Linear(width, groups)

    def forward(self, mixing, x):
        x = torch.sparse.mm(mixing, self.first(x)).relu()
        x = F.dropout(x, 0.5, self.training)
        return torch.sparse.mm(mixing, self.second(x))


def accuracy(scores, graph):
    """The share of nodes of unknown group that are told right."""
    hidden = ~graph.known
    return (scores.argmax(1) == graph.groups)[hidden].float().mean().item()


def main(argv=None):
    parser = basic_options("Tell the groups of a graph's nodes by its edges.")
    parser.add_argument("--graph", choices=GRAPHS, default="blocks", help="a karate club, or blocks drawn at random")
    parser.add_argument("--epochs", type=positive, default=100, metavar="N", help="steps over the whole graph")
    parser.add_argument("--width", type=positive, default=16, metavar="N", help="features inside of the network")
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate")
    args = parser.parse_args(argv)
    torch.manual_seed(args.seed)
    graph = GRAPHS[args.graph]()
    nodes, groups = len(graph.groups), int(graph.groups.max()) + 1
    print(f"{nodes} nodes, {graph.edges.shape[1] // 2} edges, {groups} groups, {int(graph.known.sum())} nodes known")
    mixing = normalized(graph.edges, nodes)
    model = GCN(graph.features.shape[1], args.width, groups)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr, weight_decay=5e-4)
    for epoch in range(1, args.epochs + 1):
        loss = F.cross_entropy(model(mixing, graph.features)[graph.known], graph.groups[graph.known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch == 1 or epoch % 20 == 0:
            print(f"epoch {epoch:3} loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        right = accuracy(model(mixing, graph.features), graph)
    print(f"{100 * right:.1f} % of the other nodes right")


if __name__ == "__main__":
    main()
