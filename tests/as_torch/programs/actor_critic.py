"""An actor and a critic, with continuous actions, on a tiny environment."""
from collections import namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

SavedAction = namedtuple("SavedAction", ["log_prob", "value", "entropy"])


class Point:
    """Steer a point to the origin."""

    def reset(self, generator):
        self.x = torch.rand(2, generator=generator) * 2 - 1
        return self.x.clone()

    def step(self, action):
        self.x = (self.x + 0.3 * action.clamp(-1, 1)).clamp(-2, 2)
        return self.x.clone(), -float(self.x.norm())


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 24), nn.Tanh())
        self.mean = nn.Linear(24, 2)
        self.log_std = nn.Parameter(torch.full((2,), -0.5))
        self.value = nn.Linear(24, 1)
        for m in self.modules():
            if isinstance(m, nn.Linear):
                nn.init.orthogonal_(m.weight, gain=nn.init.calculate_gain("tanh"))
                nn.init.zeros_(m.bias)

    def forward(self, x):
        x = self.body(x)
        return Normal(self.mean(x), self.log_std.exp()), self.value(x)


torch.manual_seed(1)
generator = torch.Generator().manual_seed(11)
env, model = Point(), Policy()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-2, amsgrad=True)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-2, total_steps=30)
for episode in range(30):
    state, saved, rewards = env.reset(generator), [], []
    for _ in range(15):
        m, value = model(state)
        action = m.sample()
        saved.append(SavedAction(m.log_prob(action).sum(), value.squeeze(), m.entropy().sum()))
        state, reward = env.step(action)
        rewards.append(reward)
    R, returns = 0.0, []
    for r in reversed(rewards):
        R = r + 0.9 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    policy_losses = [-a.log_prob * (R - a.value.item()) - 0.01 * a.entropy for a, R in zip(saved, returns)]
    value_losses = [F.smooth_l1_loss(a.value, R) for a, R in zip(saved, returns)]
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    print(episode, loss.item(), sum(rewards), scheduler.get_last_lr()[0])
