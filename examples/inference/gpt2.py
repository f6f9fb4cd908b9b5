"""GPT-2 (Radford et al., 2019), with Hugging Face's names of parameters: the published weights of all sizes fit as they
are.
"""

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path

import tensorgrad as torch
import tensorgrad.nn.functional as F
from tensorgrad import nn


@dataclass
class Config:
    """The sizes of a model, under the names of Hugging Face's config.json."""

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None              # four times n_embd
    activation_function: str = "gelu_new"
    layer_norm_epsilon: float = 1e-5

    def __post_init__(self):
        if self.n_embd % self.n_head:
            raise ValueError(f"{self.n_head} heads cannot share {self.n_embd} numbers evenly")
        if self.activation_function not in ACTIVATIONS:
            raise ValueError(f"the activation function {self.activation_function} is not known: there are "
                             f"{', '.join(ACTIVATIONS)}")

    @classmethod
    def read(cls, file):
        """The sizes in a config.json. ValueError for a model that is no GPT-2, or one with other formulas."""
        try:
            said = json.loads(Path(file).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{file} is not JSON: {error}") from None
        if not isinstance(said, dict) or said.get("model_type", "gpt2") != "gpt2":
            raise ValueError(f"{file} does not describe a GPT-2")
        for name, usual in (("scale_attn_weights", True), ("scale_attn_by_inverse_layer_idx", False),
                            ("add_cross_attention", False)):
            if said.get(name, usual) is not usual:
                raise ValueError(f"{file}: {name} = {said[name]} is not supported")
        return cls(**{field.name: said[field.name] for field in fields(cls) if field.name in said})

    @classmethod
    def of(cls, state):
        """The sizes that a state dict shows.

        It does not show the number of heads: in all published sizes they have 64 numbers each.
        """
        vocab_size, n_embd = state["transformer.wte.weight"].shape
        layers = {name.split(".")[2] for name in state if name.startswith("transformer.h.")}
        return cls(vocab_size, len(state["transformer.wpe.weight"]), n_embd, len(layers), max(1, n_embd // 64),
                   state["transformer.h.0.mlp.c_fc.weight"].shape[1])


ACTIVATIONS = {"gelu_new": lambda x: F.gelu(x, approximate="tanh"), "gelu": F.gelu, "relu": F.relu}
SIZES = {
    "gpt2": Config(),
    "gpt2-medium": replace(Config(), n_embd=1024, n_layer=24, n_head=16),
    "gpt2-large": replace(Config(), n_embd=1280, n_layer=36, n_head=20),
    "gpt2-xl": replace(Config(), n_embd=1600, n_layer=48, n_head=25),
}


# ── the model ─────────────────────────────────────────────────────────────────────────────────


class Conv1D(nn.Module):
    """A linear layer whose weight (in, out) stands the other way around."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    """Every position looks at itself and the ones before it, with several heads."""

    def __init__(self, config):
        super().__init__()
        self.heads = config.n_head
        self.c_attn = Conv1D(config.n_embd, 3 * config.n_embd)
        self.c_proj = Conv1D(config.n_embd, config.n_embd)

    def forward(self, x, cache, layer):                                              # (N, T, n_embd)
        n, t, embed = x.shape
        query, key, value = self.c_attn(x).view(n, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:
            # (N, heads, all positions so far, n_embd / heads)
            key, value = cache.extend(layer, key, value)
        if t == 1:                                                                   # the last position sees all
            seen = F.scaled_dot_product_attention(query, key, value)
        elif key.shape[2] == t:
            seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            earlier = key.shape[2] - t
            sees = torch.ones(t, earlier + t, dtype=torch.bool, device=x.device).tril(earlier)
            seen = F.scaled_dot_product_attention(query, key, value, attn_mask=sees)
        return self.c_proj(seen.transpose(1, 2).reshape(n, t, embed))


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        inner = config.n_inner or 4 * config.n_embd
        self.c_fc, self.c_proj = Conv1D(config.n_embd, inner), Conv1D(inner, config.n_embd)
        self.act = ACTIVATIONS[config.activation_function]

    def forward(self, x):
        return self.c_proj(self.act(self.c_fc(x)))


class Block(nn.Module):
    """Attention, then a perceptron for each position; each reads a normalized copy and adds to the stream."""

    def __init__(self, config):
        super().__init__()
        self.ln_1, self.attn = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon), Attention(config)
        self.ln_2, self.mlp = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon), MLP(config)

    def forward(self, x, cache, layer):
        x = x + self.attn(self.ln_1(x), cache, layer)
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    """Tokens (N, T) to logits (N, T, vocab_size) for the token after each. For inference: there is no dropout in it."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(config.vocab_size, config.n_embd),
            "wpe": nn.Embedding(config.n_positions, config.n_embd),
            "h": nn.ModuleList([Block(config) for _ in range(config.n_layer)]),
            "ln_f": nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)})
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.tie()

    def tie(self):
        """The matrix that reads tokens also writes them."""
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, tokens, cache=None, last=False):
        """With a `cache`, `tokens` are those after the ones that it has seen.

        `last`: the logits of the last position alone, (N, 1, vocab_size).
        """
        start = 0 if cache is None else cache.length
        end = start + tokens.shape[1]
        if end > self.config.n_positions:
            raise ValueError(f"a text of {end} tokens is longer than the {self.config.n_positions} positions of the "
                             f"model")
        x = self.transformer.wte(tokens) + self.transformer.wpe(torch.arange(start, end, device=tokens.device))
        for layer, block in enumerate(self.transformer.h):
            x = block(x, cache, layer)
        if cache is not None:
            cache.length = end
        return self.lm_head(self.transformer.ln_f(x[:, -1:] if last else x))

    def load_published(self, state):
        """Take the parameters of a published file, see `canonical`, as they are: nothing is copied."""
        self.load_state_dict(canonical(state), assign=True)
        if torch.equal(self.lm_head.weight, self.transformer.wte.weight):
            self.tie()
        return self


