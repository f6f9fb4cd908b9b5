"""Networks that are known, with their numbers of parameters, written as graphs."""
import pytest
from symbolic_forms import equal

import tensorgrad as torch
from tensorgrad import nn
from tensorgrad.nn import functional as F
from tensorgrad.symbolic import CustomInput, Input, SymbolicModel, add_to_graph, add_to_model, useful_layers
from tensorgrad.symbolic.model_tools import get_parameter_count, model_similar, models_have_corresponding_parameters


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def layer_of(x):
    """`layer(x)`"""
    return lambda module, *others: module(x, *others)


def node_of(x):
    """`x(layer)`"""
    return x


NOTATIONS = pytest.mark.parametrize("on", [layer_of, node_of])


# ── the toy ResNet of guides to functional interfaces ─────────────────────────────────────────────────────────────────


def toy_resnet(on):
    image = Input(shape=(3, 32, 32))
    x = on(image)(nn.Conv2d(image.C, 32, 3))(nn.ReLU())
    x = on(x)(nn.Conv2d(x.C, 64, 3))(nn.ReLU())
    x = on(x)(nn.MaxPool2d(3))
    for _ in range(2):
        y = on(x)(nn.Conv2d(x.C, 64, 3, padding=1))(nn.ReLU())
        x = on(y)(nn.Conv2d(y.C, 64, 3, padding=1))(nn.ReLU()) + x
    x = on(x)(nn.Conv2d(x.C, 64, 3))(nn.ReLU())
    x = on(x)(nn.AvgPool2d(x.HW))(nn.Flatten())
    x = on(x)(nn.Linear(x.features, 256))(nn.ReLU())
    x = on(x)(nn.Dropout(0.5))
    return SymbolicModel(image, on(x)(nn.Linear(x.features, 10)))


