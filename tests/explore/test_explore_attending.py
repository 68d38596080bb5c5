"""The attention map: its numbers, the browser's against NumPy's, its pictures pixel by pixel, its page, its static twin."""

import itertools
import json

import explore_support as support
import looked
import numpy as np
import pytest

from transformer_lite.explore import attending, explorer, looking
from transformer_lite.explore.attending import KINDS, State
from transformer_lite.explore.looking import MEAN, MOST

MODULE = ("looking", "attention_map")


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_STATIC", raising=False)


def long_sentence(n_source=25, n_target=29, lang="en"):
    text = " ".join(f"word{i}" for i in range(n_source - 1))
    return attending.cropped(looking.sentence(looked.made_up(text, n_target=n_target), text, lang))


# --- The numbers ---


def test_every_row_sums_to_1_and_only_the_decoders_triangle_is_hidden():
    found = looking.stored("ja")
    for kind, layer, head in itertools.product(KINDS, (0, 1), (MEAN, 0, 3)):
        now = State(kind, layer, head, 0, 0)
        weights = attending.weights(found, now)
        assert weights.sum(axis=1) == pytest.approx(np.ones(len(weights)), abs=4e-3)  # three digits are stored
        hidden = np.array([[attending.masked(kind, i, j) for j in range(weights.shape[1])] for i in range(len(weights))])
        assert hidden.any() == (kind == "decoder") and (weights[hidden] == 0).all()
        if kind == "decoder":
            assert (hidden == ~np.tri(len(weights), dtype=bool)).all()
        else:
            assert weights[np.triu_indices(len(weights), 1)].max() > 0.1, "the answer: the others use the upper right as well"


def test_it_starts_at_the_row_that_predicts_the_verb_and_the_row_below_says_something_else():
    for lang in ("ja", "en"):
        found = looking.stored(lang)
        now = attending.start(found)
        assert now == State("cross", 1, MEAN, 4, 2)
        held, predicted = attending.queries(found, "cross")[now.row]
        assert (held.token, predicted.token, found.source[now.column].token) == ("を", "追いかけた", "chased")
        weights = attending.weights(found, now)
        assert weights[4, 2] > 0.9 and weights[5].argmax() != 2
        read, below = attending.comparison(lang, found, now)
        assert "chased" in read and "0.99" in read and "chased" not in below and "EOS" in below


def test_rows_and_columns_are_what_each_attention_has():
    found = looking.stored("en")
    assert [held.token for held, _ in attending.queries(found, "cross")] == ["BOS", "犬", "が", "猫", "を", "追いかけた"]
    assert [predicted.token for _, predicted in attending.queries(found, "decoder")] == [
        "犬",
        "が",
        "猫",
        "を",
        "追いかけた",
        "EOS",
    ]
    assert all(predicted is None for _, predicted in attending.queries(found, "encoder"))
    assert attending.keys(found, "decoder") == found.held and attending.keys(found, "cross") == found.source
    said = attending.readout("en", found, State("cross", 1, MEAN, 4, 2))
    assert said == "row: predicts 追いかけた (chased), holds を (object); column: chased; 0.99"
    assert "hidden by the mask" in attending.readout("en", found, State("decoder", 0, MEAN, 1, 2))
    assert attending.readout("ja", found._replace(), State("encoder", 0, MEAN, 1, 2)).startswith(
        "行: 「dog（犬）」、列: 「chased"
    )


def test_a_translation_with_too_many_rows_is_cropped_and_says_so():
    found = looking.sentence(looked.made_up("a b c", n_target=40), "a b c", "en")
    cut = attending.cropped(found)
    assert cut.cropped and not cut.ended and len(cut.target) == len(cut.held) == MOST
    assert cut.cross.shape[2:] == (MOST, 4) and cut.decoder.shape[2:] == (MOST, MOST)
    assert attending.start(cut).row == MOST - 1, "its last row predicts a word"
    whole = looking.stored("en")
    assert attending.cropped(whole) is whole and not whole.cropped


# --- The browser's numbers ---


