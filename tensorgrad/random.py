"""torch.random: the default generators. https://pytorch.org/docs/stable/random.html"""
from .api.random import fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from .generator import default_generator

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]
