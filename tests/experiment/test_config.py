"""Configurations of experiments: YAML under limits, changes from the command line, and all mistakes at once."""

import json
from datetime import date
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steady import steady
from support import fresh_process

import tensorgrad as torch
from tensorgrad.experiment import config, models
from tensorgrad.experiment.config import ConfigError, dump, load, loads, override

yaml = pytest.importorskip("yaml")
PARSERS = ["libyaml", "python"] if hasattr(yaml, "CSafeLoader") else ["python"]

PLAIN = """
train_dataset:
  dataset: {name: mnist-ds, args: {train: true}}
  batch_size: 32
  shuffle: true
val_dataset:
  dataset: {name: mnist-ds, args: {train: false}}
  batch_size: 32
model:
  name: resnet18
  args: {num_classes: 10}
optimizer:
  name: SGD
  args: {lr: 1.e-2, momentum: 0.9}
scheduler:
  name: LambdaLR
  args: {lr_lambda: {name: warmup_lr, args: {start: 0.1}}}
loss: {name: mnist_ce}
epoch_max: 5
epoch_val: 1
epoch_save: 2
run_step: true
load_optimizer: true
seed: 42
"""


@pytest.fixture(params=PARSERS)
def parser(request, monkeypatch):
    """Texts are read by libyaml's parser, and by PyYAML's own."""
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    config._loader.cache_clear()
    yield request.param
    config._loader.cache_clear()


def mistakes_of(call, *args):
    with pytest.raises(ConfigError) as caught:
        call(*args)
    lines = str(caught.value).split("\n")
    assert len(lines) == len(caught.value.mistakes) and all(line.isprintable() for line in lines)
    return lines


def one(call, *args):
    [line] = mistakes_of(call, *args)
    return line


# ── reading ───────────────────────────────────────────────────────────────────────────────────


def test_E25_floats_without_a_point_are_floats(parser):
    text = "a: 1.e-4\nb: 1e-4\nc: 1E+3\nd: .5\ne: 5e3\nf: -1.5e-3\ng: .inf\nh: 1_000.5\ni: 1e400"
    read = loads(text)
    assert read == {
        "a": 1e-4,
        "b": 1e-4,
        "c": 1e3,
        "d": 0.5,
        "e": 5e3,
        "f": -1.5e-3,
        "g": float("inf"),
        "h": 1000.5,
        "i": float("inf"),
    }
    assert all(type(value) is float for value in read.values())
    assert loads("a: '1e-4'\nb: 1e\nc: e4\nd: 1e-4x") == {"a": "1e-4", "b": "1e", "c": "e4", "d": "1e-4x"}


def test_E25_values_are_what_pyyaml_makes_of_them(parser):
    text = ("a: [1, 0x1F, 0b11, 017, 1_000, 190:20]\nb: [yes, No, on, ~, null, '', ]\nc: {d: |\n   two\n   lines\n "
            "}\ne: >-\n  x\n  y\nf: \"\\e[\"\n")
    text = text.replace("c: {d: |\n   two\n   lines\n }\n", "c:\n  d: |\n   two\n   lines\n")
    assert loads(text) == yaml.safe_load(text)
    assert loads(text.encode()) == loads(text) == loads(text.encode("utf-16"))


def test_E25_dates_and_signs_stay_texts(parser):
    assert loads("a: 2024-01-01\nb: =\nc: <<") == {"a": "2024-01-01", "b": "=", "c": "<<"}


def test_E25_aliases_and_merges_are_copies(parser):
    read = loads(
        "base: &b {lr: 1, betas: [1, 2]}\nother: *b\nmore: {<<: *b, lr: 2}\nlist: {<<: [{a: 1}, {a: 2, c: 3}]}"
    )
    assert read["other"] == read["base"] and read["other"]["betas"] is not read["base"]["betas"]
    assert read["more"] == {"lr": 2, "betas": [1, 2]} and read["list"] == {"a": 1, "c": 3}


def test_E25_specs_of_layers_are_read(parser):
    layers = pytest.importorskip("tensorgrad.layers")
    network = layers.Sequential([layers.Linear(5), layers.Dropout(p=0.5), layers.Linear(2)])
    text = layers.to_yaml(network)
    spec = loads(text)
    made = models.make({"name": "layers", "args": {"spec": loads(dump(spec))}})
    assert layers.to_yaml(made.model) == text and dump(yaml.safe_load(text)) == dump(spec)


def test_E25_empty_texts_are_empty_configs(parser):
    assert loads("") == loads("# nothing\n") == loads("---\n") == loads(b"") == {}


