"""torch_geometric: graph convolutions of many kinds, batches, pooling, a loader, transforms, a training run."""
import torch
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.loader import DataLoader
from torch_geometric.nn import (
    GAT,
    GCN,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GraphConv,
    GraphSAGE,
    HeteroConv,
    NNConv,
    RGCNConv,
    SAGEConv,
    TransformerConv,
    global_add_pool,
    global_max_pool,
    global_mean_pool,
)
from torch_geometric.transforms import AddSelfLoops, NormalizeFeatures, ToUndirected
from torch_geometric.utils import add_self_loops, degree, scatter, softmax, to_dense_adj, to_undirected

torch.manual_seed(0)
edges = to_undirected(torch.randint(0, 12, (2, 30)))
data = Data(x=torch.randn(12, 5), edge_index=edges, y=torch.arange(12) % 3)
print(data, data.num_edges, data.is_undirected(), data.has_isolated_nodes())
print("utils", degree(edges[0], 12).tolist(), tuple(add_self_loops(edges)[0].shape), to_dense_adj(edges).sum().item(),
      f"{softmax(torch.randn(edges.shape[1]), edges[0]).sum().item():.4f}",
      [round(v, 3) for v in scatter(torch.randn(edges.shape[1]), edges[1], reduce="max").tolist()[:4]])
for layer in (GCNConv(5, 4), SAGEConv(5, 4), GATConv(5, 4, heads=2), GATv2Conv(5, 4), GraphConv(5, 4), TransformerConv(5, 4),
              GINConv(torch.nn.Linear(5, 4))):
    out = layer(data.x, data.edge_index)
    print(type(layer).__name__, tuple(out.shape), f"{out.mean().item():.5f} {out.std().item():.5f}")
kinds = torch.randint(0, 2, (edges.shape[1],))
print("RGCNConv", f"{RGCNConv(5, 4, 2)(data.x, edges, kinds).std().item():.5f}")
weights = torch.rand(edges.shape[1], 2)
print("NNConv", f"{NNConv(5, 4, torch.nn.Linear(2, 20))(data.x, edges, weights).std().item():.5f}")
for model in (GCN(5, 8, 2, 3), GAT(5, 8, 2, 3), GraphSAGE(5, 8, 2, 3)):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(10):
        loss = torch.nn.functional.cross_entropy(model(data.x, data.edge_index), data.y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(type(model).__name__, f"{loss.item():.4f}")
graphs = [Data(x=torch.randn(n, 5), edge_index=torch.randint(0, n, (2, 2 * n)), y=torch.tensor([n % 2])) for n in range(3, 9)]
for batch in DataLoader(graphs, batch_size=3):
    h = GCNConv(5, 4)(batch.x, batch.edge_index)
    print(batch.num_graphs, batch.ptr.tolist(), [f"{pool(h, batch.batch).sum().item():.4f}" for pool in
                                                 (global_add_pool, global_mean_pool, global_max_pool)])
print("unbatched", Batch.from_data_list(graphs).to_data_list()[2])
hetero = HeteroData()
hetero["a"].x, hetero["b"].x = torch.randn(4, 5), torch.randn(3, 5)
hetero["a", "to", "b"].edge_index = torch.tensor([[0, 1, 2, 3], [0, 1, 2, 0]])
layer = HeteroConv({("a", "to", "b"): SAGEConv((5, 5), 4)})
print("hetero", {k: round(v.std().item(), 5) for k, v in layer(hetero.x_dict, hetero.edge_index_dict).items()})
print("transforms", NormalizeFeatures()(ToUndirected()(AddSelfLoops()(data.clone()))))
