"""A text as numbers, one for each letter of its alphabet."""

import gzip
from pathlib import Path

import tensorgrad as torch

SHAKESPEARE = Path(__file__).parent / "data" / "input.txt.gz"


class Text:
    """The characters of a UTF-8 file, gzipped or not, as `numbers`; and the way back."""

    def __init__(self, path):
        data = Path(path).read_bytes()
        characters = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
        self.letters = sorted(set(characters))
        self.number = {letter: i for i, letter in enumerate(self.letters)}
        self.numbers = self.encode(characters)

    def encode(self, characters):
        """Characters to numbers (T,)."""
        return torch.tensor([self.number[c] for c in characters])

    def decode(self, numbers):
        """Numbers (T,) to characters."""
        return "".join(self.letters[i] for i in numbers.tolist())

    def split(self, share=0.9):
        """The numbers to train on, and those to test on."""
        border = int(share * len(self.numbers))
        return self.numbers[:border], self.numbers[border:]


def batch(numbers, batch_size, context):
    """Random snippets (N, context), and the same one character later."""
    starts = torch.randint(len(numbers) - context, (batch_size, 1))
    snippets = numbers[starts + torch.arange(context + 1)]
    return snippets[:, :-1], snippets[:, 1:]
