"""What holds for every explorer that draws in the browser: keys, names, speech, themes, widths, languages, its own style.

Each is opened as the learner's browser gets it: the widget's own module with the widget's own state. What is particular to one
stands in the table `EXPLORERS`; what only one can do is tested in a file of its own.
"""

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import explore_support as support
import looked
import pytest
from playwright.sync_api import expect

from transformer_lite.equations import causal_mask
from transformer_lite.explore import (
    blocks,
    crossover,
    explorer,
    explorers,
    families,
    heads,
    ledger,
    masks,
    norms,
    path_race,
    positions,
)
from transformer_lite.explore import wiring as wirings


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_STATIC", raising=False)


# --- What is particular to each ---


def as_it_opens(page):
    yield


def presets(*numbers):
    """Ways to arrange a page: each of these presets, one after the other."""

    def arranged(page):
        for number in numbers:
            page.locator(".tl-preset").nth(number).click()
            yield

    return arranged


def numbers_of(named, *names):
    return [list(named).index(name) for name in names]


def click(selector):
    return lambda page: page.locator(selector).first.click()


def press(selector, key):
    return lambda page: page.locator(selector).press(key)


@dataclass(frozen=True)
class Explorer:
    """What the checks must know of one explorer."""

    kind: str  # the class of its root, with which its own style begins
    controls: int  # so many take the focus
    pressed: tuple[str, ...]  # in these, keys are pressed
    names: tuple[tuple, ...]  # (role, name) is there once, (role, name, n) n times; a pattern need not be the whole name
    captions: int  # so many tables, each with its caption
    act: Callable[[Any], Any]  # after which
    spoken: str | re.Pattern  # is spoken
    labels: str  # what follows the theme's ink
    n_labels: int  # more than so many
    moves: dict[str, Any]  # a change of the model that is seen
    given: dict[str, Any] = field(default_factory=dict)  # what else the model holds
    # How it fits
    widths: tuple[int, ...] = (380, 600, 900)
    opened: Callable[[str], list[dict]] = lambda lang: [{}]  # with these options, one page each
    arranged: Callable[[Any], Any] = as_it_opens
    parts: tuple[str, ...] = ()  # none sticks out, and none overlaps another; from the left to the right, from above to below
    n_parts: int = 0
    fits: dict[str, int] = field(default_factory=dict)  # what needs no scrolling, from this width on
    inside: str = "true"  # JavaScript that says whether the words fit into their places
    # What only some have
    style: str = ""  # a file of its own, with
    n_selectors: int = 20  # more than so many
    forced: dict[str, tuple[str, str]] = field(
        default_factory=dict
    )  # what keeps its colour in forced colours: property and colour
    chosen_twice: int = 0  # so many radio buttons are chosen where it stands twice on a page


WORDS_IN_BOXES = """[...document.querySelectorAll("{}")].every((one) => {{
  const [word, box] = [".tl-word", "rect"].map((part) => one.querySelector(part).getBBox());
  return word.x >= box.x && word.x + word.width <= box.x + box.width; }})"""


def both_views(page):
    for view in ("table", "layer"):
        page.locator(f".tl-view-{view}").check()
        page.locator(".tl-double-d_model").click()
        yield
        page.evaluate("() => model.set('d_model', 1024)")


def with_the_widest_word(page):
    page.locator(".tl-product").evaluate("(one) => (one.open = true)")
    page.get_by_role("combobox").select_option("dog-ja")
    yield


def at_the_last_pass(page):
    page.locator(".tl-nav .tl-next").press("End")
    yield


LONG = {"look": lambda text: looked.made_up(text, n_target=29), "text": " ".join(f"word{i}" for i in range(24))}
EVERY_CONTROL = (support.FOCUSABLE,)

