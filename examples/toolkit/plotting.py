"""The picture at the end of a training: the loss, and some test images with what the model sees in them."""

from pathlib import Path

import tensorgrad as torch

ROWS, COLUMNS = 5, 8
SMOOTHING = 0.05  # how much of each step's loss goes into the running mean


def save_report(path, title, losses, accuracies, model, dataset, device="cpu"):
    """Draw the loss of every step, the accuracy of every epoch, and the first images of `dataset` with predictions."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        print(f"no picture {path}: matplotlib is missing (pip install matplotlib)")
        return
    figure = Figure(figsize=(12, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    curves, digits = figure.subfigures(1, 2, width_ratios=[1, 1.1])
    _draw_curves(curves.subplots(), losses, accuracies)
    _draw_images(digits, model, dataset, device)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"picture: {path}")


def _draw_curves(axes, losses, accuracies):
    axes.plot(losses, color="lightsteelblue", linewidth=0.6, label="loss of each step")
    axes.plot(smooth(losses), color="navy", label="running mean")
    axes.set(xlabel="step", ylabel="loss", yscale="log")
    accuracy = axes.twinx()
    epoch = len(losses) / len(accuracies)
    ends = [epoch * (i + 1) for i in range(len(accuracies))]
    accuracy.plot(ends, [100 * a for a in accuracies], "o-", color="darkorange", label="test accuracy, %")
    accuracy.set_ylabel("test accuracy, %")
    handles, labels = axes.get_legend_handles_labels()
    more, names = accuracy.get_legend_handles_labels()
    axes.legend(handles + more, labels + names, loc="upper center", bbox_to_anchor=(0.5, 1.12), ncols=3, frameon=False)


@torch.no_grad()
def _draw_images(figure, model, dataset, device):
    samples = [dataset[i] for i in range(min(ROWS * COLUMNS, len(dataset)))]
    images = torch.stack([image for image, _ in samples])
    predictions = model.eval()(images.to(device)).argmax(1).tolist()
    grid = figure.subplots(ROWS, COLUMNS).flatten()
    for axes in grid:
        axes.axis("off")
    for axes, (image, label), prediction in zip(grid, samples, predictions, strict=False):
        axes.imshow(image[0].numpy(), cmap="gray_r")
        right = prediction == int(label)
        axes.set_title(str(prediction) if right else f"{prediction}, not {int(label)}",
                       color="green" if right else "red", fontsize=9)


def smooth(values):
    """The running mean, free of the pull of its start."""
    means, mean, weight = [], 0.0, 0.0
    for value in values:
        mean += SMOOTHING * (value - mean)
        weight += SMOOTHING * (1 - weight)
        means.append(mean / weight)
    return means
