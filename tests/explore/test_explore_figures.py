"""A picture shows what its table says, in both languages, and survives whatever it is given."""

import base64
import io
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

from transformer_lite import language
from transformer_lite.explore import Lines, Matrix, figures

WEIGHTS = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]])
TOKENS = ["犬", "猫", "追いかけた"]


def attention(**options):
    return figures.attention_picture(WEIGHTS, TOKENS[:2], TOKENS, title="注意の重み", **{"lang": "ja", **options})


def test_the_bundle_holds_a_drawing_a_table_and_text():
    data = attention()._repr_mimebundle_()
    assert set(data) == {"image/png", "text/html", "text/plain"}
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert '<th scope="col">追いかけた</th>' in data["text/html"]
    assert '<th scope="row" style="text-align:left">猫</th>' in data["text/html"]
    assert "<caption>注意の重み</caption>" in data["text/html"] and "<details>" in data["text/html"]
    assert "0.800" in data["text/plain"]
    assert re.search(r'<img alt="[^"]*0\.80', data["text/html"])


def test_a_notebook_gets_the_drawing_and_the_numbers_as_two_outputs(monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, **_: shown.append(data))
    attention()._ipython_display_()
    assert [sorted(data) for data in shown] == [["image/png", "text/plain"], ["text/html", "text/plain"]]
    assert "<img" not in shown[1]["text/html"]  # the drawing is stored once


def test_the_same_picture_has_the_same_bytes_and_names_no_software():
    first, second = attention().png, attention().png
    assert first == second
    assert b"Software" not in first and b"matplotlib" not in first


def test_no_text_can_become_markup():
    wicked = "<img src=x onerror=alert(1)>"
    picture = figures.attention_picture([[1.0]], [wicked], ['"'], title=wicked, lang="en", note=wicked)
    page = picture._repr_mimebundle_()["text/html"]
    assert wicked not in page and "&lt;img src=x" in page
    assert len(re.findall("<img", page)) == 1  # the drawing itself


def test_columns_of_the_plain_table_line_up_under_wide_characters():
    lines = figures.plain_table([["", "犬", "b"], ["追いかけた", "0.1", "0.25"], ["c", "10.0", "1"]]).splitlines()
    assert [language.width(line) for line in lines] == [language.width(lines[0])] * 3


def test_the_rows_sum_sentence_follows_the_numbers():
    assert "1 になります" in attention().text
    wrong = figures.attention_picture(WEIGHTS / 2, TOKENS[:2], TOKENS, title="t", lang="en")
    assert "0.50" in wrong.text and "not to 1" in wrong.text
    assert "NaN" in figures.attention_picture([[np.nan, 1.0]], title="t", lang="en").text


def test_matrices_side_by_side_are_all_in_the_table():
    influence = np.tril(np.ones((3, 3), dtype=bool))
    marked, plain, other = Matrix(WEIGHTS, "mine", mark=(0, 2)), Matrix(WEIGHTS, "mine"), Matrix(influence, "influence $D$")
    picture = figures.matrices_picture([marked, other], title="both", lang="en")
    assert picture.table[0][:4] == ["mine", "0", "1", "2"]
    assert picture.table[3][:4] == ["influence D", "0", "1", "2"]
    assert picture.table[4][1:] == ["1", "0", "0"]
    assert picture.png != figures.matrices_picture([plain, other], title="both", lang="en").png


def test_a_large_matrix_lists_the_largest_of_each_row():
    values = np.eye(30) + 0.001
    picture = figures.attention_picture(values, title="large", lang="en")
    assert len(picture.table) == 31 and picture.table[8][:2] == ["7", "7: 1.00"]


STRANGE = [np.full((2, 2), np.nan), np.full((2, 3), np.inf), np.full((1, 1), -1e30), np.zeros((2, 2)), np.zeros((0, 3))]


@pytest.mark.parametrize("values", STRANGE, ids=["nan", "inf", "huge", "zeros", "empty"])
@pytest.mark.filterwarnings("error")
def test_strange_numbers_are_drawn_not_raised(values):
    assert figures.attention_picture(values, title="strange", lang="ja").png.startswith(b"\x89PNG")


