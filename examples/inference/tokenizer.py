"""Text to tokens and back: GPT-2's byte-level byte pair encoding (Sennrich et al., 2016; Radford et al., 2019), or
plain bytes.
"""

import codecs
import json
import re
import unicodedata
from functools import lru_cache
from pathlib import Path

END = "<|endoftext|>"

# Words are found in a shadow of the text, which has as many characters, all of them ASCII: a letter of any script is a
# letter there, a number a digit, and so on. So Python's `re` finds what GPT-2's pattern finds, whose classes of letters
# \p{L} and numbers \p{N} it does not know.
WORD = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[A-Za-z]+| ?[0-9]+| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+", re.ASCII)
# Unicode's White_Space
SPACES = frozenset("\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {chr(code) for code in range(0x2000, 0x200b)}


class Shadows(dict):
    """Code point → its shadow. ASCII stands for itself."""

    def __missing__(self, code):
        character = chr(code)
        if code < 128:
            shadow = character
        elif character in SPACES:
            shadow = "\t"               # a blank that does not go along with the word after it
        else:
            shadow = {"L": "A", "N": "0"}.get(unicodedata.category(character)[0], "!")
        self[code] = shadow
        return shadow


SHADOWS = Shadows()


def words(text):
    """The pieces of a text that are encoded one by one.

    >>> words("They'll  say: 1999, naïve!")
    ['They', "'ll", ' ', ' say', ':', ' 1999', ',', ' naïve', '!']
    """
    return [text[found.start():found.end()] for found in WORD.finditer(text.translate(SHADOWS))]


def byte_letters():
    """The character that stands for each byte in a vocabulary: itself if it can be seen, else one from 256 on."""
    seen = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    others = [byte for byte in range(256) if byte not in seen]
    return {byte: chr(byte if byte in seen else 256 + others.index(byte)) for byte in range(256)}


class Bytes:
    """Each byte of the text in UTF-8 is a token."""

    end = None

    def __len__(self):
        return 256

    def encode(self, text):
        """A text as a list of tokens."""
        return list(text.encode("utf-8", "surrogateescape"))

    def bytes_of(self, token):
        """The bytes that a token stands for."""
        return bytes([token])

    def decode(self, tokens):
        """Tokens as text; bytes that are no UTF-8 become �."""
        return b"".join(map(self.bytes_of, tokens)).decode("utf-8", "replace")

    def stream(self, tokens):
        """Yield the text of tokens that come one by one, each character as soon as its last byte is there."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for token in tokens:
            yield decoder.decode(self.bytes_of(token))
        yield decoder.decode(b"", final=True)


class BPE(Bytes):
    """Pieces of words, made by merging neighbours.

    `end` is the token that ends a text, None if the vocabulary has none.

    vocabulary: token as text (see `byte_letters`) → number. merges: pairs of such texts, those to be merged first
        first.
    """

    def __init__(self, vocabulary, merges):
        self.vocabulary = vocabulary
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.letters = byte_letters()
        self.byte = {letter: byte for byte, letter in self.letters.items()}
        self.tokens = {number: token for token, number in vocabulary.items()}
        self.end = vocabulary.get(END)
        if lost := [letter for letter in self.letters.values() if letter not in vocabulary]:
            raise ValueError(f"the vocabulary lacks {len(lost)} of the 256 bytes")
        if lost := [pair for pair in self.ranks if "".join(pair) not in vocabulary]:
            raise ValueError(f"the vocabulary lacks what {len(lost)} of the merges give, such as {''.join(lost[0])!r}")
        self.merged = lru_cache(1 << 16)(self._merged)

    @classmethod
    def read(cls, folder):
        """From `vocab.json` and `merges.txt` in a folder, or under the names of their first publication, `encoder.json`
        and `vocab.bpe`.
        """
        folder = Path(folder)
        names = next((pair for pair in FILES if (folder / pair[0]).is_file()), FILES[0])
        vocabulary, merges = (folder / name for name in names)
        try:
            numbers = json.loads(vocabulary.read_text(encoding="utf-8"))
            header, *lines = merges.read_text(encoding="utf-8").split("\n")
            pairs = [tuple(line.split()) for line in (lines if header.startswith("#version") else [header, *lines])
                     if line.strip()]
            if not isinstance(numbers, dict) or not all(type(number) is int for number in numbers.values()):
                raise ValueError(f"{vocabulary.name} is not a table of numbers")
            if any(len(pair) != 2 for pair in pairs):
                raise ValueError(f"{merges.name} is not a list of pairs")
            return cls(numbers, pairs)
        except ValueError as error:
            raise ValueError(f"{folder}: {error}") from None

    def __len__(self):
        return max(self.tokens) + 1

    def _merged(self, word):
        """The numbers of a word's tokens: of all neighbours, those of the lowest rank merge first."""
        parts = [self.letters[byte] for byte in word.encode("utf-8", "surrogateescape")]
        while len(parts) > 1:
            pairs = list(zip(parts, parts[1:]))
            best = min(pairs, key=lambda pair: self.ranks.get(pair, len(self.ranks)))
            if best not in self.ranks:
                break
            joined, at = [], 0
            while at < len(parts):
                both = at + 1 < len(parts) and (parts[at], parts[at + 1]) == best
                joined.append("".join(best) if both else parts[at])
                at += 2 if both else 1
            parts = joined
        return [self.vocabulary[part] for part in parts]

    def encode(self, text):
        return [token for word in words(text) for token in self.merged(word)]

    def bytes_of(self, token):
        piece = self.tokens.get(token, "")
        try:
            return bytes(self.byte[letter] for letter in piece)
        except KeyError:                # `<|endoftext|>`, and what else was added as it is
            return piece.encode()


FILES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
