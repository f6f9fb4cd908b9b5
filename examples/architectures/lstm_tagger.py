"""An LSTM that tags words as articles, nouns or verbs: 405 parameters.

`python -m examples.architectures.lstm_tagger` trains it.
"""

import tensorgrad as torch
from tensorgrad import layers as L
from tensorgrad import nn
from tensorgrad.symbolic import Input, SymbolicModel

ARTICLE, NOUN, VERB = 0, 1, 2
LESSONS = {
    "the cat watched a bird": [ARTICLE, NOUN, VERB, ARTICLE, NOUN],
    "children love the snow": [NOUN, VERB, ARTICLE, NOUN],
}
VOCABULARY = list(dict.fromkeys(" ".join(LESSONS).split()))
WORDS, TAGS = len(VOCABULARY), 3


def encode(sentence):
    """Return the numbers of the words, as a batch of one sentence: (1, length)."""
    return torch.tensor([[VOCABULARY.index(word) for word in sentence.split()]])


def symbolic(words=WORDS, tags=TAGS, width=6):
    """Build a graph for any number of sentences of any length; the LSTM's tuple is unpacked as usual."""
    sentence = Input((None,), dtype=torch.int64)
    x = nn.Embedding(words, width)(sentence)
    outputs, (hidden, cell) = nn.LSTM(x.features, width, batch_first=True)(x)
    return SymbolicModel(sentence, nn.Linear(outputs.features, tags)(outputs))


def layers(words=WORDS, tags=TAGS, width=6):
    """Build layers for any number of sentences of any length.

    `Linear` acts on the last axis, so `TimeDistributed` is not needed.
    """
    tagger = L.Sequential(L.Embedding(words, width), L.LSTM(width, return_sequences=True), L.Linear(tags))
    return tagger.build((None, None))


class Tagger(nn.Module):
    """Numbers of words (N, length) to scores (N, length, tags)."""

    def __init__(self, words=WORDS, tags=TAGS, width=6):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, tags)

    def forward(self, sentences):
        outputs, _ = self.lstm(self.embedding(sentences))
        return self.head(outputs)


plain = Tagger


def inputs():
    """Return example inputs."""
    return (torch.randint(WORDS, (2, 7)),)


def train(model, epochs=300):
    """Fit the training sentences, and return the last loss."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    criterion = nn.CrossEntropyLoss()
    for _ in range(epochs):
        for sentence, tags in LESSONS.items():
            optimizer.zero_grad()
            loss = criterion(model(encode(sentence))[0], torch.tensor(tags))
            loss.backward()
            optimizer.step()
    return loss.item()


@torch.no_grad()
def tag(model, sentence):
    """Return the most likely tag of each word."""
    return model(encode(sentence))[0].argmax(1).tolist()


def main():
    torch.manual_seed(0)
    model = symbolic()
    train(model)
    for sentence in LESSONS:
        print(sentence, tag(model, sentence))


if __name__ == "__main__":
    main()
