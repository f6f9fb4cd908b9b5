"""The smallest task that needs a hidden layer: `python -m examples.xor`."""

import tensorgrad as torch
from examples.toolkit.options import basic_options, positive
from tensorgrad import nn


def main(argv=None):
    parser = basic_options("Learn exclusive or.")
    parser.add_argument("--steps", type=positive, default=5000, metavar="N", help="steps of gradient descent")
    args = parser.parse_args(argv)
    torch.manual_seed(args.seed)

    x = torch.tensor([[0.0, 1.0], [0.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    targets = torch.tensor([1, 0, 0, 1])

    model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

    for _ in range(args.steps):
        optimizer.zero_grad()
        loss = criterion(model(x), targets)
        loss.backward()
        optimizer.step()

    with torch.no_grad():
        softmax = model(x).softmax(dim=1)
    print("targets:   ", targets.numpy())
    print("prediction:", softmax.argmax(dim=1).numpy())
    print("softmax:   ", [[round(chance, 4) for chance in row] for row in softmax.tolist()])


if __name__ == "__main__":
    main()
