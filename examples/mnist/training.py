"""The common program of both digit readers: read options and data, train, evaluate after each epoch, draw a picture."""

import time

import tensorgrad as torch
from examples.mnist.dataset import CLASSES, load, truncate
from examples.toolkit.evaluator import Evaluator
from examples.toolkit.options import positive, training_options
from examples.toolkit.plotting import save_report
from examples.toolkit.trainer import Trainer
from tensorgrad import nn
from tensorgrad.optim.lr_scheduler import OneCycleLR
from tensorgrad.utils.data import DataLoader


def digit_options(description, lr, out):
    """Return the parser of a digit reader's options."""
    parser = data_options(training_options(description, lr), epochs=20)
    parser.add_argument("--out", default=out, metavar="PNG", help="where the picture goes; '' for none")
    return parser


def data_options(parser, epochs):
    """Add options for the images and the number of epochs to a parser, and return it."""
    parser.add_argument("--epochs", type=positive, default=epochs, metavar="N", help="passes over the training images")
    parser.add_argument("--truncate_train", type=positive, default=10000, metavar="N",
                        help="train on at most so many images (9,000 come with the examples)")
    parser.add_argument("--truncate_test", type=positive, default=1000, metavar="N",
                        help="test on at most so many images (1,000 come with the examples)")
    parser.add_argument("--data-dir", metavar="FOLDER", help="take the IDX files of the full MNIST from here")
    return parser


def run(model, args):
    """Train `model` with the options `args`, and return its last accuracy on the test images."""
    train_set, test_set = load(args.data_dir)
    train_set, test_set = truncate(train_set, args.truncate_train), truncate(test_set, args.truncate_test)
    train_loader = DataLoader(train_set, args.batch_size, shuffle=True)
    test_loader = DataLoader(test_set, batch_size=250)
    print(f"{len(train_set)} training images, {len(test_set)} test images, "
          f"{sum(p.numel() for p in model.parameters())} parameters, on {args.device}")

    model.to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    schedule = OneCycleLR(optimizer, args.lr, total_steps=args.epochs * len(train_loader))
    trainer = Trainer(model, nn.CrossEntropyLoss(), optimizer, schedule, args.device)

    start, losses, accuracies = time.monotonic(), [], []
    for epoch in range(1, args.epochs + 1):
        losses += trainer.train(train_loader, f"epoch {epoch}/{args.epochs}")
        result = trainer.evaluate(test_loader, Evaluator(CLASSES))
        accuracies.append(result.accuracy)
        print(result.table(), flush=True)

    summary = f"{accuracies[-1]:.2%} of the test images right".replace("%", " %")
    print(f"{summary}, after {args.epochs} epochs and {time.monotonic() - start:.0f} seconds")
    if args.out:
        save_report(args.out, summary, losses, accuracies, model, test_set, args.device)
    return accuracies[-1]
