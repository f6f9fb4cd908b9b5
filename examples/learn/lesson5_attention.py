# %% [markdown]
# # Lesson 5: what attention's backward does
#
# Attention is a soft look-up. Each place of a text asks a question (a row of Q), each place has a label (a row of K)
# and something to say (a row of V):
#
#     S = Q Kᵀ / √d          how well question i fits label j
#     A = softmax(S)         shares of attention: every row adds up to 1
#     O = A V                the answers, mixed by these shares
#
# Three lines forwards. Let us find the backward by hand, and, better, what it *means*.

# %%
import math

import tensorgrad as torch

torch.manual_seed(0)
places, d = 4, 3
Q, K, V = (torch.randn(places, d, requires_grad=True) for _ in range(3))

S = Q @ K.T / math.sqrt(d)
A = torch.softmax(S, dim=1)
O = A @ V  # noqa: E741
for row in A.tolist():
    print("  ".join(f"{share:.3f}" for share in row))

# %% [markdown]
# Some loss stands above, and sends back G = ∂L/∂O: for each answer the direction in which it should *not* have gone. To
# have such a G, we use a loss that wants the answers to be `wanted`.

# %%
wanted = torch.randn(places, d)
L = ((O - wanted) ** 2).sum() / 2
for tensor in (S, A, O):
    tensor.retain_grad()
L.backward()

# %% [markdown]
# ## By hand, one matrix at a time
#
# A product of matrices Y = M N sends G Nᵀ to the left and Mᵀ G to the right; no other rule is needed but softmax's,
# from lesson 4, for each row.

# %%
with torch.no_grad():
    G = O - wanted
    dV = A.T @ G                                                # what was said is corrected by those who listened
    dA = G @ V.T                                                # would more attention from i to j have helped?
    dS = A * (dA - (A * dA).sum(dim=1, keepdim=True))           # … more than the other places would have?
    dQ = dS @ K / math.sqrt(d)
    dK = dS.T @ Q / math.sqrt(d)

for name, by_hand, tensor in (("O", G, O), ("V", dV, V), ("A", dA, A), ("S", dS, S), ("Q", dQ, Q), ("K", dK, K)):
    error = (by_hand - tensor.grad).abs().max().item()
    print(f"d{name}: by hand and by backward differ by {error:.1e}")
    assert error < 1e-5

# %% [markdown]
# ## What it means
#
# * **dV = Aᵀ G.** The same shares that carried the values up carry the corrections down. A place that nobody attended
#   to is not
#   corrected: it was not to blame.
# * **dA = G Vᵀ**, so the entry (i, j) is the dot product of what answer i did wrong with what place j said.
# * **dS** compares. (A · dA) summed over a row is the *average* of dA under the shares that were given, so a score is
#   pushed down
#   where its place did worse than that average, and up where it did better, in proportion to its share. Attention is a
#   competition: every row of dS adds up to 0.

# %%
print("rows of dS add up to", [round(v, 6) + 0.0 for v in S.grad.sum(dim=1).tolist()])
assert torch.allclose(S.grad.sum(dim=1), torch.zeros(places), atol=1e-5)

# %% [markdown]
# Let us see it on one question. In the row below, a negative number means "this score should grow":

# %%
i = 0
average = (A[i] * A.grad[i]).sum().item()
for j in range(places):
    better = A.grad[i, j].item() < average
    print(f"place {j}: share {A[i, j].item():.3f}, {'better' if better else 'worse'} than average, gradient of the "
          f"score {S.grad[i, j].item():+.4f}")
    assert (S.grad[i, j].item() < 0) == better

# %% [markdown]
# ## When attention is certain
#
# There is a price for softmax inside the network. If one place has all of the attention, its share is 1, dA equals the
# average, and
# dS is 0: a question that is sure can no longer be taught where to look. This is what the division by √d is for. Dot
#     products of
# long vectors are large, large scores make certain shares, and certain shares learn nothing.

# %%
for scale in (0.1, 1.0, 10.0, 100.0):
    q, k = (scale * Q).detach().requires_grad_(), K.detach()
    loss = ((torch.softmax(q @ k.T, dim=1) @ V.detach() - wanted) ** 2).sum() / 2
    (slope,) = torch.autograd.grad(loss, q)
    print(f"questions × {scale:5}: |gradient| {slope.abs().max().item():.2e}")
assert slope.abs().max() < 1e-3

# %% [markdown]
# ## No peeking
#
# A model that predicts the next letter must not look ahead. The scores of later places become −∞, their shares 0, and
# with a share
# of 0 no gradient flows: what is not seen is not blamed. The fused function that models use gives the same numbers as
#     our three
# lines.

# %%
later = torch.ones(places, places, dtype=torch.bool).triu(1)
masked = torch.softmax((Q @ K.T / math.sqrt(d)).masked_fill(later, float("-inf")), dim=1) @ V
fused = torch.nn.functional.scaled_dot_product_attention(Q[None], K[None], V[None], is_causal=True)[0]
assert torch.allclose(masked, fused, atol=1e-6)

(first,) = torch.autograd.grad(masked[0].sum(), V)
print("the first answer depends on the values of place", first.abs().sum(dim=1).nonzero().flatten().tolist())
assert first[1:].abs().max() == 0

# %% [markdown]
# ## See it
#
# The whole of attention, forwards and back. Stop at softmax, and read off the competition.

# %%
Q, K, V = (tensor.detach().requires_grad_() for tensor in (Q, K, V))
A = torch.softmax(Q @ K.T / math.sqrt(d), dim=1)
L = ((A @ V - wanted) ** 2).sum() / 2
explanation = torch.viz.explain(L)
print("open", explanation.save("out/lesson5_attention.html"))
explanation
