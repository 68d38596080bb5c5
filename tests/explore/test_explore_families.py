"""The family switch: its numbers against the course's models, the browser's patterns against them, its page, its static twin."""

import itertools
import json

import explore_support as support
import numpy as np
import pytest

from transformer_lite.explore import explorer, families
from transformer_lite.explore.families import HEADS, LOSSES, MASKS, PRESETS, TOKENS, Setup

SETUPS = [Setup(*switches) for switches in itertools.product(TOKENS, MASKS, HEADS, LOSSES, range(5))]
TRIANGLE = np.tri(5, k=-1, dtype=bool)


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_STATIC", raising=False)


# --- The numbers ---


def test_the_families_see_what_the_chapter_says():
    assert (families.influence(PRESETS["gpt"]) == TRIANGLE).all()
    original = families.influence(PRESETS["original"])
    assert original.shape == (5, 10) and original[:, :5].all() and (original[:, 5:] == TRIANGLE).all()
    for hidden in range(5):
        bert = families.influence(PRESETS["bert"]._replace(at=hidden))
        assert not bert[:, hidden].any() and np.delete(bert, hidden, axis=1).all()
    assert families.influence(PRESETS["vit"]).tolist() == [[True] * 4]
    assert families.influence(PRESETS["leak"]).all()
    assert not families.influence(PRESETS["blind_cls"]).any()


def test_the_models_of_the_course_see_the_same():
    """The torch models with random weights, a token replaced by another, as chapter 12 does it."""
    import torch

    from transformer_lite.model import Transformer, TransformerConfig
    from transformer_lite.model.families import (
        DecoderOnly,
        DecoderOnlyConfig,
        EncoderOnly,
        EncoderOnlyConfig,
        VisionTransformer,
        VisionTransformerConfig,
    )

    torch.manual_seed(1)
    sizes = {"d_model": 16, "n_heads": 2, "d_ff": 32, "n_layers": 2, "dropout": 0.0}
    bert = EncoderOnly(EncoderOnlyConfig(20, **sizes)).eval()
    gpt = DecoderOnly(DecoderOnlyConfig(20, **sizes)).eval()
    original = Transformer(TransformerConfig(20, **sizes)).eval()
    vit = VisionTransformer(VisionTransformerConfig(3, image_size=4, patch_size=2, channels=1, **sizes)).eval()
    start = torch.tensor([1])

    def fill_in(ids, hidden=2):
        return bert(torch.cat([torch.tensor([4]), ids]).index_fill(0, torch.tensor([hidden + 1]), 3)[None])[0, 1:]

    def write_on(ids):
        return gpt(torch.cat([start, ids[:-1]])[None])[0]

    def translate(ids):
        return original(ids[None, :5], torch.cat([start, ids[5:-1]])[None])[0]

    def classify(ids):  # two by two patches of 2 × 2 pixels, each of one shade
        return vit(ids.float().view(1, 1, 2, 2).repeat_interleave(2, 2).repeat_interleave(2, 3))

    for name, model, n in (("bert", fill_in, 5), ("gpt", write_on, 5), ("original", translate, 10), ("vit", classify, 4)):
        ids = torch.arange(5, 5 + n)
        with torch.no_grad():
            still, columns = model(ids), []
            for j in range(n):
                moved = model(ids.index_fill(0, torch.tensor([j]), 19))
                columns.append(((moved - still).abs().amax(dim=-1) > 1e-6).numpy())
        assert (np.stack(columns, axis=1) == families.influence(PRESETS[name])).all(), name


def test_each_preset_is_what_it_is_called():
    assert {name: families.verdict(setup) for name, setup in PRESETS.items()} == {name: name for name in PRESETS}
    assert {families.verdict(setup) for setup in SETUPS} == set(families.VERDICTS)
    assert {families.writes(setup) for setup in SETUPS} == set(families.WRITES)
    assert {kind for setup in SETUPS for row in families.kinds(setup) for kind in row} == set(families.KINDS)


def test_a_family_has_one_combination():
    """No other switches give a model with a name, and every sound one is legal: it marks something, and nothing leaks."""
    named = {}
    for setup in SETUPS:
        named.setdefault(families.verdict(setup), set()).add(setup[:4])
    for name in families.FAMILIES:
        assert named[name] == {PRESETS[name][:4]}
    for setup in SETUPS:
        if families.verdict(setup) in families.SOUND:
            assert any(families.counted(setup)) and families.leak_kind(setup) in ("no", "class")


