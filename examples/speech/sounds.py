"""Spoken digits from a synthesizer of formants, and their spectrograms as the ear hears them.

A vowel is a sum of overtones of the voice's pitch, each as loud as its distance to three resonances of the mouth, the
formants, allows. Consonants are bursts and hisses of noise. Speakers differ in pitch, in the length of their vocal
tract, which scales all formants, and in speed; a room adds noise. (Formants of English vowels: Peterson and Barney,
Control Methods Used in a Study of the Vowels, 1952.)
"""

import math

import tensorgrad as torch

RATE, LENGTH = 8000, 5120  # samples per second; samples of a word, 0.64 s
WINDOW, HOP, BANDS = 256, 128, 32
# Formants in Hz, and their loudness. A consonant is the band of noise it hisses in, or () where it is voiced softly.
VOWELS = {"i": (270, 2290, 3010), "I": (390, 1990, 2550), "e": (530, 1840, 2480), "a": (730, 1090, 2440),
          "o": (570, 840, 2410), "u": (300, 870, 2240), "A": (640, 1190, 2390), "r": (490, 1350, 1690),
          "n": (280, 1700, 2600), "w": (290, 610, 2150), "v": (220, 1100, 2080)}
HISSES = {"s": (2800, 3900), "f": (1200, 3900), "t": (2500, 3900), "k": (1300, 2200), "T": (1800, 3600)}
LOUDNESS = (1.0, 0.5, 0.25)
DIGITS = ["zIro", "wAn", "tu", "Tri", "for", "faIv", "sIks", "sevn", "eIt", "naIn"]


def drawn(low, high):
    """A number between two others."""
    return low + (high - low) * torch.rand(()).item()


def vowel(formants, samples, pitch, tract):
    """A voiced sound: overtones of a pitch that falls a little, through the resonances of the mouth."""
    time = torch.arange(samples) / RATE
    phase = 2 * math.pi * pitch * (time - 0.15 * time * time)
    sound = torch.zeros(samples)
    for overtone in range(1, int(RATE / 2 / pitch)):
        frequency = overtone * pitch
        gain = sum(loud / (1 + ((frequency - tract * f) / 90) ** 2) for f, loud in zip(formants, LOUDNESS))
        sound += gain * torch.sin(overtone * phase)
    return sound


def hiss(band, samples, tract):
    """Noise between two frequencies."""
    spectrum = torch.fft.rfft(torch.randn(samples))
    frequency = torch.arange(len(spectrum)) * (RATE / samples)
    inside = (frequency > tract * band[0]) & (frequency < tract * band[1])
    return 0.5 * torch.fft.irfft(spectrum * inside, n=samples)


def word(digit):
    """A digit said by somebody, somewhere in `LENGTH` samples."""
    pitch, tract, speed = drawn(90, 230), drawn(0.85, 1.2), drawn(0.8, 1.2)
    sounds = []
    for letter in DIGITS[digit].replace("z", "s"):
        samples = int(RATE * speed * drawn(0.09, 0.14))
        part = (vowel(VOWELS[letter], samples, pitch, tract) if letter in VOWELS
                else hiss(HISSES[letter], samples, tract))
        sounds.append(part * torch.hann_window(samples, periodic=False).sqrt())
    sound = torch.cat(sounds)[:LENGTH]
    start = int(drawn(0, LENGTH - len(sound)))
    heard = drawn(0.01, 0.1) * torch.randn(LENGTH)
    heard[start:start + len(sound)] += sound / sound.abs().max()
    return heard


def said(count):
    """`count` words and the digits they are: (count, LENGTH), (count,)."""
    digits = torch.arange(count) % len(DIGITS)
    return torch.stack([word(int(digit)) for digit in digits]), digits


def mel_filters():
    """Bands that are even to the ear: (BANDS, WINDOW / 2 + 1) triangles over mel(f) = 2595 log₁₀(1 + f / 700)."""
    edges = torch.linspace(0, 2595 * math.log10(1 + RATE / 2 / 700), BANDS + 2)
    edges = 700 * (10 ** (edges / 2595) - 1)
    frequency = torch.arange(WINDOW // 2 + 1) * (RATE / WINDOW)
    rising = (frequency - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - frequency) / (edges[2:] - edges[1:-1])[:, None]
    return torch.minimum(rising, falling).clamp(min=0)


def spectrograms(sounds):
    """How loud each band is at each moment, as logarithms: (N, LENGTH) → (N, BANDS, LENGTH / HOP + 1)."""
    power = torch.stft(sounds, WINDOW, HOP, window=torch.hann_window(WINDOW), return_complex=True).abs() ** 2
    loud = torch.log(mel_filters() @ power + 1e-4)
    return (loud - loud.mean((1, 2), keepdim=True)) / loud.std((1, 2), keepdim=True)