@pytest.mark.parametrize(
    "text, line",
    [
        ("- 1", "a configuration is a mapping of keys to values, not a list of 1"),
        ("just text", "a configuration is a mapping of keys to values, not 'just text'"),
        ("a: 1\nb: 2\na: 3", "a: line 3: the key occurs twice in its mapping"),
        ("a: {b: [{c: 1, c: 2}]}", "a.b[0].c: line 1: the key occurs twice in its mapping"),
        ("a:\n  1: x", "a: line 2: keys are texts, not 1; put it in quotes"),
        ("a: {[1]: x}", "a: line 1: keys are texts, not a list of 1"),
        ("~: 1", "line 1: keys are texts, not null; put it in quotes"),
        ("on: 1", "line 1: keys are texts, not true; put it in quotes"),
        (
            "a: !!python/object/apply:os.system [ls]",
            "a: line 1: the tag 'tag:yaml.org,2002:python/object/apply:os.system' is refused: "
            "a configuration is plain data",
        ),
        ("a: !mine 1", "a: line 1: the tag '!mine' is refused: a configuration is plain data"),
        ("a: !!binary aGk=", "a: line 1: the tag 'tag:yaml.org,2002:binary' is refused: a configuration is plain data"),
        ("a: !!set {x}", "a: line 1: the tag 'tag:yaml.org,2002:set' is refused: a configuration is plain data"),
        ("a: !!int x", "a: line 1: 'x' is no int"),
        ("a: !!bool 1", "a: line 1: '1' is no bool"),
        ("a: *b", "a: line 1: the alias '*b' comes before its anchor"),
        ("a: &b [1, *b]", "a[1]: line 1: the alias '*b' refers to a value that contains it"),
        ("a: &b {c: {d: *b}}", "a.c.d: line 1: the alias '*b' refers to a value that contains it"),
        ("a: {<<: 3}", "a: line 1: '<<' takes a mapping, or a list of them, not 3"),
        ("a: 1\n---\nb: 2", "line 2: a configuration is one document, and here a second one begins"),
        ("a: " + "9" * 401, "a: line 1: a number of more than 400 characters"),
        ("a: 0x" + "f" * 399, "a: line 1: a number of more than 400 characters"),
    ],
)
def test_E25_texts_that_are_no_config_name_their_lines(parser, text, line):
    assert one(loads, text) == line


@pytest.mark.parametrize(
    "text",
    [
        "a: b: c",
        "a: [1",
        "a: 'x",
        "\t- a",
        "a: \x01",
        b"\xff\xfe\x00",
        b"\x80",
        "a: \ud800",
        "%YAML 9\n---\na: 1",
        'a: "\\x"',
    ],
)
def test_E25_texts_that_are_no_yaml(parser, text):
    assert "this is not YAML" in one(loads, text)


def test_E25_half_surrogates_are_refused(parser):
    assert len(mistakes_of(loads, 'a: "\\ud800"')) == 1


def test_E25_mistakes_of_a_text_come_together(parser):
    lines = mistakes_of(loads, "a: 1\na: 2\n3: x\nb: !x y\nc: {d: !!int q}")
    assert [line.split(":")[0] for line in lines] == ["a", "line 3", "b", "c.d"]


# ── hostile texts ─────────────────────────────────────────────────────────────────────────────

LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30)
)


@pytest.mark.parametrize(
    "text, why",
    [
        (LAUGHS, "10,000 values, aliases written out"),
        (LAUGHS.replace("[", "{<<: [").replace("]", "]}").replace("x, ", "{x: 1}, ").replace("x]", "{x: 1}]"), ""),
        ("a: [" + "1," * 200_000 + "]", "10,000 values"),
        ("a: [" + "[]," * 20_000 + "]", "10,000 values"),
        ("{" + ",".join(f"k{i}: 1" for i in range(9000)) + "}", "10,000 values"),
        ("a: " + "[" * 33 + "]" * 33, "nested 32 deep at most"),
        ("a: " + "[" * 300_000, ""),
        ("a: " + "{b: " * 300_000, ""),
        ("- " * 400_000, ""),
        ("? " * 400_000, ""),
        ("a:\n" + "".join(" " * i + "b:\n" for i in range(1, 1000)), "nested 32 deep at most"),
        ("b: &b " + "[" * 20 + "]" * 20 + "\na: " + "[" * 15 + "*b" + "]" * 15, "nested 32 deep at most"),
        ("x" * 1_000_001, "at most 1,000,000 bytes"),
        ("é" * 500_001, "at most 1,000,000 bytes"),
        ("a: &" + "b" * 900_000 + " 1", ""),
        ("!<" + "x" * 900_000 + "> 1", ""),
        ("'" + "\\" * 900_000, ""),
        ("&a " * 300_000, ""),
    ],
)
def test_E34_hostile_texts_are_refused_before_they_are_built(parser, text, why):
    if parser == "python":  # which reads more slowly; the limits are the same
        text = text if "bytes" in why else text[:60_000]
    try:
        value = loads(text)
    except ConfigError as error:
        assert why in str(error) and all(len(line) < 1000 for line in str(error).split("\n"))
    else:
        assert not why and len(dump(value)) < 10**6


