"""The shift viewer: its matrices against real attention, the browser's against NumPy's, its page, its static twin."""

import itertools
import json

import explore_support as support
import numpy as np
import pytest

from transformer_lite.equations import (
    DecoderParameters,
    causal_mask,
    decoder_layer,
    influence_matrix,
    scaled_dot_product_attention,
    shift_right,
)
from transformer_lite.explore import explorer, shifting
from transformer_lite.explore.shifting import N_LABELS, SENTENCES, State

SWITCHES = list(itertools.product((False, True), repeat=2))  # (shift, causal)


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_STATIC", raising=False)


# --- The numbers ---


def moved_labels(model, shift, causal, n=N_LABELS):
    """The influence matrix found by moving vectors of labels through a model (fed, mask) -> (n, d)."""
    mask = causal_mask(n) if causal else np.ones((n, n), dtype=bool)
    labels = np.random.default_rng(9).normal(size=(n, 8))

    def predictions(moved):
        with_start = np.vstack([moved, np.ones((1, 8))])  # row n is BOS
        order = shift_right(np.arange(n), n) if shift else np.arange(n)
        return model(with_start[order], mask)

    return influence_matrix(predictions, labels)


@pytest.mark.parametrize(("shift", "causal"), SWITCHES)
def test_mask_times_shift_is_what_moves_in_attention_and_in_a_decoder_layer(shift, causal):
    rng = np.random.default_rng(3)
    parameters, memory = DecoderParameters.random(8, 16, rng), rng.normal(size=(4, 8))
    composed = shifting.seen(N_LABELS, shift, causal)
    assert (composed == moved_labels(lambda x, mask: scaled_dot_product_attention(x, x, x, mask).output, shift, causal)).all()
    assert (composed == moved_labels(lambda x, mask: decoder_layer(x, memory, parameters, 2, mask), shift, causal)).all()


def test_only_both_switches_give_the_lower_triangle_without_its_diagonal():
    strictly = np.tri(N_LABELS, k=-1, dtype=bool)
    assert {(shift, causal): bool((shifting.seen(N_LABELS, shift, causal) == strictly).all()) for shift, causal in SWITCHES} == {
        (False, False): False, (False, True): False, (True, False): False, (True, True): True,
    }  # fmt: skip
    assert (shifting.seen(N_LABELS, False, True) == np.tri(N_LABELS, dtype=bool)).all()
    unmasked = shifting.seen(N_LABELS, True, False)
    assert unmasked[:, :-1].all() and not unmasked[:, -1].any()  # EOS is never fed


def test_the_surprise_and_the_answer_are_so():
    leaks = {
        shifting.setting(shift, causal): shifting.leaking(shifting.seen(N_LABELS, shift, causal)) for shift, causal in SWITCHES
    }
    everywhere = list(range(6))
    assert leaks == {"both": [], "no_shift": everywhere, "no_mask": everywhere[:5], "neither": everywhere}
    assert (shifting.START.shift, shifting.START.causal) == (False, True)
    for lang in ("ja", "en"):
        assert "③" in shifting.words(lang)["answer"] and "EOS" in shifting.words(lang)["answer"]


def test_what_the_chapter_asks_is_answered():
    """1: without the shift the answer is on the diagonal. 2: without a mask it is the input to the right. 3: BOS and earlier."""
    assert "自分の位置の入力" in shifting.view("ja", State())
    second = shifting.view("en", State("dog-en", shift=True, causal=False, position=2))
    assert "Position 3 predicts “chased”" in second and "to its right, at position 4: in sight" in second
    third = shifting.view("ja", State(shift=True, causal=True, position=4))
    assert third == ("位置 5 は「追いかけた」を当てます。見える入力は「BOS」「犬」「が」「猫」「を」。"
                     "答えの「追いかけた」は、右隣（位置 6）の入力にありますが、マスクが隠しています。")  # fmt: skip
    for name, label in (("dog-en", "chased"), ("cat-ja", "追いかけた")):
        labels = SENTENCES[name]
        position = labels.index(label)
        visible = np.flatnonzero(shifting.allowed(N_LABELS, True)[position])
        assert [shifting.fed(State(name, shift=True))[q] for q in visible] == ["BOS", *labels[:position]]


