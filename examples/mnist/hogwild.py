"""Train one network in several processes at once, without locks: `python -m examples.mnist.hogwild -h` lists the
options.

Hogwild (https://arxiv.org/abs/1106.5730): the parameters are in memory that all processes share. Each process computes
gradients of its own part of the images, and steps whenever it likes. Steps now and then overwrite each other, which
training survives, and no process ever waits.
"""

import time

import tensorgrad as torch
import tensorgrad.multiprocessing as mp
from examples.mnist.cnn.model import CNN
from examples.mnist.dataset import CLASSES, load, truncate
from examples.mnist.training import data_options
from examples.toolkit.evaluator import Evaluator
from examples.toolkit.options import basic_options, positive
from examples.toolkit.trainer import Trainer
from tensorgrad import nn
from tensorgrad.utils.data import DataLoader, Subset


def train(rank, model, args):
    """Train the shared model on every `processes`-th image; each process runs this."""
    torch.manual_seed(args.seed + rank)
    torch.set_num_threads(1)
    images = truncate(load(args.data_dir)[0], args.truncate_train)
    own = Subset(images, range(rank, len(images), args.processes))
    loader = DataLoader(own, args.batch_size, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    trainer = Trainer(model, nn.CrossEntropyLoss(), optimizer)
    for epoch in range(1, args.epochs + 1):
        trainer.train(loader, f"process {rank}, epoch {epoch}/{args.epochs}")


def main(argv=None):
    parser = data_options(basic_options("Train one network in several processes without locks."), epochs=3)
    parser.add_argument("--processes", type=positive, default=2, metavar="N", help="processes that train")
    parser.add_argument("--batch_size", type=positive, default=32, metavar="N", help="samples a step")
    parser.add_argument("--lr", type=float, default=3e-2, help="learning rate")
    args = parser.parse_args(argv)
    torch.manual_seed(args.seed)
    model = CNN()
    model.share_memory()
    start = time.monotonic()
    mp.spawn(train, (model, args), nprocs=args.processes)

    test_set = truncate(load(args.data_dir)[1], args.truncate_test)
    result = Trainer(model, None, None).evaluate(DataLoader(test_set, batch_size=250), Evaluator(CLASSES))
    seconds = time.monotonic() - start
    print(f"{100 * result.accuracy:.2f} % of the test images right, after {args.epochs} epochs "
          f"in {args.processes} processes and {seconds:.0f} seconds")


if __name__ == "__main__":
    main()
