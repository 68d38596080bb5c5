"""The head explorer: its numbers against equations and traps, the browser's against NumPy's, its page, its static twin."""

import itertools
import json

import explore_support as support
import numpy as np
import pytest

from transformer_lite.equations import attention_cost, layer_cost, multi_head_attention, parameter_count
from transformer_lite.explore import explorer, heads
from transformer_lite.explore.heads import State

STATES = [
    State(h, 512, 512, split, together, reverse, rows)
    for h, split, together, reverse, rows in itertools.product(
        (1, 2, 4), ("features", "reshape"), ("concat", "sum"), (False, True), (False, True)
    )
]


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_STATIC", raising=False)


# --- The numbers ---


@pytest.mark.parametrize("n_heads", heads.HEADS)
@pytest.mark.parametrize("d_model", heads.WIDTHS)
def test_the_ledger_is_that_of_the_equations_and_only_some_of_it_depends_on_h(n_heads, d_model):
    n = 37
    found, one = heads.ledger(n_heads, d_model, n), heads.ledger(1, d_model, n)
    assert found.d_k * n_heads == d_model and found.divisor == pytest.approx(np.sqrt(found.d_k))
    assert found.score_cost == sum(attention_cost(n, d_model)) == 2 * n_heads * n * n * found.d_k
    assert found.projection_cost == layer_cost(n, d_model, 4 * d_model).projections == 4 * n * d_model**2
    rest = 2 * (2 * d_model * 8 + 8 + d_model) + 5 * 2 * d_model + 3 * d_model  # two FFNs (d_ff = 8), five norms, V = 3
    assert 3 * found.parameters + rest == parameter_count(d_model, 8, 1, 3, n_heads, biases=False)  # three attentions
    assert found.weight_count == n_heads * one.weight_count == n_heads * n * n
    assert (found.parameters, found.projection_cost, found.score_cost) == (one.parameters, one.projection_cost, one.score_cost)


def test_a_number_of_heads_that_does_not_divide_is_refused():
    for n_heads in (0, 3):
        with pytest.raises(ValueError, match="n_heads must divide d_model = 512"):
            heads.ledger(n_heads, 512, 5)


def test_the_number_of_weights_is_what_multi_head_attention_gives():
    rng = np.random.default_rng(0)
    projections = heads.Projections(*rng.standard_normal((4, 64, 64)))
    for n_heads in heads.HEADS:
        weights = multi_head_attention(rng.standard_normal((5, 64)), projections, n_heads).weights
        assert weights.size == heads.ledger(n_heads, 64, 5).weight_count


@pytest.mark.parametrize("lang", ["ja", "en"])
@pytest.mark.parametrize("n_heads", [1, 2, 4])
def test_the_example_is_the_papers_multi_head_attention(lang, n_heads):
    x, projections = heads.example(lang)
    expected = multi_head_attention(x, projections, n_heads)
    assert heads.example_heads(lang, n_heads).weights == pytest.approx(expected.weights)
    assert heads.put_together(lang, State(n_heads)) == pytest.approx(expected.output)


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_four_heads_tell_the_roles_apart_and_one_blurs_them(lang):
    subject, object_, verb = heads._PLACES[lang]
    neighbour = verb - 1 if lang == "ja" else verb + 1
    assert [heads.TOKENS[lang][i] for i in (subject, object_, verb)] == (
        ["犬", "猫", "追いかけた"] if lang == "ja" else ["dog", "cat", "chased"]
    )
    four = heads.example_heads(lang, 4).weights
    for head, wanted in enumerate((subject, object_, neighbour, verb)):
        assert four[head, verb].argmax() == wanted and four[head, verb, wanted] > 0.9
    assert len({subject, object_, neighbour, verb}) == 4
    one = heads.example_heads(lang, 1).weights[0, verb]
    assert one[[subject, object_, neighbour, verb]] == pytest.approx(np.full(4, one[verb])) and 0.2 < one[verb] < 0.25
    two = heads.example_heads(lang, 2).weights[:, verb]
    assert two[0, [subject, object_]] == pytest.approx([two[0, subject]] * 2) and two[0, subject] > 0.4
    neighbours = heads.example_heads(lang, 4).weights[2]
    pairs = [(i, i - 1) for i in range(1, 5)] if lang == "ja" else [(i, i + 1) for i in range(4)]
    assert all(neighbours[i].argmax() == j for i, j in pairs)


