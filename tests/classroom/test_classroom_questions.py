"""Graded questions: drawn from a bank that students do not have, handed out without keys, marked without trust."""

import html
import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from transformer_lite import classroom, content, course, language
from transformer_lite.classroom import answers as files
from transformer_lite.classroom import questions, sheet
from transformer_lite.classroom.sheet_widget import AnswerSheet
from transformer_lite.content import schema
from transformer_lite.quiz.sections import headings

BANK = Path(__file__).parent / "data" / "bank.yaml"
CHAPTER = "scaled-dot-product-attention"
SEED = 7
NAMES = ("mended", "equal-keys", "ratio", "by-hand", "symptoms", "code")
PAYLOAD = '<img src=x onerror="window.attacked=1">'


@pytest.fixture(scope="module")
def drawn():
    return questions.draw(BANK, None, SEED, None)


@pytest.fixture
def keys(drawn):
    """The keys by the short name of each question, as they come back out of a manifest."""
    return dict(zip(NAMES, json.loads(json.dumps([questions.key_of(each, SEED) for each in drawn])), strict=True))


@pytest.fixture
def handed_out(drawn, tmp_path, monkeypatch):
    """The folder of a student, in which the notebook runs."""
    (tmp_path / "questions.json").write_text(json.dumps(questions.paper(drawn, "en", SEED)), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def spoiled(tmp_path, *changes, name="own.yaml"):
    text = BANK.read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    (tmp_path / name).write_text(text, "utf-8")
    return tmp_path / name


def refused(bank, count=None, chapter=None, lang="en"):
    language.use(lang)
    with pytest.raises(questions.BankError) as error:
        questions.draw(bank, count, SEED, chapter)
    return str(error.value)


def letter(question, key, seed=SEED):
    """The letter under which the part with that key of the bank is shown."""
    shown = questions.paper([question], "ja", seed)["questions"][0]["options"]
    part = next(each for each in getattr(question, questions.PARTS[question.kind]) if each.key == key)
    return next(each["letter"] for each in shown if each["text"] == part.text.ja)


# ------------------------------------------------------------------------------------------------------------------ the bank


def test_the_example_bank_holds_every_kind_and_its_numbers_are_right(drawn):
    bank = content.bank(BANK)
    assert {each.kind for each in bank.questions} == set(schema.KINDS) and bank.chapter == CHAPTER
    assert [each.id.split(".")[2] for each in drawn] == list(NAMES)  # the recalled one is left out
    for lang in language.LANGUAGES:
        assert {each.anchor for each in bank.questions} <= set(headings(CHAPTER, lang))
    ratio = drawn[2]
    assert abs(eval(ratio.check, {"math": math}) - ratio.answer) <= ratio.tolerance
    for near in ratio.near:
        assert abs(eval(near.check, {"math": math}) - near.value) < 0.01


def test_what_is_drawn_depends_on_the_seed_alone(drawn):
    some = {tuple(each.id for each in questions.draw(BANK, 3, seed)) for seed in range(15)}
    assert len(some) > 5 and all(len(ids) == 3 for ids in some)
    assert {name for ids in some for name in ids} == {each.id for each in drawn}
    order = [each.id for each in drawn]
    assert all(list(ids) == sorted(ids, key=order.index) for ids in some)
    assert questions.draw(BANK, 3, 5) == questions.draw(str(BANK), 3, 5, CHAPTER)
    assert {each.id for each in questions.draw(BANK, 2, 5)} < {each.id for each in questions.draw(BANK, 3, 5)}
    assert questions.draw(BANK, 6, SEED) == drawn


def test_too_few_questions_are_refused_and_retired_ones_do_not_count(tmp_path):
    bank = spoiled(tmp_path, ("  difficulty: 2\n", "  difficulty: 2\n  retired: true\n"))
    assert len(questions.draw(bank, 5, SEED)) == 5 and "class.attention.mended.001" not in str(questions.draw(bank, None, SEED))
    assert "has 5 that can be graded" in refused(bank, 6) and "5 問" in refused(bank, 6, lang="ja")
    for count in (0, -1, True, 2.0):
        assert f"got {count}" in refused(bank, count)
    only = tmp_path / "only.yaml"
    text = BANK.read_text("utf-8")
    first = text.index("- id: class.attention.mended")
    only.write_text(text[:first] + text[text.index("- id: class.attention.in-a-sentence") :], "utf-8")
    assert "has 0 that can be graded" in refused(only)


def test_the_bank_of_another_chapter_has_nothing_for_this_one():
    assert questions.draw(BANK, None, SEED, "masks") == ()
    said = refused(BANK, 2, "masks")
    assert "masks" in said and CHAPTER in said


def test_mistakes_in_a_bank_are_named_with_their_lines(tmp_path):
    bank = spoiled(tmp_path, ("difficulty: 3", "difficulty: hard"), ("trap: MC09", "trap: MC99"), name="traps.yaml")
    said = refused(bank)
    line = next(i for i, text in enumerate(bank.read_text("utf-8").splitlines(), 1) if "hard" in text)
    assert f"traps.yaml:{line}: questions.2.difficulty" in said and str(bank) in said
    strange = spoiled(tmp_path, ("trap: MC09", "trap: MC99"))
    assert "there is no trap MC99" in refused(strange)
    assert "1: cannot be read (No such file or directory)" in refused(tmp_path / "none.yaml", lang="ja")
    assert "cannot be read" in refused(tmp_path)
    assert issubclass(questions.BankError, course.CourseError)


def test_questions_that_students_have_the_keys_of_are_refused(tmp_path):
    shipped = content.quizzes_dir() / "02_scaled_dot_product_attention.yaml"
    said = refused(shipped)
    line = next(i for i, text in enumerate(shipped.read_text("utf-8").splitlines(), 1) if text.endswith("attention.roles.001"))
    assert "Students have their keys" in said
    assert f"02_scaled_dot_product_attention.yaml:{line}: scaled-dot-product-attention.roles.001" in said
    assert len(said.splitlines()) == 1 + len(content.library().banks[CHAPTER].questions)
    # under another name they are the same questions still
    renamed = tmp_path / "own.yaml"
    renamed.write_text(shipped.read_text("utf-8").replace("id: scaled-dot-product-attention.", "id: own."), "utf-8")
    assert f"own.yaml:{line}: own.roles.001 = scaled-dot-product-attention.roles.001" in refused(renamed)


def test_a_question_with_a_picture_is_refused(tmp_path):
    bank = spoiled(tmp_path, ("  difficulty: 2\n", "  difficulty: 2\n  picture: heads\n"))
    assert "class.attention.mended.001" in refused(bank) and "`picture`" in refused(bank)


# ------------------------------------------------------------------------------------------------------ what students get


def secrets(drawn):
    """Texts of the bank that a student must not see."""
    for question in drawn:
        parts = [part for name in ("options", "steps", "rows", "near") for part in getattr(question, name, [])]
        for part in [question, *parts]:
            if hasattr(part, "why"):
                yield from (part.why.ja, part.why.en)
        if question.check:
            yield question.check


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_paper_gives_nothing_away(drawn, lang):
    paper = questions.paper(drawn, lang, SEED)
    shown = json.dumps(paper, ensure_ascii=False)
    found = [secret for secret in secrets(drawn) if secret in shown]
    assert len(list(secrets(drawn))) > 40 and found == []
    assert not re.search(r"MC\d|AT\d|correct|trap|why|7\.389|1\.6487|seed|tolerance|near|check|source", shown)
    fields = {name for each in paper["questions"] for name in each}
    assert fields == {"id", "kind", "stem", "code", "options", "rows", "unit"}
    assert {name for each in paper["questions"] for part in each.get("options", []) for name in part} == {"letter", "text"}
    assert {name for each in paper["questions"] for part in each.get("rows", []) for name in part} == {"number", "text"}
    other = "en" if lang == "ja" else "ja"
    assert drawn[0].stem(lang) in shown and drawn[0].stem(other) not in shown
    assert paper == questions.paper(drawn, lang, SEED) and sheet.Sheet.model_validate(paper).lang == lang


def test_the_order_says_nothing_of_the_bank(drawn, tmp_path):
    """Whoever turns the options round in the bank, or names them anew, hands out the same paper."""
    text = BANK.read_text("utf-8")
    first = text.index("    - key: a\n      trap: MC06")
    second = text.index("    - key: b\n      correct: true", first)
    third = text.index("    - key: c\n      trap: MC02", second)
    turned = text[:first] + text[second:third].replace("key: b", "key: zz") + text[first:second] + text[third:]
    (tmp_path / "own.yaml").write_text(turned, "utf-8")
    other = questions.draw(tmp_path / "own.yaml", None, SEED)
    assert [option.key for option in other[0].options] == ["zz", "a", "c", "d"]
    for lang in language.LANGUAGES:
        assert questions.paper(other, lang, SEED) == questions.paper(drawn, lang, SEED)
    assert [questions.key_of(each, SEED) for each in other] == [questions.key_of(each, SEED) for each in drawn]


def test_the_right_option_stands_everywhere_and_an_order_never_starts_right(drawn):
    places = Counter(questions.key_of(drawn[0], seed)["right"][0] for seed in range(400))
    assert set(places) == set("ABCD") and min(places.values()) > 70
    assert all(questions.key_of(drawn[3], seed)["right"] != list("ABCD") for seed in range(100))
    fixed = drawn[0].model_copy(update={"shuffle": False})
    assert {questions.key_of(fixed, seed)["right"][0] for seed in range(20)} == {"B"}


# ---------------------------------------------------------------------------------------------------------------- marking


def test_right_answers_of_all_kinds_are_right_however_they_are_written(drawn, keys):
    b = letter(drawn[0], "b")
    both = [letter(drawn[1], key) for key in "ab"]
    order = [letter(drawn[3], key) for key in ("dot", "divide", "softmax", "mix")]
    pairs = {row: letter(drawn[4], key) for row, key in zip("123", ("axis", "whole", "after"), strict=True)}
    full = str.maketrans("ABCD0123456789.", "ＡＢＣＤ０１２３４５６７８９．")
    for name, given in {
        "mended": [b, b.lower(), b.translate(full), f"({b})", "ABCD".index(b) + 1, str("ABCD".index(b) + 1)],
        "equal-keys": [both, both[::-1], ",".join(both), "、".join(both), "".join(both).lower()],
        "ratio": [7.389, "7.39", "７．３９", "7.39 倍", "7.39 times", "739/100", "7,389e-3".replace(",", ""), "7.409", 7.369],
        "by-hand": [order, ",".join(order), "→".join(order), "".join(order).lower()],
        "symptoms": [pairs, list(pairs.values()), " ".join(f"{row}{each}" for row, each in pairs.items()),
                     {row: each.lower() for row, each in pairs.items()}],
    }.items():  # fmt: skip
        for answer in given:
            marked = questions.mark(keys[name], json.loads(json.dumps(answer)))
            assert marked.right and marked.traps == () and marked.said, (name, answer)


def test_wrong_answers_name_their_traps(drawn, keys):
    for key, trap in (("a", "MC06"), ("c", "MC02"), ("d", "MC04")):
        assert questions.mark(keys["mended"], letter(drawn[0], key)) == (False, (trap,), letter(drawn[0], key))
    some = {key: letter(drawn[1], key) for key in "abcd"}
    assert sorted(questions.mark(keys["equal-keys"], list(some.values())).traps) == ["MC09", "MC14"]
    assert questions.mark(keys["equal-keys"], [some["a"]]) == (False, (), some["a"])  # all or nothing
    assert questions.mark(keys["ratio"], "1.65") == (False, ("MC02",), "1.65")
    assert questions.mark(keys["ratio"], 2981) == (False, ("MC03",), "2981")
    assert questions.mark(keys["ratio"], "3.667").traps == questions.mark(keys["ratio"], "5").traps == ()
    assert not questions.mark(keys["ratio"], 7.42).right  # beyond the tolerance
    shown = questions.mark(keys["by-hand"], "ABCD")
    assert shown == (False, ("MC06",), "A → B → C → D")
    nothing = letter(drawn[4], "nothing")
    wrong = questions.mark(keys["symptoms"], dict.fromkeys("123", nothing))
    assert wrong == (False, ("MC01", "MC06"), f"1{nothing} 2{nothing} 3{nothing}")
    assert questions.mark(keys["code"], letter(drawn[5], "d")).traps == ()


UNREADABLE = [
    None, "", "  ", [], {}, True, "Z", "E", 0, 9, -1, 1.5, ["A", "A", "Z"], ["A", ["B"]], [[[[]]]], {"A": {"A": "A"}},
    {"1": None}, {"9": "A"}, "eight", "nan", "1e999", float("nan"), float("inf"), 10**400, "9" * 100, "A" * 10**6, "1" * 10**6,
    "\ud800", "\x00", "A\u200b", "1/0", "1,2,3,4,5,6,7,8,9", {"right": True}, ["A"] * 50, {str(i): "A" for i in range(50)},
    "ABCD" * 40, object(), b"A",
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(UNREADABLE)))
def test_what_is_no_answer_is_wrong_and_never_an_exception(keys, number):
    for key in keys.values():
        marked = questions.mark(key, UNREADABLE[number])
        assert marked.right is False and isinstance(marked.said, str)