EXPLORERS = {
    "qkv-bench": Explorer(
        kind="tl-bench",
        controls=1 + 1 + 3 + 4 + 1,  # the plane, the answer, turning and stretching and scaling, four presets, reset
        pressed=(".tl-movable", ".tl-length", ".tl-preset >> nth=0"),
        names=(
            ("slider", "direction of q"), ("slider", "length of q"), ("checkbox", re.compile("^divide by √d_k")),
            ("img", re.compile("^Values")), ("application", re.compile("^Query q and the keys")),
        ),
        captions=1,
        act=press(".tl-movable", "ArrowUp"),
        spoken="−0.30",
        labels=".tl-plane text, .tl-root td",
        n_labels=20,
        moves={"query": [0, 0]},
        parts=(".tl-keys", ".tl-values", ".tl-side", ".tl-numbers"),
        n_parts=4,
    ),
    "path-race": Explorer(
        kind="tl-race",
        controls=16,
        pressed=(".tl-preset >> nth=0", ".tl-target"),
        names=(
            ("slider", "source i"), ("slider", "target j"), ("slider", "words n"), ("slider", "time (steps)"),
            ("combobox", "kernel k"), ("application", re.compile("^Choose source and target")),
            ("img", re.compile("^Computed when, self-attention")),
        ),
        captions=1,
        act=lambda page: page.locator(".tl-target").fill("9"),
        spoken="word 9",
        labels=".tl-plane text, .tl-root td, .tl-root p, .tl-place, .tl-work",
        n_labels=100,
        moves={"target": 9},
        widths=(380, 600, 840),
        opened=lambda lang: [asdict(path_race.PRESETS["sentence"])],
        fits={".tl-numbers": 840},
        inside="""((words) => words.length === 5 && words.slice(1).every(({ x }, i) => words[i].x + words[i].width < x))(
          [...document.querySelectorAll(".tl-strip text")].map((one) => one.getBBox()))""",
        style="path_race.css",
    ),
    "wiring-board": Explorer(
        kind="tl-wiring",
        controls=9 + 1 + 2 + 1 + 1 + len(wirings.PRESETS) + 1,
        pressed=(".tl-lines", ".tl-goal", ".tl-query_from >> nth=0", ".tl-preset >> nth=0"),
        names=(
            ("combobox", "Wanted"), ("combobox", "Translating"), ("checkbox", "causal mask"), ("radiogroup", "Q comes from"),
            ("radio", re.compile(""), 9), ("application", re.compile("^Query → key: Weights of the query “追いかけた”")),
        ),
        captions=3,
        act=click(".tl-preset"),
        spoken="cross-attention",
        labels=".tl-root th, .tl-lines text, .tl-wires text:not(.tl-socket), .tl-verdict p",
        n_labels=40,
        moves={"query_from": "y"},
        arranged=presets(0, 2),
        parts=(".tl-board", ".tl-map", ".tl-shown-weights", ".tl-verdict", ".tl-thin"),
        n_parts=5,
        chosen_twice=6,
    ),
    "mask-painter": Explorer(
        kind="tl-masks",
        controls=25 + 2 + 1 + 1 + 1 + len(masks.PRESETS) + 1,
        pressed=(".tl-paint button[tabindex='0']", ".tl-way", ".tl-preset >> nth=0"),
        names=(
            ("radio", "1"), ("radio", "2, stacked"), ("combobox", "Hidden by"), ("checkbox", "add two PAD"),
            ("group", "Leak lights"), ("button", "query the to key cat: may attend"),
        ),
        captions=3,
        act=click('button[data-row="0"][data-column="4"]'),
        spoken="No token sees",
        labels=".tl-root th, .tl-root td:not(.tl-cell), .tl-paint button:not(.tl-may), .tl-note",
        n_labels=20,
        moves={"mask": causal_mask(5).tolist()},
        arranged=presets(len(masks.PRESETS) - 1),  # with PAD: the widest
        parts=(".tl-matrix",),
        n_parts=3,
    ),
    "head-explorer": Explorer(
        kind="tl-heads",
        controls=1 + 3 + 1 + 2 + 2 + len(heads.PRESETS) + 1,
        pressed=(".tl-h", ".tl-width", ".tl-reverse", ".tl-preset >> nth=0"),
        names=(
            ("slider", "number of heads h"), ("combobox", "d_model"), ("combobox", "number of tokens n"), ("combobox", "query"),
            ("combobox", "Split"), ("combobox", "Put together"), ("checkbox", "reverse the heads' order"),
            ("group", "The order test"),
        ),
        captions=3,
        act=click(".tl-preset"),
        spoken="head 1: dog 0.93",
        labels=".tl-root th, .tl-root td:not(.tl-cell), .tl-note, .tl-said",
        n_labels=60,
        moves={"n_heads": 4},
        arranged=presets(0, 3),
        parts=(".tl-heads table",),
        n_parts=6,
    ),
    "positional-encoding": Explorer(
        kind="tl-positions",
        controls=16,
        pressed=(".tl-preset >> nth=0", ".tl-pe-map"),
        names=(
            ("slider", "offset k"), ("slider", "positions n"), ("combobox", "d_model"), ("combobox", "formula"),
            ("checkbox", "add positional encodings"), ("application", re.compile("^Position × component")),
            ("img", re.compile("^Pair 40")),
        ),
        captions=2,
        act=press(".tl-pe-map", "ArrowRight"),
        spoken="pair 41",
        labels=".tl-plane text, .tl-root td, .tl-root p",
        n_labels=30,
        moves={"position": 3},
        widths=(380, 600, 840),
        opened=lambda lang: [asdict(positions.PRESETS["PE9"])],
        fits={".tl-numbers": 840},
        inside="""((map, panel) => Math.abs(map - panel) < 1)(
          ...[".tl-pe-map", ".tl-panel"].map((one) => document.querySelector(one).getBoundingClientRect().width))""",
        style="position_map.css",
    ),
    "normalisation-cube": Explorer(
        kind="tl-norms",
        controls=14,
        pressed=(".tl-preset >> nth=0", ".tl-axis-batch", ".tl-slices >> nth=0"),
        names=(
            ("checkbox", "batch B"), ("checkbox", "position n"), ("checkbox", "feature d"), ("checkbox", "keep the mean (RMS)"),
            ("group", "Mean and variance over"), ("application", re.compile("^Input x")),
            ("button", re.compile("^Replace sentence 2")),
        ),
        captions=4 + 1,
        act=lambda page: page.locator(".tl-rms").check(),
        spoken="mean square",
        labels=".tl-root :is(td, th, p, .tl-value, button, legend)",
        n_labels=100,
        moves={"replaced": True},
        widths=(380, 600, 840),
        opened=lambda lang: [asdict(replace(norms.PRESETS[name], replaced=True)) for name in ("LN1", "LN4")],
        fits={".tl-numbers": 0},
        inside="""[...document.querySelectorAll(".tl-norm-cell")].every((cell) => [...cell.children].every((one) =>
          one.getBoundingClientRect().right <= cell.getBoundingClientRect().right + 1))""",
        style="norm_cube.css",
    ),
    "block-builder": Explorer(
        kind="tl-blocks",
        controls=5 + 2 + 2 + 1 + 1 + len(blocks.PRESETS) + 1,
        pressed=(".tl-stack", ".tl-goal", ".tl-joined", ".tl-piece >> nth=0", ".tl-preset >> nth=0"),
        names=(
            ("combobox", "Wanted"), ("combobox", "Residuals and norms"), ("group", "Pieces"), ("button", "cross-attention"),
            ("application", re.compile(r"^slot 1: self-attention, no mask \/ The layer, from the bottom up")),
            ("cell", re.compile("^when 追いかけた moves, the output BOS moves and must not")),
            ("cell", re.compile("^when memory cat moves, the output BOS moves")),
        ),
        captions=1,
        act=click(".tl-piece.tl-is-masked"),
        spoken="the paper",
        labels=".tl-root :is(th, button, .tl-slot, .tl-end, .tl-is, li, .tl-sights, .tl-note, .tl-tip)",
        n_labels=40,
        moves={"slots": [""] * 6},
        arranged=presets(*numbers_of(blocks.PRESETS, "BL6", "MC22")),
        parts=(".tl-palette", ".tl-stack", ".tl-influence", ".tl-verdict", ".tl-presets"),
        n_parts=5,
        inside="""[...document.querySelectorAll(".tl-slot")].every((slot) => slot.scrollWidth <= slot.clientWidth)""",
        style="block_builder.css",
    ),
    "parameter-ledger": Explorer(
        kind="tl-params",
        controls=6 + 2 + 1 + len(ledger.TABLE_3) + 2 + len(ledger.PRESETS) + 1,
        pressed=(".tl-d_model", ".tl-vocab", ".tl-tied", ".tl-load >> nth=3", ".tl-preset >> nth=0"),
        names=(
            ("slider", "d_model"), ("slider", "d_ff"), ("slider", "heads h"), ("slider", "d_k"), ("slider", "layers N"),
            ("slider", "vocabulary V"), ("checkbox", "biases in attention, too"),
        ),
        captions=2,
        act=click(".tl-preset >> nth=1"),
        spoken="163,815,424",
        labels=".tl-root :is(th, td, p, button, label, .tl-pinned, .tl-formula)",
        n_labels=150,
        moves={"n_layers": 2},
        opened=lambda lang: [ledger.PRESETS["big"]._replace(vocab_size=60_000, tied=False)._asdict()],
        parts=(".tl-sizes", ".tl-now", ".tl-books > div", ".tl-presets"),
        n_parts=5,
        fits={".tl-books > div": 0},
        style="parameter_ledger.css",
    ),
    "shift-viewer": Explorer(
        kind="tl-shifting",
        controls=7,
        pressed=(".tl-rows", ".tl-sentence", ".tl-shift", ".tl-reset"),
        names=(
            ("application", re.compile("^Input and labels: Position 3")),
            ("cell", re.compile("^the prediction of 3 chased moves with its own answer, 3 chased")),
            ("cell", re.compile("^the prediction of 1 the does not move with 2 dog")),
        ),
        captions=4,
        act=lambda page: page.get_by_role("checkbox", name="right shift").check(),
        spoken="No answer leaks",
        labels=":is(.tl-root th, .tl-rows text, .tl-verdict p, .tl-root li, .tl-note, .tl-switches label):not(.tl-leaks *)",
        n_labels=60,
        moves={"position": 5},
        arranged=with_the_widest_word,
        parts=(".tl-diagram", ".tl-stage table", ".tl-verdict", ".tl-tried", ".tl-product table"),
        n_parts=6,
        inside=WORDS_IN_BOXES.format(".tl-input, .tl-label"),
        style="shift_viewer.css",
        forced={
            ".tl-is-answer": ("backgroundColor", "rgb(213, 94, 0)"),
            ".tl-is-earlier": ("backgroundColor", "rgb(86, 180, 233)"),
            ".tl-line": ("stroke", "rgb(0, 114, 178)"),
        },
    ),
    "generator": Explorer(
        kind="tl-generator",
        controls=13,
        pressed=EVERY_CONTROL,
        names=(
            ("textbox", re.compile("^English sentence")), ("slider", "pass"), ("combobox", "layer"), ("combobox", "head"),
            ("group", "passes"),
        ),
        captions=3,
        act=click(".tl-nav .tl-next"),
        spoken=re.compile(r"^Pass 2\."),
        labels=".tl-root th, .tl-root td:not(.tl-cell), .tl-note, .tl-said, .tl-sentence",
        n_labels=20,
        moves={"step": 4},
        given={"can_ask": True},
        arranged=at_the_last_pass,
        parts=(".tl-probable", ".tl-attended", ".tl-work", ".tl-drawn"),
        n_parts=4,
    ),
    "attention-map": Explorer(
        kind="tl-attention",
        controls=24,
        pressed=EVERY_CONTROL,
        names=(
            ("textbox", re.compile("^English sentence")), ("combobox", "attention"), ("button", re.compile("^enlarge"), 10),
            ("application", re.compile(r"^cross-attention \(layer 2")),
        ),
        captions=1,
        act=press("[role=application]", "ArrowUp"),
        spoken="row: predicts を",
        labels=".tl-root th, .tl-root td:not(.tl-cell), .tl-note, .tl-said, .tl-sentence",
        n_labels=20,
        moves={"row": 0},
        given={"can_ask": True},
        opened=lambda lang: [{}, LONG],
        parts=(".tl-said", ".tl-large", ".tl-grid", ".tl-reading-table"),
        n_parts=4,
    ),
    "crossover": Explorer(
        kind="tl-cross",
        controls=4 + 2 + 1 + 2 + 1 + 2 + len(crossover.PRESETS) + 1,
        pressed=(".tl-n", ".tl-double-n", ".tl-view-table", ".tl-cross-plot", ".tl-preset >> nth=0"),
        names=(
            ("slider", "length n"), ("slider", "dimension d"), ("slider", "kernel k"), ("slider", "neighbourhood r"),
            ("group", "Show"), ("radio", re.compile(""), 2),
            ("application", re.compile("^Complexity per layer against the length: At n = 4,096")),
        ),
        captions=1,
        act=click(".tl-double-n"),
        spoken="4.00 times",
        labels=".tl-root :is(th, td, p, li, button, label), .tl-cross-plot text",
        n_labels=60,
        moves={"n": 64},
        opened=lambda lang: [{"n": 65_536, "d_model": 1024, "kernel": 31}],
        arranged=both_views,
        parts=(".tl-cross-sizes", ".tl-now", ".tl-cross-left", ".tl-cross-right", ".tl-presets"),
        n_parts=5,
        fits={".tl-cross-table": 0},
        style="crossover.css",
        n_selectors=30,
    ),
    "family-switch": Explorer(
        kind="tl-families",
        controls=1 + 11 + 1 + len(families.PRESETS) + 1,
        pressed=(".tl-flow", ".tl-of-mask input >> nth=0", ".tl-preset >> nth=0"),
        names=(
            ("group", "① Mask: what may be seen"), ("group", "② Head: what is asked"), ("group", "③ Loss: where it is marked"),
            ("group", "Tokens"), ("radio", re.compile(""), 11),
            ("application", re.compile("^Input and predictions: The prediction of “chased”")),
            ("cell", re.compile("^the prediction of dog moves with its own answer, dog")),
        ),
        captions=1,
        act=click(".tl-preset"),
        spoken="BERT-style",
        labels=":is(.tl-root :is(th, legend, label, dt, dd, li, p), .tl-flow text):not(.tl-leaks *)",
        n_labels=60,
        moves={"mask": "causal"},
        arranged=presets(*numbers_of(families.PRESETS, "original", "blind_cls", "leak")),
        parts=(".tl-panel-of-switches", ".tl-presets", ".tl-is", ".tl-diagram", ".tl-signs", ".tl-verdict"),
        n_parts=6,
        inside=WORDS_IN_BOXES.format(".tl-box"),
        style="family_switch.css",
        forced={
            ".tl-is-answer": ("backgroundColor", "rgb(213, 94, 0)"),
            ".tl-line.tl-seen": ("stroke", "rgb(0, 114, 178)"),
        },
        chosen_twice=8,
    ),
}  # fmt: skip


