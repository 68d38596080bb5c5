import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from transformer_lite import journal as room
from transformer_lite.journal import Event, Journal, default, file, home, recording


def test_an_event_comes_back_as_it_was_recorded_with_its_time_in_utc(journal):
    before = datetime.now(UTC)
    assert journal.record("check", "attention", status="wrong", traps=("AT1", "AT7"), certainty="exact", code="9f3c", hints=1)
    (event,) = journal.events()
    assert (event.kind, event.subject) == ("check", "attention")
    assert event.parameters == {"status": "wrong", "traps": ["AT1", "AT7"], "certainty": "exact", "code": "9f3c", "hints": 1}
    assert event.at.utcoffset() == timedelta(0) and before <= event.at <= datetime.now(UTC)
    assert journal.trouble is None


def test_numpy_numbers_sets_and_unknown_objects_are_recorded_as_plain_values(journal):
    assert journal.record("answer", "q1", correct=np.True_, chosen={"b", "a"}, value=np.float64(0.5), file=Path("x"))
    assert journal.last("answer").parameters == {"correct": True, "chosen": ["a", "b"], "value": 0.5, "file": "x"}


def test_events_are_found_by_kind_and_subject_and_last_is_the_newest(journal):
    journal.record("hint", "softmax", level=1)
    journal.record("hint", "attention", level=1)
    journal.record("hint", "attention", level=2)
    journal.record("solution", "attention")
    assert [event.parameters.get("level") for event in journal.events("hint", "attention")] == [1, 2]
    assert len(journal.events(subject="attention")) == 3
    assert journal.last("hint").parameters == {"level": 2}
    assert journal.last("hint", "softmax").parameters == {"level": 1}
    assert journal.last("open") is None


def test_of_events_at_the_same_instant_the_last_is_the_one_recorded_last(journal, monkeypatch):
    instant = datetime(2026, 9, 1, tzinfo=UTC)
    monkeypatch.setattr(file, "_now", lambda: instant)
    for level in (1, 2, 3):
        journal.record("hint", "softmax", level=level)
    assert journal.last("hint").parameters == {"level": 3}
    assert [event.parameters["level"] for event in journal.events()] == [1, 2, 3]


def test_nothing_is_created_before_the_first_event(journal):
    assert journal.events() == [] and journal.last("check") is None
    assert not journal.path.parent.exists()
    journal.record("open", "how-to-use-this-course", lang="ja", notebook="00")
    assert journal.path.exists()


def test_record_0_writes_nothing_but_reads(journal, monkeypatch):
    journal.record("language", "en")
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "0")
    assert journal.record("language", "ja") is False
    assert [event.subject for event in journal.events()] == ["en"]
    assert journal.trouble is None


# --- Run All twice ---


def test_running_the_same_checks_twice_adds_nothing(journal, monkeypatch):
    def run_all():
        return [
            journal.record("check", "softmax", status="pass", code="a1", version=1),
            journal.record("check", "attention", status="wrong", code="b2", version=1, traps=["AT1"]),
        ]

    assert run_all() == [True, True]
    later = datetime.now(UTC) + timedelta(days=30)
    monkeypatch.setattr(file, "_now", lambda: later)
    assert run_all() == [False, False]
    assert len(journal.events()) == 2 and journal.trouble is None


@pytest.mark.parametrize("change", [{"code": "b"}, {"status": "pass"}, {"version": 2}])
def test_a_check_that_differs_in_code_status_or_version_is_a_new_one(journal, change):
    first = {"code": "a", "status": "wrong", "version": 1}
    assert journal.record("check", "softmax", **first)
    assert journal.record("check", "softmax", **(first | change))


def test_a_check_is_compared_with_the_last_of_its_exercise_only(journal):
    for code in ("a", "b", "a"):
        assert journal.record("check", "softmax", code=code, status="wrong")
    assert journal.record("check", "attention", code="a", status="wrong")
    assert journal.record("check", "softmax", code="a", status="wrong", hints=2) is False


def test_after_a_reset_the_same_code_counts_again(journal):
    same = {"code": "a", "status": "pass", "version": 1}
    assert journal.record("check", "softmax", **same)
    assert journal.record("reset", "softmax")
    assert journal.record("check", "softmax", **same)
    assert journal.record("check", "softmax", **same) is False


def test_a_check_without_code_is_never_a_repetition(journal):
    assert journal.record("check", "softmax", status="error")
    assert journal.record("check", "softmax", status="error")


def test_the_same_answer_within_a_minute_is_one_answer_and_later_a_new_one(journal, monkeypatch):
    start = datetime(2026, 9, 1, tzinfo=UTC)
    times = iter([start + timedelta(seconds=seconds) for seconds in (0, 59, 60, 61)])
    monkeypatch.setattr(file, "_now", lambda: next(times))
    answer = {"correct": False, "chosen": ["b"]}
    assert [journal.record("answer", "q1", **answer) for _ in range(3)] == [True, False, True]
    assert journal.record("answer", "q1", correct=True, chosen=["a"]) is True