def test_a_key_that_is_none_is_our_own_mistake(keys):
    for broken in ({**keys["code"], "schema": 2}, {**keys["code"], "kind": "recall"}):
        with pytest.raises(ValueError, match="key of a question"):
            questions.mark(broken, "A")
    with pytest.raises(ValueError, match="recall"):
        questions.key_of(content.bank(BANK).questions[-1], SEED)


def test_a_key_survives_the_source_of_a_cell(keys):
    for key in keys.values():
        assert eval(repr(key)) == key and questions.mark(key, key["right"]).right


# ------------------------------------------------------------------------------------------------------ the file of answers


def test_only_a_right_answer_passes_the_hidden_test_and_nothing_is_given_away(drawn, keys, handed_out):
    key, name = keys["mended"], drawn[0].id
    right, wrong = key["right"][0], letter(drawn[0], "a")
    for lang, words in (
        ("en", ("no answer", "is not right", "cannot be read")),
        ("ja", ("答えがありません", "正解ではありません", "読み取れません")),
    ):
        language.use(lang)
        for given, said in (({}, words[0]), ({name: wrong}, words[1]), ({name: "Z"}, words[2])):
            (handed_out / "answers.json").write_text(json.dumps({"schema": 1, "answers": given}), "utf-8")
            with pytest.raises(AssertionError, match=re.escape(name)) as failed:
                classroom.check_answer(key)
            assert said in str(failed.value) and not re.search(rf"MC\d|\b{right}\b", str(failed.value))
        (handed_out / "answers.json").unlink()
        with pytest.raises(AssertionError, match=re.escape(words[0])):
            classroom.check_answer(key)
    files.write(handed_out / "answers.json", name, right)
    assert classroom.check_answer(key) is None
    (handed_out / "elsewhere.json").write_text(json.dumps({"answers": {name: right}}))
    assert classroom.check_answer(key, "elsewhere.json") is None