def those_with(particular):
    return [name for name, one in EXPLORERS.items() if getattr(one, particular)]


every = pytest.mark.parametrize("name", EXPLORERS)
both_languages = pytest.mark.parametrize("lang", ["ja", "en"])


def state_of(shown):
    """What the browser gets of a widget, its module and styles aside."""
    own = {name for name, trait in shown.traits(sync=True).items() if not name.startswith("_")}
    return {name: getattr(shown, name) for name in own - {"layout", "tabbable", "tooltip"}}


@pytest.fixture
def show(open_page):
    """``show(name, lang)`` opens the explorer in a page: with its ``options``, and other traits where they are ``changed``."""

    def opened(name, lang, *, options=None, changed=None, **browser):
        shown = explorer(name)(lang, **(options or {}))
        state = {**state_of(shown), **EXPLORERS[name].given, **(changed or {})}
        return open_page(support.address(shown._esm), state, **browser)

    return opened


# --- The checks ---


def test_every_explorer_that_draws_in_the_browser_is_in_the_table():
    assert set(EXPLORERS) == set(explorers()) - {"scaling"}, "the d_k slider is made of stock controls"


@every
def test_no_key_reaches_the_page_around_it_and_every_control_says_so(show, name):
    page, one = show(name, "ja"), EXPLORERS[name]
    assert page.locator(f".tl-root.{one.kind}").count() == 1
    assert page.locator(support.FOCUSABLE).count() == one.controls
    assert page.locator(f"{support.FOCUSABLE}:not([data-lm-suppress-shortcuts=true])").count() == 0
    for selector in one.pressed:
        found = page.locator(selector)
        for i in range(found.count()):
            found.nth(i).focus()
            for key in ("a", "j", "ArrowDown", "ArrowRight"):
                page.keyboard.press(key)
        assert found.count() > 0, selector
    assert page.evaluate("() => window.leaked") == 0


