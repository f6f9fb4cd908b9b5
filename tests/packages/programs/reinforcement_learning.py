"""stable-baselines3: PPO, A2C and DQN on CartPole, SAC on Pendulum; saving and loading."""
import tempfile

import gymnasium
import torch
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.evaluation import evaluate_policy

for kind, environment, options in (
        (PPO, "CartPole-v1", {"n_steps": 64, "n_epochs": 2}), (A2C, "CartPole-v1", {}),
        (DQN, "CartPole-v1", {"learning_starts": 20, "buffer_size": 500}),
        (SAC, "Pendulum-v1", {"learning_starts": 20, "buffer_size": 500}),
        (TD3, "Pendulum-v1", {"learning_starts": 20, "buffer_size": 500})):
    model = kind("MlpPolicy", environment, seed=0, device="cpu", policy_kwargs={"net_arch": [32, 32]}, **options)
    model.learn(128 if kind is not SAC else 60)
    weights = torch.cat([p.detach().flatten() for p in model.policy.parameters()])
    print(kind.__name__, model.num_timesteps, len(weights), f"{weights.abs().mean().item():.4f} {weights.std().item():.4f}")
    observation, _ = gymnasium.make(environment).reset(seed=1)
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder + "/model")
        again = kind.load(folder + "/model", device="cpu")
    print(kind.__name__, "acts", [round(float(v), 3) for v in model.predict(observation, deterministic=True)[0].reshape(-1)],
          (model.predict(observation, deterministic=True)[0] == again.predict(observation, deterministic=True)[0]).all())
    if kind is PPO:
        print("evaluated", evaluate_policy(model, model.get_env(), 2, warn=False))
