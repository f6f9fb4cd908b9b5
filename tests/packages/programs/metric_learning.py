"""pytorch-metric-learning: losses, miners, distances, a memory, accuracy, and a training step."""
import torch
from pytorch_metric_learning import distances, losses, miners, reducers, regularizers, samplers

torch.manual_seed(0)
x, labels = torch.randn(16, 6), torch.arange(16) % 4
for kind in (losses.TripletMarginLoss(), losses.ContrastiveLoss(), losses.NTXentLoss(), losses.MultiSimilarityLoss(),
             losses.CircleLoss(), losses.SupConLoss(), losses.LiftedStructureLoss(), losses.NPairsLoss(),
             losses.AngularLoss(), losses.FastAPLoss(), losses.MarginLoss(), losses.SignalToNoiseRatioContrastiveLoss(),
             losses.TripletMarginLoss(distance=distances.CosineSimilarity(), reducer=reducers.MeanReducer(),
                                      embedding_regularizer=regularizers.LpRegularizer())):
    leaf = x.clone().requires_grad_()
    loss = kind(leaf, labels)
    loss.backward()
    print(type(kind).__name__, f"{loss.item():.5f} {leaf.grad.abs().sum().item():.5f}")
for kind in (losses.ArcFaceLoss, losses.CosFaceLoss, losses.ProxyAnchorLoss, losses.ProxyNCALoss, losses.NormalizedSoftmaxLoss,
             losses.SoftTripleLoss, losses.SubCenterArcFaceLoss):
    torch.manual_seed(1)
    print(kind.__name__, f"{kind(num_classes=4, embedding_size=6)(x, labels).item():.4f}")
for kind in (miners.MultiSimilarityMiner(), miners.TripletMarginMiner(type_of_triplets="semihard"), miners.BatchHardMiner(),
             miners.PairMarginMiner()):
    print(type(kind).__name__, [len(part) for part in kind(x, labels)], [part.sum().item() for part in kind(x, labels)])
memory = losses.CrossBatchMemory(losses.ContrastiveLoss(), 6, 32)
print("memory", [round(memory(batch, labels).item(), 4) for batch in (x, x.flip(1))])
net, miner = torch.nn.Linear(6, 3), miners.BatchEasyHardMiner()
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
for step in range(3):
    out = net(x)
    loss = losses.TripletMarginLoss()(out, labels, miner(out, labels))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, f"{loss.item():.5f}")
print("sampler", len(list(samplers.MPerClassSampler(labels, 2, 8, 32))))
