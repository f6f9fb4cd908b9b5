"""pytorch-ignite: a trainer and an evaluator with metrics, handlers, checkpoints, schedules and events."""

import tempfile
from pathlib import Path

import torch
from ignite.engine import Engine, Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import (
    Checkpoint,
    CosineAnnealingScheduler,
    DiskSaver,
    EarlyStopping,
    EMAHandler,
    FastaiLRFinder,
    TerminateOnNan,
    create_lr_scheduler_with_warmup,
)
from ignite.metrics import (
    Accuracy,
    ConfusionMatrix,
    Loss,
    MeanSquaredError,
    Precision,
    Recall,
    RunningAverage,
    TopKCategoricalAccuracy,
)
from ignite.utils import convert_tensor, manual_seed, to_onehot

manual_seed(0)
x = torch.randn(60, 5)
y = (x[:, 0] + x[:, 1] > 0).long() + (x[:, 2] > 0.5).long()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=12)
model = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.5)
criterion = torch.nn.CrossEntropyLoss()
trainer = create_supervised_trainer(model, optimizer, criterion, gradient_accumulation_steps=2)
precision, recall = Precision(average=False), Recall(average=False)
evaluator = create_supervised_evaluator(
    model,
    metrics={
        "accuracy": Accuracy(),
        "loss": Loss(criterion),
        "top": TopKCategoricalAccuracy(2),
        "matrix": ConfusionMatrix(3),
        "f1": (precision * recall * 2 / (precision + recall)).mean(),
    },
)
RunningAverage(output_transform=lambda loss: loss).attach(trainer, "smooth")
schedule = create_lr_scheduler_with_warmup(CosineAnnealingScheduler(optimizer, "lr", 0.5, 0.05, 20), 0.1, 5)
trainer.add_event_handler(Events.ITERATION_STARTED, schedule)
trainer.add_event_handler(Events.ITERATION_COMPLETED, TerminateOnNan())
EMAHandler(model, momentum=0.1).attach(trainer)
stopping = EarlyStopping(patience=2, score_function=lambda engine: -engine.state.metrics["loss"], trainer=trainer)
evaluator.add_event_handler(Events.COMPLETED, stopping)


@trainer.on(Events.EPOCH_COMPLETED(every=2))
def evaluate(engine):
    found = evaluator.run(loader).metrics
    print(
        engine.state.epoch,
        engine.state.metrics["smooth"],
        {name: torch.as_tensor(found[name]) for name in sorted(found)},
        optimizer.param_groups[0]["lr"],
    )


with tempfile.TemporaryDirectory() as folder:
    parts = {"model": model, "optimizer": optimizer, "trainer": trainer}
    saver = Checkpoint(
        parts,
        DiskSaver(folder),
        n_saved=2,
        score_name="loss",
        score_function=lambda engine: -engine.state.metrics["loss"],
        global_step_transform=lambda *_: trainer.state.epoch,
    )
    evaluator.add_event_handler(Events.COMPLETED, saver)
    trainer.run(loader, max_epochs=6)
    print(len(list(Path(folder).iterdir())), Path(saver.last_checkpoint).name[:20])
    again = torch.nn.Sequential(torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))
    Checkpoint.load_objects({"model": again}, torch.load(Path(folder) / saver.last_checkpoint, weights_only=True))
    print("loaded", again(x[:2]))

errors = Engine(lambda engine, batch: batch)
MeanSquaredError().attach(errors, "mse")
print("mse", errors.run([(torch.ones(3), torch.zeros(3)), (torch.ones(1), torch.ones(1))]).metrics)
finder = FastaiLRFinder()
with finder.attach(trainer, to_save={"model": model, "optimizer": optimizer}, num_iter=8, end_lr=1.0) as finding:
    finding.run(loader)
print("rates", [round(rate, 6) for rate in finder.get_results()["lr"]][:4])
print(to_onehot(torch.tensor([0, 2]), 3), convert_tensor({"a": torch.ones(1)}, device="cpu"))