@every
def test_everything_has_a_name_and_the_change_is_spoken(show, name):
    page, one = show(name, "en"), EXPLORERS[name]
    for role, called, *count in one.names:
        assert page.get_by_role(role, name=called, exact=True).count() == (count or [1])[0], (role, called)
    captions = page.locator("table caption").all_text_contents()
    assert len(captions) == one.captions and all(captions)
    one.act(page)
    expect(page.locator(".tl-hidden[role=status]")).to_contain_text(one.spoken, timeout=8000)


@every
def test_labels_follow_a_dark_theme(show, name):
    one = EXPLORERS[name]
    colours = support.colours_of_labels(show(name, "ja"), one.labels)
    assert len(colours) > one.n_labels and set(colours) == {support.INK}


@pytest.mark.parametrize("name", those_with("forced"))
def test_what_is_drawn_stays_in_forced_colours(show, name):
    page = show(name, "ja", forced_colors="active")
    for selector, (what, colour) in EXPLORERS[name].forced.items():
        assert page.locator(selector).first.evaluate("(one, what) => getComputedStyle(one)[what]", what) == colour, selector


@every
@both_languages
def test_nothing_sticks_out_at_any_width(show, name, lang):
    one = EXPLORERS[name]
    for options in one.opened(lang):
        page = show(name, lang, options=options)
        for width in one.widths:
            page.set_viewport_size({"width": width, "height": 800})
            for _ in one.arranged(page):
                nothing_sticks_out(page, one, width)


