"""Packages over PyTorch, and the programs that use them: the rows of the table in docs/guide/packages.md."""
from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Row:
    """Packages with their versions, a program that uses them, and what the program needs besides."""

    packages: str               # requirements, the first of which names the row
    program: str
    needs: str = ""             # further requirements
    apart: bool = False         # others find the package and import it: on the path of this program alone

    @property
    def names(self) -> list[str]:
        """Return the names of the packages."""
        return [re.split("[=<>]", package)[0] for package in self.packages.split()]

    @property
    def about(self) -> str:
        """Return what the program does: its docstring after the name."""
        text = ast.get_docstring(ast.parse((PROGRAMS / self.program).read_text(encoding="utf-8"))) or ""
        return text.partition(":")[2].strip().rstrip(".")


ROWS = [
    Row("transformers==5.24.0", "transformers_models.py"),
    Row("sentence-transformers==6.2.0", "sentence_embeddings.py"),
    Row("safetensors==0.8.0", "safetensors_files.py"),
    Row("accelerate==1.15.0", "accelerate_loop.py"),
    Row("lightning==2.6.6", "lightning_trainer.py"),
    Row("timm==1.0.31", "timm_models.py"),
    Row("diffusers==0.42.1", "diffusers_unet.py"),
    Row("fastai==2.8.12", "fastai_learner.py"),
    Row("peft==0.21.2", "peft_adapters.py"),
    Row("captum==0.9.0", "captum_attributions.py"),
    Row("gpytorch==1.15.2", "gaussian_processes.py"),
    Row("pyro-ppl==1.9.2", "pyro_inference.py"),
    Row("stable-baselines3==2.9.2", "reinforcement_learning.py"),
    Row("skorch==1.4.0", "skorch_nets.py"),
    Row("torchmetrics==1.9.0", "metrics.py", needs="scipy"),
    Row("einops==0.8.2", "einops_layers.py"),
    Row("e3nn==0.6.0", "e3nn_equivariance.py"),
    Row("torchvision==0.28.0", "torchvision_parts.py"),
    Row("kornia==0.9.0", "kornia_vision.py"),
    Row("pytorch-metric-learning==2.9.0", "metric_learning.py"),
    Row("torch-geometric==2.8.1", "graph_networks.py"),
    Row("xarray==2026.9.0", "xarray_beside.py"),
    Row("torchdiffeq==0.2.5", "neural_ode.py"),
    Row("torch-optimizer==0.3.0", "more_optimizers.py", needs="pytorch-ranger==0.1.1"),
    Row("torchinfo==1.8.0", "model_summary.py"),
    Row("tensorboardX==2.6.5", "event_files.py"),
    Row("entmax==1.3 opt_einsum==3.4.0 pytorch-msssim==1.0.0 torch-ema==0.3", "averages_and_activations.py"),
    Row("tensordict==0.15.3", "tensor_dictionaries.py", apart=True,
        needs="pyvers orjson importlib_metadata cloudpickle"),
    Row("torchao==0.18.0", "quantized_weights.py", apart=True),
]
