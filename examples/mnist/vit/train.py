"""Train a vision transformer on MNIST: `python -m examples.mnist.vit.train -h` lists the options."""

import tensorgrad as torch
from examples.mnist.training import digit_options, run
from examples.mnist.vit.model import ViT
from examples.toolkit.options import positive


def main(argv=None):
    parser = digit_options("Train a vision transformer on MNIST.", lr=2e-3, out="out/mnist-vit.png")
    parser.add_argument("--patch_size", type=positive, default=4, metavar="N", help="pixels along a patch's side")
    parser.add_argument("--embed", type=positive, default=128, metavar="N", help="numbers that describe a patch")
    parser.add_argument("--num_heads", type=positive, default=2, metavar="N", help="attention heads")
    parser.add_argument("--num_layers", type=positive, default=1, metavar="N", help="transformer layers")
    args = parser.parse_args(argv)
    torch.manual_seed(args.seed)
    run(ViT(patch_size=args.patch_size, embed=args.embed, num_heads=args.num_heads, num_layers=args.num_layers), args)


if __name__ == "__main__":
    main()