GOOD = {"schema": 1, "answers": {"q1": "B", "q2": ["A", "C"], "q3": "１/8", "q4": {"1": "A"}, "q5": 0.5}}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_answers_are_read_in_the_encodings_of_editors(tmp_path, encoding):
    path = tmp_path / "answers.json"
    path.write_bytes(json.dumps(GOOD, ensure_ascii=False).encode(encoding))
    assert questions.written(path) == (GOOD["answers"], None) == questions.written(path.read_bytes())


@pytest.mark.parametrize(
    ("data", "note"),
    [
        *(
            (data, "answers_unreadable")
            for data in (
                b"",
                b"{",
                b"[]",
                b"null",
                b"3",
                b"{}",
                b'{"answers": []}',
                b'{"schema": 2, "answers": {}}',
                b"\xff\xfe\x00",
            )
        ),
        (b"\x00" * 50, "answers_unreadable"),
        (b"[" * 200_000, "answers_unreadable"),
        (b'{"answers": {"q": ' + b"[" * 100_000, "answers_unreadable"),
        (b'{"answers": {"q": ' + b"9" * 5000 + b"}}", "answers_unreadable"),
        (b" " * 1_000_001, "answers_large"),
        (b'{"answers": {}}', None),
    ],
)
def test_a_file_that_holds_no_answers_gives_none_and_says_why(tmp_path, data, note):
    (tmp_path / "answers.json").write_bytes(data)
    assert questions.written(tmp_path / "answers.json") == ({}, note)
    if data:
        assert questions.written(data) == ({}, note)


