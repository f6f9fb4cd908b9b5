"""Learn to balance a pole on a cart by trying: `python -m examples.cartpole`.

The policy sees where the cart is, how fast, and the same of the pole, and pushes left or right. After each episode
every push becomes more likely by how much better the rest of the episode went than expected (Williams, Simple
Statistical Gradient-Following Algorithms, 1992), with a second network as the expectation. (The cart: Barto, Sutton and
Anderson, Neuronlike Adaptive Elements That Can Solve Difficult Learning Control Problems, 1983.)
"""

import math

import tensorgrad as torch
from examples.toolkit.options import basic_options, positive
from tensorgrad import nn

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, STEP = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
WIDEST, STEEPEST, LONGEST = 2.4, math.radians(12), 200


class Carts:
    """Many carts at once: position, speed, angle and angular speed of each, (count, 4)."""

    def __init__(self, count):
        self.state = torch.rand(count, 4) * 0.1 - 0.05

    def push(self, right):
        """Push each cart for 0.02 s; True for those whose pole is still up."""
        x, speed, angle, turning = self.state.unbind(1)
        force = torch.where(right, FORCE, -FORCE)
        sine, cosine, mass = angle.sin(), angle.cos(), CART + POLE
        pulled = (force + POLE * HALF_LENGTH * turning ** 2 * sine) / mass
        swing = (GRAVITY * sine - cosine * pulled) / (HALF_LENGTH * (4 / 3 - POLE * cosine ** 2 / mass))
        drive = pulled - POLE * HALF_LENGTH * swing * cosine / mass
        self.state = torch.stack([x + STEP * speed, speed + STEP * drive, angle + STEP * turning,
                                  turning + STEP * swing], 1)
        return (self.state[:, 0].abs() < WIDEST) & (self.state[:, 2].abs() < STEEPEST)


@torch.no_grad()
def episodes(policy, count):
    """Run `count` carts until their poles fall: their states (T, count, 4), their pushes (T, count), and True where a
    pole is up (T, count).
    """
    carts, up = Carts(count), torch.ones(count, dtype=torch.bool)
    seen, done, alive = [], [], []
    while up.any() and len(seen) < LONGEST:
        right = torch.rand(count) < policy(carts.state)[:, 0].sigmoid()
        seen.append(carts.state), done.append(right), alive.append(up)
        up = up & carts.push(right)
    return torch.stack(seen), torch.stack(done), torch.stack(alive)


def returns(alive, discount):
    """The discounted sum of rewards from each step on, one for each step that the pole is up."""
    total, found = torch.zeros(alive.shape[1]), []
    for up in reversed(alive.float().unbind(0)):
        total = up * (1 + discount * total)
        found.append(total)
    return torch.stack(found[::-1])


def main(argv=None):
    parser = basic_options("Learn to balance a pole on a cart.")
    parser.add_argument("--rounds", type=positive, default=60, metavar="N", help="rounds of episodes")
    parser.add_argument("--carts", type=positive, default=32, metavar="N", help="episodes in a round")
    args = parser.parse_args(argv)
    torch.manual_seed(args.seed)
    policy = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    expected = nn.Sequential(nn.Linear(4, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam([*policy.parameters(), *expected.parameters()], lr=0.01)
    for round in range(1, args.rounds + 1):
        seen, right, alive = episodes(policy, args.carts)
        seen, right, rest = seen[alive], right[alive].float(), returns(alive, 0.98)[alive]
        guess = expected(seen)[:, 0]
        better = (rest - guess).detach()
        better = (better - better.mean()) / (better.std() + 1e-6)
        chances = nn.functional.binary_cross_entropy_with_logits(policy(seen)[:, 0], right, reduction="none")
        loss = (chances * better).mean() + 0.01 * nn.functional.mse_loss(guess, rest)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if round % 10 == 0 or round == args.rounds:
            print(f"round {round:3}: poles stayed up {alive.sum(0).float().mean().item():.1f} steps of {LONGEST}")


if __name__ == "__main__":
    main()
