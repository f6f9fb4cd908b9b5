"""Teach a network to understand spoken digits: `python -m examples.speech.train -h` lists the options."""

import tensorgrad as torch
import tensorgrad.nn.functional as F
from examples.speech.sounds import BANDS, DIGITS, said, spectrograms
from examples.toolkit.options import positive, training_options
from examples.toolkit.progress import ProgressBar
from tensorgrad import nn


class Listener(nn.Module):
    """Convolutions over time find sounds, a GRU follows their order, its last states name the word."""

    def __init__(self, width=48):
        super().__init__()
        self.sounds = nn.Sequential(nn.Conv1d(BANDS, width, 5, stride=2, padding=2), nn.ReLU(),
                                    nn.Conv1d(width, width, 5, padding=2), nn.ReLU())
        self.order = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.name = nn.Linear(2 * width, len(DIGITS))

    def forward(self, x):
        _, last = self.order(self.sounds(x).transpose(1, 2))
        return self.name(torch.cat([last[0], last[1]], dim=1))


def accuracy(model, x, y):
    """The share of words that are understood."""
    model.eval()
    with torch.no_grad():
        right = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return right


def main(argv=None):
    parser = training_options("Teach a network to understand spoken digits.", lr=4e-3)
    parser.add_argument("--epochs", type=positive, default=12, metavar="N", help="passes over the words")
    parser.add_argument("--words", type=positive, default=1000, metavar="N",
                        help="words to learn from; a fifth more to test on")
    args = parser.parse_args(argv)
    torch.manual_seed(args.seed)
    sounds, digits = said(args.words + args.words // 5)
    x, y = spectrograms(sounds).to(args.device), digits.to(args.device)
    held_out = slice(args.words, None)
    model = Listener().to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    print(f"{args.words} words of {sounds.shape[1]} samples, {x.shape[1]} bands by {x.shape[2]} moments, on "
          f"{args.device}")
    for epoch in range(1, args.epochs + 1):
        order = torch.randperm(args.words)
        bar = ProgressBar(order.split(args.batch_size), prefix=f"epoch {epoch}/{args.epochs}")
        for some in bar:
            loss = F.cross_entropy(model(x[some]), y[some])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            bar.note(loss=loss.item())
    print(f"{100 * accuracy(model, x[held_out], y[held_out]):.1f} % of the test words understood")


if __name__ == "__main__":
    main()
