"""The command line: `python -m examples.inference -h`."""

import argparse
import json
import os
import sys
from functools import partial
from pathlib import Path

from examples.toolkit.options import Help, positive


def fraction(text):
    number = float(text)
    if not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0 and at most 1")
    return number


def not_negative(text):
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return number


def options():
    """The options of this program."""
    parser = argparse.ArgumentParser(prog="python -m examples.inference",
                                     description="Run published models on the CPU.")
    tasks = parser.add_subparsers(dest="task", required=True, metavar="TASK")

    task = tasks.add_parser("classify", help="say what is in a picture, with a ResNet", formatter_class=Help,
                            description="Say what is in a picture, with a ResNet whose parameters have torchvision's "
                                        "names.")
    task.add_argument("image", metavar="IMAGE", help="a picture: .npy, .ppm, .pgm, or with Pillow .jpg, .png …")
    task.add_argument("--weights", required=True, metavar="FILE", help="state dict: .pt, .pth, .bin or .safetensors")
    task.add_argument("--arch", default="resnet18", metavar="NAME", help="resnet18, 34, 50, 101 or 152")
    task.add_argument("--labels", metavar="FILE", help="names of the classes: one a line, or JSON")
    task.add_argument("--top", type=positive, default=5, metavar="N", help="how many classes to show")
    task.add_argument("--resize", type=positive, default=256, metavar="N",
                      help="length of the shorter side before cropping")
    task.add_argument("--crop", type=positive, default=224, metavar="N", help="side of the square that the model sees")
    task.set_defaults(run=classify)

    task = tasks.add_parser("continue", help="go on with a text, with a GPT-2", formatter_class=Help,
                            description="Go on with a text, with a GPT-2 whose parameters have Hugging Face's names.")
    task.add_argument("text", metavar="TEXT", help="how it begins")
    task.add_argument("--weights", required=True, metavar="FILE", help="state dict: .safetensors, .bin, .pt or .pth")
    task.add_argument("--config", metavar="NAME|FILE", help="gpt2, gpt2-medium, gpt2-large, gpt2-xl or a config.json "
                      "(without: the config.json beside the weights, or what their shapes say)")
    task.add_argument("--vocab", metavar="DIR", help="folder with vocab.json and merges.txt (without: that of the "
                                                     "weights, or plain bytes)")
    task.add_argument("--tokens", type=positive, default=40, metavar="N", help="the most tokens to write")
    task.add_argument("--temperature", type=not_negative, default=0.8, metavar="T",
                      help="the colder, the likelier the tokens; 0: always the likeliest")
    task.add_argument("--top-k", type=positive, metavar="K", help="choose among so many tokens")
    task.add_argument("--top-p", type=fraction, metavar="P",
                      help="choose among the likeliest tokens that have this probability together")
    task.add_argument("--seed", type=int, default=0, metavar="N", help="start of the random numbers")
    task.set_defaults(run=go_on)
    return parser


# ── classify ──────────────────────────────────────────────────────────────────────────────────


def classify(args):
    from examples.inference.resnet import ARCHITECTURES
    if args.arch not in ARCHITECTURES:
        raise ValueError(f"--arch {args.arch} is not known: there are {', '.join(ARCHITECTURES)}")
    labels = names_of_classes(args.labels) if args.labels else {}
    import tensorgrad as torch
    from examples.inference import images, weights
    from examples.inference.resnet import resnet
    x = images.prepared(images.read(args.image), args.resize, args.crop)
    state = weights.read(args.weights)
    classes = len(state["fc.weight"]) if "fc.weight" in state else 1000
    networks = {name: partial(resnet, name, num_classes=classes) for name in ARCHITECTURES}
    model = weights.fitted(networks[args.arch], state, args.weights, f"--arch {args.arch}",
                           [(f"--arch {name}", build) for name, build in networks.items()])
    if labels and len(labels) != classes:
        raise ValueError(f"{args.labels} has {len(labels)} names, {args.weights} {classes} classes")
    with torch.inference_mode():
        chances, found = model(x)[0].softmax(0).topk(min(args.top, classes))
    for chance, number in zip(chances.tolist(), found.tolist()):
        print(f"{chance:7.2%}  {labels.get(number, f'class {number}')}")


