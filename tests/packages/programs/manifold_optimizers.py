"""geoopt: manifolds, distances and maps on them, and optimizers of their points."""

import geoopt
import torch

torch.set_default_dtype(torch.float64)
torch.manual_seed(0)
for manifold, shape in (
    (geoopt.Sphere(), (4,)),
    (geoopt.PoincareBall(c=1.0), (3,)),
    (geoopt.Lorentz(), (4,)),
    (geoopt.Stiefel(), (4, 2)),
    (geoopt.CanonicalStiefel(), (4, 2)),
    (geoopt.Euclidean(1), (3,)),
    (geoopt.SymmetricPositiveDefinite(), (3, 3)),
    (geoopt.BirkhoffPolytope(), (3, 3)),
    (geoopt.SphereProjection(), (3,)),
    (geoopt.UpperHalf(), (2, 2)),
):
    raw = torch.randn(2, *shape) * 0.3
    if isinstance(manifold, geoopt.BirkhoffPolytope):
        raw = raw.abs()
    if isinstance(manifold, geoopt.UpperHalf):
        raw = torch.complex(raw, raw.abs() + torch.eye(2))
    points = manifold.projx(raw)
    tangent = manifold.proju(points, torch.full_like(points, 0.1))
    moved = manifold.retr(points, tangent)
    print(
        type(manifold).__name__,
        torch.view_as_real(moved[0]).flatten()[:4] if moved.is_complex() else moved[0].flatten()[:4],
        manifold.check_point_on_manifold(points),
        manifold.inner(points, tangent).flatten()[:2] if not points.is_complex() else "",
    )
    if hasattr(manifold, "dist") and not isinstance(manifold, (geoopt.Stiefel, geoopt.BirkhoffPolytope)):
        print("distance", manifold.dist(points[0], points[1]))
ball = geoopt.PoincareBall(c=torch.tensor(0.7))
a, b = ball.projx(torch.randn(3) * 0.2).requires_grad_(), ball.projx(torch.randn(3) * 0.2)
print(
    "gradients",
    torch.autograd.grad(ball.dist(a, b), a),
    ball.mobius_add(a, b),
    ball.logmap(a, b),
    ball.geodesic(torch.tensor(0.5), a, b),
)
sphere, target = geoopt.Sphere(), torch.nn.functional.normalize(torch.randn(4), dim=0)
for make in (
    lambda p: geoopt.optim.RiemannianSGD(p, lr=0.2, momentum=0.9),
    lambda p: geoopt.optim.RiemannianAdam(p, lr=0.1, amsgrad=True),
):
    torch.manual_seed(1)
    point = geoopt.ManifoldParameter(sphere.random(4), manifold=sphere)
    optimizer, losses = make([point]), []

    def closure(point=point, optimizer=optimizer):
        optimizer.zero_grad()
        loss = (point - target).square().sum()
        loss.backward()
        return loss

    for _ in range(5):
        losses.append(optimizer.step(closure))
    print(type(optimizer).__name__, [round(float(loss), 6) for loss in losses], point.norm(), type(point).__name__)
saved = geoopt.ManifoldParameter(torch.eye(3)[:, :2], manifold=geoopt.Stiefel())
print("parameter", saved, geoopt.ManifoldTensor(target, manifold=geoopt.Sphere()).proj_().norm())
