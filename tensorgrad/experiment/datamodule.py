"""DataModule: the data of an experiment in one place."""

from __future__ import annotations

from typing import Any

from .hooks import DataHooks
from .hparams import HasHyperparameters

__all__ = ["DataModule", "LightningDataModule", "Loaders"]


class Loaders:
    """Where batches come from: override those that you need. Each returns anything with batches to iterate over, or for
    all but training a list of such."""

    def train_dataloader(self) -> Any:
        """The batches of training."""

    def val_dataloader(self) -> Any:
        """The batches of validation."""

    def test_dataloader(self) -> Any:
        """The batches of a test."""

    def predict_dataloader(self) -> Any:
        """The batches of a prediction."""


class DataModule(Loaders, DataHooks, HasHyperparameters):
    """Prepares data and gives loaders of it.

    `prepare_data` downloads or unpacks, in one process; `setup(stage)` makes the datasets, in each process that trains;
    the loaders follow. A checkpoint keeps what `state_dict` returns.

    >>> import tensorgrad as torch
    >>> from tensorgrad.experiment import DataModule
    >>> class Squares(DataModule):
    ...     def setup(self, stage):
    ...         self.data = torch.utils.data.TensorDataset(torch.arange(4.), torch.arange(4.) ** 2)
    ...     def train_dataloader(self):
    ...         return torch.utils.data.DataLoader(self.data, batch_size=2)
    """

    trainer: Any = None

    def prepare_data(self) -> None:
        """Download or unpack data. Called in a single process: do not assign to `self`."""

    def setup(self, stage: str) -> None:
        """Make the datasets. Called in every process, with the stage: "fit", "validate", "test" or "predict"."""

    def teardown(self, stage: str) -> None:
        """Called after a stage."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state that a checkpoint saves for this data module: plain values and tensors."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state from a checkpoint."""

    def on_exception(self, exception: BaseException) -> None:
        """Called when an exception ends a run."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "trainer"}


LightningDataModule = DataModule
