# %% [markdown]
# # Lesson 4: why softmax and cross entropy belong together
#
# A classifier ends in scores z, one for each class, as large or small as they please. **Softmax** makes chances of
# them,
#
#     pᵢ = exp(zᵢ) / Σⱼ exp(zⱼ)
#
# all positive, with the sum 1. **Cross entropy** then looks at a single one, that of the right class t: L = −log pₜ.
# Certain and right costs nothing; certain and wrong costs a fortune. The two are nearly always used together. Why?

# %%
import tensorgrad as torch

z = torch.tensor([2.0, 1.0, -1.0], requires_grad=True)
right = 1
p = torch.softmax(z, dim=0)
L = -torch.log(p[right])
print("chances", [round(v, 4) for v in p.tolist()], " loss", round(L.item(), 4))

# %% [markdown]
# ## First reason: the gradient
#
# Take them one at a time. −log pₜ has the slope −1/pₜ, which grows without bound as pₜ gets small. Softmax is more of a
# tangle,
# as every score moves every chance: ∂pₜ/∂zᵢ = pₜ (1 − pₜ) if i is the right class, and −pₜ pᵢ if it is another. Now
#     multiply. The
# pₜ of the one cancels the 1/pₜ of the other, in every case, and what is left is
#
#     ∂L/∂zᵢ = pᵢ − (1 if i is the right class, else 0)
#
# *What you believed, minus what was true.* No factor that could vanish, none that could explode.

# %%
L.backward()
by_hand = p.detach().clone()
by_hand[right] -= 1
print("by hand:    ", [round(v, 6) for v in by_hand.tolist()])
print("by backward:", [round(v, 6) for v in z.grad.tolist()])
assert torch.allclose(z.grad, by_hand, atol=1e-7)
assert abs(z.grad.sum().item()) < 1e-6          # what one class gains, the others lose

# %% [markdown]
# The tangle itself, as a table: row i tells how the chance of class i answers to each score. It is diag(p) − p pᵀ.

# %%
jacobian = torch.autograd.functional.jacobian(lambda z: torch.softmax(z, dim=0), z.detach())
q = p.detach()
assert torch.allclose(jacobian, torch.diag(q) - torch.outer(q, q), atol=1e-7)
for row in jacobian.tolist():
    print("  ".join(f"{v:+.4f}" for v in row))

# %% [markdown]
# ## What the wrong partner does
#
# Now a network that is badly mistaken: it is sure of class 0, and class 1 is right. It should learn as fast as it can.
#     With the
# squared error of the chances, softmax's own slope stays in the product. That is almost 0 for someone so sure, and the
# network hardly moves. With cross entropy the gradient is (1, −1, 0), nearly: full speed in the right direction.

# %%
truth = torch.tensor([0.0, 1.0, 0.0])
for sure in (1.0, 4.0, 8.0, 16.0):
    squared, crossed = (torch.tensor([sure, 0.0, 0.0], requires_grad=True) for _ in range(2))
    ((torch.softmax(squared, dim=0) - truth) ** 2).sum().backward()
    torch.nn.functional.cross_entropy(crossed, torch.tensor(right)).backward()
    print(f"score {sure:4}: squared error pulls with {-squared.grad[1].item():.7f}, cross entropy with "
          f"{-crossed.grad[1].item():.4f}")
assert -squared.grad[1] < 1e-5 and -crossed.grad[1] > 0.99

# %% [markdown]
# ## Second reason: the numbers
#
# Two steps, softmax and then log, also break in float32. Scores of 0 and 200 make a chance of e⁻²⁰⁰, which is 0 there,
# and log 0 is −∞: the loss is lost, and so is every gradient behind it. Taken together, log pₜ = zₜ − log Σ exp(zⱼ),
# and with the largest score subtracted first nothing overflows. That is what `log_softmax` and `cross_entropy` do.

# %%
far = torch.tensor([200.0, 0.0], requires_grad=True)
apart = -torch.log(torch.softmax(far, dim=0)[1])
together = torch.nn.functional.cross_entropy(far, torch.tensor(1))
print("apart:", apart.item(), " together:", together.item())
assert apart.item() == float("inf") and together.item() == 200.0

(broken,) = torch.autograd.grad(apart, far)
(sound,) = torch.autograd.grad(together, far)
print("gradients apart:", broken.tolist(), " together:", sound.tolist())
assert broken.isnan().any() and sound.tolist() == [1.0, -1.0]

# %% [markdown]
# ## See it
#
# The loss in its separate steps. In the backward look for the pair that cancels: the division that −log sends back, and
# the product with `out` in softmax's rule, out · (g − Σ(g · out)).

# %%
z = torch.tensor([2.0, 1.0, -1.0], requires_grad=True)
p = torch.softmax(z, dim=0)
L = -torch.log(p[right])
explanation = torch.viz.explain(L)
print("open", explanation.save("out/lesson4_cross_entropy.html"))
explanation
