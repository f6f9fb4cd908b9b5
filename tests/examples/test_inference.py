"""The programs that run published models: the same numbers as PyTorch from the same files, and clear words where files
do not fit.
"""
import json
import random
import re
import struct
import subprocess
import sys
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steady import steady
from support import ROOT

import tensorgrad
from examples.inference import gpt2, images, resnet, tokenizer, weights
from examples.inference.__main__ import main
from examples.inference.tokenizer import BPE, Bytes, byte_letters, words
from tensorgrad.utils import safetensors

SMALL = dict(vocab_size=61, n_positions=16, n_embd=24, n_layer=3, n_head=4)
FOLDER = ROOT / "examples" / "inference"


def under(engine, name):
    """A module of the example, with another library for tensorgrad."""
    source = re.sub(r"^(import|from) tensorgrad\b", rf"\1 {engine.__name__}",
                    (FOLDER / f"{name}.py").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert "tensorgrad" not in source or engine is tensorgrad
    loaded = types.ModuleType(name)
    exec(compile(source, name, "exec"), loaded.__dict__)
    return loaded


def lively(state, seed=0):
    """A state dict with numbers that show everything that a network does, in place of those of a fresh one."""
    rng = np.random.default_rng(seed)
    for name, value in state.items():
        fan_in = max(1, int(np.prod(tuple(value.shape[1:]))))
        numbers = (rng.standard_normal(tuple(value.shape)) * (2 / fan_in) ** 0.5 if value.ndim > 1
                   else rng.uniform(0.5, 1.5, tuple(value.shape)))
        if name.endswith(("bias", "running_mean")):
            numbers = numbers - 1
        value.copy_(type(value)(numbers) if not value.is_floating_point() else value.new_tensor(numbers))
    return state


def untrained(build):
    """Return the model of `build` in evaluation mode, and its state dict to write to."""
    model = build().eval()
    return model, {name: value.detach() for name, value in model.state_dict().items()}


def saved(state, path, engine=tensorgrad):
    if path.suffix == ".safetensors":
        safetensors.save_file({name: tensorgrad.tensor(value.numpy()) for name, value in state.items()}, path)
    else:
        engine.save(state, path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("inference")


# ── ResNet ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("end", [".pth", ".safetensors"])
@pytest.mark.parametrize("name, sizes, shape",
                         [("resnet18", {}, (1, 3, 96, 96)), ("resnet34", {"width": 8}, (2, 3, 65, 50)),
                          ("resnet50", {"width": 8, "num_classes": 7}, (2, 3, 64, 64))])
def test_a_resnet_from_pytorchs_file_gives_pytorchs_numbers(name, sizes, shape, end, tmp_path):
    torch = pytest.importorskip("torch")
    theirs, state = untrained(lambda: under(torch, "resnet").resnet(name, **sizes))
    file = saved(lively(state), tmp_path / f"weights{end}", torch)
    ours = weights.fitted(lambda: resnet.resnet(name, **sizes), weights.read(file), file, name)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    with torch.no_grad():
        expected = theirs(torch.tensor(x)).numpy()
    assert expected.std() > 1e-3
    np.testing.assert_allclose(ours(tensorgrad.tensor(x)).detach().numpy(), expected, rtol=1e-4,
                               atol=1e-4 * expected.std())


@pytest.mark.parametrize("name, count, some", [
    ("resnet18", 122, "conv1.weight bn1.running_var layer1.1.conv2.weight layer2.0.downsample.0.weight "
                      "layer4.0.downsample.1.num_batches_tracked fc.bias"),
    ("resnet34", 218, "layer3.5.bn2.bias layer4.2.conv2.weight"),
    ("resnet50", 320, "layer1.0.downsample.1.running_mean layer3.5.conv3.weight layer4.2.bn3.weight"),
    ("resnet101", 626, "layer3.22.bn1.weight"),
    ("resnet152", 932, "layer2.7.conv1.weight layer3.35.conv3.weight"),
])
def test_parameters_have_torchvisions_names(name, count, some):
    with tensorgrad.device("meta"):
        state = resnet.resnet(name).state_dict()
    assert len(state) == count and set(some.split()) <= state.keys()
    assert all(re.fullmatch(r"(layer[1-4]\.\d+\.)?(conv[123]\.weight|bn[123]\.\w+|downsample\.0\.weight"
                            r"|downsample\.1\.\w+)|fc\.\w+", key) for key in state)


def test_files_from_before_batches_were_counted(tmp_path):
    model, state = untrained(lambda: resnet.resnet("resnet18", width=4))
    old = {name: value for name, value in lively(state).items() if not name.endswith("num_batches_tracked")}
    file = saved(old, tmp_path / "old.safetensors")
    x = tensorgrad.randn(1, 3, 40, 40)
    loaded = weights.fitted(lambda: resnet.resnet("resnet18", width=4), weights.read(file), file, "resnet18")
    assert tensorgrad.equal(loaded(x), model(x))


def test_weights_that_are_about_to_be_replaced_are_not_drawn(tmp_path):
    file = saved(untrained(lambda: resnet.resnet("resnet18", width=4))[1], tmp_path / "weights.pt")
    before = tensorgrad.get_rng_state()
    weights.fitted(lambda: resnet.resnet("resnet18", width=4), weights.read(file), file, "resnet18")
    assert tensorgrad.equal(tensorgrad.get_rng_state(), before)


# ── GPT-2 ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def small():
    model, state = untrained(lambda: gpt2.GPT2(gpt2.Config(**SMALL)))
    lively(state)
    return model


def published(model, prefix="", masks=False, head=False):
    """The state dict as files on the net have it."""
    state = {name: value.detach() for name, value in model.state_dict().items() if head or name != "lm_head.weight"}
    if masks:
        for i in range(model.config.n_layer):
            state[f"transformer.h.{i}.attn.bias"] = tensorgrad.ones(1, 1, 16, 16, dtype=tensorgrad.uint8).tril()
            state[f"transformer.h.{i}.attn.masked_bias"] = tensorgrad.tensor(-1e4)
    return {prefix + name.removeprefix("transformer.") if name != "lm_head.weight" else name: value
            for name, value in state.items()}


@pytest.mark.parametrize("options", [{}, {"prefix": "transformer."}, {"masks": True},
                                     {"prefix": "transformer.", "masks": True, "head": True}])
@pytest.mark.parametrize("end", [".bin", ".safetensors"])
def test_published_files_fit(small, options, end, tmp_path):
    state = published(small, **options)
    file = saved({name: value.clone() for name, value in state.items()} if end == ".safetensors" else state,
                 tmp_path / f"model{end}")
    state = gpt2.canonical(weights.read(file))
    # their number cannot be seen
    assert gpt2.Config.of(state) == gpt2.Config(**(SMALL | {"n_head": 1, "n_inner": 96}))
    model = weights.fitted(lambda: gpt2.GPT2(gpt2.Config(**SMALL)), state, file, "it")
    tokens = tensorgrad.tensor([[3, 1, 4, 1, 5]])
    assert tensorgrad.equal(model(tokens), small(tokens))


def test_names_are_those_of_hugging_face():
    with tensorgrad.device("meta"):
        state = gpt2.GPT2(gpt2.SIZES["gpt2"]).state_dict()
    layer = [f"{part}.{kind}" for part in ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")
             for kind in ("weight", "bias")]
    expected = ["wte.weight", "wpe.weight", *(f"h.{i}.{name}" for i in range(12) for name in layer), "ln_f.weight",
                "ln_f.bias"]
    assert list(state) == [*(f"transformer.{name}" for name in expected), "lm_head.weight"]
    assert tuple(state["transformer.h.3.attn.c_attn.weight"].shape) == (768, 2304)
    assert {name: sum(p.numel() for p in shapes_of(config).parameters()) for name, config in gpt2.SIZES.items()} == {
        "gpt2": 124_439_808, "gpt2-medium": 354_823_168, "gpt2-large": 774_030_080, "gpt2-xl": 1_557_611_200}


def shapes_of(config):
    with tensorgrad.device("meta"):
        return gpt2.GPT2(config)


HOW = [dict(temperature=0), dict(), dict(top_k=7, temperature=0.7), dict(top_p=0.6),
       dict(top_k=9, top_p=0.9, temperature=1.3)]


def written(engine, program, model, start, how, cached=True):
    generator = engine.Generator().manual_seed(3)
    steps = program.generate(model, engine.tensor(start), 40, cached, generator=generator, **how)
    return np.concatenate([token.numpy() for token in steps], 1).tolist()


@pytest.mark.parametrize("how", HOW, ids=str)
def test_a_gpt_goes_on_as_it_does_with_pytorch(small, how):
    """Past the end of its positions, too."""
    torch = pytest.importorskip("torch")
    program = under(torch, "gpt2")
    theirs = program.GPT2(program.Config(**SMALL)).eval()
    theirs.load_published({name: torch.tensor(value.numpy()) for name, value in published(small).items()})
    start = [[3, 1, 4, 1, 5], [60, 0, 60, 0, 60]]
    with torch.no_grad():
        np.testing.assert_allclose(small(tensorgrad.tensor(start)).detach().numpy(),
                                   theirs(torch.tensor(start)).numpy(), rtol=1e-4, atol=1e-4)
    assert written(tensorgrad, gpt2, small, start, how) == written(torch, program, theirs, start, how)


@pytest.mark.parametrize("how", HOW, ids=str)
@pytest.mark.parametrize("length", [1, 5, 16, 30])
def test_the_cache_changes_nothing(small, how, length):
    start = np.random.default_rng(length).integers(0, 61, (2, length)).tolist()
    cached, plain = (written(tensorgrad, gpt2, small, start, how, cached) for cached in (True, False))
    assert cached == plain
    assert len(set(cached[0])) > 1 or how.get("temperature") == 0


def test_with_a_cache_a_token_costs_one_position(small, monkeypatch):
    seen = []
    forward = gpt2.GPT2.forward
    monkeypatch.setattr(gpt2.GPT2, "forward", lambda self, tokens, *rest, **more: seen.append(tokens.shape[1])
                        or forward(self, tokens, *rest, **more))
    for _ in gpt2.generate(small, tensorgrad.tensor([[1, 2, 3]]), 10, temperature=0):
        pass
    assert seen == [3, *[1] * 9]


def test_tokens_can_come_in_pieces(small):
    tokens = tensorgrad.tensor(np.random.default_rng(0).integers(0, 61, (2, 12)))
    cache = gpt2.Cache(small.config, 12, batch=2)
    with tensorgrad.no_grad():
        pieces = [small(part, cache) for part in tokens.split([4, 1, 5, 2], dim=1)]
        np.testing.assert_allclose(tensorgrad.cat(pieces, 1).numpy(), small(tokens).numpy(), rtol=1e-4, atol=1e-5)
        with pytest.raises(ValueError, match="17 tokens is longer than the 16 positions"):
            small(tensorgrad.zeros(2, 5, dtype=tensorgrad.int64), cache)


def test_an_untied_head_stays_what_it_is(small):
    state = published(small, head=True)
    state["lm_head.weight"] = state["lm_head.weight"] + 1
    model = gpt2.GPT2(gpt2.Config(**SMALL)).eval()
    model.load_published(state)
    tokens = tensorgrad.tensor([[3, 1, 4]])
    assert not tensorgrad.allclose(model(tokens), small(tokens))
    model.load_published(published(small))
    assert model.lm_head.weight is model.transformer.wte.weight


def test_choices():
    logits = tensorgrad.tensor([[0.0, 3.0, 2.0, 1.0], [5.0, 0.0, 0.0, 4.9]])
    generator = tensorgrad.Generator().manual_seed(0)

    def chosen(**how):
        return [set(column)
                for column in zip(*(gpt2.choose(logits, generator=generator, **how)[:, 0].tolist()
                                    for _ in range(200)))]
    assert (chosen(temperature=0) == [{1}, {0}] == chosen(top_k=1) == chosen(top_p=1e-9) == chosen(temperature=1e-3)[:1]
            + [{0}])
    assert chosen(top_k=2) == [{1, 2}, {0, 3}]
    assert chosen(top_p=0.7) == [{1, 2}, {0, 3}]           # 0.64 of the probability, then 0.24
    assert chosen(top_k=99, top_p=1.0, temperature=9)[0] == {0, 1, 2, 3}


@pytest.mark.parametrize("said, why", [
    ({"model_type": "bert"}, "not describe a GPT-2"), ([], "not describe a GPT-2"),
    ({"n_head": 7}, "7 heads cannot share 768"),
    ({"activation_function": "swish"}, "swish is not known"),
    ({"scale_attn_by_inverse_layer_idx": True}, "is not supported")])
def test_configurations_that_are_none(tmp_path, said, why):
    (tmp_path / "config.json").write_text(json.dumps(said), encoding="utf-8")
    with pytest.raises(ValueError, match=why):
        gpt2.Config.read(tmp_path / "config.json")


# ── tokens ────────────────────────────────────────────────────────────────────────────────────

MERGES = [tuple(pair.split()) for pair in ("Ġ t", "h e", "Ġt he", "i n", "e r", "the re", "l o", "lo w", "low er",
                                           "Ã ©", "ĠĠ ĠĠ", "Ġ Ġ")
          if "".join(pair.split()) != "there"]
VOCABULARY = {piece: number
              for number, piece in enumerate([*byte_letters().values(), *map("".join, MERGES), "<|endoftext|>"])}


@pytest.fixture(scope="module")
def bpe():
    return BPE(VOCABULARY, MERGES)


def test_merges_come_in_the_order_of_their_ranks(bpe):
    def pieces(text):
        return [bpe.tokens[token] for token in bpe.encode(text)]
    assert pieces("lower") == ["lower"]                # lo·w·e·r → e·r first
    assert pieces("the lowest") == ["t", "he", "Ġ", "low", "e", "s", "t"]
    assert pieces(" the thin") == ["Ġthe", "Ġt", "h", "in"]
    assert pieces("é") == ["Ã©"] and pieces("è") == ["Ã", "¨"]
    # "ĠĠ ĠĠ" goes before "Ġ Ġ", but there are no pairs yet
    assert pieces("a    b") == ["a", "ĠĠ", "Ġ", "Ġ", "b"]
    assert bpe.decode([bpe.end]) == "<|endoftext|>" and bpe.end == len(bpe) - 1
    assert bpe.end not in bpe.encode("<|endoftext|>")             # a text does not end itself


@pytest.mark.parametrize("text, expected", [
    ("Hello, world!  It's 2024.", ["Hello", ",", " world", "!", " ", " It", "'s", " 2024", "."]),
    ("I'd've we'll DON'T can't'll", ["I", "'d", "'ve", " we", "'ll", " DON", "'", "T", " can", "'t", "'ll"]),
    ("  two\n\n  lines \t\n", [" ", " two", "\n\n ", " lines", " \t\n"]),
    ("naïve Ελλάδα中文123٣²Ⅷ一", ["naïve", " Ελλάδα中文", "123٣²Ⅷ", "一"]),        # 一 is a letter, for all its value
    ("e\u0301 \u0301x", ["e", "\u0301", " \u0301", "x"]),         # accents of their own are neither letters nor blanks
    ("a\xa0b\u3000c\u200bd", ["a", "\xa0", "b", "\u3000", "c", "\u200b", "d"]),
    ("a\xa0 b \xa0c", ["a", "\xa0", " b", " ", "\xa0", "c"]),
    ("x\x1cy\x85z\u2028\u180e", ["x", "\x1c", "y", "\x85", "z", "\u2028", "\u180e"]),
    ("snake_case−½ 👩‍🚀!", ["snake", "_", "case", "−", "½", " 👩‍🚀!"]),
    ("ǅ ª ʰ ß’s", ["ǅ", " ª", " ʰ", " ß", "’", "s"]),
    ("", []),
])
def test_words(text, expected):
    assert words(text) == expected


LETTERS = "  \t\n\r\x0b\x1c\x1d\x85\xa0''''stremdlvSTaZ019²½٣Ⅷ〇一été\u0301ßǅ!?.,_-–…\u200b\u200d\u2028\u3000\ufeff👩🚀\x00"  # noqa: E501


def test_words_are_those_of_gpt2s_pattern():
    regex = pytest.importorskip("regex")
    pattern = regex.compile(r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""")
    draw = random.Random(0)
    for _ in range(5000):
        text = "".join(draw.choices(LETTERS, k=draw.randint(0, 14)))
        assert words(text) == pattern.findall(text)


@pytest.mark.parametrize("kind", ["bpe", "bytes"])
def test_every_text_comes_back(bpe, kind):
    tokens = bpe if kind == "bpe" else Bytes()

    @steady()
    @given(st.text())
    def check(text):
        text = text.encode("utf-8", "ignore").decode()
        numbers = tokens.encode(text)
        assert tokens.decode(numbers) == text == "".join(tokens.stream(iter(numbers))) and "".join(words(text)) == text
        assert all(0 <= n < len(tokens) for n in numbers)
    check()


def test_characters_appear_when_they_are_complete():
    assert list(Bytes().stream("aé€".encode())) == ["a", "", "é", "", "", "€", ""]
    assert "".join(Bytes().stream([0xc3, 0x41, 0xe2])) == "\ufffdA\ufffd" == Bytes().decode([0xc3, 0x41, 0xe2])


def test_letters_of_bytes():
    letters = byte_letters()
    assert (len(set(letters.values())) == 256 and letters[ord("A")] == "A" and letters[32] == "Ġ" and letters[10] == "Ċ"
            and letters[0xad] == "Ń")


def vocabulary(folder, vocabulary=VOCABULARY, merges=MERGES, names=("vocab.json", "merges.txt")):
    folder.mkdir(exist_ok=True)
    (folder / names[0]).write_text(json.dumps(vocabulary), encoding="utf-8")
    (folder / names[1]).write_text("#version: 0.2\n" + "\n".join(map(" ".join, merges)) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("names", tokenizer.FILES)
def test_vocabularies_are_read(bpe, tmp_path, names):
    read = BPE.read(vocabulary(tmp_path, names=names))
    assert read.vocabulary == bpe.vocabulary and read.ranks == bpe.ranks and len(read) == len(bpe)


def test_vocabularies_that_do_not_hang_together(tmp_path):
    for table, merges, why in [({"a": 0}, [], "lacks 255 of the 256 bytes"),
                               (VOCABULARY, [("q", "x")], "lacks what 1 of the merges give, such as 'qx'"),
                               ([1], [], "not a table"), (VOCABULARY, [("a", "b", "c")], "not a list of pairs")]:
        with pytest.raises(ValueError, match=why):
            BPE.read(vocabulary(tmp_path, table, merges))


# ── pictures ──────────────────────────────────────────────────────────────────────────────────


def picture(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("height, width", [(300, 400), (256, 256), (701, 600), (31, 57), (224, 224), (3, 2),
                                           (257, 999)])
def test_resizing_is_pillows(height, width):
    """But for very tall pictures, where some versions take the axes the other way around, and values differ by 1."""
    Image = pytest.importorskip("PIL.Image")
    pixels = picture(height, width)
    shorter = min(height, width)
    size = (int(256 * width / shorter), int(256 * height / shorter))
    np.testing.assert_array_equal(images.resize(pixels, 256),
                                  np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.BILINEAR)))


def test_the_transform_is_that_of_torchvision():
    """Resize, CenterCrop, ToTensor, Normalize; written with PyTorch and Pillow."""
    torch, Image = pytest.importorskip("torch"), pytest.importorskip("PIL.Image")
    for height, width in [(300, 400), (333, 259)]:
        pixels = picture(height, width)
        shorter = min(height, width)
        resized = Image.fromarray(pixels).resize((int(256 * width / shorter), int(256 * height / shorter)),
                                                 Image.Resampling.BILINEAR)
        left, top = (int(round((n - 224) / 2.0)) for n in resized.size)
        cropped = torch.tensor(np.asarray(resized.crop((left, top, left + 224, top + 224)))).permute(2, 0,
                                                                                                     1).to(torch.float32).div(255)
        mean, std = (torch.tensor(numbers).view(3, 1, 1) for numbers in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
        np.testing.assert_allclose(images.prepared(pixels).numpy(), cropped.sub(mean).div(std).unsqueeze(0).numpy(),
                                   rtol=0, atol=1e-6)


def test_a_crop_larger_than_the_picture_is_black_outside():
    pixels = picture(3, 6) | 1
    cropped = images.crop(pixels, 5)
    assert cropped.shape == (5, 5, 3) and not cropped[0].any() and not cropped[4].any()
    np.testing.assert_array_equal(cropped[1:4], pixels[:, 0:5])


def test_pictures_are_read(tmp_path):
    pixels = picture(4, 5)
    np.save(tmp_path / "a.npy", pixels)
    (tmp_path / "a.ppm").write_bytes(b"P6\n# made by hand\n5 4\n255\n" + pixels.tobytes())
    (tmp_path / "a.pgm").write_bytes(b"P5 5 4 255 " + pixels[..., 0].tobytes())
    for name in ("a.npy", "a.ppm"):
        np.testing.assert_array_equal(images.read(tmp_path / name), pixels)
    np.testing.assert_array_equal(images.read(tmp_path / "a.pgm"), np.repeat(pixels[..., :1], 3, 2))
    Image = pytest.importorskip("PIL.Image")
    Image.fromarray(pixels).save(tmp_path / "a.png")
    Image.fromarray(np.dstack([pixels, pixels[..., 0]])).save(tmp_path / "with_alpha.png")
    for name in ("a.png", "with_alpha.png"):
        np.testing.assert_array_equal(images.read(tmp_path / name), pixels)


def test_files_that_are_no_pictures(tmp_path, monkeypatch):
    file = tmp_path / "picture"
    for data, why in [(b"P6 5 4 255 " + bytes(59), "damaged"), (b"P6 5 4 65535 " + bytes(120), "8 bits"),
                      (b"P6", "damaged")]:
        file.write_bytes(data)
        with pytest.raises(ValueError, match=why):
            images.read(file)
    for array, why in [(np.zeros((2, 2, 3)), "uint8"), (np.zeros((2, 2, 4), np.uint8), "shape"),
                       (np.zeros((0, 2, 3), np.uint8), "shape")]:
        np.save(tmp_path / "array.npy", array)
        with pytest.raises(ValueError, match=why):
            images.read(tmp_path / "array.npy")
    file.write_bytes(b"no picture")
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"pip install pillow"):
        images.read(file)


# ── the command line ──────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def shop(folder, small):
    """Files to try the programs on."""
    _, state = untrained(lambda: resnet.resnet("resnet18", num_classes=10, width=64))
    saved(lively(state), folder / "resnet18.pth")
    saved(untrained(lambda: resnet.resnet("resnet50", num_classes=10))[1], folder / "resnet50.safetensors")
    np.save(folder / "picture.npy", picture(40, 60))
    (folder / "labels.txt").write_text("\n".join(f"animal {i}" for i in range(10)), encoding="utf-8")
    (folder / "labels.json").write_text(json.dumps({str(i): [f"n0{i}", f"beast {i}"] for i in range(10)}),
                                        encoding="utf-8")
    model, state = untrained(lambda: gpt2.GPT2(gpt2.Config(256, 32, 64, 2, 1)))
    lively(state)
    saved(published(model), folder / "bytes.bin")
    model, state = untrained(lambda: gpt2.GPT2(gpt2.Config(len(VOCABULARY) + 5, 32, 128, 2, 2)))
    lively(state)
    saved(published(model), vocabulary(folder / "gpt") / "model.safetensors")
    saved(published(small), folder / "small.bin")
    (folder / "text.pt").write_text("no tensors here", encoding="utf-8")
    (folder / "short.safetensors").write_bytes(struct.pack("<Q", 999) + b"{}")
    tensorgrad.save([1, 2], folder / "list.pt")
    return folder


def ran(folder, *arguments):
    command = [sys.executable, "-W", "error", "-m", "examples.inference", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", timeout=120)


def printed(capsys, *arguments, expect=0):
    assert main([str(argument) for argument in arguments]) == expect
    out, err = capsys.readouterr()
    return out if expect == 0 else err


def test_classify_in_a_fresh_process(shop):
    done = ran(shop, "classify", str(shop / "picture.npy"), "--weights", str(shop / "resnet18.pth"), "--labels",
               str(shop / "labels.txt"), "--top", "3")
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^ *([\d.]+)%  (animal \d)$", done.stdout, re.MULTILINE)
    model = resnet.resnet("resnet18", num_classes=10).eval()
    model.load_state_dict(tensorgrad.load(shop / "resnet18.pth"))
    chances = model(images.prepared(picture(40, 60)))[0].softmax(0)
    best = chances.argsort(descending=True)[:3].tolist()
    assert (rows == [(f"{100 * chances[i].item():.2f}", f"animal {i}") for i in best]
            and len(done.stdout.splitlines()) == 3)


def test_continue_in_a_fresh_process(shop):
    arguments = ["continue", "lower the", "--weights", str(shop / "gpt" / "model.safetensors"), "--tokens", "12",
                 "--seed", "5", "--top-k", "20"]
    once, again, other = ran(shop, *arguments), ran(shop, *arguments), ran(shop, *arguments[:-3], "6", *arguments[-2:])
    assert once.returncode == 0, once.stderr
    assert once.stdout == again.stdout != other.stdout
    assert once.stdout.startswith("lower the") and len(once.stdout) > len("lower the\n")


def test_classes_are_named(shop, capsys):
    common = ("classify", shop / "picture.npy", "--weights", shop / "resnet50.safetensors", "--arch", "resnet50",
              "--top", 10, "--resize", 64, "--crop", 64)
    assert sorted(re.findall(r"class \d", printed(capsys, *common))) == [f"class {i}" for i in range(10)]
    assert (sorted(re.findall(r"beast \d", printed(capsys, *common, "--labels", shop / "labels.json")))
            == [f"beast {i}" for i in range(10)])


def test_bytes_without_a_vocabulary(shop, capsys):
    common = "continue", "Grüße", "--weights", shop / "bytes.bin", "--temperature", 0
    shorter, longer = printed(capsys, *common, "--tokens", 3), printed(capsys, *common, "--tokens", 50)
    assert shorter.startswith("Grüße") and longer.startswith(shorter[:-2]) and len(longer) > len(shorter)


def test_texts_end(shop, capsys, monkeypatch):
    end = VOCABULARY["<|endoftext|>"]
    monkeypatch.setattr(gpt2, "choose", lambda logits, **how: tensorgrad.tensor([[end]]))
    assert printed(capsys, "continue", "low", "--weights", shop / "gpt" / "model.safetensors") == "low\n"
    assert printed(capsys, "continue", "", "--weights", shop / "gpt" / "model.safetensors") == "\n"


@pytest.mark.parametrize("arguments, why", [
    ("classify nothing.jpg --weights resnet18.pth", "error: nothing.jpg: No such file or directory"),
    ("classify picture.npy --weights nothing.pth", "error: nothing.pth: No such file or directory"),
    ("classify picture.npy --weights resnet50.safetensors",
     "does not fit --arch resnet18: it has besides .* It fits --arch resnet50$"),
    ("classify picture.npy --weights bytes.bin",
     "does not fit --arch resnet18: it lacks conv1.weight, bn1.weight, bn1.bias and 99 more"),
    ("classify picture.npy --weights resnet18.pth --arch vgg16", "vgg16 is not known: there are resnet18, resnet34"),
    ("classify picture.npy --weights text.pt", "text.pt cannot be read"),
    ("classify picture.npy --weights list.pt", "list.pt does not hold a state dict"),
    ("classify picture.npy --weights short.safetensors", "short.safetensors cannot be read"),
    ("classify labels.txt --weights resnet18.pth", "labels.txt is not a picture|takes Pillow"),
    ("continue x --weights resnet18.pth", "does not hold a GPT-2: its parameters have names such as conv1.weight"),
    ("continue x --weights bytes.bin --config gpt2",
     "does not fit --config gpt2: .*wte.weight is .256, 64., not .50257, 768."),
    ("continue x --weights bytes.bin --config gpt5", "gpt5 is neither a file nor one of gpt2, gpt2-medium"),
    ("continue x --weights bytes.bin --config labels.txt", "labels.txt"),
    ("continue x --weights bytes.bin --vocab gpt", "bytes.bin knows 256 tokens, the vocabulary in gpt has 268"),
    ("continue x --weights bytes.bin --vocab nowhere", "error: nowhere: there is no vocab.json"),
    ("continue x --weights small.bin", "small.bin knows 61 tokens"),
])
def test_what_is_wrong_is_said(shop, capsys, monkeypatch, arguments, why):
    monkeypatch.chdir(shop)
    says = printed(capsys, *arguments.split(), expect=1)
    assert says.startswith("error: ") and says.count("\n") == 1 and re.search(why, says), says


@pytest.mark.parametrize("arguments, why", [
    ("", "required: TASK"), ("classify a.png", "required: --weights"),
    ("continue x --weights f --tokens 0", "not above 0"),
    ("continue x --weights f --top-p 1.5", "at most 1"), ("continue x --weights f --temperature -1", "below 0")])
def test_bad_options_are_refused(capsys, arguments, why):
    with pytest.raises(SystemExit) as refusal:
        main(arguments.split())
    assert refusal.value.code == 2 and why in capsys.readouterr().err


def test_checkpoints_of_training_runs(tmp_path):
    state = {"module.weight": tensorgrad.ones(2)}
    for wrapped in (state, {"state_dict": state, "epoch": 3}, {"model": state, "optimizer": {}}):
        tensorgrad.save(wrapped, tmp_path / "checkpoint.pt")
        assert weights.read(tmp_path / "checkpoint.pt")["weight"].tolist() == [1, 1]