def test_what_is_no_answer_is_left_out_and_the_others_stay():
    mixed = {"q1": "B", "": "A", "x" * 201: "A", "deep": [[1]], "long": "A" * 201, "many": ["A"] * 21, "bell": "\x07"}
    mixed |= {"yes": True, "half": "\ud800", "none": None}
    given, note = questions.written(json.dumps({"schema": 1, "answers": mixed}).encode())
    assert note is None and given == {"q1": "B", "": "A"}


def test_what_is_no_ordinary_file_is_not_opened(tmp_path):
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps(GOOD))
    os.symlink(secret, tmp_path / "link.json")
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "folder.json").mkdir()
    for name in ("link.json", "pipe.json", "folder.json", "a\0b"):
        assert questions.written(tmp_path / name) == ({}, "answers_strange"), name
    assert questions.written(tmp_path / "none.json") == questions.written(b"") == ({}, "no_answers")
    for note in ("no_answers", "answers_large", "answers_strange", "answers_unreadable"):
        for lang in language.LANGUAGES:
            assert "x.json" in language.message(f"classroom.note.{note}", lang, file="x.json")


def test_writers_at_the_same_time_lose_nothing(tmp_path):
    path = tmp_path / "answers.json"
    code = "import sys; from pathlib import Path; from transformer_lite.classroom import answers\n"
    code += "for i in range(25): answers.write(Path(sys.argv[1]), f'{sys.argv[2]}.{i}', 'A')"
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda name: subprocess.run([sys.executable, "-c", code, str(path), name]).returncode, "abc"))
    assert done == [0, 0, 0]
    assert set(questions.written(path).answers) == {f"{name}.{i}" for name in "abc" for i in range(25)}
    assert [each.name for each in tmp_path.iterdir()] == ["answers.json"]  # no lock, no half-written file is handed in


