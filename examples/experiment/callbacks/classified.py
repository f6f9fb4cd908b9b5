"""Draw a classifier's confusion matrix and worst mistakes on the validation images."""

import tensorgrad as torch
from tensorgrad.experiment import callbacks
from tensorgrad.experiment.batches import moved

from .pictures import Picture, curve

ROWS, COLUMNS = 4, 6


@callbacks.register("classified")
class Classified(Picture):
    """Draws the curves of training, which digits are taken for which, and those images that are wrong by most."""

    def __init__(self, file: str = "classified.png") -> None:
        super().__init__(file)

    def draw(self, figure, trainer, module) -> None:
        images, labels, chances = predictions(trainer, module)
        guesses = chances.argmax(1)
        right = (guesses == labels).float().mean().item()
        figure.set_size_inches(14.5, 4.9)
        figure.suptitle(f"{len(labels):,} digits that were not trained on: {right:.1%} right")
        left, middle, digits = figure.subfigures(1, 3, width_ratios=[1, 1, 1.25])
        draw_curves(left.subplots(), trainer.run)
        draw_confusion(middle.subplots(), labels, guesses, chances.shape[1])
        wrong = (guesses != labels).nonzero().flatten()
        wrong = wrong[chances[wrong, guesses[wrong]].argsort(descending=True)]
        draw_mistakes(digits, images[wrong], labels[wrong].tolist(), guesses[wrong].tolist())


@torch.no_grad()
def predictions(trainer, module):
    """The images of the validation, their labels, and the chances (N, classes) that the model gives."""
    module.eval()
    parts = []
    for batch in trainer.val_dataloaders[0]:
        batch = moved(batch, module.device)
        parts.append((batch["img"].cpu(), batch["label"].cpu(), module.model(batch).softmax(1).cpu()))
    module.train()
    return tuple(torch.cat(part) for part in zip(*parts))


def draw_curves(axes, run) -> None:
    for stage, style in (("train", "o-"), ("val", "s-")):
        epochs, values = curve(run, f"loss/{stage}", "epoch")
        axes.plot(epochs, values, style, color={"train": "lightsteelblue", "val": "navy"}[stage], label=f"{stage} loss")
    axes.set(xlabel="epoch", ylabel="loss", yscale="log")
    axes.xaxis.get_major_locator().set_params(integer=True)
    accuracy = axes.twinx()
    epochs, values = curve(run, "accuracy/val", "epoch")
    accuracy.plot(epochs, [100 * value for value in values], "^-", color="darkorange", label="val accuracy")
    accuracy.set_ylabel("accuracy, %")
    lines = [*axes.get_lines(), *accuracy.get_lines()]
    axes.legend(lines, [line.get_label() for line in lines], loc="center right", frameon=False)


def draw_confusion(axes, labels, guesses, classes: int) -> None:
    counts = torch.bincount(labels * classes + guesses, minlength=classes**2).reshape(classes, classes)
    axes.imshow((counts / counts.sum(1, keepdim=True).clamp(min=1)).sqrt().numpy(), cmap="Blues", vmin=0, vmax=1.2)
    for i, row in enumerate(counts.tolist()):
        for j, count in enumerate(row):
            if count:
                axes.text(j, i, count, ha="center", va="center", fontsize=8, color="white" if i == j else "darkred")
    axes.set(xlabel="taken for", ylabel="is", xticks=range(classes), yticks=range(classes))


def draw_mistakes(figure, images, labels, guesses) -> None:
    figure.suptitle("the surest of its mistakes" if labels else "no mistakes", fontsize=10)
    for i, axes in enumerate(figure.subplots(ROWS, COLUMNS).flatten()):
        axes.axis("off")
        if i < len(labels):
            axes.imshow(images[i, 0].numpy(), cmap="gray_r")
            axes.set_title(f"{guesses[i]}, not {labels[i]}", fontsize=8.5, color="darkred")
