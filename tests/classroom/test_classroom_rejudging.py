"""The second judgement: of the function that a notebook left behind, of which nothing runs outside the worker."""

import json
import sys

import numpy as np
import pytest

from transformer_lite.classroom import rejudging, sandbox, testing
from transformer_lite.practice import guard


def softmax(x: "np.ndarray", axis: int = -1) -> "np.ndarray":
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def columns(x, axis=-1):
    e = np.exp(x - x.max(axis=0, keepdims=True))
    return e / e.sum(axis=0, keepdims=True)


def empty(x, axis=-1):
    """Nothing yet."""


class Callable:
    def __call__(self, x, axis=-1):
        return softmax(x, axis)


class Hostile:
    """Unpickling it runs code."""

    def __reduce__(self):
        return exec, ("import sys; sys.modules['unpickled_here'] = sys",)


@pytest.mark.parametrize(
    "function, status, traps",
    [
        (softmax, "pass", []),
        (lambda x, axis=-1: softmax(x, axis), "pass", []),
        (Callable(), "pass", []),
        (columns, "wrong", ["SM2"]),
        (empty, "unsolved", []),
        (lambda x: x / 0 * np.nan, "wrong", []),
    ],
)
def test_it_finds_what_the_first_one_found(tmp_path, function, status, traps):
    testing.hand_on(tmp_path, "softmax", function)
    found = rejudging.judged(tmp_path, 5, "softmax")
    assert (found["verdict"]["status"], found["verdict"]["traps"]) == (status, traps)
    assert found["verdict"]["evidence"].get("seed", 5) == 5
    json.dumps(found)


def test_nothing_is_unpickled_outside_the_worker(tmp_path):
    (tmp_path / "softmax.pickle").write_bytes(guard.dumps(Hostile()))
    (tmp_path / "softmax.json").write_text("{}")
    found = rejudging.judged(tmp_path, 0, "softmax")
    assert "unpickled_here" not in sys.modules
    assert found["passes"] in ([], None)


def test_what_cannot_be_judged_again_is_said(tmp_path):
    assert rejudging.judged(tmp_path, 0, "softmax") is None
    (tmp_path / "softmax.pickle").write_bytes(b"")
    assert rejudging.judged(tmp_path, 0, "softmax") == {"verdict": None, "passes": None}
    (tmp_path / "softmax.pickle").write_bytes(b"no pickle")
    assert rejudging.judged(tmp_path, 0, "softmax")["passes"] is None


def test_looking_at_a_function_runs_nothing_of_it(tmp_path):
    text = "@print\ndef softmax(x: exit(), axis=[].append(1) or exit(), *rest, more=exit(), **others) -> exit():\n    return x\n"
    seen = {"file": "<cell>", "lines": text.splitlines(keepends=True), "name": "softmax"}
    (tmp_path / "softmax.json").write_text(json.dumps(seen))
    function = rejudging.look_alike(tmp_path / "softmax.json")
    assert function.__code__.co_varnames[:2] == ("x", "axis") and function.__defaults__ == (...,)


LAST = {
    "ends it": "import os; os.kill(os.getppid(), 9)",
    "writes into its output and ends it": """
import json, os
said = json.dumps({"softmax": {"verdict": None, "passes": ["form"]}}).encode()
os.write(os.open("/proc/1/fd/1", os.O_WRONLY), b"\\n" + said + b"\\n" + b"0" * 64 + b" " + said + b"\\n")
os.kill(os.getppid(), 9)
""",
    "looks for the key": "import os; open(f'/proc/{os.getppid()}/mem', 'rb')",
    "looks for what it was told": "import os; os.open(f'/proc/{os.getppid()}/fd/0', os.O_RDONLY)",
}


@pytest.mark.usefixtures("walls")
@pytest.mark.parametrize("what", LAST)
def test_a_function_cannot_speak_for_the_one_that_judges_it(tmp_path, what):
    class Last:
        def __reduce__(self):
            return exec, (LAST[what],)

    last = Last()
    (tmp_path / "handed").mkdir()
    testing.hand_on(tmp_path / "handed", "softmax", lambda x, axis=-1: last)
    arguments = [f"{sandbox.INSIDE}/handed", "1", "softmax"]
    ran = sandbox.run("transformer_lite.classroom.rejudging", arguments, tmp_path, seconds=60, told=b"key")
    found = rejudging.verdicts(ran.output, b"key")
    assert found is None or found["softmax"]["passes"] is None


def test_only_what_was_signed_is_believed():
    right, wrong = rejudging.signed('{"a": 1}', b"key"), rejudging.signed('{"a": 2}', b"other")
    assert rejudging.verdicts(f"\n{right}\n", b"key") == {"a": 1}
    assert rejudging.verdicts(f"{right}\n{wrong}\nnoise", b"key") == {"a": 1}
    assert rejudging.verdicts(f'{wrong}\n{{"a": 3}}\n', b"key") is None and rejudging.verdicts("", b"key") is None


def test_no_text_of_a_verdict_is_long(tmp_path):
    def raises(x, axis=-1):
        raise type("E" * 3_000_000, (ValueError,), {})("x" * 3_000_000)

    testing.hand_on(tmp_path, "softmax", raises)
    found = rejudging.judged(tmp_path, 5, "softmax")
    assert found["verdict"]["status"] == "error" and found["verdict"]["evidence"]["type"].startswith("EEE")
    assert len(json.dumps(found)) < 20_000
