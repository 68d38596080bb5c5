"""The generator: its work against the formulas and a model that is counted, the browser's numbers, its page, its static twin."""

import itertools
import json

import explore_support as support
import looked
import numpy as np
import pytest

from transformer_lite.explore import explorer, generating, looking
from transformer_lite.explore.generating import State, work, work_so_far
from transformer_lite.explore.looking import MEAN

MODULE = ("looking", "generator")


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_STATIC", raising=False)


def text_of(lang="en"):
    return looking.stored(lang)


# --- The numbers ---


def test_the_work_of_all_passes_is_what_the_chapters_formulas_say():
    n = 7
    for m in (1, 2, 4, 10, 29, 81):
        plain, cached = work_so_far(m, n, False), work_so_far(m, n, True)
        assert plain.encoder == cached.encoder == 1 and plain.decoder == cached.decoder == m
        assert (plain.positions, cached.positions) == (m * (m + 1) // 2, m)
        assert (plain.repeated, cached.repeated) == (m * (m - 1) // 2, 0)
        assert (plain.scores, cached.scores) == (m * (m + 1) * (2 * m + 1) // 6, m * (m + 1) // 2)
        assert (plain.source_rows, cached.source_rows) == (m * n, n)
        assert (work(m, n, False).positions, work(m, n, True).positions) == (m, 1)
    assert work(1, n, False) == work(1, n, True), "the first pass has nothing to take from a cache"


def test_the_work_without_a_cache_is_what_the_shipped_translators_model_does():
    import torch

    from transformer_lite.lab.translating import shipped
    from transformer_lite.translation.translator import TextTranslator
    from transformer_lite.translation.vocabulary import EOS

    translator = TextTranslator.load(shipped())
    model, calls = translator.model, {"encoder": [], "decoder": []}
    for name in calls:
        getattr(model, name).register_forward_hook(lambda part, given, output, name=name: calls[name].append(output.shape[1]))
    ids = translator.source.encode(looking.EXAMPLE)
    written = model.generate(torch.tensor([[*ids, EOS]]), beam=1, cache=False)
    found = text_of()
    m, n = len(found.target), len(found.source)
    assert written.shape[1] == m and calls["encoder"] == [n]
    assert calls["decoder"] == [work(t, n, False).positions for t in range(1, m + 1)]


def test_it_starts_where_only_bos_has_gone_in_and_the_last_layer_shows_where_from():
    for lang in ("ja", "en"):
        found = text_of(lang)
        first = generating.start(found)
        assert first == State(1, 1, MEAN) and found.held[0].token == "BOS"
        row = generating.attention(found, first)
        assert found.source[int(row.argmax())].token == "dog" and row.max() > 0.9 and found.target[0].token == "犬"
        assert row == pytest.approx(found.cross[1].mean(axis=0)[0])


def test_just_before_the_verb_the_particle_stands_last_and_the_verb_is_looked_at():
    """What the chapter says of its second question."""
    found = text_of()
    row = generating.attention(found, generating.start(found)._replace(step=5))
    assert (found.held[4].token, found.target[4].token) == ("を", "追いかけた")
    assert found.source[int(row.argmax())].token == "chased" and row.max() > 0.9


def test_the_product_is_that_of_the_probabilities():
    found = text_of()
    assert generating.so_far(found, 1) == generating.probability(found, 1)
    assert generating.so_far(found, 3) == pytest.approx(found.likely[0][0][1] * found.likely[1][0][1] * found.likely[2][0][1])


# --- The browser's numbers ---


def test_the_browsers_work_is_numpys():
    cases = list(itertools.product((1, 2, 3, 10, 30, 81), (1, 6, 30), (False, True)))
    found = support.in_node(MODULE, f"{json.dumps(cases)}.map((c) => [bench.work(...c), bench.workSoFar(...c)])")
    for case, (one, total) in zip(cases, found, strict=True):
        assert one == work(*case)._asdict() and total == work_so_far(*case)._asdict(), case


def test_the_browsers_product_is_numpys():
    found = text_of()
    likely = json.dumps(looking.wire(found, ())["likely"])
    products = support.in_node(MODULE, f"[1, 2, 3, 4, 5, 6].map((step) => bench.productOf({likely}, step))")
    assert products == pytest.approx([generating.so_far(found, t) for t in range(1, 7)], abs=1e-4)


# --- The page ---


@pytest.fixture
def show(show_module):
    def open_page(lang="ja", found=None, **changed):
        page = show_module(MODULE, {**generating.traits(lang, found or looking.stored(lang), True), **changed})
        page.move = lambda name: page.locator(f".tl-nav .tl-{name}").click()
        return page

    return open_page


def state(page):
    return State(**page.evaluate("() => ({ step: model.get('step'), layer: model.get('layer'), head: model.get('head') })"))


def texts(page, selector):
    return page.locator(selector).all_text_contents()


def shown_attention(page):
    bars = [float(text) for text in texts(page, ".tl-attended .tl-percent")]
    cells = np.array([float(text) for text in texts(page, ".tl-attended .tl-cell")]).reshape(len(bars), -1)
    return np.array(bars), cells


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_every_step_layer_and_head_shows_numpys_numbers_and_says_pythons_sentence(show, lang):
    page, found = show(lang), looking.stored(lang)
    for step, layer, head in itertools.product((1, 3, 6), (0, 1), (MEAN, 0, 3)):
        now = State(step, layer, head)
        page.evaluate("(now) => { for (const name in now) model.set(name, now[name]); }", now._asdict())
        bars, cells = shown_attention(page)
        assert bars == pytest.approx(generating.attention(found, now), abs=0.0051)
        assert cells == pytest.approx(found.cross[layer, :, step - 1].T, abs=0.0051)
        assert page.locator(".tl-said").text_content() == generating.sentence(lang, found, now)
        widths = page.locator(".tl-attended .tl-bar > span").evaluate_all(
            "(bars) => bars.map((bar) => parseFloat(bar.style.width))"
        )
        assert widths == pytest.approx(100 * generating.attention(found, now), abs=0.02)
        best = int(generating.attention(found, now).argmax())
        marked = page.locator(".tl-chip").evaluate_all("(chips) => chips.map((chip) => chip.classList.contains('tl-best'))")
        assert [i for i, on in enumerate(marked) if on] == [best]
        assert page.locator(".tl-attended tbody tr.tl-best").count() == 1
        assert page.locator(".tl-attended .tl-cell.tl-at").count() == (6 if head != MEAN else 0)


def test_the_strip_grows_and_its_last_row_is_the_one_that_is_read(show):
    page = show("en")
    for t in range(1, 7):
        chips = texts(page, ".tl-strip:nth-of-type(3) .tl-chip")
        assert chips[:-1] == [f"{token.token}{token.gloss}" for token in text_of().held[:t]]
        assert chips[-1] == f"{text_of().target[t - 1].token}{text_of().target[t - 1].gloss}"
        assert texts(page, ".tl-reading") == chips[-2:-1] and texts(page, ".tl-chip.tl-next") == chips[-1:]
        product = np.prod([likely[0][1] for likely in text_of().likely[:t]])
        assert page.locator(".tl-product").text_content().endswith(f" {product:.3f}")
        if t < 6:
            page.move("next")
    assert page.locator(".tl-said").text_content().endswith("EOS is chosen: the sentence ends here.")


def test_the_five_most_probable_tokens_have_bars_numbers_and_glosses(show):
    page, found = show("en"), text_of()
    rows = page.locator(".tl-probable tbody tr")
    assert rows.count() == 5
    for i, (token, p) in enumerate(found.likely[0]):
        assert rows.nth(i).locator("td").all_text_contents() == [f"{token.token}{token.gloss}", f"{p:.3f}"]
        assert rows.nth(i).locator(".tl-bar > span").evaluate("(bar) => parseFloat(bar.style.width)") == pytest.approx(
            100 * p, abs=0.02
        )
    assert texts(page, ".tl-chosen td")[0] == "犬dog" and all(token.gloss for token, _ in found.likely[0])


def test_the_buttons_and_the_keyboard_step(show):
    page = show("en")
    page.get_by_role("button", name="Next").focus()
    for key, step in (
        ("ArrowRight", 2),
        ("ArrowRight", 3),
        ("ArrowLeft", 2),
        ("End", 6),
        ("ArrowRight", 6),
        ("Home", 1),
        ("ArrowLeft", 1),
    ):
        page.keyboard.press(key)
        assert state(page).step == step, key
    page.keyboard.press("Enter")
    assert state(page).step == 2 and page.get_by_role("slider", name="pass").get_attribute("aria-valuetext") == "2 of 6"
    page.get_by_role("slider", name="pass").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert state(page).step == 4
    for name, step in (("Back", 3), ("Last", 6), ("First", 1)):
        page.get_by_role("button", name=name, exact=True).click()
        assert state(page).step == step
    assert page.get_by_role("button", name="First").get_attribute("aria-disabled") == "true"
    assert page.get_by_role("button", name="Last").get_attribute("aria-disabled") == "false"
    picture = page.locator(".tl-stage").screenshot()
    page.get_by_role("combobox", name="head").select_option(label="3")
    page.get_by_role("combobox", name="layer").select_option(label="1")
    assert state(page) == State(1, 0, 2) and page.locator(".tl-stage").screenshot() != picture
    assert "layer 1; bars: head 3" in page.locator(".tl-attended caption").text_content()


def work_table(page):
    rows = page.locator(".tl-work tbody tr")
    return {rows.nth(i).locator("th").text_content(): rows.nth(i).locator("td").all_text_contents() for i in range(rows.count())}


def test_the_counter_shows_the_work_with_and_without_a_cache(show):
    page = show("en")
    assert set(map(tuple, work_table(page).values())) == {("1", "1", "1", "1"), ("0", "0", "0", "0"), ("6", "6", "6", "6")}
    page.move("last")
    shown = work_table(page)
    names = {name: generating._say(name, "en") for name in generating.Work._fields}
    for name, said in names.items():
        figures = [getattr(of(6, 6, cached), name) for of in (work, work_so_far) for cached in (False, True)]
        assert shown[said] == [f"{figure:,}" for figure in figures], name
    assert shown[names["positions"]] == ["6", "1", "21", "6"] and shown[names["encoder"]] == ["0", "0", "1", "1"]
    differs = [name for name in names if page.locator(f".tl-cost-{name}.tl-differs").count()]
    assert differs == ["positions", "repeated", "source_rows", "scores"]


def test_the_triangles_show_what_is_computed_again_and_what_is_kept(show):
    page = show("en")
    page.move("next")
    page.move("next")
    counted = page.evaluate(
        """() => [...document.querySelectorAll('.tl-triangle')].map((picture) => [...picture.children].map((row) => ({
          future: row.classList.contains('tl-future'), now: row.classList.contains('tl-now'),
          squares: Object.fromEntries([...row.children]
            .map((path) => [path.getAttribute('class'), path.getAttribute('d').split('M').length - 1])) })))"""
    )
    for cached, rows in zip((False, True), counted, strict=True):
        assert [row["future"] for row in rows] == [False] * 3 + [True] * 3 and [row["now"] for row in rows].index(True) == 2
        for t, row in enumerate(rows, 1):
            one = work(t, 6, cached)
            assert row["squares"].get("tl-again", 0) == one.repeated and row["squares"]["tl-new"] == one.positions - one.repeated
            assert row["squares"].get("tl-kept", 0) == (t - 1 if cached else 0)
    names = page.locator(".tl-triangle").evaluate_all("(all) => all.map((one) => one.getAttribute('aria-label'))")
    assert names == ["pass 3 computes 3 positions without a cache, 1 with one"] * 2


def test_a_translation_that_was_cut_off_says_so_and_a_long_one_fits(show):
    raw = looked.made_up("a b c", n_target=4 + 50 + 1)
    page = show("ja", looking.sentence(raw, "a b c", "ja"))
    page.move("last")
    assert state(page).step == 54 and "打ち切り" in page.locator(".tl-said").text_content()
    assert work_table(page)[generating._say("positions", "ja")] == ["54", "1", "1,485", "54"]
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")


def test_a_shorter_sentence_while_standing_at_the_end_of_a_long_one_goes_to_its_end(show):
    page = show("en", step=6)
    short = looking.wire(looking.sentence(looked.made_up("a b", n_target=2, layers=1, heads=1), "a b", "en"), generating.SHOWS)
    page.evaluate("(looked) => { model.set('head', 3); model.set('looked', looked); }", short)
    assert page.get_by_role("slider", name="pass").get_attribute("aria-valuetext") == "2 of 2"
    assert shown_attention(page)[1].shape == (3, 1)


# --- The widget and its static twin ---


def test_what_the_browser_sends_arrives_and_a_new_sentence_begins_at_its_first_step():
    shown = explorer("generator")("en", look=looked.made_up)
    shown.set_state({"step": 3, "layer": 0, "head": 2})
    assert shown.state == State(3, 0, 2) and "Pass 3." in shown.twin()[2]
    shown.set_state({"sentence": "one two", "asked": 1})
    assert shown.state == State(1, 1, MEAN) and shown.twin()[2].startswith("Pass 1. Only BOS")
    with pytest.raises(Exception, match="step"):
        shown.step = 0
    assert set(shown.looked) >= {"cross"} and "encoder" not in shown.looked, "what is not shown is not sent"


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_twin_has_a_row_for_each_pass_and_the_picture_follows_the_state(lang):
    found = looking.stored(lang)
    title, table, text = generating.twin(lang, found, generating.start(found))
    assert found.text in title and [row[0] for row in table[1:]] == ["1", "2", "3", "4", "5", "6"]
    assert table[5][1] == "BOS 犬 が 猫 を" and table[5][3] == "0.895" and table[5][-2:] == ["5 / 15", "1 / 5"]
    assert "chased" in table[5][4] and "0.99" in table[5][4] and "0.95" in text
    pictures = {generating.picture(lang, found, State(step, 1, MEAN)).png for step in (1, 2, 6)}
    assert len(pictures) == 3 and generating.picture(lang, found, State(1, 0, MEAN)).png not in pictures