def test_what_is_marked_what_leaks_and_what_can_write():
    def found(name):
        setup = PRESETS[name]
        return sum(families.counted(setup)), families.leaks(setup), families.leak_kind(setup), families.writes(setup)

    assert {name: found(name) for name in PRESETS} == {
        "bert": (1, 0, "no", "fills"),
        "gpt": (5, 0, "no", "yes"),
        "original": (5, 0, "no", "yes"),
        "vit": (1, 0, "class", "class_only"),
        "classifier": (1, 0, "class", "class_only"),
        "leak": (5, 5, "yes", "copies"),
        "left_only": (1, 0, "no", "fills_left"),
        "blind_cls": (1, 0, "class", "class_only"),
    }
    left = families.kinds(PRESETS["left_only"])[2]
    assert left == ["used", "used", "mask", "", ""]  # legal, but only the left is seen
    assert families.counted(PRESETS["bert"]) == [False, False, True, False, False]
    nothing = Setup("words", "none", "class", "next")
    assert families.leak_kind(nothing) == "nothing" and not any(families.counted(nothing))


def test_a_leak_is_nothing_but_a_marked_word_that_moves_its_own_prediction():
    for setup in SETUPS:
        moved, marked = families.influence(setup), families.counted(setup)
        own = moved[:, families.n_source(setup) :]
        expected = sum(bool(own[k, k]) for k in range(len(own)) if marked[k]) if setup.head == "vocabulary" else 0
        assert families.leaks(setup) == expected
        assert (expected > 0) == (families.verdict(setup) == "leak")


def test_the_surprise_and_the_answer_are_so():
    """Of the three switches, only the mask makes a writer of the first state; the other two stop the leak or the loss."""
    assert PRESETS["leak"] == families.START and families.leaks(families.START) == 5
    makes = {
        name: {families.writes(families.START._replace(**{name: value})) for value in values}
        for name, values in (("mask", MASKS[1:]), ("head", HEADS[1:]), ("loss", ("hidden", "class")))
    }
    assert makes["mask"] == {"yes"} and "yes" not in makes["head"] | makes["loss"]
    assert families.verdict(families.START._replace(loss="hidden")) == "bert"
    assert not any(families.counted(families.START._replace(head="class")))
    for lang in ("ja", "en"):
        assert "①" in families.words(lang)["answer"]


def test_what_the_chapter_asks_is_answered():
    """1: BERT's matrix is full, [MASK] included. 2: two switches make it write. 3: causal MLM loses both strengths."""
    assert all(kind for row in families.kinds(PRESETS["bert"]) for kind in row)
    changed = {name for name in Setup._fields if getattr(PRESETS["bert"], name) != getattr(PRESETS["gpt"], name)}
    assert changed == {"mask", "loss"}
    assert families.verdict(PRESETS["gpt"]._replace(loss="hidden")) == "left_only"


def test_the_traps_that_verdicts_name_are_those_of_the_catalogue():
    from transformer_lite.content import traps

    for lang in ("ja", "en"):
        told = families.trap_names(lang)
        assert set(told) == {"leak", "left_only", "blind_cls"} and not set(told) & set(families.SOUND)
        for one in told.values():
            assert one["title"] == traps()[one["code"]].title(lang)


# --- The browser's numbers ---


def test_the_browsers_patterns_are_what_the_numbers_show_for_every_combination():
    found = support.in_node(
        "family_switch",
        f"{json.dumps([setup._asdict() for setup in SETUPS])}.map((setup) => ({{ moved: bench.influence(setup),"
        " kinds: bench.kinds(setup), verdict: bench.verdict(setup), counted: bench.counted(setup), leaks: bench.leaks(setup),"
        " leak: bench.leakKind(setup), writes: bench.writes(setup), front: bench.front(setup), read: bench.readAt(setup),"
        " hidden: bench.hidden(setup), sizes: bench.sizes(setup) }))",
    )
    assert len(found) == len(SETUPS) == 270
    for setup, one in zip(SETUPS, found, strict=True):
        assert one == {
            "moved": families.influence(setup).tolist(),
            "kinds": families.kinds(setup),
            "verdict": families.verdict(setup),
            "counted": families.counted(setup),
            "leaks": families.leaks(setup),
            "leak": families.leak_kind(setup),
            "writes": families.writes(setup),
            "front": families.front(setup),
            "read": families.read_at(setup),
            "hidden": families.hidden(setup),
            "sizes": {"own": families.n_tokens(setup), "source": families.n_source(setup)},
        }, setup


# --- The page ---


@pytest.fixture
def show(show_module):
    return lambda lang="ja", setup=families.START, **options: show_module(
        "family_switch", families.traits(lang, setup), **options
    )


def switched(page):
    return Setup(*(page.evaluate(f"() => model.get('{name}')") for name in Setup._fields))


SIGNS = {"": "", "●": "used", "M": "mask", "!": "answer", "→": "later"}


