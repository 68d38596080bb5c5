"""Matrices as learners see them: the numbers, names, shapes and marks are there, in HTML with and without styles and in text."""

import re

import numpy as np
import pytest

from transformer_lite import lab, language

TOKENS = ["犬 dog", "猫 cat", "追いかけた chased"]
WEIGHTS = np.array([[0.25, 0.09, 0.66], [0.5, 0.25, 0.25], [0.66, 0.25, 0.09]])


@pytest.fixture(autouse=True)
def _english():
    language.use("en")


def cells(html):
    """What stands in the cells of an HTML table's body, row by row, without any markup."""
    body = re.search("<tbody>(.*?)</tbody>", html, re.DOTALL)[1]
    rows = re.findall("<tr[^>]*>(.*?)</tr>", body)
    return [[re.sub("<[^>]*>", "", cell) for cell in re.findall("<t[dh][^>]*>(.*?)</t[dh]>", row)] for row in rows]


def test_a_matrix_shows_numbers_names_shape_and_sums():
    shown = lab.matrix(WEIGHTS, rows=TOKENS, columns=TOKENS, title="weights", decimals=2, sums=True)
    html = shown._repr_html_()
    assert cells(html) == [
        ["犬 dog", "0.25", "0.09", "0.66", "1.00"],
        ["猫 cat", "0.50", "0.25", "0.25", "1.00"],
        ["追いかけた chased", "0.66", "0.25", "0.09", "1.00"],
    ]
    assert re.findall('<th scope="(.*?)"', html) == ["col"] * 4 + ["row"] * 3
    assert "weights (3, 3)" in re.search("<caption.*?</caption>", html)[0]
    assert "column = key →" in html and "row = query ↓" in html
    text = repr(shown)
    assert text.splitlines()[0] == "weights  (3, 3)  row = query, column = key"
    assert text.splitlines()[2].split() == ["犬", "dog", "0.25", "0.09", "0.66", "|", "1.00"]
    assert len({language.width(line) for line in text.splitlines()[1:]}) == 1


def test_cells_are_equally_wide_and_the_sum_is_ruled_off():
    html = lab.matrix(WEIGHTS, rows=TOKENS, columns=TOKENS, sums=True).html()
    styles = re.findall('<td style="([^"]*)"', html)[1:]  # after the corner
    ruled = [style for style in styles if "double" in style]
    widths = {re.search(r"(?<!-)width:[\d.]+em", style)[0] for style in styles if style not in ruled}
    assert len(widths) == 1 and len(ruled) == 3


def test_a_larger_number_has_a_stronger_tint_and_a_negative_one_another():
    html = lab.matrix([[0.0, 1.0, 2.0, -2.0]]).html()
    tints = [re.search(r"background-color:rgba\(([\d,]+),([\d.]+)\)", one) for one in re.findall('<td style="([^"]*)"', html)]
    tints = tints[-4:]
    assert tints[0] is None
    assert float(tints[1][2]) < float(tints[2][2]) == float(tints[3][2]) and tints[2][1] != tints[3][1]
    assert float(tints[2][2]) <= 0.5  # text in the theme's colour stays readable on it


def test_marks_do_without_colour():
    shown = lab.matrix(WEIGHTS, mark=[(2, 0)], decimals=2)
    assert re.findall("<strong>(.*?)</strong>", shown.html()) == ["0.66"]
    assert "box-shadow" in shown.html()
    assert shown.text().count("[0.66]") == 1 and shown.text().count("[") == 1


@pytest.mark.parametrize("kind", [None, "mask", "influence"])
def test_truth_values_are_shown_in_three_ways(kind):
    shown = lab.matrix(np.array([[True, False]]), rows=["q"], kind=kind)
    assert cells(shown.html()) == [["q", *("✓×" if kind == "mask" else "10")]]


def test_numbers_read_well():
    shown = lab.matrix([[-1.5, -0.0001, np.nan], [np.inf, -np.inf, 2.0]], decimals=1)
    assert cells(shown.html()) == [["1", "−1.5", "0.0", "NaN"], ["2", "∞", "−∞", "2.0"]]
    assert lab.table([[-1, -2.5, -0.0]]).rows == [["−1.000", "−2.500", "0.000"]]
    assert lab.table([[1.2e-7]], decimals=".0e").rows == [["1e−07"]]


def test_a_vector_has_one_row_without_a_name():
    shown = lab.matrix([1, 2, 3], title="x")
    assert cells(shown.html()) == [["1", "2", "3"]] and shown.text().splitlines()[0] == "x  (3,)"


def test_a_large_matrix_is_shown_by_its_edges():
    shown = lab.matrix(np.arange(400).reshape(20, 20))
    assert "(20, 20)" in shown.html() and len(cells(shown.html())) == 16
    assert cells(shown.html())[0][-1] == "19" and cells(shown.html())[-1][-1] == "399" and "⋮" in shown.text()


def test_an_empty_matrix_is_no_error():
    assert "(0, 3)" in lab.matrix(np.zeros((0, 3)), title="nothing").html()


