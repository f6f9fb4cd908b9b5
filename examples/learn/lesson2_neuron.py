# %% [markdown]
# # Lesson 2: a neuron
#
# A neuron is a modest thing. It weighs its inputs, adds them up, and squashes the sum into the range from 0 to 1:
#
#     z = w · x + b          how much evidence there is
#     y = σ(z)               how convinced the neuron is, with σ(z) = 1 / (1 + e⁻ᶻ)
#
# Someone tells it what the answer should have been, t, and a loss says how far off it was: L = (y − t)² / 2. Learning
# means changing w and b so that L falls. So we need ∂L/∂w and ∂L/∂b.

# %%
import tensorgrad as torch

x = torch.tensor([1.0, -2.0, 0.5])
t = torch.tensor(1.0)
w = torch.tensor([0.5, 0.25, -1.0], requires_grad=True)
b = torch.tensor(0.1, requires_grad=True)

z = (w * x).sum() + b           # 0.5 − 0.5 − 0.5 + 0.1 = −0.4
y = torch.sigmoid(z)
L = (y - t) ** 2 / 2
print(f"z = {z.item():.4f}, y = {y.item():.4f}, L = {L.item():.4f}")

# %% [markdown]
# ## By hand
#
# Backwards along the chain L ← y ← z ← (w, b):
#
# * ∂L/∂y = y − t. The error itself: that is why the loss has a ½.
# * ∂y/∂z = y (1 − y). A pleasant fact about σ: its slope can be read off its *value*, and nothing else needs to be
#   remembered.
# * ∂z/∂w = x and ∂z/∂b = 1.
#
# Multiplied: **δ = (y − t) · y (1 − y)**, then ∂L/∂w = δ · x and ∂L/∂b = δ. Look at ∂L/∂w for a moment. Each weight is
#     blamed in
# proportion to the input it listened to. An input of 0 gets no blame: it had no say.

# %%
value = y.item()
delta = (value - 1.0) * value * (1 - value)
L.backward()
print("by hand:    ", [round(delta * v, 6) for v in x.tolist()], round(delta, 6))
print("by backward:", [round(v, 6) for v in w.grad.tolist()], round(b.grad.item(), 6))
assert torch.allclose(w.grad, delta * x) and abs(b.grad.item() - delta) < 1e-7

# %% [markdown]
# ## Learning
#
# Do it fifty times: forward, backward, a step against the gradient. The neuron hurries at first, when it is wrong by
#     much, and dawdles
# at the end, when both the error and the slope of σ are small.

# %%
losses = []
for step in range(50):
    w.grad = b.grad = None
    y = torch.sigmoid((w * x).sum() + b)
    loss = (y - t) ** 2 / 2
    loss.backward()
    with torch.no_grad():
        w -= 1.0 * w.grad
        b -= 1.0 * b.grad
    losses.append(loss.item())
    if step % 10 == 0:
        print(f"step {step:2}: y = {y.item():.3f}  loss = {loss.item():.4f}  {'█' * round(60 * y.item())}")
assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0] / 10

# %% [markdown]
# ## A neuron that cannot learn
#
# Now make a neuron that is *utterly* convinced, and wrong: z = −12. The loss is as large as it gets, and the gradient
#     is next to
# nothing, because of the factor y (1 − y): σ is flat out there. This is a **vanished gradient**. A chain of ten such
# factors, each at most ¼, is what made deep networks of σ so hard to train; and a better loss is the subject of lesson
# 4.

# %%
for start in (0.0, -2.0, -4.0, -8.0, -12.0):
    z = torch.tensor(start, requires_grad=True)
    loss = (torch.sigmoid(z) - t) ** 2 / 2
    loss.backward()
    print(f"z = {start:5}: loss {loss.item():.4f}, gradient {z.grad.item():+.2e}")
assert abs(z.grad.item()) < 1e-5 and loss.item() > 0.49

# %% [markdown]
# ## See it
#
# The whole neuron, forwards and backwards. Watch how the single number δ arrives at the product, and leaves it as
# three.

# %%
w = torch.tensor([0.5, 0.25, -1.0], requires_grad=True)
b = torch.tensor(0.1, requires_grad=True)
z = (w * x).sum() + b
y = torch.sigmoid(z)
L = (y - t) ** 2 / 2
explanation = torch.viz.explain(L)
print("open", explanation.save("out/lesson2_neuron.html"))
explanation