def page_agrees(page, lang):
    """The page shows what NumPy computes for its switches, and says what the twin says."""
    setup = switched(page)
    kinds, marked = families.kinds(setup), families.counted(setup)
    cells = page.locator(".tl-signs .tl-cell").all_text_contents()
    assert [SIGNS[text] for text in cells] == [kind for row in kinds for kind in row]
    assert [text == "✓" for text in page.locator(".tl-signs td.tl-more").all_text_contents()] == marked
    marks = ["!" if "answer" in row else "✓" if yes else "–" for row, yes in zip(kinds, marked, strict=True)]
    assert page.locator(".tl-mark text").all_text_contents() == marks
    row = 0 if setup.head == "class" else families.chosen(setup)
    from_position = families.read_at(setup)[row]
    ends = "(all) => all.map((one) => ['x1', 'x2'].map((end) => Math.floor(one.getAttribute(end) / 62)))"  # columns
    seen = [int(q) for q in np.flatnonzero(families.allowed(setup)[from_position])]
    assert page.locator(".tl-line:not(.tl-read)").evaluate_all(ends) == [[q, from_position] for q in seen]
    read = [[i + 1, from_position] for i in range(families.n_source(setup))]
    assert page.locator(".tl-line.tl-read").evaluate_all(ends) == read
    assert page.locator("line.tl-answer").count() == ("answer" in kinds[row])
    said = dict(zip(("name", "counted", "leak", "writes", "good"), families.facts(lang, setup), strict=True))
    assert page.locator(".tl-is strong").text_content() == said.pop("name")[1]
    for key, (heading, text) in said.items():
        assert page.locator(f".tl-says-{key}").text_content() == text and heading in page.locator("dt").all_text_contents()
    assert page.locator(".tl-why").text_content() == families.words(lang)[f"why_{families.verdict(setup)}"]
    assert page.locator(".tl-view").text_content() == families.view(lang, setup)
    lit = "tl-lit" in page.locator(".tl-is").get_attribute("class")
    assert lit == (families.verdict(setup) not in families.SOUND)


def test_the_page_starts_in_its_surprise_and_the_mask_makes_it_write(show):
    page = show("en")
    page_agrees(page, "en")
    assert page.locator(".tl-mark.tl-leaks").count() == 5 and "(BL1)" in page.locator(".tl-trap small").text_content()
    assert page.locator(".tl-says-writes").text_content().startswith("No:")
    picture = page.locator(".tl-flow").screenshot()
    page.get_by_role("radio", name="none (everything)").focus()
    page.keyboard.press("ArrowDown")
    assert switched(page) == PRESETS["gpt"]
    page_agrees(page, "en")
    assert page.locator(".tl-is").text_content() == "✓Model: GPT-style"
    assert page.locator(".tl-says-writes").text_content().startswith("Yes:")
    assert page.locator(".tl-trap").text_content() == "" and page.locator(".tl-flow").screenshot() != picture


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_every_combination_shows_numpys_matrix(show, lang):
    page = show(lang)
    for i, setup in enumerate(setup for setup in SETUPS if setup.at == 0):
        page.evaluate(
            "(state) => { for (const [name, value] of Object.entries(state)) model.set(name, value); }",
            setup._replace(at=i % 5)._asdict(),
        )
        if i % 2 == (lang == "ja"):
            page_agrees(page, lang)


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_every_preset_is_switched_and_named(show, lang):
    page = show(lang, PRESETS["bert"])
    assert page.locator(".tl-preset").count() == len(PRESETS)
    for i, setup in enumerate(PRESETS.values()):
        page.locator(".tl-preset").nth(i).click()
        assert switched(page) == setup
        checked = page.locator("input:checked").evaluate_all("(all) => all.map((one) => one.value)")
        assert checked == [setup.mask, setup.head, setup.loss, setup.tokens]
        page_agrees(page, lang)
    page.get_by_role("button", name=families.words(lang)["reset"]).click()
    assert switched(page) == PRESETS["bert"]


def test_the_keyboard_and_the_pointer_choose_a_word_which_mlm_hides(show):
    page = show("en", PRESETS["bert"])
    assert page.get_by_role("cell", name="the prediction of dog sees the place of chased, where [MASK] stands").count() == 1
    flow = page.locator(".tl-flow")
    flow.focus()
    page.keyboard.press("ArrowRight")
    assert switched(page).at == 3
    page_agrees(page, "en")
    assert page.locator(".tl-masked .tl-word").text_content() == "[MASK]"
    assert page.locator(".tl-masked .tl-small").text_content() == "(the)"
    assert flow.evaluate("(one) => document.activeElement === one")
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")  # the edge holds
    assert switched(page).at == 4
    page.keyboard.press("Home")
    assert switched(page).at == 0
    page.locator(".tl-hit[data-word='2']").first.click()
    assert switched(page).at == 2
    page_agrees(page, "en")
    page.get_by_role("radio", name="patches of an image").check()
    page.evaluate("() => model.set('at', 4)")  # there are only four patches
    page_agrees(page, "en")
    flow.focus()
    page.keyboard.press("ArrowLeft")
    assert switched(page).at == 2