def test_the_last_answer_is_nowhere_and_a_word_that_comes_twice_is_told_apart():
    assert "no input holds it" in shifting.view("en", State("dog-en", True, False, 5))
    labels = SENTENCES["dog-en"]
    both = shifting.seen(N_LABELS, True, True)
    assert [shifting.twice(labels, both, i) for i in range(6)] == [-1, -1, -1, 0, -1, -1]
    assert shifting.twice(labels, shifting.seen(N_LABELS, True, False), 0) == 3
    assert "Label 1 is “the”, too" in shifting.view("en", State("dog-en", True, True, 3))


def test_cells_are_told_apart_by_where_the_label_stands():
    moved = np.array([[1, 1], [1, 0]], dtype=bool)
    assert shifting.kinds(moved) == [["answer", "later"], ["earlier", ""]]


# --- The browser's numbers ---


def test_the_browser_composes_the_same_matrices():
    cases = [(n, shift, causal) for n in range(1, 9) for shift, causal in SWITCHES]
    found = support.in_node(
        "shift_viewer",
        f"{json.dumps(cases)}.map(([n, shift, causal]) => {{ const moved = bench.seen(n, shift, causal);"
        " return { placed: bench.placed(n, shift), allowed: bench.allowed(n, causal), moved, kinds: bench.kinds(moved),"
        " leaks: bench.leaking(moved), setting: bench.setting(shift, causal) }; })",
    )
    assert len(found) == 32
    for (n, shift, causal), one in zip(cases, found, strict=True):
        moved = shifting.seen(n, shift, causal)
        assert one["placed"] == shifting.placed(n, shift).tolist() and one["allowed"] == shifting.allowed(n, causal).tolist()
        assert one["moved"] == moved.tolist() and one["kinds"] == shifting.kinds(moved)
        assert one["leaks"] == shifting.leaking(moved) and one["setting"] == shifting.setting(shift, causal)


def test_the_browser_finds_the_answer_where_python_finds_it():
    states = [State(name, *two, i) for name in SENTENCES for two in SWITCHES for i in range(N_LABELS)]
    given = [[list(SENTENCES[state.sentence]), state._asdict()] for state in states]
    found = support.in_node(
        "shift_viewer",
        f"{json.dumps(given)}.map(([labels, state]) => [bench.whereabouts(6, state),"
        " bench.twice(labels, bench.seen(6, state.shift, state.causal), state.position)])",
    )
    for state, (where, other) in zip(states, found, strict=True):
        moved = shifting.seen(N_LABELS, state.shift, state.causal)
        assert where == shifting.whereabouts(state) and other == shifting.twice(SENTENCES[state.sentence], moved, state.position)
    assert {where for where, _ in found} == {"own", "next_seen", "next_hidden", "nowhere"}


# --- The page ---


@pytest.fixture
def show(show_module):
    def open_viewer(lang="ja", state=None, **options):
        state = state or shifting.START._replace(sentence=f"dog-{lang}")
        return show_module("shift_viewer", shifting.traits(lang, state), **options)

    return open_viewer


def viewed(page):
    return State(*(page.evaluate(f"() => model.get('{name}')") for name in State._fields))


SIGNS = {"": "", "●": "earlier", "!": "answer", "→": "later"}