def test_the_browsers_maps_are_numpys():
    found = looking.stored("ja")
    wire = looking.wire(found, KINDS)
    cases = list(itertools.product(KINDS, (0, 1), (MEAN, 0, 1, 2, 3)))
    shown = support.in_node(
        MODULE, f"((looked) => {json.dumps(cases)}.map((c) => bench.mapOf(looked, ...c)))({json.dumps(wire)})"
    )
    for case, one in zip(cases, shown, strict=True):
        assert np.array(one) == pytest.approx(attending.weights(found, State(*case, 0, 0)), abs=1e-4), case
    cells = [[kind, i, j] for kind in KINDS for i in range(3) for j in range(3)]
    hidden = support.in_node(MODULE, f"{json.dumps(cells)}.map((c) => bench.masked(...c))")
    assert hidden == [attending.masked(*cell) for cell in cells]


def test_the_keys_move_the_cell_and_stop_at_the_edges():
    cases = {
        "ArrowUp": [0, 2], "ArrowDown": [2, 2], "ArrowLeft": [1, 1], "ArrowRight": [1, 3], "Home": [1, 0], "End": [1, 3],
        "PageUp": [0, 2], "PageDown": [2, 2], "Enter": [1, 0],
    }  # fmt: skip
    found = support.in_node(MODULE, f"{json.dumps(list(cases))}.map((key) => bench.moved(key, [1, 2], [3, 4], 0))")
    assert found == list(cases.values())
    at_edges = support.in_node(MODULE, "['ArrowUp', 'ArrowLeft'].map((key) => bench.moved(key, [0, 0], [3, 4], 0))")
    assert at_edges == [[0, 0], [0, 0]]
    at_edges = support.in_node(MODULE, "['ArrowDown', 'ArrowRight'].map((key) => bench.moved(key, [2, 3], [3, 4], 0))")
    assert at_edges == [[2, 3], [2, 3]] and support.in_node(MODULE, "bench.moved('x', [0, 0], [1, 1], 0)") is None


# --- The page ---


@pytest.fixture
def show(show_module):
    def open_page(lang="ja", found=None, **changed):
        return show_module(MODULE, {**attending.traits(lang, found or looking.stored(lang), True), **changed})

    return open_page


def state(page):
    return State(**page.evaluate(f"() => Object.fromEntries({json.dumps(State._fields)}.map((name) => [name, model.get(name)]))"))


def put(page, now):
    page.evaluate("(now) => { for (const name in now) model.set(name, now[name]); }", now._asdict())


def shown_cells(page):
    return np.array(
        page.evaluate(
            """() => [...document.querySelectorAll('.tl-large tbody tr')].map((row) => [...row.querySelectorAll('.tl-cell')]
              .map((cell) => (cell.classList.contains('tl-masked') ? -1 : Number(cell.textContent))))"""
        )
    )


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_every_map_shows_numpys_numbers_marks_the_heaviest_and_says_pythons_words(show, lang):
    page, found = show(lang), looking.stored(lang)
    for kind, (layer, head) in itertools.product(KINDS, ((1, MEAN), (0, 2))):
        put(page, State(kind, layer, head, 0, 0))
        now = State(kind, layer, head, 3, 2)
        put(page, now)  # the kind first: another kind moves the cell to the heaviest of its row
        weights = attending.weights(found, now)
        hidden = (kind == "decoder") & ~np.tri(6, dtype=bool)
        assert shown_cells(page) == pytest.approx(np.where(hidden, -1, weights), abs=0.0051)
        top = page.locator(".tl-large .tl-cell").evaluate_all("(cells) => cells.map((cell) => cell.classList.contains('tl-top'))")
        assert np.array(top).reshape(6, 6).argmax(axis=1).tolist() == weights.argmax(axis=1).tolist() and sum(top) == 6
        assert page.locator(".tl-said").text_content() == attending.readout(lang, found, now)
        assert page.locator(".tl-map-title").text_content() == attending.map_name(now, lang)
        told = page.locator(".tl-reading-table td").all_text_contents()
        if kind == "encoder":
            assert page.locator(".tl-reading-table").is_hidden() and page.locator(".tl-next-row").count() == 0
            assert page.locator(".tl-reading-note").text_content() == attending._say("reading_encoder", lang)
        else:
            assert told == attending.comparison(lang, found, now)
            note = "which" if kind == "cross" else "which_decoder"
            assert page.locator(".tl-reading-note").text_content() == attending._say(note, lang)
            lines = page.locator(".tl-large tbody tr").evaluate_all("(rows) => rows.map((row) => row.className)")
            assert lines == ["", "", "", "tl-on", "tl-next-row", ""]


