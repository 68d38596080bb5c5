"""The two languages: a catalogue without gaps, the language in use, and what a console can show."""

import re
import unicodedata

import pytest

from transformer_lite import language
from transformer_lite.language import LANGUAGES, Text, catalogue, check_language, current, message, printable, use, width

# A place to be filled in. (A message without any is never formatted: braces in it, as in {"lang": "ja"}, are braces.)
FIELD = re.compile(r"\{([A-Za-z_]\w*)(?:![rsa])?(?::[^{}\s]*)?\}")


def in_both_languages():
    """(key, language, text) of every message."""
    for key, text in sorted(catalogue().items()):
        for lang in LANGUAGES:
            yield key, lang, text(lang)


def test_the_catalogue_holds_messages():
    assert len(catalogue()) >= 7


def test_every_message_is_there_in_both_languages():
    assert [(key, lang) for key, lang, text in in_both_languages() if not text.strip()] == []


def test_every_message_has_the_same_places_to_fill_in_both_languages():
    assert [key for key, text in catalogue().items() if set(FIELD.findall(text.ja)) != set(FIELD.findall(text.en))] == []


def test_every_message_with_places_to_fill_can_be_filled():
    broken = []
    for key, lang, text in in_both_languages():
        names = FIELD.findall(text)
        try:
            if names:
                text.format(**dict.fromkeys(names, 0))
        except (KeyError, IndexError, ValueError) as error:
            broken.append((key, lang, error))
    assert broken == []


@pytest.mark.parametrize(("encoding", "langs"), [("cp932", ("ja", "en")), ("ascii", ("en",))])
def test_every_message_can_be_read_on_a_console_of_that_encoding(encoding, langs):
    """No character falls to a question mark. (Japanese cannot be had in ASCII.)"""
    lost = {}
    for key, lang, text in in_both_languages():
        if lang in langs and not key.startswith("course.page."):  # those stand in notebooks, never on a console
            for character in set(text) - {"?"}:
                if printable(character, encoding) == "?":
                    lost.setdefault(character, []).append((key, lang))
    assert lost == {}


def test_every_message_can_be_printed_on_any_console():
    for _, _, text in in_both_languages():
        for encoding in ("cp932", "ascii"):
            printable(text, encoding).encode(encoding)
        assert printable(text, "utf-8") == text


def test_no_english_message_is_japanese():
    def is_kana(character):
        return unicodedata.name(character, "").startswith(("HIRAGANA", "KATAKANA LETTER"))

    assert [key for key, text in catalogue().items() if any(map(is_kana, text.en))] == []


# --- the language in use ---


@pytest.fixture
def nothing_set(monkeypatch):
    monkeypatch.setattr(language, "_current", None)
    for variable in ("TRANSFORMER_LITE_LANG", "LC_ALL", "LC_MESSAGES", "LANGUAGE", "LANG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(language.locale, "getlocale", lambda *arguments: (None, None))


def test_japanese_when_nothing_says_otherwise(nothing_set):
    assert current() == "ja"


@pytest.mark.parametrize(("name", "expected"), [
    ("en_US.UTF-8", "en"), ("ja_JP.UTF-8", "ja"), ("en", "en"), ("C", "ja"), ("C.UTF-8", "ja"), ("fr_FR.UTF-8", "ja")])
def test_the_locale_is_asked(nothing_set, monkeypatch, name, expected):
    monkeypatch.setenv("LANG", name)
    assert current() == expected


@pytest.mark.parametrize(("name", "expected"), [
    ("Japanese_Japan", "ja"), ("English_United States", "en"), ("German_Germany", "ja")])
def test_the_locale_of_windows_is_asked(nothing_set, monkeypatch, name, expected):
    monkeypatch.setattr(language.locale, "getlocale", lambda *arguments: (name, "1252"))
    assert current() == expected


def test_the_environment_comes_before_the_locale_and_what_was_set_before_both(nothing_set, monkeypatch):
    monkeypatch.setenv("LANG", "ja_JP.UTF-8")
    monkeypatch.setenv("TRANSFORMER_LITE_LANG", "en")
    assert current() == "en"
    assert use("ja") == "ja" and current() == "ja"


def test_an_environment_that_names_no_language_of_ours_is_passed_over(nothing_set, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_LITE_LANG", "tlh")
    monkeypatch.setenv("LANG", "en_GB.UTF-8")
    assert current() == "en"


def test_only_two_languages_are_spoken():
    before = current()
    for lang in ("fr", "JA", ""):
        with pytest.raises(ValueError, match='language must be "ja" or "en"'):
            use(lang)
        with pytest.raises(ValueError, match=f"got {lang!r}"):
            check_language(lang)
    assert current() == before


# --- texts and messages ---


def test_a_text_speaks_the_language_in_use_or_the_one_asked_for():
    text = Text("猫", "cat")
    use("ja")
    assert (text(), text("en")) == ("猫", "cat")
    use("en")
    assert (text(), text("ja")) == ("cat", "猫")


def test_a_message_is_filled_in():
    told = message("journal.trouble.disk_full", "en", path="/a/{b}.db")
    assert "/a/{b}.db" in told
    use("ja")
    assert message("journal.trouble.disk_full", path="x") == message("journal.trouble.disk_full", "ja", path="x") != told


def test_an_unknown_message_is_an_error_of_ours():
    with pytest.raises(KeyError, match=r"journal\.no_such_thing"):
        message("journal.no_such_thing")


@pytest.mark.parametrize(("content", "complaint"), [
    ('[a.b]\nja = "x"\n', "'a.b.ja' must be a table"),
    ('[a]\nb = "x"\n', "'a.b' must be a table"),
    ('[a.b]\nja = "x"\nen = 3\n', "must be a table"),
    ('[journal.x]\nja = "x"\nen = "x"\n', "defined twice"),
])
def test_a_gap_in_the_catalogue_is_named_with_its_file(monkeypatch, tmp_path, content, complaint):
    folder = tmp_path / "messages"
    folder.mkdir()
    (folder / "a.toml").write_text('[journal.x]\nja = "x"\nen = "x"\n', "utf-8")
    (folder / "bad.toml").write_text(content, "utf-8")
    monkeypatch.setattr(language, "__file__", str(tmp_path / "language.py"))
    with pytest.raises(ValueError, match=rf"bad\.toml: .*{complaint}"):
        catalogue.__wrapped__()


# --- consoles ---


@pytest.mark.parametrize(("text", "encoding", "shown"), [
    ("√d_k ≥ 2 → 0.5", "ascii", "sqrt d_k >= 2 -> 0.5"),
    ("QKᵀ — ok", "cp932", "QK^T - ok"),
    ("重み", "cp932", "重み"),
    ("重み", "ascii", "??"),
    ("plain", "ascii", "plain"),
    ("重み", "no-such-encoding", "??"),
])
def test_what_a_console_cannot_show_is_replaced(text, encoding, shown):
    assert printable(text, encoding) == shown


def test_printable_asks_standard_output(monkeypatch):
    class Console:
        encoding = "ascii"

    monkeypatch.setattr(language.sys, "stdout", Console())
    assert printable("a → b") == "a -> b"


@pytest.mark.parametrize(("text", "columns"), [("", 0), ("abc", 3), ("重み", 4), ("ｱ", 1), ("クエリQ", 7), ("Ａ", 2)])
def test_width_counts_columns(text, columns):
    assert width(text) == columns