def page_agrees(page, lang):
    """The page shows what NumPy computes for its state, and says what the twin says."""
    state = viewed(page)
    moved = shifting.seen(N_LABELS, state.shift, state.causal)
    cells = page.locator(".tl-stage .tl-signs .tl-cell").all_text_contents()
    assert [SIGNS[text] for text in cells] == [kind for row in shifting.kinds(moved) for kind in row]
    marks = page.locator(".tl-mark text").all_text_contents()
    assert [i for i, sign in enumerate(marks) if sign == "!"] == shifting.leaking(moved)
    drawn = page.locator(".tl-rows .tl-word").all_text_contents()  # an input, the label below it, the next input, ...
    assert drawn[::2] == shifting.fed(state) and drawn[1::2] == list(SENTENCES[state.sentence])
    may = shifting.allowed(N_LABELS, state.causal)[state.position]
    answer = shifting.placed(N_LABELS, state.shift)[:, state.position]
    ends = "(all) => all.map((one) => ['x1', 'x2'].map((end) => Math.floor(one.getAttribute(end) / 62)))"  # columns
    lines = page.locator(".tl-rows .tl-line").evaluate_all(ends)
    assert lines == [[q, state.position] for q in range(N_LABELS) if may[q]]
    assert page.locator(".tl-rows line.tl-answer").evaluate_all(ends) == [lines[q] for q in np.flatnonzero(may & answer)]
    copies = page.locator(".tl-rows .tl-copies line").evaluate_all(ends)
    assert copies == [[j, p] for p, j in np.argwhere(shifting.placed(N_LABELS, state.shift)).tolist()]
    assert page.locator(".tl-rows line.tl-answer").count() == page.locator(".tl-rows g.tl-answer").count() == (may & answer).sum()
    assert page.locator(".tl-is strong").text_content() == shifting.summary(lang, state)
    assert page.locator(".tl-view").text_content() == shifting.view(lang, state)
    assert page.locator(".tl-learns").text_content() == shifting.learns(lang, state)


def test_the_page_starts_in_its_surprise_and_both_switches_stop_the_leak(show):
    page = show("en")
    page_agrees(page, "en")
    assert page.get_by_role("checkbox", name="causal mask").is_checked()
    assert page.locator(".tl-mark.tl-leaks").count() == 6 and "tl-lit" in page.locator(".tl-verdict").get_attribute("class")
    picture = page.locator(".tl-rows").screenshot()
    page.get_by_role("checkbox", name="right shift").focus()
    page.keyboard.press(" ")
    assert viewed(page).shift and page.locator(".tl-mark.tl-leaks").count() == 0
    assert "tl-lit" not in page.locator(".tl-verdict").get_attribute("class")
    page_agrees(page, "en")
    assert page.locator(".tl-rows").screenshot() != picture


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_every_setting_and_position_shows_numpys_matrix(show, lang):
    page = show(lang)
    for name, (shift, causal) in itertools.product(SENTENCES, SWITCHES):
        page.evaluate(
            "(state) => { for (const [name, value] of Object.entries(state)) model.set(name, value); }",
            {"sentence": name, "shift": shift, "causal": causal, "position": (len(name) + 3 * shift + 2 * causal) % 6},
        )
        page_agrees(page, lang)


def test_the_keyboard_and_the_pointer_choose_a_position(show):
    page = show("en")
    rows = page.locator(".tl-rows")
    rows.focus()
    before = rows.get_attribute("aria-label")
    page.keyboard.press("ArrowRight")
    assert viewed(page).position == 3 and rows.get_attribute("aria-label") != before
    assert "Position 4 predicts “the”" in rows.get_attribute("aria-label")
    page_agrees(page, "en")
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")  # the edge holds
    assert viewed(page).position == 5
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    assert viewed(page).position == 0
    page.locator(".tl-hit").nth(4).click()
    assert viewed(page).position == 4
    page_agrees(page, "en")
    assert page.locator(".tl-stage tr.tl-on th").text_content() == "5 cat猫"
    page.get_by_role("button", name="Reset").click()
    assert viewed(page) == shifting.START._replace(sentence="dog-en")


def test_the_sentence_is_a_choice_in_both_languages(show):
    page = show("en")
    page.get_by_role("combobox", name="Sentence").select_option("cat-ja")
    assert viewed(page).sentence == "cat-ja"
    page_agrees(page, "en")
    word = page.locator(".tl-label .tl-word").first
    assert (word.text_content(), word.get_attribute("lang")) == ("猫", "ja")
    gloss = page.locator(".tl-label .tl-small").first
    assert (gloss.text_content(), gloss.get_attribute("lang")) == ("cat", "en")


