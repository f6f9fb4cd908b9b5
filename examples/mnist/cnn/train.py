"""Train a convolutional network on MNIST: `python -m examples.mnist.cnn.train -h` lists the options."""

import tensorgrad as torch
from examples.mnist.cnn.model import CNN
from examples.mnist.training import digit_options, run


def main(argv=None):
    args = digit_options("Train a convolutional network on MNIST.", lr=1e-2, out="out/mnist-cnn.png").parse_args(argv)
    torch.manual_seed(args.seed)
    run(CNN(), args)


if __name__ == "__main__":
    main()