def test_a_file_that_cannot_be_read_is_kept_under_another_name(tmp_path):
    path = tmp_path / "answers.json"
    for number in (1, 2):
        path.write_text(f"half-written {number}")
        assert files.write(path, "q", "A") == {"q": "A"}
        assert (tmp_path / f"answers.kept-{number}.json").read_text() == f"half-written {number}"
    assert files.write(path, "q", None) == {} and questions.written(path) == ({}, None)


# ----------------------------------------------------------------------------------------------------------- in the notebook


def test_without_a_notebook_the_questions_are_text_with_how_to_answer_by_hand(handed_out, drawn, keys, monkeypatch):
    files.write(handed_out / "answers.json", drawn[2].id, "7.39")
    for static in ("0", "1"):
        monkeypatch.setenv("TRANSFORMER_LITE_STATIC", static)
        shown = classroom.ask()
        text = repr(shown)
        assert text.startswith("6 questions, 1 answered") and 'Your answer now:  "7.39"' in text and "queries @ keys.T" in text
        assert [secret for secret in secrets(drawn) if secret in text + shown.html] == []
        assert shown.html.count("<li><p>") == 6 and set(shown._repr_mimebundle_()) == {"text/html", "text/plain"}
    # the file that the text shows is one that can be read, and each example is an answer of its kind
    blank = text[text.index('{\n "schema"') :]
    assert questions.written(blank.encode()).answers == {each.id: "7.39" if each is drawn[2] else "" for each in drawn}
    examples = re.findall(r"Write it like this:  (.*)", text)
    for asked, example in zip(sheet.read("questions.json").questions, examples, strict=True):
        assert asked.read(json.loads("{" + example + "}")[asked.id])
    assert [path.name for path in handed_out.iterdir() if path.name.startswith("answers")] == ["answers.json"]


