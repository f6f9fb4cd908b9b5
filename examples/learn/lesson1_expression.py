# %% [markdown]
# # Lesson 1: an expression, by hand
#
# All of deep learning's gradients come from one small idea, and this page has room for the whole of it. We take an
# expression with three numbers in it,
#
#     L = (x · y + z)²
#
# and ask of each number: *if I turned this knob a little, how much would L move?* That ratio is the derivative ∂L/∂x.
#     We first
# work it out with pencil and paper, then let the computer do it, and check that the two of us agree.

# %%
import tensorgrad as torch

x = torch.tensor(2.0, requires_grad=True)
y = torch.tensor(-3.0, requires_grad=True)
z = torch.tensor(5.0, requires_grad=True)

u = x * y           # 2 · (−3) = −6
s = u + z           # −6 + 5 = −1
L = s ** 2          # (−1)² = 1
print(f"u = {u.item()}, s = {s.item()}, L = {L.item()}")

# %% [markdown]
# `requires_grad=True` says: this is a knob. From there on every operation is written down on a *tape*, which is no more
#     than a
# list of what was computed from what. Each tensor knows its last step:

# %%
for name, tensor in {"u": u, "s": s, "L": L}.items():
    print(name, "was made by", tensor.grad_fn.name())

# %% [markdown]
# ## With pencil and paper
#
# Walk the tape backwards. At every step ask only about *that* step, and multiply with what you already know; that is
# the chain rule, all of it.
#
# * **L = s²** has the slope 2s. Here s = −1, so ∂L/∂s = −2: if s grew a little, L would shrink, twice as fast.
# * **s = u + z** has the slope 1 in both. A sum passes on what it is given: ∂L/∂u = ∂L/∂z = −2.
# * **u = x · y** has the slope y in x, and x in y. A product *swaps* its factors:
#   ∂L/∂x = −2 · y = 6 and ∂L/∂y = −2 · x = −4.

# %%
by_hand = {"x": 6.0, "y": -4.0, "z": -2.0}

L.backward()
for name, tensor in {"x": x, "y": y, "z": z}.items():
    print(f"dL/d{name}: by hand {by_hand[name]:+}, by backward {tensor.grad.item():+}")
    assert tensor.grad.item() == by_hand[name]

# %% [markdown]
# ## Is it true?
#
# A derivative is a promise about small steps, so let us hold it to that: turn x by 0.001 and look. L should move by
# about 6 · 0.001. It misses by a hair, since 0.001 is not *very* small; the miss shrinks with the step.

# %%
for step in (0.1, 0.01, 0.001):
    moved = ((2.0 + step) * -3.0 + 5.0) ** 2 - 1.0
    print(f"x + {step}: L moves by {moved:.6f}; promised {6 * step:.6f}")
    assert abs(moved - 6 * step) <= 10 * step ** 2

# %% [markdown]
# ## A knob that is used twice
#
# In `x · x + 3x` the knob x works in three places. Each place sends back its own share, and the shares **add up**: x
# from the left factor, x from the right, and 3 from the last term. At x = 2 this is 2 + 2 + 3 = 7, as school's 2x + 3
# says. Adding up is also why programs call `zero_grad()` between steps: a gradient that is already there is added to,
# not replaced.

# %%
knob = torch.tensor(2.0, requires_grad=True)
(knob * knob + 3 * knob).backward()
assert knob.grad.item() == 7.0
(knob * knob + 3 * knob).backward()
assert knob.grad.item() == 14.0         # nobody called zero_grad()
print("once 7, twice", knob.grad.item())

# %% [markdown]
# ## Downhill
#
# Why want gradients at all? They point uphill. One small step the other way, and L is smaller than the 1 it was:

# %%
with torch.no_grad():
    lower = ((x - 0.01 * x.grad) * (y - 0.01 * y.grad) + (z - 0.01 * z.grad)) ** 2
print(f"L was {L.item()}, now {lower.item():.4f}")
assert lower < L

# %% [markdown]
# ## See it
#
# The page below goes through the backward step by step: the rule of each operation, the number that comes in, the
#     number that
# goes out. `explanation.save(path, exercise=True)` blanks the numbers, so that you can try your own.

# %%
x.grad = y.grad = z.grad = None
L = (x * y + z) ** 2
explanation = torch.viz.explain(L)
print("open", explanation.save("out/lesson1_expression.html"))
explanation
