"""Tests that packages bring in their own source distributions: of those that pass over PyTorch, how many pass over
tensorgrad. `make packages` runs them after the programs, and writes the second table of docs/guide/packages.md.

A process may die in a test, so `recorded.py`, a plugin of pytest, writes each outcome down as it happens; whatever
follows the death counts as not passed.
"""
from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

SECONDS, SECONDS_OF_A_TEST = 3600, 120
HERE = Path(__file__).parent


@dataclass(frozen=True)
class OwnTests:
    """Test files of a package's source distribution."""

    package: str                # with its version
    files: str                  # relative to `folder`; of this repository, if they begin with suites/
    folder: str = "tests"       # of the source distribution
    every: int = 1              # one test in so many is run, chosen by its name
    needs: str = ""             # what the tests import besides
    without: str = ""           # files to leave out, whose tests have random parameters, and so random names
    relative: bool = False      # the tests import each other: their folder is made a package
    doctests: bool = False      # `files` are modules of the installed package, whose examples are the tests

    @property
    def name(self) -> str:
        """Return the package's name."""
        return self.package.partition("==")[0]

    @property
    def title(self) -> str:
        """Return the first column of the table."""
        return self.package.replace("==", " ")

    @property
    def about(self) -> str:
        """Return which tests are run, for the page."""
        sampled = ", without " + ", ".join(f"`{name}`" for name in self.without.split()) if self.without else ""
        sampled += "" if self.every == 1 else f", one in {self.every}"
        if self.files.startswith("suites/"):
            return "the tests common to all models, on BERT, GPT-2, Llama and T5" + sampled
        if self.doctests:
            return "examples in the docstrings of " + ", ".join(f"`{name}`" for name in self.files.split()) + sampled
        return f"{self.folder}/: " + ", ".join(f"`{name}`" for name in self.files.split()) + sampled

    def arguments(self, source: Path) -> list[str]:
        """Return pytest's arguments, after putting files of this repository into the distribution's folder."""
        if self.relative:
            (source / self.folder / "__init__.py").touch()
        if self.files.startswith("suites/"):
            files = [shutil.copy(HERE / self.files, source / self.folder / "test_of_models.py")]
        else:
            files = self.files.split() if self.doctests else [f"{self.folder}/{name}" for name in self.files.split()]
        chosen = ["-k", "not ({})".format(" or ".join(self.without.split()))] if self.without else []
        return [*files, *chosen, *(["--doctest-modules", "--pyargs"] if self.doctests else [])]


def outcomes(report: Path) -> dict[str, tuple[str, str]]:
    """Return {test: (outcome, last line of its error)} of a report that `recorded.py` wrote."""
    lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else []
    return {test: (outcome, error) for test, outcome, error in map(json.loads, lines)}


def compared(ours: dict[str, tuple[str, str]], theirs: dict[str, tuple[str, str]]) -> tuple[int, int, str]:
    """Return how many tests pass over both, how many over PyTorch, and a text: the others by their errors."""
    counted = [test for test, (outcome, _) in theirs.items() if outcome == "passed"]
    lost = {test: ours.get(test, ("not run", "")) for test in counted if ours.get(test, ("", ""))[0] != "passed"}
    lines = []
    for (outcome, error), count in Counter(lost.values()).most_common():
        lines.append(f"{count} {outcome}: {error}")
        lines += [f"    {test}" for test in sorted(lost) if lost[test] == (outcome, error)]
    return len(counted) - len(lost), len(counted), "\n".join(lines)


OWN_TESTS = [
    OwnTests("transformers==5.24.0", "suites/transformers_models.py", relative=True,
             needs="parameterized==0.9.0"),
    OwnTests("accelerate==1.15.0", "test_hooks.py test_data_loader.py test_modeling_utils.py test_optimizer.py "
             "test_scheduler.py test_offload.py test_utils.py test_accelerator.py test_big_modeling.py "
             "test_state_checkpointing.py test_kwargs_handlers.py test_dataclasses.py test_memory_utils.py "
             "test_grad_sync.py test_logging.py test_activation_checkpointing_offload.py",
             needs="parameterized==0.9.0"),
    OwnTests("timm==1.0.31", "test_layers.py test_layers_drop.py test_layers_pool.py test_layers_pos_embed.py",
             every=4),
    OwnTests("peft==0.21.2", "test_custom_models.py test_tuners_utils.py test_low_level_api.py test_mixed.py "
             "test_bufferdict.py test_boft.py test_loraplus.py test_osf.py", relative=True, every=60,
             needs="parameterized datasets"),
    OwnTests("gpytorch==1.15.2", "kernels distributions likelihoods priors means mlls constraints functions "
             "variational optim metrics utils", folder="test", every=8),
    OwnTests("pyro-ppl==1.9.2", "test_generic.py test_primitives.py test_settings.py test_util.py"),
    OwnTests("stable-baselines3==2.9.2", "test_distributions.py test_preprocessing.py test_buffers.py test_spaces.py "
             "test_gae.py test_vec_normalize.py test_train_eval_mode.py test_vec_stacked_obs.py test_n_step_replay.py "
             "test_utils.py test_save_load.py", every=8),
    OwnTests("skorch==1.4.0", "test_dataset.py test_classifier.py test_regressor.py test_history.py test_helper.py "
             "test_utils.py test_net.py callbacks test_setter.py test_toy.py test_scoring.py", folder="skorch/tests",
             needs="flaky pandas"),
    OwnTests("torchmetrics==1.9.0", "torchmetrics.classification torchmetrics.regression", doctests=True, every=8,
             needs="scipy"),
    OwnTests("einops==0.8.2", "test_ops.py test_layers.py test_packing.py test_einsum.py test_other.py test_parsing.py",
             folder="einops/tests", needs="parameterized"),
    OwnTests("e3nn==0.6.0", "o3 nn math util defaults_test.py", every=4,
             without="linear_test.py tensor_product_test.py"),
    OwnTests("lightning==2.6.6", "lightning.pytorch lightning.fabric", doctests=True),
    OwnTests("torch-optimizer==0.3.0", "test_basic.py test_param_validation.py test_optimizer.py "
             "test_optimizer_with_nn.py"),
]