def test_axes_are_named_in_the_learners_language():
    language.use("ja")
    assert "行 = クエリ、列 = キー" in lab.matrix(np.eye(2)).text()
    assert "行 = 位置、列 = d" in lab.matrix(np.eye(2), axes=("position", "d")).text()
    assert "行 =" not in lab.matrix(np.eye(2), axes=None).text()


def test_tensors_are_welcome():
    torch = pytest.importorskip("torch")
    assert cells(lab.matrix(torch.ones(1, 2, requires_grad=True), decimals=0).html()) == [["1", "1", "1"]]


def test_several_stand_side_by_side_each_with_its_own_labels():
    shown = lab.matrices({"Q": np.ones((2, 3), int), "V": np.eye(2, dtype=int)}, rows=["a", "b"], columns={"V": ["v1", "v2"]})
    assert shown.html().count("<table") == 2 and "flex" in shown.html()
    text = shown.text()
    assert text.index("Q  (2, 3)") < text.index("V  (2, 2)") and "v1" in text


def test_comparing_outlines_and_counts_what_differs():
    right, wrong = np.eye(2), np.array([[1.0, 0.5], [0.0, 1.0]])
    shown = lab.compare(right, wrong, titles=("good", "bad"), decimals=1)
    assert re.findall("<strong>(.*?)</strong>", shown.html()) == ["0.0", "0.5"]
    assert "good  (2, 2)" in shown.text() and shown.text().endswith("outlined and in bold: 1")
    assert "No cell differs" in lab.compare(right, right + 1e-12).text()
    assert "(2, 2)" in lab.compare(right, np.ones((2, 3))).note and "(2, 3)" in lab.compare(right, np.ones((2, 3))).note
    nan = np.array([[np.nan]])
    assert "No cell differs" in lab.compare(nan, nan).text()


def test_an_answer_is_folded_and_its_question_is_not():
    shown = lab.reveal(lab.matrix(WEIGHTS, title="weights"), "Which <row> is uniform?")
    html = shown.html()
    assert html.index("Which &lt;row&gt;") < html.index("<details>") < html.index("weights") and "<details open" not in html
    assert shown.text().splitlines()[:3] == ["Which <row> is uniform?", "", "Answer:"]
    assert "first\nsecond" in lab.reveal("first\nsecond").text()
    assert lab.reveal([lab.matrix([[1]]), "one"]).html().count("<details>") == 1
    assert "<table" in lab.reveal(np.eye(2)).html() and "(2, 3)" in lab.reveal((2, 3)).text()


def test_pictures_can_be_folded_and_widgets_cannot():
    from transformer_lite.explore import figures

    picture = figures.attention_picture(WEIGHTS, title="weights", lang="en")
    assert "data:image/png" in lab.reveal(picture).html()
    widgets = pytest.importorskip("ipywidgets")
    with pytest.raises(lab.LabError, match="widget"):
        lab.reveal(widgets.IntSlider())


def test_nothing_can_become_markup():
    wicked = "<img src=x onerror=alert(1)>"
    shown = [
        lab.matrix([[1]], rows=[wicked], columns=[wicked], title=wicked, axes=(wicked, wicked)),
        lab.matrices({wicked: [[1]]}, title=wicked),
        lab.compare([[1]], [[2]], titles=(wicked, wicked)),
        lab.reveal(wicked, wicked),
    ]
    assert all("<img" not in one.html() for one in shown)


def test_the_same_matrix_gives_the_same_text_and_html():
    first, second = (lab.matrix(WEIGHTS, rows=TOKENS, sums=True) for _ in range(2))
    assert first.html() == second.html() and first.text() == second.text()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: lab.matrix(np.zeros((2, 3, 4))), r"lab\.matrix .*\(2, 3, 4\)"),
        (lambda: lab.matrix(3.0), r"\(\)"),
        (lambda: lab.matrix([[1, 2], [3]]), "same number"),
        (lambda: lab.matrix(np.eye(2), rows=["a"]), "rows needs 2 labels; got 1"),
        (lambda: lab.matrix(np.eye(2), columns=["a"] * 3), "columns needs 2 labels; got 3"),
        (lambda: lab.matrix(np.eye(2), rows="ab"), "list of labels"),
        (lambda: lab.matrix([["a", "b"]]), "lab.table"),
        (lambda: lab.matrix([[1j]]), "numbers"),
        (lambda: lab.matrix(np.eye(2), kind="heat"), "influence"),
        (lambda: lab.matrix(np.eye(2), axes="query"), "two names"),
        (lambda: lab.matrix(np.eye(2), mark=[(2, 0)]), r"no cell \(2, 0\)"),
        (lambda: lab.matrix(np.eye(2), mark=[3]), "no cell 3"),
        (lambda: lab.matrices(np.eye(2)), "by name"),
        (lambda: lab.matrices({"Q": np.eye(2)}, rows=["a"]), "rows needs 2"),
        (lambda: lab.compare(np.eye(2), np.eye(2), titles="ab"), "two headings"),
    ],
)
def test_what_cannot_be_shown_is_said_in_a_sentence(call, said):
    with pytest.raises(lab.LabError, match=said):
        call()
