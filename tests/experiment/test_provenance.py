"""Where a run comes from: its command line without secrets, the state of the repository, and the copy of the source."""

import json
import os
import subprocess

import pytest

from tensorgrad.experiment import provenance
from tensorgrad.experiment.run import Run


def test_secrets_of_the_command_line_are_hidden():
    given = [
        "t.py",
        "--token",
        "abc",
        "--api-key=abc",
        "hub.password=abc",
        "--lr",
        "0.1",
        "https://ann:pw@host/x",
        "--wandb_key",
        "abc",
        "--keep",
        "5",
        "--tokenizer",
        "bpe",
    ]
    assert provenance.command(given) == [
        "t.py",
        "--token",
        "***",
        "--api-key=***",
        "hub.password=***",
        "--lr",
        "0.1",
        "https://***@host/x",
        "--wandb_key",
        "***",
        "--keep",
        "5",
        "--tokenizer",
        "bpe",
    ]


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A small repository, and git without this machine's settings."""
    root = tmp_path / "project"
    for name, text in {
        "train.py": "x",
        "save.py": "kept",
        "load_data.py": "kept",
        "pkg/mod.py": "y",
        "save/run/a.ckpt": "no",
        "load/data.bin": "no",
        "out/x.txt": "no",
        "pkg/__pycache__/m.pyc": "no",
        "ignored/x.py": "no",
        ".gitignore": "ignored/\n",
        "big.bin": "0" * (2 << 20),
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, os.devnull)
    return root


def git(root, *arguments):
    subprocess.run(
        ["git", "-C", root, "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True, capture_output=True
    )


def copied(path):
    return {p.relative_to(path).as_posix() for p in path.rglob("*") if not p.is_dir()}


def test_E22_the_source_is_copied_without_data_and_runs(project):
    (project / "outside").symlink_to(project.parent)
    (project / "secret.py").symlink_to("/etc/hostname")
    (project / "alias.py").symlink_to("train.py")
    os.mkfifo(project / "pipe")
    with Run(project / "logs" / "r1", snapshot=project, events=False, quiet=True) as run:
        assert copied(run.path / "src") == {
            "train.py",
            "save.py",
            "load_data.py",
            "pkg/mod.py",
            "ignored/x.py",
            "alias.py",
            ".gitignore",
        }
    log = (run.path / "log.txt").read_text()
    assert "src is without 1 file (files of more than 1 MiB): big.bin" in log and "2 files (links" in log
    (project / "train.py").write_text("new")
    with Run(run.path, resume=True, snapshot=project, events=False, quiet=True):
        assert (run.path / "src" / "train.py").read_text() == "new" and not list(run.path.glob(".src*"))


def test_E22_what_git_ignores_is_not_copied(project):
    git(project, "init", "-b", "main")
    git(project, "add", ".")
    with Run(project / "r", snapshot=project, events=False, quiet=True) as run:
        assert copied(run.path / "src") == {"train.py", "save.py", "load_data.py", "pkg/mod.py", ".gitignore"}


def test_E22_a_source_of_many_files_is_cut(project, monkeypatch):
    monkeypatch.setattr(provenance, "MOST_FILES", 3)
    with Run(project / "r", snapshot=project, events=False, quiet=True) as run:
        assert len(copied(run.path / "src")) == 3
    assert "(more than 3 files" in (run.path / "log.txt").read_text()


def test_the_state_of_the_repository_is_noted(project, monkeypatch):
    assert provenance.git(project) is None
    git(project, "init", "-b", "topic")
    git(project, "remote", "add", "origin", "https://ann:secret@host/x")
    assert provenance.git(project) == {"commit": None, "branch": "topic", "dirty": True}
    git(project, "add", ".")
    git(project, "commit", "-m", "x")
    found = provenance.git(project)
    assert len(found["commit"]) == 40 and found["branch"] == "topic" and found["dirty"] is False
    (project / "train.py").write_text("changed")
    monkeypatch.chdir(project)
    with Run(project / "save" / "r", events=False, quiet=True) as run:
        text = (run.path / "run.json").read_text()
        assert json.loads(text)["git"]["dirty"] is True and "secret" not in text
    monkeypatch.setenv("PATH", "")
    assert provenance.git(project) is None
