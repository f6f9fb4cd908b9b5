"""Forward passes without gradients, of one input and of 32."""
from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any

from . import nets
from .timing import Case
from .workloads import Workload, array

NETS: dict[str, Callable[..., nets.Net]] = {
    "MLP 784-256-128-10": nets.mlp,
    "MNIST CNN": nets.cnn,
    "ViT, 49 patches": nets.vit,
    "char-GPT, 64 letters": nets.chargpt,
    "LSTM language model, 32 words": nets.lstm,
    "VAE 784-400-20": nets.vae,
    "DCGAN's generator, 64 × 64": nets.generator,
    "ResNet-18, 32 × 32": nets.resnet,
    "ResNet-18, 224 × 224": partial(nets.resnet, size=224),
    "ResNet-50, 224 × 224": partial(nets.resnet, name="resnet50", size=224),
    "MobileNetV2, 224 × 224": nets.mobilenet,
    "GPT-2 small, 64 tokens": nets.gpt2,
}


def case(net: Callable[..., nets.Net], batch: int, engine: Any, tiny: bool, runtime: str = "eager") -> Case:
    """`runtime`: `graph` compiles the model; `onnxruntime` and `openvino` run what `torch.onnx.export` makes of it."""
    engine.manual_seed(0)
    model, draw, _ = net(engine, tiny)
    model.eval()
    x = draw(min(batch, 3) if tiny else batch)
    if runtime in ("onnxruntime", "openvino"):
        run_exported = exported(engine, model, x, runtime)
        return Case(run_exported, lambda: run_exported()[:1])
    if runtime == "graph":
        model = engine.compile(model)

    def run() -> Any:
        with engine.inference_mode():
            out = model(x)
            return out[0] if isinstance(out, tuple) else out
    return Case(run, lambda: [run()])


def exported(engine: Any, model: Any, x: Any, runtime: str) -> Callable[[], Any]:
    """Return a function that runs a model, exported for the inputs' batch, with another runtime."""
    from tensorgrad.benchmark.measuring import LIBRARIES  # PyTorch's process imports this file, and no tensorgrad
    with tempfile.TemporaryDirectory() as folder, engine.no_grad():
        path = f"{folder}/model.onnx"
        engine.onnx.export(model, (x,), path)
        library = LIBRARIES[runtime](engine.get_num_threads())
        library.load(path)
    return library.case([array(x)])            # type: ignore[no-any-return]


ROWS = [Workload(f"{name}, batch {batch}", partial(case, net, batch), f"batch {batch}") for batch in (1, 32)
        for name, net in NETS.items()]
