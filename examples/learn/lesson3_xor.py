# %% [markdown]
# # Lesson 3: XOR, watched while it learns
#
# "One or the other, but not both." Put the four cases in the corners of a square, and no straight line parts the ones
# from the zeros. A single neuron draws one straight line, so a single neuron cannot learn this, however long it tries.
# Four neurons in
# between can: they bend the plane, and then one line is enough.

# %%
import tensorgrad as torch
from tensorgrad import nn

torch.manual_seed(2)
corners = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
answers = torch.tensor([[0.0], [1.0], [1.0], [0.0]])

hidden, output = nn.Linear(2, 4), nn.Linear(4, 1)


def network(points):
    """How far, from 0 to 1, the network takes each point for a 1."""
    return torch.sigmoid(output(torch.tanh(hidden(points))))

# %% [markdown]
# ## A window on the plane
#
# To watch, we ask the network not only about the corners but about every point between them, and draw what it says: the
# darker, the more it believes in a 1. At first it knows nothing, and all is one shade of grey.

# %%
rows, columns = 9, 25
grid = torch.stack(torch.meshgrid(torch.linspace(1, 0, rows), torch.linspace(0, 1, columns), indexing="ij"),
                   dim=-1).flip(-1)


@torch.no_grad()
def window():
    beliefs = network(grid).squeeze(-1)
    return "\n".join("    " + "".join(" ░▒▓█"[min(int(5 * p), 4)] for p in row) for row in beliefs.tolist())


print(window())

# %% [markdown]
# ## The last layer's gradient, by hand
#
# Before we let it run, one honest check. The loss is the mean of the squared errors of the four corners, so for corner
# i with the answer tᵢ and the belief pᵢ = σ(zᵢ)
#
#     ∂L/∂zᵢ = (pᵢ − tᵢ) · 2/4 · pᵢ (1 − pᵢ)
#
# and, as zᵢ = v · hᵢ + c, the weights v get **∂L/∂v = Σᵢ ∂L/∂zᵢ · hᵢ**: what each hidden neuron said, times how much it
# was to blame, added up over the corners. In matrices that is the transposed errors times the hidden layer.

# %%
h = torch.tanh(hidden(corners))
p = torch.sigmoid(output(h))
loss = ((p - answers) ** 2).mean()
loss.backward()
with torch.no_grad():
    by_hand = ((p - answers) * 2 / 4 * p * (1 - p)).T @ h
print("by hand:    ", [round(v, 5) for v in by_hand[0].tolist()])
print("by backward:", [round(v, 5) for v in output.weight.grad[0].tolist()])
assert torch.allclose(output.weight.grad, by_hand, atol=1e-7)

# %% [markdown]
# ## Now watch
#
# Nothing much happens for a while: the network hovers near ½, where every answer is half wrong. Then it finds the fold,
#     and the
# rest is quick. The gradient tells the same story: small on the plateau, large at the discovery, small again when there
#     is
# nothing left to learn.

# %%
parameters = [*hidden.parameters(), *output.parameters()]
optimizer = torch.optim.SGD(parameters, lr=2.0)
losses, steepness = [], []
for step in range(1001):
    optimizer.zero_grad()
    loss = ((network(corners) - answers) ** 2).mean()
    loss.backward()
    steepness.append(sum((p.grad ** 2).sum() for p in parameters).sqrt().item())
    if step in (0, 50, 65, 75, 100, 1000):
        print(f"\nstep {step}: loss {loss.item():.4f}, |gradient| {steepness[-1]:.4f}\n{window()}")
    optimizer.step()
    losses.append(loss.item())

beliefs = network(corners)
print("\nbeliefs", [round(v, 3) for v in beliefs.flatten().tolist()])
assert torch.equal(beliefs.round(), answers) and losses[-1] < 0.01
assert 50 < steepness.index(max(steepness)) < 100 and max(steepness) > 5 * steepness[0] > 5 * steepness[-1]

# %% [markdown]
# ## One line is not enough
#
# And the single neuron, given the same time? It ends where it must: it says ½ to everything, the least bad of its
# straight lines.

# %%
line = nn.Linear(2, 1)
optimizer = torch.optim.SGD(line.parameters(), lr=2.0)
for _ in range(500):
    optimizer.zero_grad()
    loss = ((torch.sigmoid(line(corners)) - answers) ** 2).mean()
    loss.backward()
    optimizer.step()
print("a single neuron believes", [round(v, 3) for v in torch.sigmoid(line(corners)).flatten().tolist()])
assert abs(loss.item() - 0.25) < 0.001

# %% [markdown]
# ## See it
#
# Run one backward of the trained net. Follow the gradient through the two layers, and compare its size before
# and after each σ and tanh. For pictures of the whole training there
# are `torch.viz.plot_loss(losses)` and `torch.viz.plot_grad_flow(module)`.

# %%
for p in parameters:
    p.grad = None
loss = ((network(corners) - answers) ** 2).mean()
explanation = torch.viz.explain(loss)
print("open", explanation.save("out/lesson3_xor.html"))
explanation