def test_asking_alone_writes_nothing(handed_out):
    classroom.ask()
    AnswerSheet(sheet.read("questions.json"), handed_out / "answers.json")
    assert [path.name for path in handed_out.iterdir()] == ["questions.json"]


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_a_sheet_that_is_missing_or_changed_is_said_with_what_to_do(handed_out, lang):
    language.use(lang)
    whole = (handed_out / "questions.json").read_text("utf-8")
    changes = [
        ('"kind": "single"', '"kind": "recall"'),
        ('"A"', '"B"'),
        ('"schema": 1', '"schema": 2'),
        ('"stem"', '"why": "", "stem"'),
    ]
    for text in ("{", "[]", "{}", "[" * 200_000, *(whole.replace(old, new) for old, new in changes)):
        (handed_out / "questions.json").write_text(text, "utf-8")
        said = repr(classroom.ask())
        assert "questions.json" in said and ("もう一度コピー" in said or "Copy it again" in said), text[:80]
    (handed_out / "questions.json").unlink()
    assert str(handed_out) in repr(classroom.ask())
    (handed_out / "questions.json").mkdir()
    assert "questions.json" in repr(classroom.ask())


def attacked(value):
    """The same sheet with the payload in every text."""
    if isinstance(value, dict):
        texts = ("stem", "text", "unit", "code")
        return {key: f"{PAYLOAD} {item} \x1b[2J" if key in texts else attacked(item) for key, item in value.items()}
    return [attacked(item) for item in value] if isinstance(value, list) else value


def test_no_renderer_obeys_the_sheet(handed_out, drawn):
    (handed_out / "questions.json").write_text(json.dumps(attacked(questions.paper(drawn, "ja", SEED))), "utf-8")
    shown = classroom.ask()
    assert "<img" not in shown.html and html.escape(PAYLOAD) in shown.html and "\x1b" not in shown.html + shown.text
    missing = sheet.notice(f"{PAYLOAD}\x1b[2J", "ja")
    assert "<img" not in missing.html and "\x1b" not in missing.html + missing.text


def told(widget):
    return [state["status"] for state in widget.states]


def test_each_choice_is_in_the_file_at_once_and_comes_back(handed_out, drawn):
    path = handed_out / "answers.json"
    widget = AnswerSheet(sheet.read("questions.json"), path)
    assert told(widget) == ["open"] * 6
    steps = [(0, "B", "answered"), (1, ["A", "D"], "answered"), (2, "eight", "partial"), (2, "７.39", "answered")]
    steps += [(3, ["B", "A", "C", "D"], "answered"), (4, {"2": "A"}, "partial"), (4, {"1": "C", "2": "A", "3": "A"}, "answered")]
    for place, answer, status in steps:
        widget.receive({"do": "write", "card": place, "answer": answer, "token": "t"})
        stored = json.loads(path.read_text("utf-8"))
        assert stored["schema"] == 1 and stored["answers"][drawn[place].id] == answer
        assert widget.states[place]["status"] == status and widget.heard == {"card": place, "token": "t", "saved": True}
        assert bool(widget.states[place]["line"]) == (status == "partial")
    again = AnswerSheet(sheet.read("questions.json"), path)  # after the kernel was restarted
    assert again.states == widget.states and told(again) == ["answered"] * 5 + ["open"]
    assert again.states[2]["draft"] == "７.39" and again.states[4]["draft"] == {"1": "C", "2": "A", "3": "A"}
    for nothing in (None, "", [], {}, "  "):
        again.receive({"do": "write", "card": 0, "answer": "A", "token": "t"})
        again.receive({"do": "write", "card": 0, "answer": nothing, "token": "t"})
        assert drawn[0].id not in questions.written(path).answers


def test_two_notebooks_share_one_file(handed_out, drawn):
    first, second = (AnswerSheet(sheet.read("questions.json"), handed_out / "answers.json") for _ in "ab")
    first.receive({"do": "write", "card": 0, "answer": "A", "token": "1"})
    assert told(second)[0] == "open"
    second.receive({"do": "look"})
    assert told(second)[0] == "answered"
    second.receive({"do": "write", "card": 5, "answer": "D", "token": "2"})
    first.receive({"do": "write", "card": 1, "answer": ["A"], "token": "3"})
    assert told(first) == ["answered", "answered", "open", "open", "open", "answered"]
    assert questions.written("answers.json").answers == {drawn[0].id: "A", drawn[5].id: "D", drawn[1].id: ["A"]}