def test_the_last_row_has_none_below_it(show):
    page = show("en")
    assert page.locator(".tl-next-row th").text_content() == "追いかけた → EOS(end)" and state(page).row == 4
    put(page, State("cross", 1, MEAN, 5, 0))
    assert page.locator(".tl-is-below td").text_content() == "none: this is the last row"
    assert page.locator(".tl-next-row").count() == 0


def test_every_small_map_has_the_pixels_of_its_weights(show):
    page, found = show("ja"), looking.stored("ja")
    values, drawn = [], []
    for kind in KINDS:
        page.evaluate("(kind) => model.set('kind', kind)", kind)
        drawn += page.evaluate(
            """() => [...document.querySelectorAll('.tl-thumb canvas')].map((canvas) =>
              [canvas.height, canvas.width, [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data]])"""
        )
        shown = np.round(getattr(found, kind), 4)
        values += [shown[layer, head] if head < 4 else shown[layer].mean(axis=0) for layer in range(2) for head in range(5)]
    assert len(drawn) == len(values) == 30
    everything = json.dumps([value.ravel().tolist() for value in values])
    colours = support.in_node(MODULE, f"{everything}.map((map) => map.map((value) => bench.shade(value).paper))")
    for place, ((down, across, data), value, wanted) in enumerate(zip(drawn, values, colours, strict=True)):
        assert (down, across) == value.shape
        pixels = np.array(data).reshape(down, across, 4)
        hidden = np.full((down, across), KINDS[place // 10] == "decoder") & ~np.tri(down, across, dtype=bool)
        assert (pixels[..., 3] == np.where(hidden, 0, 255)).all()
        rgb = np.array([[int(part) for part in colour[4:-1].split(",")] for colour in wanted]).reshape(down, across, 3)
        assert (np.abs(pixels[..., :3] - rgb)[~hidden] <= 1).all()


def test_the_small_maps_are_chosen_by_pointer_and_arrow_keys(show):
    page = show("en")
    pressed = page.locator(".tl-thumb[aria-pressed=true]")
    assert pressed.count() == 1 and pressed.get_attribute("aria-label") == "enlarge layer 2, mean of the heads"
    assert page.locator(".tl-thumb[tabindex='0']").count() == 1, "one stop for the tab key"
    page.get_by_role("button", name="enlarge layer 1, head 2").click()
    assert state(page) == State("cross", 0, 1, 4, 2), "the cell stays, so that heads can be compared"
    for key, at in (
        ("ArrowRight", (0, 2)),
        ("ArrowDown", (1, 2)),
        ("End", (1, MEAN)),
        ("ArrowRight", (1, MEAN)),
        ("ArrowLeft", (1, 3)),
        ("Home", (1, 0)),
    ):
        page.keyboard.press(key)
        assert (state(page).layer, state(page).head) == at, key
        assert page.evaluate("() => document.activeElement.getAttribute('aria-pressed')") == "true"
    assert "layer 2, head 1" in page.locator(".tl-map-title").text_content()


def test_the_keyboard_moves_the_cell_of_the_large_map(show):
    page, found = show("en"), looking.stored("en")
    page.get_by_role("application").focus()
    for key, cell in (
        ("ArrowDown", (5, 2)),
        ("ArrowUp", (4, 2)),
        ("ArrowLeft", (4, 1)),
        ("Enter", (4, 2)),
        ("PageUp", (0, 2)),
        ("Enter", (0, 1)),
    ):
        page.keyboard.press(key)
        now = state(page)
        assert (now.row, now.column) == cell, key
        assert page.locator(".tl-said").text_content() == attending.readout("en", found, now)
        assert page.get_by_role("application").get_attribute("aria-label").endswith(attending.readout("en", found, now))
        at = page.evaluate(
            """() => { const cell = document.querySelector('.tl-cursor');
              return [cell.parentElement.rowIndex - 1, cell.cellIndex - 1]; }"""
        )
        assert tuple(at) == cell and page.locator(".tl-cursor").count() == 1


def test_pointing_shows_a_cell_and_a_click_chooses_it(show):
    page, found = show("ja"), looking.stored("ja")
    before = state(page)
    cells = page.locator(".tl-large .tl-cell")
    cells.nth(6 * 2 + 4).hover()
    assert page.locator(".tl-said").text_content() == attending.readout("ja", found, before._replace(row=2, column=4))
    assert state(page) == before
    page.mouse.move(1, 1)
    assert page.locator(".tl-said").text_content() == attending.readout("ja", found, before)
    cells.nth(6 * 2 + 4).click()
    assert state(page) == before._replace(row=2, column=4)


def test_another_attention_goes_to_the_heaviest_cell_of_the_row(show):
    page, found = show("en"), looking.stored("en")
    page.get_by_role("combobox", name="attention").select_option("decoder")
    now = state(page)
    assert now.row == 4 and now.column == attending.weights(found, now)[4].argmax()
    assert page.locator(".tl-shape").text_content() == "target × target: (6, 6), upper right hidden"
    assert page.locator(".tl-scale span:visible", has_text="hidden by the mask").count() > 0


def test_the_presets_show_their_view_and_reset_goes_back(show):
    page, found = show("ja"), looking.stored("ja")
    for i, preset in enumerate(attending.presets("ja", found)):
        page.locator(".tl-preset").nth(i).click()
        now = state(page)
        assert (now.kind, now.layer, now.head) == (preset["kind"], preset["layer"], preset["head"])
        assert page.locator(".tl-note").text_content() == preset["note"]
    page.get_by_role("button", name="最初に戻す").click()
    assert state(page) == attending.start(found)


def test_the_numbers_can_be_read_as_a_table_and_follow_the_map(show):
    page, found = show("en"), looking.stored("en")
    page.locator(".tl-numbers summary").click()

    def table():
        rows = page.locator(".tl-numbers tr")
        return [rows.nth(i).locator("th, td").all_text_contents() for i in range(rows.count())]

    page.wait_for_function("() => document.querySelector('.tl-numbers table')")
    assert table() == attending.table("en", found, state(page)) and "0.989" in table()[5]
    page.locator(".tl-preset").nth(1).click()
    assert table() == attending.table("en", found, state(page)) and table()[1][1:3] == ["1.000", "–"]
    assert page.locator(".tl-numbers table").count() == 1


def test_a_long_sentence_has_no_numbers_on_its_cells_and_its_table_lists_the_largest(show):
    found = long_sentence()
    page = show("en", found)
    assert page.locator(".tl-large .tl-cell").count() == 29 * 25
    assert set(page.locator(".tl-large .tl-cell").all_text_contents()) == {""}
    assert page.locator(".tl-said").text_content() == attending.readout("en", found, attending.start(found))
    page.locator(".tl-numbers summary").click()
    page.wait_for_function("() => document.querySelector('.tl-numbers table')")
    rows = page.locator(".tl-numbers tr")
    shown = [rows.nth(i).locator("th, td").all_text_contents() for i in (0, 1, 29)]
    expected = attending.table("en", found, state(page))
    assert shown == [expected[0], expected[1], expected[29]] and len(expected[1]) == 6


def test_a_translation_that_is_cut_for_the_map_says_so(show):
    found = attending.cropped(looking.sentence(looked.made_up("a b c", n_target=40), "a b c", "en"))
    assert show("en", found).locator(".tl-cut").is_visible() and show("en").locator(".tl-cut").is_hidden()


# --- The widget and its static twin ---


def test_what_the_browser_sends_arrives_and_a_new_sentence_keeps_the_head_and_moves_the_cell():
    shown = explorer("attention-map")("en", look=looked.made_up)
    shown.set_state({"kind": "decoder", "layer": 0, "head": 2, "row": 1, "column": 0})
    assert shown.state == State("decoder", 0, 2, 1, 0)
    shown.set_state({"sentence": "one two", "asked": 1})
    row = attending.weights(shown.found, shown.state)[2]
    assert shown.state == State("decoder", 0, 2, 2, int(row.argmax()))
    assert shown.initial == attending.start(shown.found)._asdict() and shown.initial["kind"] == "cross"
    with pytest.raises(Exception, match="kind"):
        shown.kind = "other"


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_twin_holds_the_numbers_of_the_map_and_the_picture_follows_the_state(lang):
    found = looking.stored(lang)
    first = attending.start(found)
    _, table, text = attending.twin(lang, found, first)
    assert table[5][0] == "を → 追いかけた" and [float(cell) for cell in table[5][1:]] == pytest.approx(
        attending.weights(found, first)[4], abs=6e-4
    )
    assert "0.99" in text and "EOS" in text
    states = (first, first._replace(kind="decoder"), first._replace(head=0), first._replace(row=0, column=0))
    assert len({attending.picture(lang, found, now).png for now in states}) == 4
    assert attending.twin(lang, found, first._replace(kind="decoder"))[1][1][2] == "–"
