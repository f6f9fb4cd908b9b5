"""Command-line options, spelt alike in all examples."""

import argparse


class Help(argparse.ArgumentDefaultsHelpFormatter):
    """Show the defaults, where there are any."""

    def _get_help_string(self, action):
        return action.help if action.default is None else super()._get_help_string(action)


def basic_options(description):
    """A parser that knows `--seed`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=Help)
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="start of the random numbers")
    return parser


def training_options(description, lr):
    """A parser with the options that every training program has."""
    parser = basic_options(description)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="where to compute")
    parser.add_argument("--batch_size", type=positive, default=32, metavar="N", help="samples a step")
    parser.add_argument("--lr", type=float, default=lr, help="the highest learning rate of the schedule")
    return parser


def positive(text):
    """An int above zero."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not above 0")
    return number