def test_wrong_shapes_are_named():
    with pytest.raises(ValueError, match=r"n_rows, n_columns\); got \(3,\)"):
        figures.attention_picture([1.0, 2.0, 3.0], title="t")
    with pytest.raises(ValueError, match="row_labels must hold 2 names"):
        figures.attention_picture(WEIGHTS, TOKENS, TOKENS, title="t")
    with pytest.raises(ValueError, match="at least one"):
        figures.matrices_picture([], title="t")
    with pytest.raises(ValueError, match="'a' must have shape"):
        figures.lines_picture(Lines([1, 2], {"a": [1.0]}, "t", "x", "y"), title="t")


def test_curves_differ_by_dash_and_marker_as_well_as_colour():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    with figures.style():
        figures.draw_lines(axes, Lines([1, 2, 4], {name: [1, 2, 3] for name in "abcd"}, "t", "x", "y", log_x=True))
    looks = [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.lines]
    for kind in zip(*looks, strict=True):
        assert len(set(kind)) == 4


def test_the_table_of_curves_has_a_row_for_each_x():
    series = {"√d_k で割る": [1.0, 1.0], "割らない": [1.0, 22.627]}
    picture = figures.lines_picture(Lines([1, 512], series, "標準偏差", "次元 $d_k$", "標準偏差"), title="標準偏差", lang="ja")
    assert picture.table == [["次元 d_k", "√d_k で割る", "割らない"], ["1", "1.00", "1.00"], ["512", "1.00", "22.63"]]


@pytest.mark.parametrize(
    ("value", "text"), [(-0.001, "0.00"), (-1.5, "−1.50"), (np.nan, "NaN"), (-np.inf, "−∞"), (123456.0, "1.2e+05")]
)
def test_numbers_read_well(value, text):
    assert figures.number(value) == text


def test_every_character_of_every_message_has_a_glyph():
    from matplotlib import font_manager
    from matplotlib.ft2font import FT2Font

    families = [figures.japanese_font(), figures.PLAIN_FONT]
    assert families[0], figures.font_trouble()
    fonts = [FT2Font(font_manager.findfont(family, fallback_to_default=False)) for family in families]
    texts = [text for key, text in language.catalogue().items() if key.startswith("explore.")]
    assert len(texts) > 50
    characters = {character for text in texts for character in text.ja + text.en}
    missing = {character for character in characters if not any(font.get_char_index(ord(character)) for font in fonts)}
    assert not missing


def test_every_message_exists_in_both_languages_with_the_same_names():
    for key, text in language.catalogue().items():
        if key.startswith("explore."):
            assert text.ja.strip() and text.en.strip(), key
            names = [set(re.findall(r"\{(\w+)", one)) for one in (text.ja, text.en)]
            assert names[0] == names[1], key


def test_japanese_is_drawn_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attention()


def test_without_a_japanese_font_the_trouble_is_named_and_nothing_fails(monkeypatch):
    from matplotlib import font_manager

    dejavu = [font for font in font_manager.fontManager.ttflist if font.name == "DejaVu Sans"]
    monkeypatch.setitem(sys.modules, "matplotlib_fontja", None)
    monkeypatch.setattr(font_manager.fontManager, "ttflist", dejavu)
    figures.japanese_font.cache_clear()
    try:
        assert figures.japanese_font() is None and figures.font_trouble() == "no_japanese_font"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert attention().png.startswith(b"\x89PNG")
    finally:
        monkeypatch.undo()
        figures.japanese_font.cache_clear()
    assert figures.font_trouble() is None


def test_the_learners_own_matplotlib_settings_neither_leak_in_nor_change():
    import matplotlib

    before = attention().png
    with matplotlib.rc_context({"figure.facecolor": "black", "font.size": 30}):
        assert attention().png == before
        assert matplotlib.rcParams["font.size"] == 30


def test_the_background_is_opaque_white():
    from PIL import Image

    corner = Image.open(io.BytesIO(attention().png)).convert("RGBA").getpixel((1, 1))
    assert corner == (255, 255, 255, 255)


def test_importing_the_room_loads_nothing_heavy():
    heavy = ("matplotlib", "ipywidgets", "anywidget", "IPython", "torch")
    code = f"import sys, transformer_lite.explore; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
