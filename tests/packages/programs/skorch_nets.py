"""skorch: a network as a scikit-learn estimator: fit, predict, a pipeline, a grid search, saving and loading."""
import pickle
import tempfile

import numpy as np
import torch
from sklearn.datasets import make_classification, make_regression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch import NeuralNetClassifier, NeuralNetRegressor
from skorch.callbacks import EarlyStopping, EpochScoring, LRScheduler

x, y = make_classification(120, 8, random_state=0)
x, y = x.astype(np.float32), y.astype(np.int64)


class Net(torch.nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8, width), torch.nn.ReLU(), torch.nn.Linear(width, 2),
                                          torch.nn.Softmax(-1))

    def forward(self, x):
        return self.layers(x)


torch.manual_seed(0)
net = NeuralNetClassifier(Net, max_epochs=6, lr=0.1, optimizer=torch.optim.SGD, optimizer__momentum=0.9, verbose=0,
                          iterator_train__shuffle=True,
                          callbacks=[EpochScoring("roc_auc", lower_is_better=False), EarlyStopping(patience=4),
                                     LRScheduler("StepLR", step_size=3)])
net.fit(x, y)
for row in net.history:
    print(row["epoch"], f"{row['train_loss']:.4f} {row['valid_loss']:.4f} {row['valid_acc']:.4f} {row['roc_auc']:.4f}")
print("predicts", net.predict(x[:8]).tolist(), [round(float(v), 4) for v in net.predict_proba(x[:2]).ravel()])
again = pickle.loads(pickle.dumps(net))
print("pickled", np.allclose(again.predict_proba(x), net.predict_proba(x)))
with tempfile.TemporaryDirectory() as folder:
    net.save_params(f_params=folder + "/w.pt", f_optimizer=folder + "/o.pt", f_history=folder + "/h.json")
    new = NeuralNetClassifier(Net, verbose=0).initialize()
    new.load_params(f_params=folder + "/w.pt", f_history=folder + "/h.json")
    print("saved and loaded", np.allclose(new.predict_proba(x), net.predict_proba(x)), len(new.history))
torch.manual_seed(1)
pipeline = make_pipeline(StandardScaler(), NeuralNetClassifier(Net, max_epochs=3, lr=0.1, verbose=0))
print("pipeline", f"{pipeline.fit(x, y).score(x, y):.4f}")
torch.manual_seed(2)
search = GridSearchCV(NeuralNetClassifier(Net, max_epochs=2, train_split=False, verbose=0),
                      {"lr": [0.05, 0.2], "module__width": [4, 8]}, cv=2, scoring="accuracy")
search.fit(x, y)
print("search", search.best_params_, [round(float(v), 4) for v in search.cv_results_["mean_test_score"]])
features, targets = make_regression(60, 8, random_state=0)
torch.manual_seed(3)
regressor = NeuralNetRegressor(torch.nn.Linear, module__in_features=8, module__out_features=1, lr=0.01, max_epochs=3, verbose=0)
regressor.fit(features.astype(np.float32), (targets / 100).astype(np.float32)[:, None])
print("regression", [round(row["train_loss"], 4) for row in regressor.history])
