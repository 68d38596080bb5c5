"""Reading the YAML: all that is wrong is said at once, as file:line: message; the compiled form is never out of date."""

import json
import textwrap

import pytest

from transformer_lite import content
from transformer_lite.content import loading

TRAPS = """\
schema_version: 1
traps:
- key: AT1
  family: attention
  chapter: a-chapter
  title: {ja: "割っていない", en: "No division"}
  rule: {ja: "割ります。", en: "Divide."}
  line: {ja: "飽和します。", en: "It saturates."}
"""

BANK = """\
schema_version: 1
chapter: a-chapter
questions:
- id: a-chapter.topic.001
  kind: single
  exams: [g-kentei]
  difficulty: 1
  anchor: quiz
  stem: {ja: "どれですか。", en: "Which?"}
  options:
    - key: a
      correct: true
      text: {ja: "はい", en: "Yes"}
      why: {ja: "そうです。", en: "It is."}
    - key: b
      trap: AT1
      text: {ja: "いいえ", en: "No"}
      why: {ja: "違います。", en: "It is not."}
- id: a-chapter.topic.002
  kind: numeric
  exams: [e-shikaku]
  difficulty: 2
  anchor: quiz
  stem: {ja: "いくつですか。", en: "How many?"}
  answer: 4
  tolerance: 0.1
  why: {ja: "4 です。", en: "It is 4."}
  near:
    - value: 5
      why: {ja: "多すぎます。", en: "Too many."}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "traps.yaml").write_text(TRAPS, "utf-8")
    (tmp_path / "01_a.yaml").write_text(BANK, "utf-8")
    return tmp_path


def line_of(text, part):
    """The number of the line that holds ``part``, so that no test counts lines by hand."""
    found = [i for i, line in enumerate(text.splitlines(), 1) if part in line]
    assert len(found) == 1, found
    return found[0]


def messages(folder):
    with pytest.raises(content.ContentError) as caught:
        content.load(folder)
    assert str(caught.value) == "\n".join(caught.value.messages)
    return caught.value.messages


def spoil(folder, old, new, name="01_a.yaml"):
    """Replace ``old`` by ``new`` in a file; return the new text."""
    path = folder / name
    text = path.read_text("utf-8")
    assert old in text
    text = text.replace(old, new, 1)
    path.write_text(text, "utf-8")
    return text


def test_a_good_folder_is_read(folder):
    library = content.load(folder)
    assert list(library.questions) == ["a-chapter.topic.001", "a-chapter.topic.002"]
    question = library.questions["a-chapter.topic.002"]
    assert (question.file, question.line, question.chapter) == ("01_a.yaml", line_of(BANK, "topic.002"), "a-chapter")
    assert library.traps["AT1"].title("ja") == "割っていない"
    assert library.questions["a-chapter.topic.001"].stem("en") == "Which?"
    assert content.traps_of(library.questions["a-chapter.topic.001"]) == {"AT1"}


@pytest.mark.parametrize(
    ("old", "new", "marker", "said"),
    [
        ("difficulty: 2", "difficulty: hard", "difficulty: hard", "1, 2 or 3"),
        ("answer: 4", 'answer: "4"', 'answer: "4"', "valid number"),
        ("correct: true", "correct: 1", "correct: 1", "valid boolean"),
        ("difficulty: 2", "dificulty: 2", "dificulty: 2", "no such key"),
        ("exams: [e-shikaku]", "exams: [toeic]", "exams: [toeic]", "e-shikaku"),
        ("answer: 4", "answer: .nan", "answer: .nan", "finite"),
        ("answer: 4", "answer: 5.05", "topic.002", "would be accepted as right"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(folder, old, new, marker, said):
    text = spoil(folder, old, new)
    found = messages(folder)
    assert any(message.startswith(f"01_a.yaml:{line_of(text, marker)}: ") and said in message for message in found), found


def test_a_missing_language_is_an_error_in_either_language(folder):
    text = spoil(folder, '{ja: "はい", en: "Yes"}', '{ja: "はい"}')
    text = spoil(folder, '{ja: "いくつですか。", en: "How many?"}', '{en: "How many?"}')
    found = messages(folder)
    assert len(found) == 2
    assert found[0].startswith(f"01_a.yaml:{line_of(text, 'はい')}: ") and ".en:" in found[0]
    assert found[1].startswith(f"01_a.yaml:{line_of(text, 'How many?')}: ") and ".ja:" in found[1]


@pytest.mark.parametrize("empty", ['""', '"  "', "null"])
def test_an_empty_text_is_an_error(folder, empty):
    text = spoil(folder, 'en: "Too many."', f"en: {empty}")
    (found,) = messages(folder)
    assert found.startswith(f"01_a.yaml:{line_of(text, '多すぎます')}: ")


def test_two_right_options_or_equal_options_are_errors(folder):
    text = spoil(folder, "trap: AT1", "correct: true")
    (found,) = messages(folder)
    assert found.startswith(f"01_a.yaml:{line_of(text, 'topic.001')}: ") and "exactly one option must be correct" in found
    (folder / "01_a.yaml").write_text(BANK.replace('ja: "いいえ", en: "No"', 'ja: "いいえ", en: " ＹＥＳ "'), "utf-8")
    (found,) = messages(folder)
    assert "option texts (en) must differ" in found


def test_an_id_used_twice_names_both_places_also_in_two_files(folder):
    text = spoil(folder, "topic.002", "topic.001")
    (found,) = messages(folder)
    lines = [i for i, line in enumerate(text.splitlines(), 1) if "topic.001" in line]
    assert found == f"01_a.yaml:{lines[1]}: a-chapter.topic.001 is already used at 01_a.yaml:{lines[0]}"
    (folder / "01_a.yaml").write_text(BANK, "utf-8")
    (folder / "02_b.yaml").write_text(BANK.replace("topic.002", "topic.003"), "utf-8")
    (found,) = messages(folder)
    assert found.startswith("02_b.yaml:4: a-chapter.topic.001 is already used at 01_a.yaml:4")


def test_a_yaml_key_written_twice_is_an_error(folder):
    text = spoil(folder, "  difficulty: 2\n", "  difficulty: 2\n  difficulty: 3\n")
    (found,) = messages(folder)
    assert found.startswith(f"01_a.yaml:{line_of(text, 'difficulty: 3')}: ") and "duplicate key" in found


def test_a_trap_that_does_not_exist_is_an_error(folder):
    spoil(folder, "trap: AT1", "trap: AT99")
    assert messages(folder) == ["01_a.yaml:4: a-chapter.topic.001: there is no trap AT99 in traps.yaml"]


def test_an_alias_bomb_is_refused_without_being_walked(folder):
    bomb = ["schema_version: 1", "chapter: bomb", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    bomb += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]  # 10^12 items if it were walked
    (folder / "03_bomb.yaml").write_text("\n".join(bomb), "utf-8")
    found = messages(folder)
    assert found[0].startswith("03_bomb.yaml:3: ") and "anchors and aliases are not allowed" in found[0]
    assert {message.split(":")[0] for message in found} == {"03_bomb.yaml"}


def test_a_byte_order_mark_is_accepted(folder):
    (folder / "01_a.yaml").write_bytes(b"\xef\xbb\xbf" + BANK.encode())
    assert len(content.load(folder).questions) == 2


def test_windows_line_ends_are_accepted_and_lines_still_right(folder):
    text = BANK.replace("difficulty: 2", "difficulty: 9")
    (folder / "01_a.yaml").write_bytes(text.replace("\n", "\r\n").encode())
    (found,) = messages(folder)
    assert found.startswith(f"01_a.yaml:{line_of(text, 'difficulty: 9')}: ")


def test_a_file_that_is_not_utf8_is_named(folder):
    (folder / "01_a.yaml").write_bytes(BANK.encode("cp932"))
    (found,) = messages(folder)
    assert found.startswith("01_a.yaml:") and "UTF-8" in found


def test_a_file_that_is_too_large_is_not_read(folder):
    (folder / "03_large.yaml").write_text("# " + "x" * loading.LARGEST_FILE, "utf-8")
    (found,) = messages(folder)
    assert found.startswith("03_large.yaml:1: larger than")


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just words\n"])
def test_a_file_that_is_no_mapping_is_named(folder, text):
    (folder / "03_odd.yaml").write_text(text, "utf-8")
    (found,) = messages(folder)
    assert found.startswith("03_odd.yaml:1: ") and "mapping" in found


def test_broken_yaml_is_named_with_its_line(folder):
    text = spoil(folder, 'en: "How many?"}', 'en: "How many?"')
    (found,) = messages(folder)
    file, line, _ = found.split(":", 2)
    assert file == "01_a.yaml"
    assert abs(int(line) - line_of(text, "How many?")) <= 1


def test_two_bad_files_are_reported_at_once_and_broken_yaml_hides_nothing(folder):
    traps = spoil(folder, 'en: "Divide."', 'en: ""', "traps.yaml")
    bank = spoil(folder, "difficulty: 2", "difficulty: 7")
    (folder / "02_b.yaml").write_text("schema_version: 1\nchapter: [unclosed\n", "utf-8")
    found = messages(folder)
    assert {message.split(":")[0] for message in found} >= {"traps.yaml", "01_a.yaml", "02_b.yaml"}
    assert any(message.startswith(f"traps.yaml:{line_of(traps, '割ります')}: ") for message in found)
    assert any(message.startswith(f"01_a.yaml:{line_of(bank, 'difficulty: 7')}: ") for message in found)


def test_many_mistakes_in_one_file_are_all_reported(folder):
    spoil(folder, "difficulty: 1", "difficulty: 0")
    spoil(folder, "difficulty: 2", "difficulty: 9")
    spoil(folder, "tolerance: 0.1", "tolerance: -1")
    assert len(messages(folder)) == 3


def test_a_folder_without_yaml_is_an_error(tmp_path):
    (found,) = messages(tmp_path)
    assert "no YAML file found" in found


def test_surprises_of_yaml_are_errors_not_guesses(folder):
    text = spoil(folder, 'en: "Yes"', "en: 08")
    (found,) = messages(folder)
    assert found.startswith(f"01_a.yaml:{line_of(text, 'en: 08')}: ") and "valid string" in found
    (folder / "01_a.yaml").write_text(BANK.replace('en: "Yes"', "en: no").replace('en: "No"', "en: 12:30"), "utf-8")
    options = content.load(folder).questions["a-chapter.topic.001"].options
    assert [option.text.en for option in options] == ["no", "12:30"]  # YAML 1.1 would read False and 750


# ------------------------------------------------------------------------------------------------------------ the compiled form


@pytest.fixture
def compiled(folder, tmp_path, monkeypatch):
    """The library of ``folder`` through the compiled form, in a cache folder of its own."""
    home = tmp_path / "home"
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(home))
    monkeypatch.setattr(loading, "quizzes_dir", lambda: folder)
    loading.library.cache_clear()
    yield lambda: (loading.library.cache_clear(), loading.library())[1], home / "cache"
    loading.library.cache_clear()


def test_the_compiled_form_is_read_again_and_rebuilt_when_a_file_changes(compiled, folder, monkeypatch):
    read, cache = compiled
    assert len(read().questions) == 2
    (first,) = cache.glob("library-*.json")
    assert json.loads(first.read_text("utf-8"))[0]["file"] == "01_a.yaml"

    monkeypatch.setattr(loading, "_read", lambda folder: pytest.fail("the YAML was read although the compiled form is fresh"))
    assert read().questions["a-chapter.topic.001"].line == 4
    monkeypatch.undo()

    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(cache.parent))
    monkeypatch.setattr(loading, "quizzes_dir", lambda: folder)
    spoil(folder, 'en: "Which?"', 'en: "Which one?"')
    assert read().questions["a-chapter.topic.001"].stem.en == "Which one?"
    (second,) = cache.glob("library-*.json")
    assert second != first


def test_a_damaged_compiled_form_is_rebuilt(compiled):
    read, cache = compiled
    read()
    (path,) = cache.glob("library-*.json")
    for damage in ("", "{", "[1, 2]", '[{"file": "01_a.yaml"}]'):
        path.write_text(damage, "utf-8")
        assert len(read().questions) == 2
    assert len(json.loads(path.read_text("utf-8"))) == 2


def test_a_cache_that_cannot_be_written_changes_nothing(compiled, folder, monkeypatch):
    read, _ = compiled
    monkeypatch.setattr(loading, "cache_dir", lambda: folder / "traps.yaml" / "cache")
    assert len(read().questions) == 2


def test_bad_yaml_is_an_error_through_the_compiled_form_too(compiled, folder):
    read, _ = compiled
    spoil(folder, "difficulty: 2", "difficulty: 7")
    with pytest.raises(content.ContentError, match=r"01_a\.yaml:\d+: "):
        read()


# ------------------------------------------------------------------------------------------------------------------- by name


def test_an_unknown_question_trap_or_chapter_names_the_nearest():
    with pytest.raises(content.Unknown) as caught:
        content.question("scaled-dot-product-attention.formula.002")
    assert "scaled-dot-product-attention.formula.001" in caught.value.nearest
    assert "Did you mean" in str(caught.value) and "formula.001" in str(caught.value)
    with pytest.raises(content.Unknown) as caught:
        content.trap("AT21")
    assert "AT2" in caught.value.nearest
    with pytest.raises(content.Unknown) as caught:
        content.questions("scaled-dot-product")
    assert "scaled-dot-product-attention" in caught.value.nearest
    with pytest.raises(KeyError):
        content.prediction("scaled-dot-product-attention.hok")


def test_retired_questions_are_kept_by_id_and_not_asked(folder, compiled):
    read, _ = compiled
    spoil(folder, "  difficulty: 2\n", "  difficulty: 2\n  retired: true\n")
    read()
    assert [question.id for question in content.questions("a-chapter")] == ["a-chapter.topic.001"]
    assert content.question("a-chapter.topic.002").retired


def test_importing_content_loads_no_pydantic():
    import subprocess
    import sys

    code = textwrap.dedent(
        """
        import sys
        from transformer_lite import content
        print(sorted({"pydantic", "ruamel.yaml", "torch", "matplotlib"} & set(sys.modules)))
        """
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_file_that_cannot_be_read_is_named_with_all_else(folder, monkeypatch):
    (folder / "02_folder.yaml").mkdir()
    text = spoil(folder, "difficulty: 1", "difficulty: 9")
    found = messages(folder)
    assert any(message.startswith("02_folder.yaml:1: cannot be read") for message in found)
    assert any(message.startswith(f"01_a.yaml:{line_of(text, 'difficulty: 9')}:") for message in found)
    monkeypatch.setattr(loading, "quizzes_dir", lambda: folder)
    with pytest.raises(content.ContentError):
        loading.library.__wrapped__()


@pytest.mark.parametrize("value", ['!!python/object/apply:os.system ["true"]', '!own "Which?"', "!!binary aGk="])
def test_tags_are_refused_with_their_line(folder, value):
    text = spoil(folder, 'en: "Which?"', f"en: {value}")
    assert messages(folder)[0].startswith(f"01_a.yaml:{line_of(text, value)}: tags")


def test_a_file_nested_too_deeply_is_named(folder):
    (folder / "02_deep.yaml").write_text("a: " + "{a: " * 2000 + "1" + "}" * 2000, "utf-8")
    assert messages(folder) == ["02_deep.yaml:1: nested too deeply"]


@pytest.mark.parametrize("number", ["1" + "0" * 400, ".inf", ".nan"])
def test_a_near_value_that_is_no_finite_number_is_named(folder, number):
    text = spoil(folder, "value: 5", f"value: {number}")
    assert messages(folder)[0].startswith(f"01_a.yaml:{line_of(text, 'value: ')}:")
