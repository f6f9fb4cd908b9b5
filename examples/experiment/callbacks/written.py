"""Draw texts that a language model writes, and its loss."""

from textwrap import wrap

from tensorgrad.experiment import callbacks, streams

from .pictures import Picture, curve

LINES, COLUMNS = 32, 45
INK, PAPER = "#1b1b1b", "#faf7f0"


@callbacks.register("written")
class Written(Picture):
    """Lets the model write before training and after each validation: all of it goes to img/written.txt, the first two
    texts and the last beside the curves of the loss to a picture."""

    def __init__(self, file: str = "written.png", start: str = "\n", length: int = 500,
                 temperature: float = 0.7) -> None:
        super().__init__(file)
        self.start, self.length, self.temperature, self.texts = start, length, temperature, {}

    def state_dict(self):
        return {"texts": dict(self.texts)}

    def load_state_dict(self, state_dict) -> None:
        self.texts = dict(state_dict["texts"])

    def on_train_start(self, trainer, module) -> None:
        if not self.texts:
            self.on_validation_end(trainer, module)

    def on_validation_end(self, trainer, module) -> None:
        self.texts[trainer.global_step] = self.write(trainer, module)
        if trainer.run is not None and trainer.is_global_zero:
            path = trainer.run.path / "img" / "written.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n\n".join(f"── after {step} steps ──\n{text.strip()}"
                                        for step, text in self.texts.items()) + "\n",
                            encoding="utf-8")

    def write(self, trainer, module) -> str:
        """A text, which leaves the random streams of the training as they were."""
        text, before, training = trainer.train_dataloader.dataset.text, streams.state(), module.training
        start = text.encode(self.start).unsqueeze(0).to(module.device)
        written = text.decode(module.model.gpt.write(start, self.length, self.temperature)[0])
        module.train(training)
        streams.restore(before)
        return written

    def draw(self, figure, trainer, module) -> None:
        figure.set_size_inches(17, 6.6)
        figure.set_facecolor(PAPER)
        axes, *pages = figure.subplots(1, 4, width_ratios=[1.1, 1, 1, 1])
        axes.set_facecolor(PAPER)
        axes.plot(*curve(trainer.run, "loss_step"), color="lightsteelblue", label="training")
        axes.plot(*curve(trainer.run, "val_loss"), "o-", color="navy", label="text that was held out")
        axes.set(title="loss", xlabel="step", ylabel="nats for each character")
        axes.legend(frameon=False)
        steps = list(self.texts)
        for page, step in zip(pages, dict.fromkeys([*steps[:2], steps[-1]])):
            page.set_title(f"after {step:,} steps" if step else "before training")
            page.text(0, 1, folded(self.texts[step]), family="monospace", fontsize=9.6, linespacing=1.3, va="top",
                      color=INK,
                      parse_math=False, transform=page.transAxes)
        for page in pages:
            page.axis("off")


def folded(text: str) -> str:
    """A text as a page: long lines go on indented, and what is too much is left out."""
    lines = [part for line in text.strip().split("\n") for part in wrap(line, COLUMNS, subsequent_indent="   ") or [""]]
    return "\n".join(lines[:LINES])
