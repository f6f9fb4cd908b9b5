"""A data module of any two data sets."""

from typing import Any

from tensorgrad.experiment import DataModule, datasets
from tensorgrad.utils.data import DataLoader


@datasets.register("loaders")
class Loaders(DataModule):
    """Shuffled batches of one data set to train on, and batches of another to validate with."""

    def __init__(self, train_dataset_spec: dict, val_dataset_spec: dict | None = None, batch_size: int = 64,
                 drop_last: bool = False) -> None:
        super().__init__()
        self.specs, self.batch_size, self.drop_last = (train_dataset_spec, val_dataset_spec), batch_size, drop_last

    def setup(self, stage: str) -> None:
        self.train: Any
        self.val: Any
        self.train, self.val = (None if spec is None else datasets.make(spec) for spec in self.specs)

    def train_dataloader(self) -> DataLoader:
        return DataLoader(self.train, self.batch_size, shuffle=True, drop_last=self.drop_last)

    def val_dataloader(self) -> DataLoader | list:
        return [] if self.val is None else DataLoader(self.val, self.batch_size)
