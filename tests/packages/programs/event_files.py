"""tensorboardX: what a training writes, read again."""
import glob
import os
import tempfile

import numpy as np
import torch
from tensorboardX import SummaryWriter
from tensorboardX.proto import event_pb2

torch.manual_seed(0)
folder = tempfile.mkdtemp()
model = torch.nn.Linear(3, 2)
with SummaryWriter(folder) as writer:
    for step in range(3):
        loss = model(torch.ones(2, 3)).square().mean()
        loss.backward()
        writer.add_scalar("loss", loss, step)
        writer.add_scalars("both", {"a": loss.item(), "b": step}, step)
        for name, p in model.named_parameters():
            writer.add_histogram(name, p, step)
            writer.add_histogram(name + ".grad", p.grad, step)
    writer.add_image("image", torch.rand(3, 4, 4), 0)
    writer.add_images("images", torch.rand(2, 3, 4, 4), 0)
    writer.add_text("text", "words", 0)
    writer.add_pr_curve("curve", torch.tensor([0, 1, 1, 0]), torch.tensor([0.1, 0.8, 0.6, 0.4]), 0)
    writer.add_embedding(torch.randn(4, 3), metadata=list("abcd"))
    writer.add_hparams({"lr": 0.1, "layers": 2}, {"score": torch.tensor(0.5)}, name="run")
for path in sorted(glob.glob(os.path.join(folder, "**", "events*"), recursive=True)):
    with open(path, "rb") as file:
        data = file.read()
    place = 0
    while place < len(data):
        size = int.from_bytes(data[place:place + 8], "little")
        event = event_pb2.Event.FromString(data[place + 12:place + 12 + size])
        place += size + 16
        for value in event.summary.value:
            kind = value.WhichOneof("value")
            if kind == "histo":
                print(event.step, value.tag, value.histo.num, f"{value.histo.sum:.4f} {value.histo.sum_squares:.4f}",
                      len(value.histo.bucket))
            elif kind == "image":
                print(event.step, value.tag, value.image.height, value.image.width,
                      len(value.image.encoded_image_string))
            elif kind == "tensor":
                print(event.step, value.tag, np.round(value.tensor.float_val, 4)[:8], value.tensor.string_val[:1])
            elif kind == "simple_value":
                print(event.step, value.tag, f"{value.simple_value:.5f}")
            else:
                print(event.step, value.tag, kind)