class Cache:
    """The keys and values of the positions so far, (layers, N, heads, capacity, n_embd / heads): a new token is
    computed from these and itself alone.
    """

    def __init__(self, config, capacity, batch=1, **where):
        shape = config.n_layer, batch, config.n_head, min(capacity, config.n_positions), config.n_embd // config.n_head
        self.keys, self.values = torch.empty(shape, **where), torch.empty(shape, **where)
        self.length = 0

    def extend(self, layer, key, value):
        """The keys and values of a layer, with those of the tokens after the first `length`."""
        end = self.length + key.shape[2]
        keys, values = self.keys[layer, :, :, :end], self.values[layer, :, :, :end]
        keys[:, :, self.length:] = key
        values[:, :, self.length:] = value
        return keys, values


def canonical(state):
    """A state dict under the names of this model: files may lack the prefix `transformer.` and `lm_head.weight`, which
    is the same as `transformer.wte.weight`; old ones hold the masks of the attention, too."""
    named = {name if name.startswith(("transformer.", "lm_head.")) else f"transformer.{name}": value
             for name, value in state.items()}
    named = {name: value for name, value in named.items() if not name.endswith((".attn.bias", ".attn.masked_bias"))}
    if "transformer.wte.weight" in named:
        named.setdefault("lm_head.weight", named["transformer.wte.weight"])
    return named


# ── generation ────────────────────────────────────────────────────────────────────────────────


def choose(logits, temperature=1.0, top_k=None, top_p=None, generator=None):
    """A next token for each row of logits (N, vocab_size), (N, 1). temperature 0: the likeliest; else drawn at random,
    the colder the likelier ones: from the `top_k` likeliest, and from the fewest that have `top_p` of the probability
        together."""
    if temperature == 0:
        return logits.argmax(-1, keepdim=True)
    logits = logits / temperature
    if top_k is not None and top_k < logits.shape[-1]:
        logits = logits.masked_fill(logits < logits.topk(top_k).values[:, -1:], float("-inf"))
    if top_p is not None and top_p < 1:
        ordered, order = logits.sort(descending=True)
        chances = ordered.softmax(-1)
        # the likeliest always stays
        ordered = ordered.masked_fill(chances.cumsum(-1) - chances >= top_p, float("-inf"))
        logits = torch.full_like(logits, float("-inf")).scatter(1, order, ordered)
    return torch.multinomial(logits.softmax(-1), 1, generator=generator)


@torch.inference_mode()
def generate(model, tokens, length, cached=True, vocabulary=None, **how):
    """Yield `length` tokens (N, 1), one by one, that go on with `tokens` (N, T). `how` they are chosen: see `choose`.

    vocabulary: choose from the first so many only. When the positions are used up, the model goes on from the latter
        half of what it sees.
    """
    most = model.config.n_positions
    tokens = tokens[:, -most:]
    cache, seen = None, 0
    for _ in range(length):
        if tokens.shape[1] > most:
            tokens, cache = tokens[:, -(most // 2 + 1):], None
        if cached and cache is None:
            cache = Cache(model.config, tokens.shape[1] + length, len(tokens), dtype=model.lm_head.weight.dtype,
                          device=tokens.device)
            seen = 0
        logits = model(tokens[:, seen:], cache, last=True)[:, 0, :vocabulary]
        seen = tokens.shape[1] if cached else 0
        following = choose(logits, **how)
        yield following
        tokens = torch.cat([tokens, following], 1)
