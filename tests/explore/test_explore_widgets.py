"""The two explorers: their state, what they say, and what is left of them where no widget can be shown."""

import html
import io
import re
import warnings

import numpy as np
import pytest

from transformer_lite import explore
from transformer_lite.content import Unknown
from transformer_lite.explore import maths, qkv, scaling

VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_STATIC", raising=False)


@pytest.mark.parametrize("name", explore.explorers())
@pytest.mark.parametrize("lang", ["ja", "en"])
def test_a_static_explorer_is_a_drawing_a_table_and_text_and_opens_no_connection(name, lang, monkeypatch):
    from ipywidgets.widgets import widget

    monkeypatch.setenv("TRANSFORMER_LITE_STATIC", "1")
    before = set(widget._instances)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = explore.explorer(name)(lang=lang)
    assert isinstance(shown, explore.Picture) and shown.lang == lang
    assert set(shown._repr_mimebundle_()) == {"image/png", "text/html", "text/plain"}
    assert set(widget._instances) == before


@pytest.mark.parametrize("name", explore.explorers())
def test_a_live_explorer_carries_its_numbers_for_readers_without_a_kernel(name):
    data, _ = explore.explorer(name)(lang="ja")._repr_mimebundle_()
    assert VIEW in data
    assert "<caption>" in data["text/html"] and "<script" not in data["text/html"]
    cells = [html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", data["text/html"])]
    assert len(cells) >= 10 and all(cell in data["text/plain"] for cell in cells)


def test_an_unknown_explorer_is_answered_with_the_nearest_names():
    with pytest.raises(explore.UnknownExplorer, match="qkv-bench") as caught:
        explore.explorer("qkv_bensh")
    assert isinstance(caught.value, Unknown) and caught.value.nearest[0] == "qkv-bench"
    with pytest.raises(explore.UnknownExplorer, match="scaling") as caught:
        explore.explorer("?")
    assert caught.value.nearest == list(explore.explorers()), "no name is near: all of them, in the course's order"


# --- The bench ---


def test_the_bench_starts_in_its_surprise():
    first = qkv.start("ja")
    cosines = first.keys @ first.query / np.linalg.norm(first.keys, axis=1) / np.linalg.norm(first.query)
    weights = maths.plane_attention(first.query, first.keys, first.values).weights
    assert cosines.argmax() == qkv.NEAR and weights.argmax() == qkv.WINNER
    assert first.tokens[qkv.NEAR] in qkv.words(first)["question"]


def test_what_the_answer_says_is_so():
    first = qkv.start("en")
    largest = [maths.plane_attention(first.query * stretch, first.keys, first.values).weights for stretch in (0.5, 1.0, 1.6)]
    assert largest[0][qkv.WINNER] < largest[1][qkv.WINNER] < largest[2][qkv.WINNER]
    assert all(weights.argmax() == qkv.WINNER for weights in largest)


def test_the_presets_do_what_their_notes_say():
    first = qkv.start("ja")
    named = {preset["label"]: preset for preset in qkv.presets(first)}
    states = {label: maths.plane_attention(p["query"], first.keys, first.values, p["scaled"]) for label, p in named.items()}
    start = maths.plane_attention(first.query, first.keys, first.values)
    assert states["√d_k で割り忘れる"].weights.max() > start.weights.max()
    assert states["q = 0 にする"].weights == pytest.approx(np.full(3, 1 / 3))
    assert states["内積をすべて負にする"].products.max() < 0
    longest = states["q をいちばん長くする"].weights
    assert longest.max() > start.weights.max() and longest.min() > 0


def test_what_the_browser_sends_arrives():
    bench = explore.explorer("qkv-bench")("ja")
    seen = []
    bench.observe(lambda change: seen.append(change["new"]), names="query")
    bench.set_state({"query": [1.0, -2.5], "scaled": False})
    assert seen == [[1.0, -2.5]] and bench.scaled is False
    assert bench.picture().table[1][2] == "1.50"  # q·k of the dog, (1.5, 0)


@pytest.mark.parametrize("query", [[5.0, 0.0], [float("nan"), 0.0], [1.0]])
def test_a_query_off_the_plane_is_refused(query):
    bench = explore.explorer("qkv-bench")("ja")
    with pytest.raises(Exception, match=r"query|length|minlen"):
        bench.query = query
    assert bench.query == list(qkv.QUERY)


def test_the_bench_changes_its_language_while_it_is_shown():
    bench = explore.explorer("qkv-bench")("ja")
    assert bench.tokens == ["犬", "猫", "追いかけた"] and bench.glosses == ["dog", "cat", "chased"]
    bench.lang = "en"
    assert bench.tokens == ["dog", "cat", "chased"] and bench.glosses == ["犬", "猫", "追いかけた"]
    assert bench.strings["reset"] == "Reset" and "cat" in bench.strings["question"]


def test_tokens_of_ones_own():
    bench = explore.explorer("qkv-bench")("en", tokens=[str(i) for i in range(10)])
    assert len(bench.key_vectors) == len(bench.value_vectors) == 10
    assert len({tuple(key) for key in bench.key_vectors}) == 10
    assert "dog" not in bench.strings["question"]
    with pytest.raises(ValueError, match="1 to 10 names; got 11"):
        explore.explorer("qkv-bench")(tokens="a" * 11)
    with pytest.raises(ValueError, match=r"keys must have shape \(n, 2\) with n = 2"):
        explore.explorer("qkv-bench")(tokens=["a", "b"], keys=[[1.0, 2.0]])
    with pytest.raises(ValueError, match="must lie between"):
        explore.explorer("qkv-bench")(tokens=["a"], keys=[[9.0, 2.0]])
    with pytest.raises(ValueError, match="language"):
        explore.explorer("qkv-bench")("fr")


# --- The d_k slider ---


def pixels(png):
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def test_the_slider_starts_where_one_weight_is_nearly_one():
    d_k, scaled = scaling.START
    assert maths.softmax(maths.score_world().scores(d_k, scaled)[scaling.EXAMPLE]).max() > 0.99
    bench = explore.explorer("scaling")("ja")
    assert (bench.d_k.value, bench.scaled.value) == (d_k, scaled)


def test_moving_the_controls_moves_the_picture_and_the_table():
    bench = explore.explorer("scaling")("en")
    picture, table = bench.image.value, bench.table.value
    bench.d_k.value = 64
    assert (pixels(bench.image.value) != pixels(picture)).any() and bench.table.value != table
    assert "d_k = 64" in bench.table.value and "d_k = 64" in bench._guard.alternative
    picture = bench.image.value
    bench.scaled.value = True
    assert (pixels(bench.image.value) != pixels(picture)).any()


def test_drawing_only_what_moves_gives_the_picture_of_drawing_everything():
    stage = scaling.Stage("ja")
    for state in ((512, False), (1, True), (37, False), (300, True)):
        moved = stage.png(*state)
    assert (pixels(moved) == pixels(scaling.Stage("ja").png(300, True))).all()


def test_presets_set_both_controls_and_say_what_to_see():
    bench = explore.explorer("scaling")("en")
    bench.presets["head"].click()
    assert (bench.d_k.value, bench.scaled.value) == (64, True) and "neither d_k" in bench.note.value
    assert "d_k = 64" in bench.table.value
    bench.presets["reset"].click()
    assert (bench.d_k.value, bench.scaled.value) == scaling.START and bench.note.value == ""


def test_two_hundred_moves_leave_no_figure_behind():
    import matplotlib.pyplot as plt

    bench = explore.explorer("scaling")("en")
    for d_k in range(1, 41):
        bench.d_k.value = d_k
    assert plt.get_fignums() == []


def test_the_table_names_the_figures_of_both_ways():
    _, table, text = scaling.twin(512, False, "en")
    assert table[0][1:] == ["as is", "÷ √d_k"]
    variance = table[1][1:]
    assert float(variance[0]) == pytest.approx(512, rel=0.1) and float(variance[1]) == pytest.approx(1, rel=0.1)
    assert "0.95" in text