def test_answers_written_by_hand_are_shown_as_the_controls_hold_them(handed_out, drawn):
    by_hand = dict(zip([each.id for each in drawn], [2, "d、a", 7.5, "dcba", "1c 2a 3b", "Z"], strict=True))
    (handed_out / "answers.json").write_text(json.dumps({"answers": by_hand}), "utf-8")
    widget = AnswerSheet(sheet.read("questions.json"), handed_out / "answers.json")
    drafts = ["B", ["A", "D"], "7.5", ["D", "C", "B", "A"], {"1": "C", "2": "A", "3": "B"}, None]
    assert [state["draft"] for state in widget.states] == drafts and told(widget) == ["answered"] * 5 + ["partial"]


def test_what_cannot_be_saved_is_said_and_not_shown_as_saved(handed_out, monkeypatch):
    widget = AnswerSheet(sheet.read("questions.json"), handed_out / "gone" / "answers.json")
    widget.receive({"do": "write", "card": 0, "answer": "A", "token": "1"})
    assert widget.heard == {"card": 0, "token": "1", "saved": False} and told(widget)[0] == "open"
    assert str(handed_out / "gone") in widget.trouble and "Save again" in widget.trouble
    (handed_out / "gone").mkdir()
    widget.receive({"do": "write", "card": 0, "answer": "A", "token": "2"})
    assert widget.heard["saved"] and widget.trouble == "" and told(widget)[0] == "answered"


def test_a_damaged_file_is_said_before_it_is_put_aside(handed_out):
    (handed_out / "answers.json").write_text("half")
    widget = AnswerSheet(sheet.read("questions.json"), handed_out / "answers.json")
    assert "cannot be read" in widget.trouble
    widget.receive({"do": "look"})
    assert (handed_out / "answers.json").read_text() == "half"
    widget.receive({"do": "write", "card": 0, "answer": "A", "token": "1"})
    assert widget.trouble == "" and (handed_out / "answers.kept-1.json").read_text() == "half"


@pytest.mark.parametrize(
    "content",
    [
        None,
        3,
        [],
        {},
        {"do": "write"},
        *({"do": "write", "card": card} for card in (99, -1, True, "0", None)),
        {"do": "x", "card": 0},
    ],
)
def test_messages_that_are_none_are_ignored(handed_out, content):
    widget = AnswerSheet(sheet.read("questions.json"), handed_out / "answers.json")
    widget.receive(content)
    assert widget.heard == {} and not (handed_out / "answers.json").exists()


def test_strange_answers_of_a_browser_are_no_answers(handed_out):
    widget = AnswerSheet(sheet.read("questions.json"), handed_out / "answers.json")
    for answer in UNREADABLE[:-2]:
        for place in range(6):
            widget.receive({"do": "write", "card": place, "answer": answer, "token": "t"})
    assert questions.written(handed_out / "answers.json").note is None


def test_the_browser_learns_no_key(handed_out, drawn):
    widget = AnswerSheet(sheet.read("questions.json"), handed_out / "answers.json")
    for place, answer in enumerate(["A", ["A"], "1.65", ["A", "B", "C", "D"], {"1": "A", "2": "A", "3": "A"}, "A"]):
        widget.receive({"do": "write", "card": place, "answer": answer, "token": "t"})
    bundle, _ = widget._repr_mimebundle_()
    state = {key: value for key, value in widget.get_state().items() if not key.startswith("_")}
    shown = json.dumps(state, ensure_ascii=False) + bundle["text/html"] + bundle["text/plain"]
    assert [secret for secret in secrets(drawn) if secret in shown] == [] and not re.search(r"MC\d|7\.389", shown)
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_messages_name_the_same_parameters_in_both_languages():
    ours = {key: text for key, text in language.catalogue().items() if key.startswith("classroom.questions.")}
    assert len(ours) > 30
    for key, text in ours.items():
        assert set(re.findall(r"\{\w+\}", text.ja)) == set(re.findall(r"\{\w+\}", text.en)), key
        assert text.ja.strip() and text.en.strip()


def test_a_hidden_test_needs_no_widgets():
    code = "import sys; from transformer_lite import classroom; classroom.check_answer; classroom.ask\n"
    code += "print([name for name in ('torch', 'matplotlib', 'ipywidgets', 'pydantic', 'nbformat') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