def test_the_table_of_what_was_tried_fills_in(show):
    page = show("en")
    table = page.locator(".tl-tried td:not(:empty)")
    assert table.all_text_contents() == ["?", "?", "6", "?"]
    page.get_by_role("checkbox", name="right shift").check()
    page.get_by_role("checkbox", name="causal mask").uncheck()
    assert table.all_text_contents() == ["?", "5", "6", "0"]
    page.get_by_role("checkbox", name="right shift").uncheck()
    assert table.all_text_contents() == ["6", "5", "6", "0"]
    assert page.locator(".tl-tried .tl-current").get_attribute("aria-label") == "6 of 6 positions"
    assert page.evaluate("() => model.get('tried')") == ["both", "no_shift", "no_mask", "neither"]
    page.get_by_role("button", name="Reset").click()
    assert table.all_text_contents() == ["?", "?", "6", "?"]


def test_the_product_shows_both_factors(show):
    page = show("en", State("dog-en", True, True, 1))
    page.locator(".tl-product summary").click()
    tables = page.locator(".tl-product table")
    for table, values in ((0, shifting.allowed(6, True)), (1, shifting.placed(6, True))):
        shown = [text == "1" for text in tables.nth(table).locator(".tl-cell").all_text_contents()]
        assert shown == values.ravel().tolist()
    assert tables.nth(1).locator("tbody th").first.text_content() == "1 BOS文頭"
    assert page.get_by_role("cell", name="input 2 the is label 1 the", exact=True).count() == 1


# --- The widget and its static twin ---


def test_what_the_browser_sends_arrives_and_an_unknown_position_is_refused():
    bench = explorer("shift-viewer")("ja")
    bench.set_state({"shift": True, "position": 4, "tried": ["no_shift", "both"]})
    title, table, text = bench.twin()
    assert title.startswith("右シフトとマスク") and "答えはどこからも漏れません" in text and "教師強制" in text
    assert table[1][1:7] == ["BOS", "犬", "が", "猫", "を", "追いかけた"]
    assert table[6] == ["5 追いかけた", "1", "1", "1", "1", "0", "0", "見えない"]
    for name, value in (("position", 6), ("sentence", "cat-fr"), ("tried", ["all"])):
        with pytest.raises(Exception, match=name):
            setattr(bench, name, value)
    bench.lang = "en"
    assert bench.strings["reset"] == "Reset" and "No answer leaks" in bench.twin()[2] and bench.sentence == "dog-ja"


def test_it_can_start_elsewhere_and_says_what_it_cannot():
    bench = explorer("shift-viewer")("en", shift=True, position=5)
    assert bench.state == State("dog-en", True, True, 5) and bench.initial["position"] == 5
    for wrong, told in (({"sentence": "dog"}, "sentence must be one of dog-ja"), ({"position": 6}, "one of 0 to 5; got 6"),
                        ({"sentence": ["dog-ja"]}, "sentence must be one of"), ({"position": 2.0}, "got 2.0"),
                        ({"position": True}, "got True")):  # fmt: skip
        with pytest.raises(ValueError, match=told):
            explorer("shift-viewer")("en", **wrong)
    with pytest.raises(ValueError, match="language"):
        explorer("shift-viewer")("fr")


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_picture_follows_the_state(lang):
    states = [State(f"dog-{lang}", *two, position) for two, position in zip(SWITCHES, (0, 2, 4, 5), strict=True)]
    pictures = [shifting.picture(lang, state) for state in states]
    assert len({shown.png for shown in pictures}) == 4
    for state, shown in zip(states, pictures, strict=True):
        rows = [[cell == "1" for cell in row[1:7]] for row in shown.table[2:]]
        assert rows == shifting.seen(N_LABELS, state.shift, state.causal).tolist()
        assert ".." not in shown.text and "。。" not in shown.text