def names_of_classes(file):
    """Read {number: name} from lines, a JSON list, or a JSON object of names or of lists whose last item is the
    name.
    """
    text = Path(file).read_text(encoding="utf-8")
    if not text.lstrip().startswith(("[", "{")):
        return dict(enumerate(text.splitlines()))
    said = json.loads(text)
    items = said.items() if isinstance(said, dict) else enumerate(said)
    return {int(number): str(name[-1] if isinstance(name, list) and name else name) for number, name in items}


# ── continue ──────────────────────────────────────────────────────────────────────────────────


def go_on(args):
    import tensorgrad as torch
    from examples.inference import gpt2, weights
    state = gpt2.canonical(weights.read(args.weights))
    if not {"transformer.wte.weight", "transformer.wpe.weight", "transformer.h.0.mlp.c_fc.weight"} <= state.keys():
        raise ValueError(f"{args.weights} does not hold a GPT-2: its parameters have names such as "
                         f"{next(iter(state)).removeprefix('transformer.')}")
    config, source = configuration(args, state, gpt2)
    model = weights.fitted(partial(gpt2.GPT2, config), state, args.weights, source,
                           [(f"--config {name}", partial(gpt2.GPT2, size)) for name, size in gpt2.SIZES.items()])
    tokens = tokenizer(args, config.vocab_size)
    start = tokens.encode(args.text) or ([] if tokens.end is None else [tokens.end])
    if not start:
        raise ValueError("there is no text to go on with")
    generator = torch.Generator().manual_seed(args.seed)
    chosen = gpt2.generate(model, torch.tensor([start]), args.tokens, vocabulary=len(tokens),
                           temperature=args.temperature, top_k=args.top_k,
                           top_p=args.top_p, generator=generator)

    def until_the_end():
        for token in chosen:
            if token.item() == tokens.end:
                return
            yield token.item()
    print(args.text, end="", flush=True)
    for text in tokens.stream(until_the_end()):
        print(text, end="", flush=True)
    print()


def configuration(args, state, gpt2):
    """Return the sizes of the model, and their source."""
    beside = Path(args.weights).with_name("config.json")
    if args.config in gpt2.SIZES:
        return gpt2.SIZES[args.config], f"--config {args.config}"
    if args.config is not None and not Path(args.config).is_file():
        raise ValueError(f"--config {args.config} is neither a file nor one of {', '.join(gpt2.SIZES)}")
    if args.config is not None or beside.is_file():
        file = args.config or beside
        return gpt2.Config.read(file), str(file)
    return gpt2.Config.of(state), "a GPT-2 of these shapes"


def tokenizer(args, size):
    """Return the tokenizer for a model of `size` tokens, up to 128 of which may be unused, to make the number round."""
    from examples.inference.tokenizer import BPE, FILES, Bytes
    folder = Path(args.vocab or Path(args.weights).parent)
    there = any((folder / name).is_file() for name, _ in FILES)
    if args.vocab and not there:
        raise FileNotFoundError(2, "there is no vocab.json", args.vocab)
    tokens = BPE.read(folder) if there else Bytes()
    if not size - 128 < len(tokens) <= size:
        raise ValueError(f"{args.weights} knows {size} tokens, "
                         + (f"the vocabulary in {folder} has {len(tokens)}" if there else
                           "more than there are bytes: --vocab DIR tells what "
                           "they stand for"))
    return tokens


def main(argv=None):
    args = options().parse_args(argv)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")       # for terminals that lack some letters
    try:
        args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:                                     # of `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        print()
        return 130
    except (OSError, ValueError, ImportError) as error:
        says = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else error
        print(f"error: {says}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