def test_E34_what_the_limits_allow(parser):
    assert len(loads("a: [" + "1," * 9990 + "]")["a"]) == 9990
    value = loads("a: " + "[" * 31 + "]" * 31)["a"]
    for _ in range(30):
        [value] = value
    assert value == []
    assert len(loads("# " + "x" * 999_900 + "\na: 1")) == 1


def test_E34_huge_files_are_not_read(tmp_path):
    path = tmp_path / "huge.yaml"
    with open(path, "wb") as file:
        file.truncate(100_000_000)
    import tracemalloc

    tracemalloc.start()
    try:
        assert "at most 1,000,000 bytes" in one(load, path)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_E34_no_name_in_a_text_is_shown_raw():
    [line] = mistakes_of(loads, 'a: {"\\e[2J\\nx": 1, "\\e[2J\\nx": 2}')
    assert line == r"a['\x1b[2J\nx']: line 1: the key occurs twice in its mapping"


@steady(max_examples=100)
@given(st.one_of(st.text(), st.binary(), st.text("&*!|>[]{}:,-?'\"\\<=~#%@`\n\t 0aé")))
def test_E34_noise_is_read_or_refused(text):
    try:
        value = loads(text)
    except ConfigError as error:
        assert str(error)
    else:
        assert loads(dump(value)) == value or "nan" in dump(value)


# ── files ─────────────────────────────────────────────────────────────────────────────────────


def test_E25_load_reads_yaml_and_json(tmp_path):
    (tmp_path / "a.yaml").write_text(PLAIN, encoding="utf-8")
    (tmp_path / "a.json").write_text(json.dumps(loads(PLAIN)), encoding="utf-8")
    assert load(tmp_path / "a.yaml") == load(str(tmp_path / "a.json")) == loads(PLAIN)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.yaml")


@pytest.mark.parametrize(
    "text, why",
    [
        ("[1]", "a mapping"),
        ("{", "not JSON"),
        ('{"a": 1, "a": 2}', "'a' occurs twice"),
        ("[" * 100_000, "not JSON"),
        ('{"a": ' + "[" * 40 + "]" * 40 + "}", "32 deep"),
        ('{"a": ' + "9" * 5000 + "}", "not JSON"),
        ("é\xff", "not JSON"),
        ('{"a": "\\ud800"}', "surrogate"),
    ],
)
def test_E25_json_has_the_same_limits(tmp_path, text, why):
    (tmp_path / "a.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=why) as caught:
        load(tmp_path / "a.json")
    assert caught.value.__notes__ == [f"in {tmp_path / 'a.json'}"]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.floats(allow_nan=False) | TEXTS
PLAIN_DATA = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)


@steady(max_examples=40)
@given(st.dictionaries(TEXTS, PLAIN_DATA, max_size=5))
def test_E23_dump_is_read_back(value):
    text = dump(value)
    assert loads(text) == value and list(loads(text)) == list(value)
    assert list(map(type, loads(text).values())) == list(map(type, value.values()))


@pytest.mark.parametrize(
    "text",
    [
        "1e-4",
        "1.e3",
        "2024-01-01",
        "=",
        "<<",
        "yes",
        "null",
        "~",
        "",
        "0x1F",
        "1:30",
        "a: b",
        "# no",
        "- x",
        "é\n\x1b",
        "\x85",
    ],
)
def test_E23_texts_like_values_are_quoted(text):
    assert loads(dump({"a": text, text: 1})) == {"a": text, text: 1}
    assert yaml.safe_load(dump({"a": text}))["a"] == text  # whoever reads it


