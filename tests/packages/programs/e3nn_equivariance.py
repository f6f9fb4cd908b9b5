"""e3nn: irreducible representations, spherical harmonics, tensor products, an equivariant network that is trained."""
import torch
from e3nn import nn, o3

torch.manual_seed(0)
irreps = o3.Irreps("2x0e + 1x1o + 1x2e")
print(irreps, irreps.dim, irreps.lmax, o3.Irreps("4x0e + 3x1o") + irreps)
rotation = o3.rand_matrix()
print("rotation", f"{torch.det(rotation).item():.4f}", [round(v.item(), 4) for v in o3.matrix_to_angles(rotation)])
d = irreps.D_from_matrix(rotation)
print("representation", tuple(d.shape), f"{(d @ d.T - torch.eye(irreps.dim)).abs().max().item() < 1e-5}")
positions = torch.randn(5, 3)
harmonics = o3.spherical_harmonics([0, 1, 2, 3], positions, normalize=True, normalization="component")
print("harmonics", tuple(harmonics.shape), f"{harmonics.sum().item():.4f} {harmonics.pow(2).mean().item():.4f}")
print("wigner", f"{o3.wigner_3j(1, 2, 3).abs().sum().item():.4f}")
product = o3.FullyConnectedTensorProduct(irreps, "1x0e + 1x1o", "3x0e + 2x1o")
x, y = irreps.randn(4, -1), o3.Irreps("1x0e + 1x1o").randn(4, -1)
out = product(x, y)
turned = product(x @ d.T, y @ o3.Irreps("1x0e + 1x1o").D_from_matrix(rotation).T)
expected = out @ o3.Irreps("3x0e + 2x1o").D_from_matrix(rotation).T
print("product", tuple(out.shape), f"{out.abs().mean().item():.4f}", torch.allclose(turned, expected, atol=1e-4))
linear, gate = o3.Linear(irreps, "4x0e + 2x1o"), nn.Gate("2x0e", [torch.tanh], "2x0e", [torch.sigmoid], "2x1o")
optimizer = torch.optim.Adam([*linear.parameters(), *product.parameters()], lr=0.05)
for step in range(3):
    loss = gate(linear(x)).pow(2).mean() + product(x, y).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, f"{loss.item():.5f}")
print("norm", nn.BatchNorm(irreps)(x).std().item() > 0, nn.NormActivation(irreps, torch.tanh)(x).shape, o3.Norm(irreps)(x).shape)
