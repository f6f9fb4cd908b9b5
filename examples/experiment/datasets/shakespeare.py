"""The text of examples/chargpt, in snippets."""

import tensorgrad as torch
from examples.chargpt.text import SHAKESPEARE, Text
from tensorgrad.experiment import datasets
from tensorgrad.utils.data import Dataset


@datasets.register("shakespeare")
class Shakespeare(Dataset):
    """Snippets of the first nine tenths of the text, or of the last: `text` (context,) and `label`, one character
    later.

    stride: how many characters one snippet begins after the one before. file: another text, UTF-8, gzipped or not.
    """

    def __init__(self, train: bool = True, context: int = 64, stride: int = 1, file: str | None = None) -> None:
        self.text = Text(file or SHAKESPEARE)
        self.numbers, self.context, self.stride = self.text.split()[not train], context, stride

    def __len__(self) -> int:
        return (len(self.numbers) - self.context - 1) // self.stride + 1

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        start = index * self.stride
        snippet = self.numbers[start:start + self.context + 1]
        return {"text": snippet[:-1], "label": snippet[1:]}
