"""How many parameters the architectures have, and whether each is the same in all the ways it is written: `python -m
examples.architectures`.
"""

import tensorgrad as torch
from examples.architectures import encoder_decoder, lstm_tagger, resnet, two_heads, vgg, wide_resnet
from examples.architectures.comparing import copy_weights, parameter_count, same_outputs
from examples.toolkit.options import basic_options

ARCHITECTURES = encoder_decoder, vgg, resnet, wide_resnet, lstm_tagger, two_heads
WAYS = "symbolic", "chained", "layers"      # in which an architecture may be written, beside plain


def ways(architecture):
    """The ways in which it is written: name → function that makes the network."""
    return {name: getattr(architecture, name) for name in WAYS if hasattr(architecture, name)}


def compare(architecture):
    """The number of parameters, and for each way whether it is the plain network."""
    plain, inputs = architecture.plain(), architecture.inputs()
    same = {}
    for name, make in ways(architecture).items():
        copy_weights(plain, model := make())
        same[name] = same_outputs(plain, model, inputs)
    return parameter_count(plain), same


def main(argv=None):
    args = basic_options("Compare architectures that are written as graphs of symbols and as layers with plain "
                         "modules.").parse_args(argv)
    torch.manual_seed(args.seed)
    print(f"{'architecture':18}{'parameters':>12}   same as the plain module")
    for architecture in ARCHITECTURES:
        count, same = compare(architecture)
        verdicts = ", ".join(f"{name}: {'yes' if equal else 'NO'}" for name, equal in same.items())
        print(f"{architecture.__name__.rpartition('.')[2]:18}{count:>12,}   {verdicts}")
        if not all(same.values()):
            raise SystemExit("They differ.")


if __name__ == "__main__":
    main()