class PlainResNet(nn.Module):
    """The network as a class."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 32, 3), nn.Conv2d(32, 64, 3)
        self.blocks = nn.ModuleList([nn.Conv2d(64, 64, 3, padding=1) for _ in range(4)])
        self.last, self.hidden, self.out = nn.Conv2d(64, 64, 3), nn.Linear(64, 256), nn.Linear(256, 10)

    def forward(self, x):
        x = F.max_pool2d(self.second(self.first(x).relu()).relu(), 3)
        for k in (0, 2):
            x = self.blocks[k + 1](self.blocks[k](x).relu()).relu() + x
        x = self.last(x).relu().mean((2, 3))
        return self.out(F.dropout(self.hidden(x).relu(), 0.5, self.training))


@NOTATIONS
def test_toy_resnet(on):
    model = toy_resnet(on)
    assert (get_parameter_count(model) == 223_242 and model.input_shape == (None, 3, 32, 32)
            and model.output_shape == (None, 10))
    plain = PlainResNet()
    assert model_similar(model, plain)
    plain.load_state_dict(dict(zip(plain.state_dict(), model.state_dict().values(), strict=True)))
    assert models_have_corresponding_parameters(model, plain)
    data = torch.randn(2, 3, 32, 32)
    assert torch.allclose(model.eval()(data), plain.eval()(data), atol=1e-6)


@NOTATIONS
def test_sequence_of_convolutions(on):
    x = image = Input((3, 128, 128))
    for channels in (16, 32, 64, 64):
        x = on(x)(nn.Conv2d(in_channels=x.channels, out_channels=channels, kernel_size=3))(nn.MaxPool2d(2))(nn.ReLU())
    x = on(x)(nn.Flatten())
    model = SymbolicModel(inputs=image, outputs=on(x)(nn.Linear(in_features=x.features, out_features=10)))
    assert (get_parameter_count(model) == 83_562 and model.output_shape == (None, 10)
            and model(torch.randn(1, 3, 128, 128)).shape == (1, 10))


@NOTATIONS
def test_two_images_and_two_heads(on):
    images = Input(shape=(1, 28, 28)), Input(shape=(3, 32, 32))
    towers = []
    for x in images:
        x = on(x)(nn.Conv2d(x.channels, 16, 3))(nn.MaxPool2d(3))(nn.ReLU())(nn.Flatten())
        towers.append(on(x)(nn.Linear(x.features, 200)))
    x = towers[0] + towers[1]
    x = on(x)(nn.Linear(x.features, 400))(nn.ReLU())
    model = SymbolicModel(inputs=images, outputs=[on(x)(nn.Linear(x.features, 10)) for _ in range(2)])
    assert get_parameter_count(model) == 614_228 and model.input_shape == ((None, 1, 28, 28), (None, 3, 32, 32))
    assert [out.shape for out in model(torch.randn(4, 1, 28, 28), torch.randn(4, 3, 32, 32))] == [(4, 10), (4, 10)]


def test_an_image_and_a_vector():
    image, vector = Input(shape=(3, 32, 32)), Input(shape=(64,))
    x = image(nn.Conv2d(image.channels, 16, 3))(nn.MaxPool2d(3))(nn.ReLU())(nn.Flatten())
    x = x(nn.Linear(x.features, 200))
    y = vector(nn.Linear(vector.features, 512))(nn.ReLU())
    y = y(nn.Linear(y.features, 512))(nn.ReLU())
    z = x + y(nn.Linear(y.features, 200))
    z = z(nn.Linear(z.features, 400))(nn.ReLU())
    model = SymbolicModel([image, vector], [z(nn.Linear(z.features, 10)), z(nn.Linear(z.features, 1))])
    assert get_parameter_count(model) == 803_995 and "Total params: 803995" in model.summary(return_string=True)
    assert [out.shape for out in model(torch.rand(16, 3, 32, 32), torch.rand(16, 64))] == [(16, 10), (16, 1)]


# ── families ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def residual(x, width, stride):
    """Normalized before it is convolved (He et al. 2016), around a shortcut that is a projection where shapes
    change.
    """
    shortcut = x if (x.C, stride) == (width, 1) else nn.Conv2d(x.C, width, 1, stride, bias=False)(x)
    for s in (stride, 1):
        x = nn.Conv2d(x.C, width, 3, s, padding=1)(nn.ReLU()(nn.BatchNorm2d(x.C)(x)))
    return x + shortcut


def residual_network(widths, blocks=2):
    x = image = Input((3, 32, 32))
    x = nn.Conv2d(x.C, 16, 3, padding=1)(x)
    for width, first_stride in zip(widths, (1, 2, 2), strict=True):
        for k in range(blocks):
            x = residual(x, width, first_stride if k == 0 else 1)
    x = nn.ReLU()(nn.BatchNorm2d(x.C)(x)).mean((2, 3))
    return SymbolicModel(image, nn.Linear(x.features, 10)(x))


@pytest.mark.parametrize(("widths", "count"), [((16, 32, 64), 175_530), ((64, 128, 256), 2_750_698)],
                         ids=["small", "WRN-16-4"])
def test_residual_networks(widths, count):
    model = residual_network(widths)
    assert get_parameter_count(model) == count and model(torch.rand(2, 3, 32, 32)).shape == (2, 10)


def test_vgg13():
    x = image = Input((3, 32, 32))
    for width in (64, 128, 256, 512, 512):
        for _ in range(2):
            x = nn.Conv2d(x.C, width, 3, padding=1, bias=False)(x)
            x = nn.ReLU()(nn.BatchNorm2d(x.C)(x))
        x = nn.MaxPool2d(2)(x)
    x = x.flatten(1)
    model = SymbolicModel(image, nn.Linear(x.features, 10)(x))
    assert get_parameter_count(model) == 9_413_066 and model(torch.rand(2, 3, 32, 32)).shape == (2, 10)


def test_encoder_and_decoder():
    relu = nn.ReLU()
    x = image = Input((3, 32, 32))
    for width in (16, 32, "pool", 32, 16):
        x = nn.MaxPool2d(3)(x) if width == "pool" else relu(nn.Conv2d(x.C, width, 3)(x))
    code = nn.Flatten()(nn.MaxPool2d(x.HW)(x))
    encoder = SymbolicModel(image, code)
    x = start = Input((code.features,))
    x = useful_layers.ReshapeLayer((1, 4, 4))(x)
    for width in (16, 32, "up", 16, 1):
        x = nn.Upsample(3)(x) if width == "up" else relu(nn.ConvTranspose2d(x.C, width, 3)(x))
    decoder = SymbolicModel(start, x)
    picture = Input((3, 32, 32))
    model = SymbolicModel(picture, decoder(encoder(picture)))
    data = torch.rand(16, 3, 32, 32)
    assert (get_parameter_count(model) == 28_529 and model(data).shape == (16, 1, 7, 7)
            and model.output_shape == (None, 1, 7, 7))
    assert equal(model(data), decoder(encoder(data)))


def test_lstm_tagger():
    """Determiners, nouns and verbs of two sentences, as in PyTorch's tutorial on sequences."""
    sentences = [("The dog ate the apple", [0, 1, 2, 0, 1]), ("Everybody read that book", [1, 2, 0, 1])]
    numbers = {word: k for k, word in enumerate(dict.fromkeys(word for text, _ in sentences for word in text.split()))}
    batches = [(torch.tensor([numbers[word] for word in text.split()]), torch.tensor(tags)) for text, tags in sentences]
    words = Input(dtype=torch.int64)
    hidden, _ = nn.LSTM(6, 6)(nn.Embedding(len(numbers), 6)(words))
    model = SymbolicModel(words, F.log_softmax(nn.Linear(6, 3)(hidden), dim=1))
    assert model.input_shape == (None,) and model.output_shape == (None, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(300):
        for text, tags in batches:
            optimizer.zero_grad()
            F.nll_loss(model(text), tags).backward()
            optimizer.step()
    assert model(batches[0][0]).argmax(1).tolist() == [0, 1, 2, 0, 1]


# ── what guides to the interface show first ───────────────────────────────────────────────────────────────────────────


def test_linear_classifiers():
    models = []
    for on in (layer_of, node_of):
        inputs = Input(shape=(28 * 28,))
        models.append(SymbolicModel(inputs, on(inputs)(nn.Linear(in_features=inputs.features, out_features=10))))
    assert ([get_parameter_count(model) for model in models] == [7850] * 2
            and models[0](torch.rand(3, 784)).shape == (3, 10))


def test_functions_and_layers_of_several_inputs():
    x1, x2 = Input(shape=(1, 2, 3)), Input(shape=(5, 2, 3))
    nodes = [useful_layers.ConcatLayer(dim=1)(x1, x2), x1(useful_layers.ConcatLayer(dim=1), x2),
             add_to_model(torch.concat, (x1, x2), dim=1), add_to_model(torch.concat, tensors=(x1, x2), dim=1),
             add_to_graph(torch.concat, (x1, x2), dim=1),
             torch.concat((x1, x2), dim=1)]
    a, b = torch.rand(4, 1, 2, 3), torch.rand(4, 5, 2, 3)
    for node in nodes:
        assert node.shape == (None, 6, 2, 3) and equal(SymbolicModel((x1, x2), node)(a, b), torch.cat((a, b), 1))


def test_a_sum_of_rows():
    x = Input(batch_shape=(3, 4, 5))
    y = x[0]
    for row in x[1:]:
        y += row
    data = torch.rand(3, 4, 5)
    assert equal(SymbolicModel(x, y)(data), data[0] + data[1] + data[2])


def test_words_and_tables():
    table, word = CustomInput({"a": [1.0, 2.0]}), CustomInput("A")
    vector = add_to_graph(torch.tensor, table[word.lower()])
    model = SymbolicModel((table, word), vector @ torch.ones(2))
    assert model({"x": [3.0, 4.0]}, "X").item() == 7
