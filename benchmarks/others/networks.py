"""The networks of the training steps, over the functions `f` of a library, with parameters by PyTorch's names."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .functions import Functions, Loss, Parameters

HEADS = {"ViT": 2, "char-GPT": 4}


def linear(f: Functions, p: Parameters, x: Any) -> Any:
    return f.linear(x, p["weight"], p["bias"] if "bias" in p else None)


def conv(f: Functions, p: Parameters, x: Any, stride: int = 1, padding: int = 0) -> Any:
    out = f.conv2d(x, p["weight"], stride, padding)
    return out + p["bias"].reshape(-1, 1, 1) if "bias" in p else out


def layer_norm(f: Functions, p: Parameters, x: Any) -> Any:
    return f.layer_norm(x, p["weight"], p["bias"])


def batch_norm(f: Functions, p: Parameters, x: Any) -> Any:
    out, mean, variance = f.batch_norm(x, p["weight"], p["bias"])
    n = x.shape[0] * x.shape[2] * x.shape[3]
    p["running_mean"] = 0.9 * p["running_mean"] + 0.1 * f.detach(mean)
    p["running_var"] = 0.9 * p["running_var"] + 0.1 * n / (n - 1) * f.detach(variance)
    return out


def mlp(f: Functions, p: Parameters, x: Any) -> Any:
    for i in (0, 2):
        x = f.relu(linear(f, p.at(i), x))
    return linear(f, p.at(4), x)


def cnn(f: Functions, p: Parameters, x: Any) -> Any:
    for i, padding in enumerate((1, 2, 1)):
        block = p.at("features", i)
        x = f.avg_pool(f.relu(batch_norm(f, block.at(1), conv(f, block.at(0), x, padding=padding))), 2)
    return linear(f, p.at("head.2"), f.dropout(x.reshape(x.shape[0], -1), 0.1))


def resnet(f: Functions, p: Parameters, x: Any) -> Any:
    x = f.max_pool(f.relu(batch_norm(f, p.at("bn1"), conv(f, p.at("conv1"), x, 2, 3))), 3, 2, 1)
    for i in range(1, 5):
        for j in range(2):
            block, stride = p.at(f"layer{i}", j), 2 if i > 1 and j == 0 else 1
            out = f.relu(batch_norm(f, block.at("bn1"), conv(f, block.at("conv1"), x, stride, 1)))
            out = batch_norm(f, block.at("bn2"), conv(f, block.at("conv2"), out, 1, 1))
            if "downsample.0.weight" in block:
                x = batch_norm(f, block.at("downsample.1"), conv(f, block.at("downsample.0"), x, stride))
            x = f.relu(out + x)
    return linear(f, p.at("fc"), x.mean((2, 3)))


def vit(f: Functions, p: Parameters, x: Any) -> Any:
    n, _, size, _ = x.shape
    patches = f.transpose(x.reshape(n, size // 4, 4, size // 4, 4), 0, 1, 3, 2, 4).reshape(n, (size // 4) ** 2, 16)
    x = f.dropout(linear(f, p.at("embed"), patches) + p["position"], 0.1)
    layer = p.at("layers.0")
    attention = layer.at("attention")
    seen = f.attention(f.linear(x, attention["in_proj_weight"], attention["in_proj_bias"]), HEADS["ViT"])
    x = layer_norm(f, layer.at("norm"), x + f.dropout(linear(f, attention.at("out_proj"), seen), 0.1))
    thought = linear(f, layer.at("perceptron.2"), f.relu(linear(f, layer.at("perceptron.0"), x)))
    x = layer_norm(f, layer.at("norm"), x + f.dropout(thought, 0.1))
    return linear(f, p.at("head"), x.mean(1))


def chargpt(f: Functions, p: Parameters, text: Any) -> Any:
    x = f.embedding(text, p["letter.weight"]) + p["position.weight"]
    depth = 0
    while "attend.0.weight" in (layer := p.at("layers", depth)):
        attend, think = layer.at("attend"), layer.at("think")
        seen = f.attention(linear(f, attend.at("1.query_key_value"), layer_norm(f, attend.at(0), x)), HEADS["char-GPT"],
                           causal=True)
        x = x + linear(f, attend.at("1.out"), seen)
        x = x + linear(f, think.at(3), f.gelu(linear(f, think.at(1), layer_norm(f, think.at(0), x))))
        depth += 1
    return linear(f, p.at("head"), layer_norm(f, layer, x))


def lstm(f: Functions, p: Parameters, tokens: Any) -> Any:
    """The weights of the last layer are those of the embedding."""
    x, rnn = f.dropout(f.embedding(tokens, p["encoder.weight"]), 0.2), p.at("rnn")
    for i in range(2):
        x = f.dropout(f.lstm(x, rnn[f"weight_ih_l{i}"], rnn[f"weight_hh_l{i}"],
                             rnn[f"bias_ih_l{i}"] + rnn[f"bias_hh_l{i}"]), 0.2)
    return f.linear(x, p["encoder.weight"], p["decoder.bias"])


def classify(net: Callable[..., Any]) -> Loss:
    def loss(f: Functions, p: Parameters, x: Any, y: Any) -> Any:
        logits = net(f, p, x)
        return f.cross_entropy(logits.reshape(-1, logits.shape[-1]), y)
    return loss


def vae(f: Functions, p: Parameters, x: Any) -> Any:
    """The sigmoid at the end is part of the loss: −x log σ(l) − (1 − x) log (1 − σ(l)) = log (1 + exp l) − x l."""
    hidden = f.relu(linear(f, p.at("encoder.0"), x))
    mean, spread = linear(f, p.at("mean"), hidden), linear(f, p.at("spread"), hidden)
    z = mean + f.noise(mean) * f.exp(0.5 * spread)
    logits = linear(f, p.at("decoder.2"), f.relu(linear(f, p.at("decoder.0"), z)))
    return (f.softplus(logits) - x * logits).sum() - 0.5 * (1 + spread - mean * mean - f.exp(spread)).sum()


# ── DCGAN ─────────────────────────────────────────────────────────────────────────────────────


def forged(f: Functions, p: Parameters, z: Any) -> Any:
    p = p.at("forger.main")
    for i in (0, 3, 6, 9):
        z = f.relu(batch_norm(f, p.at(i + 1), f.conv_transpose2d(z, p.at(i)["weight"], *((2, 1) if i else (1, 0)))))
    return f.tanh(f.conv_transpose2d(z, p["12.weight"], 2, 1))


def judged(f: Functions, p: Parameters, x: Any) -> Any:
    """How much images look real: what goes into a sigmoid, which is part of the loss."""
    p = p.at("judge.main")
    x = f.leaky_relu(conv(f, p.at(0), x, 2, 1), 0.2)
    for i in (2, 5, 8):
        x = f.leaky_relu(batch_norm(f, p.at(i + 1), conv(f, p.at(i), x, 2, 1)), 0.2)
    return conv(f, p.at(11), x)


def judgement(f: Functions, p: Parameters, real: Any, z: Any) -> Any:
    fake = f.detach(forged(f, p.apart(), z))
    return f.softplus(-judged(f, p, real)).mean() + f.softplus(judged(f, p, fake)).mean()


def deceit(f: Functions, p: Parameters, real: Any, z: Any) -> Any:
    return f.softplus(-judged(f, p, forged(f, p, z))).mean()


# how the name of a step begins: its losses, and the module that each trains
PHASES: dict[str, list[tuple[str, Loss]]] = {
    **{name: [("model", classify(net))] for name, net in {
        "MLP": mlp, "MNIST CNN": cnn, "ResNet-18": resnet, "ViT": vit, "char-GPT": chargpt, "LSTM": lstm}.items()},
    "VAE": [("model", vae)],
    "DCGAN": [("judge", judgement), ("forger", deceit)],
}
