"""Teach a small GPT to write Shakespeare: `python -m examples.chargpt.train -h` lists the options."""

import math

import tensorgrad as torch
import tensorgrad.nn.functional as F
from examples.chargpt.model import GPT
from examples.chargpt.text import SHAKESPEARE, Text, batch
from examples.toolkit.options import positive, training_options
from examples.toolkit.progress import ProgressBar

WARM_UP, FLOOR = 0.05, 0.05  # share of the steps on which the learning rate rises; where it ends
TEST_EVERY, TEST_BATCHES = 250, 10


def chargpt_options():
    """The options of this program."""
    parser = training_options("Teach a small GPT to write, letter by letter.", lr=3e-3)
    parser.add_argument("--steps", type=positive, default=1000, metavar="N", help="steps of gradient descent")
    parser.add_argument("--context", type=positive, default=64, metavar="N", help="characters it sees at once")
    parser.add_argument("--embed", type=positive, default=96, metavar="N", help="numbers that describe a character")
    parser.add_argument("--num_heads", type=positive, default=4, metavar="N", help="attention heads")
    parser.add_argument("--num_layers", type=positive, default=3, metavar="N", help="transformer layers")
    parser.add_argument("--dropout", type=float, default=0.0, metavar="P", help="share of values dropped in training")
    parser.add_argument("--sample", type=int, default=400, metavar="N", help="characters to write at the end")
    parser.add_argument("--text", metavar="FILE", help="learn from this UTF-8 text, gzipped or not")
    return parser


def cosine(step, steps):
    """The learning rate's factor: up in a line, down in half a cosine wave."""
    rise = max(1, int(WARM_UP * steps))
    if step < rise:
        return (step + 1) / rise
    return FLOOR + (1 - FLOOR) * (1 + math.cos(math.pi * (step - rise) / max(1, steps - rise))) / 2


def decayed(model):
    """Parameter groups: matrices decay, biases and norms do not."""
    parameters = list(model.parameters())
    return [{"params": [p for p in parameters if p.dim() > 1], "weight_decay": 0.1},
            {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]


def loss_of(model, snippets, following, device):
    logits = model(snippets.to(device))
    return F.cross_entropy(logits.flatten(0, 1), following.to(device).flatten())


@torch.no_grad()
def test(model, numbers, args):
    """The mean loss on text that was not trained on."""
    model.eval()
    losses = [loss_of(model, *batch(numbers, args.batch_size, args.context), args.device).item()
              for _ in range(TEST_BATCHES)]
    model.train()
    return sum(losses) / len(losses)


def main(argv=None):
    args = chargpt_options().parse_args(argv)
    torch.manual_seed(args.seed)
    text = Text(args.text or SHAKESPEARE)
    learned, held_out = text.split()
    if len(held_out) <= args.context:
        raise SystemExit(f"the text is too short for snippets of {args.context} characters")
    model = GPT(len(text.letters), args.context, args.embed, args.num_heads, args.num_layers, args.dropout)
    model.to(args.device)
    print(f"{len(text.numbers)} characters, {len(text.letters)} different ones, "
          f"{sum(p.numel() for p in model.parameters())} parameters, on {args.device}")

    optimizer = torch.optim.AdamW(decayed(model), lr=args.lr, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: cosine(step, args.steps))
    bar = ProgressBar(range(1, args.steps + 1), prefix="training")
    for step in bar:
        loss = loss_of(model, *batch(learned, args.batch_size, args.context), args.device)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        bar.note(loss=loss.item())
        if step % TEST_EVERY == 0 or step == args.steps:
            bar.note(test=test(model, held_out, args))

    start = text.encode("\n" if "\n" in text.number else text.letters[0]).unsqueeze(0).to(args.device)
    print(text.decode(model.write(start, args.sample)[0]))


if __name__ == "__main__":
    main()
