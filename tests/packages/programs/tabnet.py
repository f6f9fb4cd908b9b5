"""pytorch-tabnet: a classifier, a regressor and a pretrainer on tables, with attention masks, saving and loading."""

import tempfile
import warnings
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import torch
from pytorch_tabnet.pretraining import TabNetPretrainer
from pytorch_tabnet.tab_model import TabNetClassifier, TabNetRegressor

warnings.simplefilter("ignore")
random = np.random.default_rng(0)
x = random.standard_normal((120, 6)).astype("float32")
x[:, 5] = random.integers(0, 4, 120)
y = (x[:, 0] * x[:, 1] > 0).astype(int) + (x[:, 5] > 2)
common = {
    "n_d": 8,
    "n_a": 8,
    "n_steps": 3,
    "cat_idxs": [5],
    "cat_dims": [4],
    "cat_emb_dim": 2,
    "seed": 0,
    "verbose": 0,
    "device_name": "cpu",
}
fitting = {"max_epochs": 4, "batch_size": 40, "virtual_batch_size": 20, "drop_last": False}
for mask in ("sparsemax", "entmax"):
    model = TabNetClassifier(
        **common,
        mask_type=mask,
        optimizer_params={"lr": 0.02},
        scheduler_fn=torch.optim.lr_scheduler.StepLR,
        scheduler_params={"step_size": 2},
    )
    model.fit(
        x[:100], y[:100], eval_set=[(x[100:], y[100:])], eval_metric=["accuracy", "logloss"], weights=1, **fitting
    )
    print(mask, {name: np.round(model.history[name], 4).tolist() for name in ("loss", "val_0_logloss", "lr")})
    print(model.predict_proba(x[:3]).round(4), model.feature_importances_.round(4))
explained, masks = model.explain(x[:4])
print("explained", explained.round(3)[0], sorted(masks), masks[1].round(3)[1])
with tempfile.TemporaryDirectory() as folder:
    with redirect_stdout(StringIO()):
        path = model.save_model(folder + "/model")
    again = TabNetClassifier()
    again.load_model(path)
    print("loaded", np.array_equal(again.predict(x), model.predict(x)))
model = TabNetRegressor(**common)
model.fit(x, np.stack([x[:, 0], x[:, 1] ** 2], 1), loss_fn=torch.nn.functional.smooth_l1_loss, **fitting)
print("regressor", np.round(model.history["loss"], 4).tolist(), model.predict(x[:2]).round(4))
before = TabNetPretrainer(**common, optimizer_fn=torch.optim.SGD, optimizer_params={"lr": 0.01})
before.fit(x, pretraining_ratio=0.5, **fitting)
print("pretrainer", np.round(before.history["loss"], 4).tolist())
model = TabNetClassifier(**common, optimizer_fn=torch.optim.SGD, optimizer_params={"lr": 0.01})
model.fit(x, y, from_unsupervised=before, **fitting)
print("after it", np.round(model.history["loss"], 4).tolist())
