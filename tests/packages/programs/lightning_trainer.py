"""lightning: a module, a data module, callbacks, a checkpoint, validation, test, prediction; Fabric."""
import tempfile
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger
from torch.utils.data import DataLoader, TensorDataset

warnings.simplefilter("ignore")
L.seed_everything(3)
x = torch.randn(96, 4)
y = (x[:, 0] * x[:, 1] > 0).long()


class Data(L.LightningDataModule):
    def train_dataloader(self):
        return DataLoader(TensorDataset(x[:64], y[:64]), batch_size=16, shuffle=True)

    def val_dataloader(self):
        return DataLoader(TensorDataset(x[64:], y[64:]), batch_size=16)

    test_dataloader = predict_dataloader = val_dataloader


class Classifier(L.LightningModule):
    def __init__(self, width=16):
        super().__init__()
        self.save_hyperparameters()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, width), torch.nn.Tanh(), torch.nn.Linear(width, 2))

    def forward(self, x):
        return self.net(x)

    def step(self, batch, name):
        loss = torch.nn.functional.cross_entropy(self(batch[0]), batch[1])
        self.log(f"{name}_loss", loss, prog_bar=True)
        return loss

    def training_step(self, batch, _):
        return self.step(batch, "train")

    def validation_step(self, batch, _):
        self.step(batch, "val")

    def test_step(self, batch, _):
        self.step(batch, "test")

    def predict_step(self, batch, _):
        return self(batch[0]).argmax(1)

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=0.02)
        return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 3)}


with tempfile.TemporaryDirectory() as folder:
    checkpoint = ModelCheckpoint(folder, monitor="val_loss", filename="best")
    trainer = L.Trainer(max_epochs=6, accelerator="cpu", logger=CSVLogger(folder), enable_progress_bar=False,
                        enable_model_summary=True, default_root_dir=folder, gradient_clip_val=1.0, log_every_n_steps=2,
                        callbacks=[checkpoint, EarlyStopping("val_loss", patience=4), LearningRateMonitor()])
    model = Classifier()
    trainer.fit(model, Data())
    print("fit", trainer.current_epoch, trainer.global_step, f"{trainer.callback_metrics['train_loss'].item():.4f}")
    print("validate", {k: round(v, 4) for k, v in trainer.validate(model, Data(), verbose=False)[0].items()})
    print("test", {k: round(v, 4) for k, v in trainer.test(model, Data(), verbose=False)[0].items()})
    print("predict", torch.cat(trainer.predict(model, Data())).tolist())
    again = Classifier.load_from_checkpoint(checkpoint.best_model_path)
    print("best", f"{checkpoint.best_model_score.item():.4f}", again.hparams, f"{again(x).abs().mean().item():.4f}")
    trainer = L.Trainer(max_epochs=8, accelerator="cpu", logger=False, enable_progress_bar=False,
                        enable_model_summary=False, default_root_dir=folder, enable_checkpointing=False)
    trainer.fit(Classifier(), Data(), ckpt_path=checkpoint.best_model_path)
    print("resumed", trainer.current_epoch, f"{trainer.callback_metrics['val_loss'].item():.4f}")
fabric = L.Fabric(accelerator="cpu", devices=1)
fabric.launch()
torch.manual_seed(0)
net = torch.nn.Linear(4, 2)
net, optimizer = fabric.setup(net, torch.optim.SGD(net.parameters(), lr=0.1))
for _ in range(2):
    loss = torch.nn.functional.cross_entropy(net(x), y)
    fabric.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    print("fabric", f"{loss.item():.5f}")
