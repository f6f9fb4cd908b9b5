"""A run that is killed at any moment ends to the bit as one that nobody kills: weights, buffers, optimizer, scheduler,
streams, losses.
"""
import os
from pathlib import Path

import killing
import pytest
from killing import Kill, finish, moments

pytestmark = pytest.mark.skipif(os.name != "posix", reason="processes are killed by SIGKILL")
KILLED = Path(__file__).parent / "killed"


def test_a_loop_without_a_trainer_resumes(tmp_path):
    """Shuffling, dropout, noise from all streams in two workers, a checkpoint every other step."""
    expected = finish(KILLED / "loop.py", tmp_path / "whole", 2, 2)
    kills = [Kill(1, call="open"), Kill(2, call="replace"), *moments(4, 5, 3)]
    ended = finish(KILLED / "loop.py", tmp_path / "killed", 2, 2, kills=kills)
    assert ended.killed == len(kills) and ended.steps > expected.steps - len(kills)
    assert ended.digest == expected.digest
    assert not list((tmp_path / "killed").glob(".*.part"))


def test_a_program_that_fails_is_told_from_one_that_is_killed(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import os\nprint('step 1', flush=True)\nos.fsync(os.open(__file__, os.O_RDONLY))\nraise "
                       "KeyError('mine')")
    with pytest.raises(AssertionError, match="(?s)ended with \\[1\\], after 2 kills.*KeyError: 'mine'"):
        finish(program, kills=[Kill(1, call="fsync"), Kill(0)])


def test_digests_tell_states_apart():
    import tensorgrad as tg
    states = [{"a": tg.zeros(2)}, {"b": tg.zeros(2)}, {"a": tg.zeros(2, 1)}, {"a": -tg.zeros(2)},
              {"a": tg.zeros(2, dtype=tg.int32)}, {"a": [0.0, 0.0]}, {"a": [0, 0.0]}, {"a": float("nan")}, [1, [2]],
              [1, 2], [[1], 2]]
    assert len({killing.digest(state) for state in states}) == len(states)
    assert killing.digest(states[0]) == killing.digest({"a": tg.zeros(2)})


def test_moments_repeat():
    assert moments(1, 5, 4) == moments(1, 5, 4) != moments(2, 5, 4)