@pytest.mark.parametrize(("state", "key"), [(State(4, together="sum"), "MH1"), (State(4, split="reshape"), "MH5")])
def test_the_wrong_ways_are_the_traps_of_the_catalogue(state, key):
    from transformer_lite.traps.heads import multi_core, split_core

    x, projections = heads.example("ja")
    if key == "MH1":
        output, _ = multi_core(x, projections, 4, together="sum")
        assert heads.put_together("ja", state) == pytest.approx(output)
    else:
        q, k = (split_core(x @ w, 4, split="reshape")[0] for w in projections[:2])
        assert heads.example_heads("ja", 4, "reshape").weights.shape == (4, 5, 5)
        scores = q @ k.swapaxes(-1, -2) / 2
        expected = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
        assert heads.example_heads("ja", 4, "reshape").weights == pytest.approx(expected)


def test_the_order_matters_when_concatenated_and_not_when_added():
    for lang in ("ja", "en"):
        assert heads.order_difference(lang, heads.PRESETS["order"]) > 0.1
        assert heads.order_difference(lang, heads.PRESETS["both"]) < 1e-12
        assert heads.order_difference(lang, heads.PRESETS["mc34"]) < 1e-12
        assert heads.order_difference(lang, State(1, reverse=True)) == 0


def test_pieces_say_what_a_row_holds_after_a_reshape_alone():
    numbered = np.arange(5 * 16).reshape(5, 16)  # token t holds 16 t to 16 t + 15
    for n_heads in (2, 4):
        cut = numbered.reshape(n_heads, 5, 16 // n_heads)
        for head, row in itertools.product(range(n_heads), range(5)):
            token, part = heads.pieces(n_heads)[head][row]
            assert cut[head, row, 0] == 16 * token + part * 16 // n_heads


def test_table_3_says_what_the_notes_say():
    bleu = {h: score for h, _, _, score in heads.TABLE_3}
    assert bleu == {1: 24.9, 4: 25.5, 8: 25.8, 16: 25.8, 32: 25.4}
    assert all(h * d_k == 512 for h, d_k, _, _ in heads.TABLE_3)
    for lang in ("ja", "en"):
        note = heads.presets(lang)[list(heads.PRESETS).index("mc38")]["note"]
        assert all(figure in note for figure in ("24.9", "25.4", "25.8"))


def test_every_label_of_a_trap_names_it():
    from transformer_lite.content import traps

    for lang in ("ja", "en"):
        labels = dict(zip(heads.PRESETS, (preset["label"] for preset in heads.presets(lang)), strict=True))
        for name in ("mc37", "mc38", "mc40", "mc34"):
            assert name.upper() in labels[name] and name.upper() in traps()
        assert "MC36" in labels["mc40"]


# --- The browser's numbers ---


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_browser_computes_numpys_heads_and_their_order(lang):
    x, projections = heads.example(lang)
    matrices = [matrix.tolist() for matrix in projections]
    cases = [state._asdict() for state in STATES]
    found = support.in_node(
        "head_explorer",
        f"((x, w) => {json.dumps(cases)}.map((s) => ({{ heads: bench.headsOf(x, w, s.n_heads, s.split),"
        " output: bench.putTogether(x, w, s.n_heads, s), difference: bench.orderDifference(x, w, s.n_heads, s) })))"
        f"({json.dumps(x.tolist())}, {json.dumps(matrices)})",
    )
    assert len(found) == len(STATES) == 48
    for state, one in zip(STATES, found, strict=True):
        expected = heads.example_heads(lang, state.n_heads, state.split)
        assert np.array([head["weights"] for head in one["heads"]]) == pytest.approx(expected.weights, abs=1e-12)
        assert np.array([head["output"] for head in one["heads"]]) == pytest.approx(expected.output, abs=1e-12)
        assert np.array(one["output"]) == pytest.approx(heads.put_together(lang, state), abs=1e-12), state
        assert one["difference"] == pytest.approx(heads.order_difference(lang, state), abs=1e-12)


def test_the_browsers_ledger_and_pieces_are_numpys():
    cases = list(itertools.product(heads.HEADS, heads.WIDTHS, heads.LENGTHS))
    found = support.in_node("head_explorer", f"{json.dumps(cases)}.map(([h, d, n]) => bench.ledger(h, d, n))")
    for case, one in zip(cases, found, strict=True):
        assert one == pytest.approx(heads.ledger(*case)._asdict())
    rows = [[h, head, row] for h in (2, 4) for head in range(h) for row in range(5)]
    parts = support.in_node("head_explorer", f"{rows}.map(([h, head, row]) => bench.piece(head, row, h, 5))")
    assert [tuple(part) for part in parts] == [heads.pieces(h)[head][row] for h, head, row in rows]


# --- The page ---


@pytest.fixture
def show(show_module):
    return lambda lang="ja", **options: show_module("head_explorer", heads.traits(lang), **options)


def now(page):
    return State(**page.evaluate(f"() => Object.fromEntries({json.dumps(State._fields)}.map((name) => [name, model.get(name)]))"))


def shown_weights(page):
    maps = page.locator(".tl-maps .tl-matrix").count()
    numbers = [float(text) for text in page.locator(".tl-maps .tl-cell").all_text_contents()]
    return np.array(numbers).reshape(maps, 5, 5)


def ledger_row(page, start):
    row = page.locator(".tl-ledger tbody tr", has=page.locator("th", has_text=start))
    return row.locator("td").all_text_contents()


def test_the_page_starts_blurred_and_shows_numpys_numbers(show):
    page = show("en")
    assert shown_weights(page) == pytest.approx(heads.example_heads("en", 1).weights, abs=0.0051)
    assert page.locator(".tl-ratio").all_text_contents() == ["="] * 10
    assert page.locator(".tl-maps tr.tl-on th").text_content() == "chased追いかけた"
    said = page.locator(".tl-said").text_content()
    assert all(f"{word} 0.24" in said for word in ("dog", "chased", "the", "cat"))


def test_the_keyboard_changes_h_and_everything_that_hangs_on_it(show):
    page = show("en")
    picture = page.locator(".tl-heads").screenshot()
    page.get_by_role("slider", name="number of heads h").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert now(page).n_heads == 4 and page.locator(".tl-heads").screenshot() != picture
    assert shown_weights(page) == pytest.approx(heads.example_heads("en", 4).weights, abs=0.0051)
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("slider", name="number of heads h").get_attribute("aria-valuetext") == "8"
    assert ledger_row(page, "width of a head") == ["512", "64", "÷ 8"]
    assert ledger_row(page, "divisor of the scores") == ["22.63", "8.00", "÷ 2.83"]
    assert ledger_row(page, "shape of Q, split") == ["(B, 1, n, 512)", "(B, 8, n, 64)", "≠"]
    assert ledger_row(page, "parameters of") == ["1,048,576", "1,048,576", "="]
    assert ledger_row(page, "number of weights") == ["262,144", "2,097,152", "× 8"]
    assert shown_weights(page).shape == (4, 5, 5) and "stays at 4 heads" in page.locator(".tl-legend").text_content()
    assert page.locator(".tl-bleu .tl-changed th").text_content() == "8"
    page.keyboard.press("End")
    assert now(page).n_heads == 32 and ledger_row(page, "number of weights")[2] == "× 32"


def test_the_sizes_are_controls(show):
    page = show("en")
    page.get_by_role("combobox", name="d_model").select_option("1024")
    page.get_by_role("combobox", name="number of tokens n").select_option("2048")
    expected = heads.ledger(1, 1024, 2048)
    assert ledger_row(page, "multiply-adds, QK")[0] == f"{expected.score_cost:,}"
    assert ledger_row(page, "multiply-adds, four")[1] == f"{expected.projection_cost:,}"


def test_the_chosen_query_is_marked_in_every_map_and_said(show):
    page = show("ja")
    page.locator(".tl-preset").first.click()
    assert "ヘッド 1 は 犬 0.93、ヘッド 2 は 猫 0.93" in page.locator(".tl-said").text_content()
    page.get_by_role("combobox", name="クエリ").select_option("1")
    assert page.locator(".tl-maps tr.tl-on th").all_text_contents() == ["がsubject"] * 4
    assert "「が」の行: ヘッド 1 は 犬 0.64" in page.locator(".tl-said").text_content()


@pytest.mark.parametrize("index", range(len(heads.PRESETS)))
def test_every_preset_shows_its_state_and_its_note(show, index):
    page = show("ja")
    page.locator(".tl-preset").nth(index).click()
    name, expected = list(heads.PRESETS.items())[index]
    assert now(page) == expected and page.locator(".tl-note").text_content() == heads.presets("ja")[index]["note"]
    small = min(expected.n_heads, 4)
    assert shown_weights(page) == pytest.approx(heads.example_heads("ja", small, expected.split).weights, abs=0.0051), name
    difference = heads.order_difference("ja", expected)
    text = page.locator(".tl-difference").text_content()
    if not expected.reverse:
        assert text == "順番はそのままです。"
    else:
        assert (f"最大 {difference:.2f} 変わります" in text) == (difference > 1e-9)
        assert ("変わりません" in text) == (difference <= 1e-9)
    page.get_by_role("button", name="最初に戻す").click()
    assert now(page) == heads.START


def test_a_reshape_alone_labels_its_rows_as_pieces(show):
    page = show("ja")
    page.locator(".tl-preset").nth(3).click()
    assert page.locator(".tl-maps tbody th").nth(0).text_content() == "犬 1/4dog"
    assert page.locator(".tl-maps tbody th").nth(4).text_content() == "が 1/4subject"
    assert page.get_by_role("combobox", name="クエリ").is_disabled() and page.locator(".tl-maps tr.tl-on").count() == 0


# --- The widget and its static twin ---


def test_what_the_browser_sends_arrives_and_a_wrong_h_is_refused():
    shown = explorer("head-explorer")("ja")
    shown.set_state({"n_heads": 8, "d_model": 512, "n": 5})
    title, table, text = shown.twin()
    assert shown.state == State(8, 512, 5) and title.startswith("ヘッドを分ける") and "ヘッド 4 は 追いかけた 0.93" in text
    figures = {row[0]: row[1:] for row in table}
    assert figures["重みの数 h·n²（メモリ）"] == ["25", "200", "× 8"]
    assert figures["スコアを割る数 √d_k"] == ["22.63", "8.00", "× 0.3536"]
    assert figures["重みの形"] == ["(B, 1, n, n)", "(B, 8, n, n)", "≠"] and figures["8"] == ["64", "4.92", "25.8"]
    with pytest.raises(Exception, match="n_heads"):
        shown.n_heads = 3
    shown.lang = "en"
    assert shown.tokens[2] == "chased" and shown.row == 2 and "head 4: chased 0.93" in shown.twin()[2]


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_picture_follows_the_state(lang):
    pictures = [heads.picture(lang, state) for state in (heads.START, *heads.PRESETS.values())]
    assert len({shown.png for shown in pictures}) == 3  # one head, four heads, four pieces
    assert ("does not change" if lang == "en" else "変わりません") in pictures[-1].text