def test_E23_dump_keeps_the_order_and_takes_numbers_of_arrays():
    class Color(str, Enum):  # noqa: UP042
        RED = "red"

    shared = [1, 2]
    value = {
        "z": Path("a/b"),
        "a": np.float32(0.5),
        "m": torch.tensor(3),
        "c": (1, np.int64(2)),
        "e": Color.RED,
        "s": shared,
        "t": shared,
        "b": np.bool_(True),
    }
    text = dump(value)
    assert text == "z: a/b\na: 0.5\nm: 3\nc: [1, 2]\ne: red\ns: [1, 2]\nt: [1, 2]\nb: true\n"


def test_E23_what_no_file_can_hold_is_told():
    lines = mistakes_of(
        dump, {"a": object(), "b": {1: 2}, "c": [torch.zeros(2)], "d": date(2024, 1, 1), "e": 10**400, "f": "\ud800"}
    )
    assert lines == [
        "a: a object is not plain data, so no configuration can hold it",
        "b: keys are texts that a file can hold, not 1",
        "c[0]: a Tensor is not plain data, so no configuration can hold it",
        "d: a date is not plain data, so no configuration can hold it",
        "e: a number of more than 400 characters",
        "f: a text with half a surrogate pair, which no file can hold",
    ]
    loop = {}
    loop["a"] = loop
    assert "32 deep" in one(dump, loop)


# ── changes from the command line ─────────────────────────────────────────────────────────────


def test_E25_override_changes_a_copy():
    before = loads(PLAIN)
    changed = override(
        before,
        [
            "optimizer.args.lr=1e-3",
            "model.args={num_classes: 5}",
            "scheduler=null",
            "callbacks=[{name: a}, {name: b}]",
            "callbacks[1].args.x=[1, 2]",
            "callbacks[-2].name=c",
            "new.deep.key= text with spaces ",
        ],
    )
    assert before == loads(PLAIN)
    assert changed["optimizer"]["args"] == {"lr": 1e-3, "momentum": 0.9} and changed["model"]["args"] == {
        "num_classes": 5
    }
    assert changed["scheduler"] is None and changed["new"] == {"deep": {"key": "text with spaces"}}
    assert changed["callbacks"] == [{"name": "c"}, {"name": "b", "args": {"x": [1, 2]}}]
    assert override({"a": None}, ["a.b=x=y"]) == {"a": {"b": "x=y"}} and override({}, ["a="]) == {"a": None}


@pytest.mark.parametrize(
    "change, line",
    [
        ("lr", "'lr': a change is written key.key=value"),
        ("=1", "'' is no path: one is written key.key[0].key"),
        ("a..b=1", "'a..b' is no path: one is written key.key[0].key"),
        ("[0]=1", "'[0]' is no path: one is written key.key[0].key"),
        ("a[x]=1", "'a[x]' is no path: one is written key.key[0].key"),
        ("a b=1", "'a b' is no path: one is written key.key[0].key"),
        ("l[2]=1", "l[2]: the list has 2 items"),
        ("l.x=1", "l: no mapping, so it has no key 'x': a list of 2"),
        ("m[0]=1", "m: no list, so it has no item [0]: a mapping of 1"),
        ("m.k.x=1", "m.k: no mapping, so it has no key 'x': 1"),
        ("q[0]=1", "q: is not there, so it has no item [0]"),
        ("m.k=[1", None),
        (
            "m.k=!!python/name:os.system",
            "m.k: line 1: the tag 'tag:yaml.org,2002:python/name:os.system' is refused: a configuration is plain data",
        ),
        ("m." + "k." * 50 + "k=1", None),
    ],
)
def test_E25_override_names_what_is_wrong(change, line):
    told = one(override, {"l": [1, 2], "m": {"k": 1} if not change.endswith("k.k=1") else {}}, [change])
    assert line is None or told == line


def test_E25_override_tells_all_mistakes():
    assert len(mistakes_of(override, {"a": 1}, ["a.b=1", "a[0]=2", "=", "b=[", "c=1"])) == 4


# ── importing ─────────────────────────────────────────────────────────────────────────────────


def test_E25_importing_the_package_loads_no_part_of_it():
    fresh_process(
        "import sys, tensorgrad.experiment as e\n"
        "assert not [m for m in sys.modules if m.startswith('tensorgrad.experiment.')] and 'yaml' not in sys.modules\n"
        "e.Registry, e.ConfigError\n"
        "assert 'tensorgrad.experiment.models' not in sys.modules and 'yaml' not in sys.modules\n"
    )


def test_E25_without_pyyaml_an_error_names_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ImportError, match=r"pip install pyyaml \(the extra \[yaml\]\)"):
        loads("a: 1")