def nothing_sticks_out(page, one, width):
    assert page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth"), width
    boxes = support.boxes(page, one.parts)
    assert len(boxes) == one.n_parts
    for i, box in enumerate(boxes):
        assert 0 <= box.left < box.right <= width and box.top < box.bottom, (width, i, box)
        for j, other in enumerate(boxes[:i]):
            assert other.before(box), f"parts {j} and {i} overlap at {width}: {other}, {box}"
    for selector, least in one.fits.items():
        over = page.locator(selector).evaluate_all("(all) => all.map((one) => one.scrollWidth - one.clientWidth)")
        assert over and (width < least or max(over) <= 1), (selector, width)
    assert page.evaluate(f"() => {one.inside}"), f"a word does not fit into its place at {width}"


@every
def test_a_change_of_language_gives_the_page_that_opens_in_it_and_closing_it_lets_go(show, name):
    moves, texts = EXPLORERS[name].moves, {**explorer(name)("ja").spoken("en"), "lang": "en"}
    page = show(name, "ja")
    before = page.evaluate("(names) => Object.fromEntries(names.map((name) => [name, model.get(name)]))", list(moves))
    support.put(page, moves)
    support.put(page, texts)
    moved = support.drawn(page)
    assert moved == support.drawn(show(name, "ja", changed={**moves, **texts})), "where it stood, in the other language"
    assert page.locator(".tl-root").count() == 1 and page.locator(".tl-root").get_attribute("lang") == "en"
    support.put(page, before)
    shown = support.drawn(page)
    assert shown != moved
    page.evaluate("() => clean()")
    support.put(page, moves)
    assert support.drawn(page) == shown


@pytest.mark.parametrize("name", those_with("chosen_twice"))
def test_two_on_one_page_keep_what_is_chosen(show, name):
    chosen = show(name, "ja").evaluate(
        """() => { const place = document.createElement("div"); document.body.append(place);
          const twin = { ...model, on() {}, off() {} };
          return import(document.querySelector("script[type=module]").textContent.match(/import\\("([^"]+)"/)[1])
            .then((module) => { module.default.render({ model: twin, el: place });
              return document.querySelectorAll("input[type=radio]:checked").length; }); }"""
    )
    assert chosen == EXPLORERS[name].chosen_twice


@pytest.mark.parametrize("name", those_with("style"))
def test_its_style_touches_no_other_explorer(name):
    one = EXPLORERS[name]
    selectors = support.selectors_of(one.style)
    assert len(selectors) > one.n_selectors and [each for each in selectors if not each.startswith(f".{one.kind}")] == []
