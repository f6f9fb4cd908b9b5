"""Base class of callbacks that draw a picture into the folder img/ of a run."""

import csv

from tensorgrad.experiment import Callback, Trainer

WITHOUT = "matplotlib is missing: pip install matplotlib"


class Picture(Callback):
    """Draws a picture when training ends: override `draw`."""

    order = 2  # after the module and its metrics

    def __init__(self, file: str) -> None:
        self.file = file

    def on_train_end(self, trainer, module) -> None:
        self.save(self.file, trainer, module, self.draw)

    def draw(self, figure, trainer, module) -> None:
        """Draw into an empty figure of Matplotlib."""
        raise NotImplementedError(f"{type(self).__name__} draws nothing")

    def save(self, file: str, trainer: Trainer, module, draw) -> None:
        """Let `draw` fill a figure, and save it to img/; where Matplotlib is missing, a line in the log says so."""
        if trainer.run is None or not trainer.is_global_zero:
            return
        try:
            from matplotlib.figure import Figure
        except ImportError:
            trainer.print(f"no picture img/{file}: {WITHOUT}")
            return
        figure = Figure(layout="constrained")
        draw(figure, trainer, module)
        path = trainer.run.path / "img" / file
        path.parent.mkdir(exist_ok=True)
        figure.savefig(path, dpi=110)
        trainer.print(f"picture: {path}")


def curve(run, name: str, against: str = "step") -> tuple[list[float], list[float]]:
    """A metric as the run has logged it: where, and its values."""
    with open(run.path / "metrics.csv", encoding="utf-8", newline="") as file:
        pairs = [(float(row[against]), float(row[name])) for row in csv.DictReader(file)
                 if row.get(name) and row.get(against)]
    return [at for at, _ in pairs], [value for _, value in pairs]