def test_a_prediction_stands_above_the_position_where_it_is_read(show):
    page = show("ja", PRESETS["gpt"])

    def places(selector):
        return page.locator(selector).evaluate_all("(all) => all.map((one) => one.getAttribute('x'))")

    inputs = places(".tl-box:not(.tl-prediction) > rect:first-child")
    assert places(".tl-prediction > rect") == inputs[:5]  # 犬 is read at BOS: the right shift
    page.locator(".tl-preset").first.click()
    assert places(".tl-prediction > rect") == inputs[1:]  # BERT's at the word's own place
    page.locator(".tl-preset").nth(3).click()
    assert places(".tl-prediction > rect") == inputs[:1]  # ViT's at [CLS] alone
    words = page.locator(".tl-box:not(.tl-prediction) .tl-word").all_text_contents()
    assert words == ["[CLS]", "パッチ 1", "パッチ 2", "パッチ 3", "パッチ 4"]


def test_the_original_reads_english_and_writes_japanese(show):
    page = show("en", PRESETS["original"])
    assert page.locator(".tl-box.tl-read .tl-word").all_text_contents() == list(families.SENTENCES["en"])
    assert page.locator(".tl-signs .tl-groups th").all_text_contents() == ["source", "target"]
    row = page.locator(".tl-signs tbody .tl-token").first
    assert row.get_attribute("lang") == "ja" and row.text_content() == "犬dog"
    heads = page.locator(".tl-signs thead .tl-token")
    assert heads.nth(1).get_attribute("lang") == "en" and heads.nth(1).locator(".tl-gloss").get_attribute("lang") == "ja"


def test_the_headings_of_the_facts_stay_whole_under_jupyterlabs_style(show):
    page = show("en")
    page.add_style_tag(content="body dl dt { float: left; width: 20%; }")  # as JupyterLab styles what a cell puts out
    heights = page.locator(".tl-facts dt").evaluate_all("(all) => all.map((one) => one.clientHeight)")
    assert len(heights) == 4 and max(heights) < 25


# --- The widget and its static twin ---


def test_what_the_browser_sends_arrives_and_an_unknown_switch_is_refused():
    bench = explorer("family-switch")("ja")
    bench.set_state({"loss": "hidden", "at": 4})
    title, table, text = bench.twin()
    assert bench.setup == PRESETS["bert"]._replace(at=4) and title.startswith("マスク・ヘッド・損失")
    assert "モデル: BERT 型。" in text and "5 個の予測のうち 1 個。" in text and "「犬」「が」「猫」「を」" in text
    assert table[5] == ["追いかけた chased", "1", "1", "1", "1", "M", "✓"] and table[1][-1] == "–"
    for name, value in (("mask", "padding"), ("head", "words"), ("loss", "NSP"), ("tokens", "pixels"), ("at", 5)):
        with pytest.raises(Exception, match=name):
            setattr(bench, name, value)
    bench.lang = "en"
    assert bench.strings["reset"] == "Reset" and "Model: BERT-style." in bench.twin()[2]


def test_it_can_start_elsewhere_and_says_what_it_cannot():
    bench = explorer("family-switch")("en", mask="causal", at=1)
    assert bench.setup == PRESETS["gpt"]._replace(at=1) and bench.initial["mask"] == "causal"
    for wrong, told in (
        ({"mask": "padding"}, "mask must be one of none, causal"),
        ({"at": 5}, "at must be one of 0 to 4; got 5"),
        ({"at": 2.0}, "at must be one of 0 to 4; got 2.0"),
    ):
        with pytest.raises(ValueError, match=told):
            explorer("family-switch")("en", **wrong)
    with pytest.raises(ValueError, match="language"):
        explorer("family-switch")("fr")


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_picture_and_the_twin_follow_the_switches(lang):
    pictures = {name: families.picture(lang, setup) for name, setup in PRESETS.items()}
    assert len({shown.png for shown in pictures.values()}) == len(PRESETS)
    for name, shown in pictures.items():
        setup = PRESETS[name]
        assert [[cell == "1" for cell in row[1:-1]] for row in shown.table[1:]] == families.influence(setup).tolist()
        assert [row[-1] == "✓" for row in shown.table[1:]] == families.counted(setup)
        assert families.words(lang)[f"why_{name}"].rstrip("。.") in shown.text
        assert ".." not in shown.text and "。。" not in shown.text
    assert families.picture(lang, Setup(head="none")).table[1][-1] == "–"
