"""fastai: a Learner with callbacks on tensors, a tabular model, and its layers."""
import tempfile

import numpy as np
import pandas as pd
import torch
from fastai.basics import DataLoader, DataLoaders, Learner, accuracy, set_seed
from fastai.callback.all import EarlyStoppingCallback, ProgressCallback, SaveModelCallback
from fastai.losses import CrossEntropyLossFlat
from fastai.tabular.all import Categorify, FillMissing, Normalize, TabularDataLoaders, tabular_learner
from fastai.vision.all import ConvLayer, xresnet18

set_seed(0, reproducible=True)
x = torch.randn(64, 6)
y = (x[:, :3].sum(1) > 0).long()
pairs = list(zip(x, y))
loaders = DataLoaders(DataLoader(pairs[:48], bs=16, shuffle=False), DataLoader(pairs[48:], bs=16))
with tempfile.TemporaryDirectory() as folder:
    net = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    learner = Learner(loaders, net, loss_func=CrossEntropyLossFlat(), metrics=accuracy, path=folder,
                      cbs=[EarlyStoppingCallback(patience=5), SaveModelCallback()]).remove_cbs(ProgressCallback)
    with learner.no_logging():
        learner.fit_one_cycle(4, 1e-2)
        learner.fit_flat_cos(2, 5e-3)
    print("learner", [round(float(v), 4) for v in learner.validate()])
    predictions, targets = learner.get_preds()
    print("predictions", [round(v, 4) for v in predictions[0].tolist()], type(predictions).__name__, targets.tolist())
    learner.save("weights")
    learner.load("weights")
    print("saved and loaded", [round(float(v), 4) for v in learner.validate()])
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(size=80), "weight": rng.normal(size=80), "kind": rng.choice(["a", "b"], 80)})
    table["target"] = (table["size"] * 2 - table["weight"] + (table["kind"] == "a")).astype("float32")
    loaders = TabularDataLoaders.from_df(table, procs=[Categorify, FillMissing, Normalize], cat_names=["kind"],
                                         cont_names=["size", "weight"], y_names="target", bs=16, valid_idx=range(60, 80))
    learner = tabular_learner(loaders, layers=[20], path=folder).remove_cbs(ProgressCallback)
    with learner.no_logging():
        learner.fit(3, 1e-2)
    print("tabular", [round(float(v), 3) for v in learner.validate()])
torch.manual_seed(0)
net = xresnet18(n_out=3).eval()
print("xresnet", [round(v, 4) for v in net(torch.ones(1, 3, 32, 32))[0].tolist()])
print("layer", ConvLayer(3, 4)(torch.ones(2, 3, 4, 4)).shape)
