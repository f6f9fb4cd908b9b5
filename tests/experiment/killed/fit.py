"""A fit that resumes where it was killed: `fit.py DIRECTORY KIND WORKERS`, of a classifier or a GAN, with a checkpoint
every other step."""

import random
import sys
from pathlib import Path

import numpy as np
from experiment_parts import rows
from killing import digest

import tensorgrad as torch
from tensorgrad.experiment import Callback, GANWrapper, Module, Run, Trainer, streams
from tensorgrad.experiment.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint

SAMPLES, BATCH, EPOCHS = 22, 4, 3


class Points(torch.utils.data.Dataset):
    """Points of a plane, moved at random whenever they are asked for."""

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        noise = torch.tensor([random.gauss(0, 0.1), np.random.normal(0, 0.1)], dtype=torch.float32) + 0.1 * torch.randn(
            2
        )
        return {"img": torch.tensor([index / SAMPLES, index % 3]) + noise, "label": index % 2}


class Classifier(Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(2, 8),
            torch.nn.BatchNorm1d(8),
            torch.nn.ReLU(),
            torch.nn.Dropout(0.3),
            torch.nn.Linear(8, 2),
        )

    def loss(self, batch):
        return torch.nn.functional.cross_entropy(self.layers(batch["img"]), batch["label"])

    def training_step(self, batch, batch_idx):
        loss = self.loss(batch)
        self.log("loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val_loss", self.loss(batch) + 0.01 * random.random())

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, 0.05, total_steps=self.trainer.estimated_stepping_batches
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def gan():
    layers = {"in_dim": 3, "out_dim": 2, "hidden_list": [8]}
    return GANWrapper(
        {"name": "mlp", "args": layers},
        {"name": "mlp", "args": {"in_dim": 2, "out_dim": 1, "hidden_list": [8]}},
        latent_dim=3,
        n_critic=2,
        scheduler_spec={"name": "ExponentialLR", "args": {"gamma": 0.9}},
    )


class Tells(Callback):
    order = 3

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        print("step", trainer.global_step, flush=True)


def main(directory, kind, workers):
    random.seed(1), np.random.seed(2), torch.manual_seed(3)
    module, monitor = (Classifier(), "val_loss") if kind == "classifier" else (gan(), "val_g_loss")
    train, validation = (
        torch.utils.data.DataLoader(Points(), batch_size=BATCH, shuffle=shuffle, num_workers=workers)
        for shuffle in (True, False)
    )
    with Run(directory, resume=True, quiet=True) as run:
        save = ModelCheckpoint(monitor=monitor, save_top_k=2, every_n_train_steps=2, every_n_epochs=1)
        stop = EarlyStopping(monitor, patience=20)
        trainer = Trainer(
            max_epochs=EPOCHS,
            run=run,
            callbacks=[save, stop, LearningRateMonitor(), Tells()],
            log_every_n_steps=2,
            val_check_interval=0.5,
            accelerator="cpu",
        )
        trainer.fit(module, train, validation, ckpt_path="last")
    print(
        "digest",
        digest(
            [
                module.state_dict(),
                [one.state_dict() for one in trainer.optimizers],
                [one.state_dict() for one in trainer.lr_schedulers],
                streams.state(),
                save.state_dict(),
                stop.state_dict(),
                rows(Path(directory)),
                trainer.global_step,
            ]
        ),
        flush=True,
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
