"""What learner code leaves behind or throws does not reach the next judgement, the kernel, or the words of the verdict."""

import contextlib
import math
import os
import signal
import subprocess
import tempfile
import threading
import time

import numpy as np
import practice_answers as answers
import psutil
import pytest

from transformer_lite import practice
from transformer_lite.practice import guard
from transformer_lite.practice.comparing import number

posix_only = pytest.mark.skipif(os.name == "nt", reason="there is no fork on Windows")
LOCK = threading.Lock()  # what uses it does not pickle, so it is judged in this process


def judge_twice(function):
    """The verdict on ``function``, after making sure that the next one, on a right answer, is right."""
    result = practice.judge("softmax", function)
    for _ in range(3):
        assert practice.judge("softmax", answers.sm1_plain).status == "wrong"  # no maximum subtracted
        assert practice.judge("softmax", answers.soft).status == "pass"
    return result


def forks_and_returns(x, axis=-1):
    os.fork()
    return answers.soft(x, axis)


def pool_of_processes(x, axis=-1):
    import multiprocessing

    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.map(abs, [1])
    return answers.soft(x, axis)


@posix_only
@pytest.mark.parametrize("function", [forks_and_returns, pool_of_processes])
def test_a_forked_copy_of_the_worker_answers_nothing(function):
    assert judge_twice(function).status in ("pass", "timeout")


def writes_everywhere(x, axis=-1):
    for descriptor in range(3, 30):
        with contextlib.suppress(OSError):
            os.write(descriptor, b"JUNK" * 50)
    return answers.soft(x, axis)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_junk_in_the_results_is_no_message_of_any_size():
    assert judge_twice(writes_everywhere).status == "error"


def leaves_a_thread(x, axis=-1):
    threading.Thread(target=lambda: [time.sleep(0.01) for _ in iter(int, 1)], daemon=True).start()
    return answers.soft(x, axis)


def leaves_a_process(x, axis=-1):
    subprocess.Popen(["sleep", "987"])
    return answers.soft(x, axis)


@posix_only
@pytest.mark.parametrize("function", [leaves_a_thread, leaves_a_process])
def test_what_is_left_running_ends_with_its_worker(function):
    assert practice.judge("softmax", answers.soft).status == "pass"
    before = guard._pool.worker
    assert practice.judge("softmax", function).status == "pass"
    assert guard._pool.worker is not before
    assert not before.usable()
    left = [one for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == ["sleep", "987"]]
    assert not [one for one in left if one.status() != psutil.STATUS_ZOMBIE]


def changes_modules(x, axis=-1):
    right = answers.soft(x, axis)
    np.linalg.norm = math.sqrt = time.monotonic = None
    os.environ.clear()
    return right


def uses_modules(x, axis=-1):
    assert np.linalg.norm(np.array([3.0, 4.0])) == math.sqrt(25.0) < time.monotonic() + 1e9
    assert "PYTHONUTF8" in os.environ
    return answers.soft(x, axis)


def test_modules_and_environment_are_put_back():
    practice.judge("softmax", changes_modules)
    assert practice.judge("softmax", uses_modules).status == "pass"


class Odd(BaseException):
    pass


class Mute(Exception):
    def __str__(self):
        raise SystemExit


class Nameless(type):
    @property
    def __name__(cls):
        raise Odd


class Thing(metaclass=Nameless):
    pass


def raises_odd(x, axis=-1):
    raise Odd("not an Exception")


def raises_mute(x, axis=-1):
    LOCK.locked()
    raise Mute


def returns_nameless(x, axis=-1):
    return Thing()


def test_a_base_exception_is_named_and_its_line_shown():
    result = practice.judge("softmax", raises_odd)
    assert result.status == "error"
    assert "Odd: not an Exception" in result.text("en")
    assert 'raise Odd("not an Exception")' in result.text("en")


def test_exceptions_that_raise_when_looked_at_stay_inside():
    assert practice.judge("softmax", raises_mute).status == "error"
    assert practice.judge("softmax", returns_nameless).status in ("error", "wrong")


def returns_a_huge_integer(x, axis=-1):
    return 10**400


def test_a_number_too_large_for_a_float_is_no_error_of_the_learners():
    assert practice.judge("softmax", returns_a_huge_integer).status == "wrong"


def turns_the_alarm_off(x, axis=-1):
    LOCK.locked()
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    time.sleep(2.2)
    return answers.soft(x, axis)


@posix_only
def test_without_its_alarm_the_time_still_ends_after_the_call():
    started = time.monotonic()
    assert practice.judge("softmax", turns_the_alarm_off).status == "timeout"
    assert time.monotonic() - started < 4


def fills_with(constant):
    def attention(queries, keys, values, mask=None):
        scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(queries.shape[-1])
        if mask is not None:
            scores = np.where(mask, scores, constant)
        weights = answers.soft(scores)
        return weights @ values, weights

    return attention


@pytest.mark.parametrize("constant", [np.inf, np.nan])
def test_nan_that_comes_from_the_mask_is_not_called_a_missing_maximum(constant):
    result = practice.judge("scaled_dot_product_attention", fills_with(constant))
    assert (result.status, result.traps) == ("wrong", ())


def nothing_visible(n_queries, n_keys=None):
    return np.zeros((n_queries, n_keys or n_queries), dtype=bool)


def test_a_mask_of_zeros_is_not_two_mistakes():
    result = practice.judge("causal_mask", nothing_visible)
    assert (result.status, result.traps, result.certainty) == ("wrong", (), "none")


def test_a_number_close_to_a_whole_one_does_not_look_like_it():
    assert [number(value) for value in (0.99959, 1.0, 1.0 + 1e-12, 3.0004, 0.333333)] == ["0.9996", "1", "1", "3.0004", "0.333"]


def test_the_picture_of_complex_numbers_warns_of_nothing(recwarn):
    practice.judge("softmax", lambda x, axis=-1: answers.soft(x, axis).astype(complex)).show("en")
    assert not recwarn.list


def leaves_no_folder(x, axis=-1):
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)
    return answers.soft(x, axis)


def test_a_folder_that_is_gone_is_left():
    assert judge_twice(leaves_no_folder).status == "pass"


def ends_the_notebook(x, axis=-1):
    os.kill(os.getppid(), signal.SIGTERM)


def ends_itself(x, axis=-1):
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize("function", [ends_the_notebook, ends_itself])
def test_the_notebook_is_not_ended_by_a_signal(function):
    result = judge_twice(function)
    assert result.status == "error"
    assert "ProcessExit" in result.text("en")


def displays(x, axis=-1):
    display(x)  # noqa: F821  every notebook has it
    return answers.soft(x, axis)


def test_display_is_there_as_in_a_notebook():
    result = practice.judge("softmax", displays)
    assert result.status == "pass"
    assert "printed" in {note.code for note in result.notes}