def test_going_to_another_chapter_and_back_is_recorded_so_that_the_last_one_is_where_the_learner_is(journal):
    two = {"lang": "ja", "notebook": "02"}
    assert journal.record("open", "scaled-dot-product-attention", **two)
    assert journal.record("open", "scaled-dot-product-attention", **two) is False
    assert journal.record("open", "how-to-use-this-course", lang="ja", notebook="00")
    assert journal.record("open", "scaled-dot-product-attention", **two)
    assert journal.last("open").subject == "scaled-dot-product-attention"


def test_a_language_is_recorded_when_it_changes(journal, monkeypatch):
    start = datetime(2026, 9, 1, tzinfo=UTC)
    times = iter([start + timedelta(days=days) for days in range(4)])
    monkeypatch.setattr(file, "_now", lambda: next(times))
    assert [journal.record("language", lang) for lang in ("ja", "ja", "en", "ja")] == [True, False, True, True]


# --- two machines ---


def test_merging_is_a_union(journal, tmp_path):
    other = Journal(tmp_path / "other.db")
    journal.record("check", "softmax", status="pass", code="a")
    other.record("check", "attention", status="wrong", code="b")
    copy = journal.export(tmp_path / "usb" / "export.db")
    assert other.merge(copy) == 1
    assert other.merge(copy) == 0
    assert [event.subject for event in other.events()] == ["softmax", "attention"]
    assert journal.merge(other.path) == 1
    assert journal.events() == other.events()
    assert sorted(path.name for path in copy.parent.iterdir()) == ["export.db"]


def test_exporting_again_replaces_the_file(journal, tmp_path):
    journal.record("hint", "softmax", level=1)
    path = journal.export(tmp_path / "export.db")
    journal.record("hint", "softmax", level=2)
    assert journal.export(path) == path
    assert len(Journal(path).events()) == 2


@pytest.mark.parametrize("content", [None, b"", b"no journal at all, but long enough to be looked at " * 40])
def test_merging_what_is_no_journal_says_so_and_leaves_it_alone(journal, tmp_path, content):
    path = tmp_path / "other.db"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"path must be a journal file, as export writes it; .*other\.db"):
        journal.merge(path)
    assert [each.name for each in tmp_path.iterdir()] == ([] if content is None else ["other.db"])
    assert content is None or path.read_bytes() == content


# --- where, and whether ---


def test_home_is_what_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(tmp_path / "家"))
    assert home() == tmp_path / "家"
    assert not home().exists()
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", "~/course")
    assert home() == Path.home() / "course"


def test_home_without_the_variable_is_the_users_own_data_folder(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_HOME")
    assert home().is_absolute() and home().name == "transformer_lite"


def test_the_default_journal_follows_home(monkeypatch, tmp_path):
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(tmp_path / "a"))
    first = default()
    assert first.record("language", "ja") and default() is first
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(tmp_path / "b"))
    assert default() is not first and default().events() == []
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(tmp_path / "a"))
    assert len(default().events()) == 1


def _shell(monkeypatch, shell):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


@pytest.mark.parametrize(
    ("variable", "shell", "terminal", "expected"),
    [
        ("0", SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=True)), True, False),
        ("1", SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=False)), False, True),
        (None, SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=True)), False, True),  # JupyterLab
        (None, SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=False)), True, False),  # nbclient, even under a terminal
        (None, SimpleNamespace(), True, True),  # IPython in a terminal
        (None, None, True, True),  # Python in a terminal
        (None, None, False, False),  # a pipe, a CI log
        ("", None, False, False),
    ],
)
def test_events_are_recorded_where_a_person_is(monkeypatch, variable, shell, terminal, expected):
    if variable is None:
        monkeypatch.delenv("TRANSFORMER_LITE_RECORD")
    else:
        monkeypatch.setenv("TRANSFORMER_LITE_RECORD", variable)
    _shell(monkeypatch, shell)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: terminal))
    assert recording() is expected


def test_a_real_kernel_tells_a_person_from_a_builder(monkeypatch):
    from jupyter_client.manager import start_new_kernel

    monkeypatch.delenv("TRANSFORMER_LITE_RECORD")
    manager, client = start_new_kernel()
    try:
        printed = []
        for asked in (True, False):  # as JupyterLab sends its cells; as nbclient does
            client.execute_interactive(
                "from transformer_lite.journal import recording; print(recording())",
                allow_stdin=asked,
                stdin_hook=lambda message: None,
                output_hook=lambda message: printed.append(message["content"].get("text")),
                timeout=60,
            )
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert [text for text in printed if text] == ["True\n", "False\n"]


def test_no_standard_input_is_nobody(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_RECORD")
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    monkeypatch.setattr(sys, "stdin", None)
    assert recording() is False


def test_what_the_room_offers():
    assert set(room.__all__) <= set(dir(room))
    event = Event(datetime.now(UTC), "hint", "softmax", {"level": 1})
    assert len(event.id) == 32 and event.id != Event(event.at, "hint", "softmax", {"level": 1}).id
