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
    Row("x-transformers==2.31.10", "language_transformers.py"),
    Row("vector-quantize-pytorch==1.32.0 vit-pytorch==1.26.11 rotary-embedding-torch==0.9.1 local-attention==1.11.2 "
        "ema-pytorch==0.8.3", "lucid_parts.py"),
    Row("open-clip-torch==3.3.0", "open_clip_models.py"),
    Row("segmentation-models-pytorch==0.6.0", "segmentation.py"),
    Row("monai==1.6.1", "medical_imaging.py"),
    Row("pytorch-ignite==0.5.5", "ignite_engine.py"),
    Row("pytorch-tabnet==4.1.0", "tabnet.py"),
    Row("botorch==0.18.1", "bayesian_optimization.py"),
    Row("torchsde==0.2.6", "stochastic_equations.py"),
    Row("zuko==1.6.0", "normalizing_flows.py"),
    Row("geoopt==0.5.1", "manifold_optimizers.py"),
    Row("pytorch-optimizer==4.1.0", "optimizer_collection.py"),
    Row("lion-pytorch==0.2.5 schedulefree==1.4.1 prodigyopt==1.1.2", "small_optimizers.py"),
    Row("thop==0.1.1.post2209072238 ptflops==0.7.5 torchsummary==1.5.1", "counting_layers.py"),
    Row("einx==0.4.3 jaxtyping==0.3.11 pytorch-crf==0.7.2 loralib==0.1.2 efficientnet-pytorch==0.7.1",
        "named_axes.py"),
    Row("opacus==1.6.0", "private_training.py"),
    Row("tensordict==0.15.3", "tensor_dictionaries.py", apart=True,
        needs="pyvers orjson importlib_metadata cloudpickle"),
    Row("torchao==0.18.0", "quantized_weights.py", apart=True),
]
