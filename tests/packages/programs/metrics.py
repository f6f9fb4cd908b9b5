"""torchmetrics: metrics of many kinds, batch by batch, in collections and wrappers."""
import pickle

import torch
import torchmetrics as tm
from torchmetrics import (
    MetricCollection,
    aggregation,
    classification,
    clustering,
    image,
    nominal,
    regression,
    retrieval,
    text,
    wrappers,
)
from torchmetrics.functional import pairwise_cosine_similarity

g = torch.Generator().manual_seed(0)


def rand(*shape):
    return torch.rand(*shape, generator=g)


def classes(n, *shape):
    return torch.randint(n, shape, generator=g)


def show(name, metric, *batches):
    step = [metric(*batch) for batch in batches][0]
    print(name, rounded(step), rounded(metric.compute()))
    metric.reset()


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(v) for v in value]
    return [round(v, 5) for v in value.double().reshape(-1).tolist()], value.dtype


binary = [(rand(20), classes(2, 20)) for _ in range(2)]
multiclass = [(rand(20, 4).softmax(-1), classes(4, 20)) for _ in range(2)]
multilabel = [(rand(20, 3), classes(2, 20, 3)) for _ in range(2)]
for name in ("Accuracy", "F1Score", "AUROC", "AveragePrecision", "ConfusionMatrix", "CohenKappa", "MatthewsCorrCoef",
             "CalibrationError", "ROC", "HingeLoss"):
    show(name, getattr(classification, f"Binary{name}")(), *binary)
    show(name, getattr(classification, f"Multiclass{name}")(num_classes=4), *multiclass)
for name in ("Accuracy", "AUROC", "RankingLoss", "ExactMatch"):
    show(name, getattr(classification, f"Multilabel{name}")(num_labels=3), *multilabel)
numbers = [(rand(30), rand(30)) for _ in range(2)]
for name in ("MeanSquaredError", "MeanAbsolutePercentageError", "PearsonCorrCoef", "SpearmanCorrCoef",
             "KendallRankCorrCoef", "R2Score", "LogCoshError"):
    show(name, getattr(regression, name)(), *numbers)
for name in ("RetrievalMAP", "RetrievalNormalizedDCG", "RetrievalMRR", "RetrievalHitRate"):
    show(name, getattr(retrieval, name)(), *[(rand(20), classes(2, 20), classes(4, 20)) for _ in range(2)])
show("DaviesBouldin", clustering.DaviesBouldinScore(), (rand(30, 3), classes(3, 30)))
show("CramersV", nominal.CramersV(3), (classes(3, 30), classes(3, 30)))
for name in ("PeakSignalNoiseRatio", "StructuralSimilarityIndexMeasure", "UniversalImageQualityIndex",
             "SpectralAngleMapper"):
    options = {"data_range": 1.0} if name.startswith(("Peak", "Struct")) else {}
    show(name, getattr(image, name)(**options), (rand(2, 3, 16, 16), rand(2, 3, 16, 16)))
show("WER", text.WordErrorRate(), (["hello there world"], ["hello big world"]))
show("BLEU", text.BLEUScore(n_gram=2), (["the cat is here"], [["the cat sat here"]]))
show("perplexity", text.Perplexity(), (rand(2, 6, 5), classes(5, 2, 6)))
for name in ("SumMetric", "MeanMetric", "MaxMetric", "CatMetric", "RunningMean"):
    show(name, getattr(aggregation, name)(), (torch.tensor([1.0, 2.0]),), (torch.tensor(3.0),))
torch.manual_seed(1)
show("bootstrap", wrappers.BootStrapper(regression.MeanSquaredError(), num_bootstraps=4), *numbers)
show("classwise", wrappers.ClasswiseWrapper(classification.MulticlassAccuracy(4, average=None)), *multiclass)
collection = MetricCollection([classification.MulticlassAccuracy(4), classification.MulticlassPrecision(4),
                               classification.MulticlassRecall(4)], prefix="val_")
for batch in multiclass:
    collection.update(*batch)
print(rounded(collection.compute()), collection.compute_groups)
again = pickle.loads(pickle.dumps(collection["MulticlassAccuracy"]))
print(rounded(again.compute()), again.metric_state, again)
print(pairwise_cosine_similarity(rand(3, 4), rand(2, 4)))
x = rand(6).requires_grad_()
tm.MeanSquaredError()(x, rand(6)).backward()
print(x.grad)
