"""The block builder: its layers against equations and traps, the browser's patterns against NumPy's, its page, its twin."""

import itertools
import json
from functools import cache

import explore_support as support
import numpy as np
import pytest

from transformer_lite.equations import causal_mask, decoder_layer, encoder_layer
from transformer_lite.explore import blocks, explorer
from transformer_lite.explore.blocks import JOINED, N_SLOTS, PAPER, PIECES, State, Stream


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_STATIC", raising=False)


# --- The numbers ---


def test_the_papers_layers_are_the_equations():
    x, memory = blocks.sources("encoder")
    p = blocks.parameters()
    assert blocks.layer(blocks.PRESETS["right_encoder"], x, memory) == pytest.approx(encoder_layer(x, p, blocks.N_HEADS))
    y, memory = blocks.sources("decoder")
    expected = decoder_layer(y, memory, p, blocks.N_HEADS, causal_mask(len(y)))
    assert blocks.layer(blocks.PRESETS["right_decoder"], y, memory) == pytest.approx(expected)


@pytest.mark.parametrize("key", [f"BL{i}" for i in range(1, 10)])
def test_a_named_layer_computes_what_the_catalogues_trap_computes_and_is_called_so(key):
    from transformer_lite.traps.sublayers import decoder_family

    y, memory = blocks.sources("decoder")
    setting = decoder_family.traps[key].settings[0]
    (expected,) = decoder_family.core(y, memory, blocks.parameters(), blocks.N_HEADS, causal_mask(len(y)), **setting)
    state = blocks.PRESETS[key]
    right = blocks.layer(blocks.PRESETS["right_decoder"], y, memory)
    assert blocks.layer(state, y, memory) == pytest.approx(expected) and np.abs(expected - right).max() > 0.01
    assert blocks.findings(state) == (key,)


@pytest.mark.parametrize("key", ["MC22", "BL4", "BL6", "BL7", "BL8", "BL9"])
def test_an_encoder_with_a_mistake_is_called_so_too(key):
    from transformer_lite.traps.sublayers import encoder_family

    x, memory = blocks.sources("encoder")
    decoder = blocks.PRESETS[key]
    slots = tuple(piece for piece in decoder.slots if piece not in ("cross", "")) if key != "MC22" else decoder.slots
    paper = PAPER["encoder"]
    slots = {"BL4": ("unmasked", "norm"), "BL8": ("ffn", "norm", "unmasked", "norm"), "MC22": slots}.get(key, paper)
    state = State("encoder", slots, decoder.joined)
    (expected,) = encoder_family.core(x, blocks.parameters(), blocks.N_HEADS, **encoder_family.traps[key].settings[0])
    assert blocks.layer(state, x, memory) == pytest.approx(expected)
    assert blocks.findings(state) == (key,)


def test_influence_is_a_triangle_a_rectangle_or_full():
    moved = blocks.influence(blocks.PRESETS["right_decoder"])
    assert (moved[:, :6] == causal_mask(6)).all() and moved[:, 6:].all() and moved.shape == (6, 11)
    assert blocks.influence(blocks.START)[:, :6].all()
    assert blocks.influence(blocks.PRESETS["right_encoder"]).all()
    assert (blocks.influence(blocks.PRESETS["BL5"])[:, :6] == np.eye(6, dtype=bool)).all()
    assert not blocks.influence(blocks.PRESETS["BL3"])[:, 6:].any()
    assert (blocks.influence(State("decoder", ("",) * 6)) == np.eye(6, 11, dtype=bool)).all()
    assert blocks.influence(State("encoder", ("cross", "norm"))) is None


def test_what_the_answer_says_is_so():
    """Of the three moves offered, only the mask empties the corner; swapping the attentions changes neither matrix."""
    above = np.triu(np.ones((6, 6), dtype=bool), 1)
    moves = {
        1: ("ffn", "norm", "unmasked", "norm", "cross", "norm"),
        2: ("masked", "norm", "cross", "norm", "ffn", "norm"),
        3: ("unmasked", "norm", "ffn", "norm", "", ""),
    }
    leaks = {move: bool((blocks.influence(State("decoder", slots))[:, :6] & above).any()) for move, slots in moves.items()}
    assert leaks == {1: True, 2: False, 3: True}
    assert not blocks.influence(State("decoder", moves[3]))[:, 6:].any()  # what ③ empties is the memory's matrix
    assert (blocks.influence(blocks.PRESETS["BL2"]) == blocks.influence(blocks.PRESETS["right_decoder"])).all()
    for lang in ("ja", "en"):
        assert "②" in blocks.words(lang)["answer"]


@pytest.mark.parametrize(("goal", "slots", "joined", "expected"), [
    ("decoder", (), "after", ("empty",)),
    ("decoder", ("masked", "norm", "ffn", "norm", "cross", "norm"), "after", ("ffn_between",)),
    ("decoder", ("masked", "cross", "norm", "ffn", "norm"), "after", ("no_add_norm",)),
    ("decoder", ("masked", "norm", "cross", "norm", "ffn"), "after", ("no_add_norm",)),
    ("decoder", ("norm", "masked", "norm"), "after", ("BL3", "BL4", "idle_norm")),
    ("decoder", ("masked", "norm", "unmasked", "norm", "ffn", "norm"), "after", ("BL1", "BL3", "repeated")),
    ("decoder", ("masked", "norm"), "input", ("BL3", "BL4")),
    ("decoder", ("masked",), "before", ("BL3", "BL4", "no_add_norm")),
    ("encoder", ("cross", "norm", "ffn", "norm"), "after", ("cross_in_encoder", "no_self")),
    ("encoder", ("", "unmasked", "", "norm", "ffn", "norm"), "after", ()),
])  # fmt: skip
def test_other_mistakes_are_told_in_their_order(goal, slots, joined, expected):
    assert blocks.findings(State(goal, slots, joined)) == expected


def test_only_the_papers_layer_is_called_right():
    for goal in blocks.GOALS:
        right = [
            (slots, joined)
            for length in range(N_SLOTS + 1)
            for slots in itertools.product(PIECES, repeat=length)
            for joined in (JOINED if length == len(list(filter(None, PAPER[goal]))) else ("after",))
            if not blocks.findings(State(goal, slots, joined))
        ]
        assert right == [(tuple(filter(None, PAPER[goal])), "after")]


def test_every_mistake_has_words_and_those_of_the_catalogue_are_its_own():
    from transformer_lite.content import traps

    for lang in ("ja", "en"):
        told = blocks.mistakes(lang)
        assert set(told["encoder"]) == set(told["decoder"]) == set(blocks.FINDINGS)
        for key in ("BL1", "BL9", "MC22"):
            assert told["decoder"][key] == {"title": traps()[key].title(lang), "code": key, "why": traps()[key].line(lang)}
        codes = {code for words in told["decoder"].values() for code in words["code"].split(", ") if code}
        assert codes <= set(traps()) and {f"BL{i}" for i in range(1, 10)} <= codes
        assert told["encoder"]["BL7"]["why"] != told["decoder"]["BL7"]["why"]


# --- Every layer that can be built ---


@cache
def probed(goal):
    """The layer's input (23, n, d) and the memory (23, n_memory, d): as they are, and with one row moved, each row twice."""
    own, memory = blocks.sources(goal)
    rows = np.concatenate([own, memory])
    all_rows = np.repeat(rows[np.newaxis], 1 + 2 * len(rows), axis=0)
    for j in range(len(rows)):
        all_rows[1 + 2 * j, j] += np.linspace(0.5, 1.0, blocks.D_MODEL)
        all_rows[2 + 2 * j, j] += np.linspace(-0.9, -0.3, blocks.D_MODEL)
    return all_rows[:, : len(own)], all_rows[:, len(own) :]


def moved_rows(x):
    """(..., n, n + n_memory) from outputs (..., 23, n, d): as influence_matrix finds it."""
    by = np.abs(x[..., 1:, :, :] - x[..., :1, :, :]).max(axis=-1)  # (..., 22, n)
    moved = by > 1e-9
    either = moved[..., 0::2, :] | moved[..., 1::2, :]  # (..., 11, n)
    clear = np.maximum(by[..., 0::2, :], by[..., 1::2, :])
    assert not ((clear > 1e-12) & (clear < 1e-7)).any(), "a saturated softmax or rounding decides"
    return either.swapaxes(-1, -2)


def every_influence(goal, joined, pieces):
    """{pieces from the bottom up: (n, columns)} of every layer of up to six pieces, all of one length computed together."""
    own, memory = probed(goal)
    found = {(): moved_rows(own)}
    frontier = {"": ([()], Stream(own, own[np.newaxis], own[np.newaxis], own[np.newaxis]))}
    for _ in range(N_SLOTS):
        grown = {}
        for names, stream in frontier.values():
            for piece in pieces:
                more = blocks.put_on(stream, piece, memory, joined)
                longer = [(*name, piece) for name in names]
                found |= dict(zip(longer, moved_rows(more.x), strict=True))
                grown.setdefault(more.last, []).append((longer, more))
        frontier = {}
        for last, parts in grown.items():
            names = [name for some, _ in parts for name in some]
            shape = (-1, *own.shape)
            arrays = [
                np.concatenate([np.broadcast_to(one[k], (len(some), *own.shape)) for some, one in parts]).reshape(shape)
                for k in (1, 2, 3)
            ]
            frontier[last] = (names, Stream(own, *arrays, last))
    return found


IN_THE_BROWSER = """((goal, joined, n, pieces) => {
  const found = {};
  const grow = (slots) => {
    const moved = bench.influence({ goal, slots, joined }, n, 5);
    found[slots.join()] = moved.map((row) => row.map(Number).join("")).join("/");
    if (slots.length < 6) for (const piece of pieces) grow([...slots, piece]);
  };
  grow([]);
  return found;
})"""


@pytest.mark.parametrize("joined", JOINED)
@pytest.mark.parametrize("goal", blocks.GOALS)
def test_the_browsers_patterns_are_what_the_numbers_show_for_every_layer_that_can_be_built(goal, joined):
    pieces = [piece for piece in PIECES if goal == "decoder" or piece != "cross"]
    n = len(blocks.TOKENS[goal])
    numbers = every_influence(goal, joined, pieces)
    patterns = support.in_node("block_builder", f"{IN_THE_BROWSER}({', '.join(map(json.dumps, (goal, joined, n, pieces)))})")
    assert len(numbers) == len(patterns) == sum(len(pieces) ** length for length in range(N_SLOTS + 1))
    columns = n + (5 if goal == "decoder" else 0)
    differ = {
        name
        for name, moved in numbers.items()
        if patterns[",".join(name)] != "/".join("".join("01"[int(yes)] for yes in row[:columns]) for row in moved)
    }
    assert differ == set()


def test_computing_many_layers_together_gives_what_one_gives():
    rng = np.random.default_rng(5)
    for joined in JOINED:
        found = every_influence("decoder", joined, PIECES[::2])
        for index in rng.choice(len(found), 6, replace=False):
            name = list(found)[index]
            assert (found[name] == blocks.influence(State("decoder", name, joined))).all()


def test_the_browser_finds_the_same_mistakes_residuals_and_differences():
    states = [
        State(goal, slots, JOINED[(i + length) % 4])
        for goal in blocks.GOALS
        for length in range(5)
        for i, slots in enumerate(itertools.product(PIECES, repeat=length))
    ]
    states += [*blocks.PRESETS.values(), State("decoder", ("", "masked", "", "norm", "", "cross"), "before")]
    states += [State("decoder", slots, joined) for slots in itertools.islice(itertools.product(PIECES, repeat=6), 7, None, 400)
               for joined in JOINED]  # fmt: skip
    given = [[state.goal[0], "".join(str([*PIECES, ""].index(piece)) for piece in state.slots), JOINED.index(state.joined)]
             for state in states]  # fmt: skip
    found = support.in_node(
        "block_builder",
        f"{json.dumps(given, separators=(',', ':'))}.map(([goal, digits, joined]) => {{"
        f" const all = {json.dumps([*PIECES, ''])}; const slots = [...digits].map((digit) => all[digit]);"
        f" joined = {json.dumps(JOINED)}[joined]; goal = {{ e: 'encoder', d: 'decoder' }}[goal];"
        " return [bench.findings({ goal, slots, joined }), bench.residuals(slots, joined)]; })",
    )
    assert len(found) == len(states) > 1500
    for state, (mistakes, residuals) in zip(states, found, strict=True):
        assert tuple(mistakes) == blocks.findings(state)
        assert [tuple(line) for line in residuals] == blocks.residuals(state.slots, state.joined)
    moved, wanted = (blocks.influence(state)[:, :6].tolist() for state in (blocks.PRESETS["BL5"], blocks.START))
    for pair in ((moved, wanted), (wanted, moved)):
        marks = support.in_node("block_builder", f"bench.compared({json.dumps(pair[0])}, {json.dumps(pair[1])})")
        assert marks == blocks.compared(*map(np.array, pair))._asdict()


def test_a_layers_differences_from_the_papers_are_counted():
    moved, wanted = np.array([[1, 1], [0, 0]], dtype=bool), np.array([[1, 0], [1, 1]], dtype=bool)
    assert blocks.compared(moved, wanted) == (2, 3, 1, 2)


# --- The page ---


@pytest.fixture
def show(show_module):
    return lambda lang="ja", state=blocks.START, **options: show_module("block_builder", blocks.traits(lang, state), **options)


def built(page):
    goal, slots, joined = (page.evaluate(f"() => model.get('{name}')") for name in State._fields)
    return State(goal, tuple(slots), joined)


def cells(page):
    """(n, columns): which cells the page shows as moving; columns of the own input first, then of the memory."""
    signs = {"●": True, "!": True, "□": False, "": False}
    rows = page.locator(".tl-influence tbody tr").count()
    return np.array([signs[text] for text in page.locator(".tl-influence .tl-cell").all_text_contents()]).reshape(rows, -1)


def page_agrees(page, lang):
    """The page shows what NumPy computes for its state, and says what the twin says."""
    state = built(page)
    moved, wanted = blocks.influence(state), blocks.expected(state.goal)
    if moved is not None:
        assert (cells(page) == moved).all()
        assert page.locator(".tl-leak").count() == (moved & ~wanted).sum()
        assert page.locator(".tl-missing").count() == (wanted & ~moved).sum()
    assert page.locator(".tl-is strong").text_content() == blocks.verdict(lang, state)
    titles = page.locator(".tl-mistakes strong").all_text_contents()
    assert titles == [blocks.mistakes(lang)[state.goal][key]["title"] for key in blocks.findings(state)]
    assert page.locator(".tl-sights").text_content() == ("" if lang == "ja" else " ").join(blocks.sights(lang, state))
    names = page.locator(".tl-slot .tl-name").all_text_contents()[::-1]  # the first slot is the lowest
    assert names == [blocks.piece_name(lang, state, i) for i in range(N_SLOTS)]


def test_the_page_starts_in_its_surprise_and_the_mask_empties_the_corner(show):
    page = show("en")
    page_agrees(page, "en")
    assert cells(page).all() and page.locator(".tl-leak").count() == 15
    assert page.locator(".tl-mistakes strong").get_attribute("title") == "BL1"  # a tooltip: no code is printed
    assert "BL1" not in page.locator(".tl-verdict").text_content()
    picture = page.locator(".tl-workshop").screenshot()
    page.locator(".tl-stack").focus()
    page.keyboard.press("1")
    assert built(page).slots == PAPER["decoder"] and (cells(page)[:, :6] == causal_mask(6)).all()
    assert page.locator(".tl-is").text_content() == "✓This is the paper's decoder layer."
    assert page.locator(".tl-mistakes li").count() == 0 and page.locator(".tl-leak").count() == 0
    assert page.locator(".tl-workshop").screenshot() != picture


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_every_preset_is_built_named_and_computed(show, lang):
    page = show(lang)
    assert page.locator(".tl-preset").count() == len(blocks.PRESETS)
    for index, state in enumerate(blocks.PRESETS.values()):
        page.locator(".tl-preset").nth(index).click()
        assert built(page) == state
        page_agrees(page, lang)
    page.get_by_role("button", name=blocks.words(lang)["reset"]).click()
    assert built(page) == blocks.START


def test_a_layer_is_built_by_keyboard_from_nothing(show):
    page = show("en")
    page.get_by_role("button", name="Clear").click()
    assert built(page).slots == ("",) * 6
    page_agrees(page, "en")
    stack = page.locator(".tl-stack")
    stack.focus()
    for key in ("3", "5", "1", "5", "4", "5"):  # cross-attention first, each with its Add & Norm
        page.keyboard.press(key)
    assert built(page) == blocks.PRESETS["BL2"]
    page_agrees(page, "en")
    for key in ("Home", "Shift+ArrowUp", "Shift+ArrowUp", "Home", "Shift+ArrowUp"):
        page.keyboard.press(key)  # cross-attention goes up by two, then the Add & Norm that came down by one
    assert built(page).slots == ("masked", "norm", "cross", "norm", "ffn", "norm")
    page.keyboard.press("End")
    page.keyboard.press("Delete")
    assert built(page).slots[5] == "" and "slot 6: empty" in stack.get_attribute("aria-label")
    page.keyboard.press("ArrowUp")  # the top holds
    assert page.evaluate("() => model.get('cursor')") == 5
    page.keyboard.press("Control+1")
    assert built(page).slots[5] == ""
    page_agrees(page, "en")
    assert page.evaluate("() => window.leaked") == 0


def test_buttons_and_the_pointer_build_it_too(show):
    page = show("en")
    page.locator(".tl-slot").nth(N_SLOTS - 3).click()  # the third from below
    page.get_by_role("button", name="Remove").click()
    assert built(page).slots[2] == "" and "Memory moves 0 cells" in page.locator(".tl-sights").text_content()
    page.get_by_role("button", name="FFN", exact=True).click()
    assert built(page).slots == ("unmasked", "norm", "ffn", "norm", "ffn", "norm")
    assert page.evaluate("() => model.get('cursor')") == 3
    page_agrees(page, "en")
    page.locator(".tl-piece.tl-is-cross").drag_to(page.locator(".tl-slot").nth(N_SLOTS - 3))
    assert built(page).slots[2] == "cross"
    page.locator(".tl-slot").nth(N_SLOTS - 3).drag_to(page.locator(".tl-slot").nth(N_SLOTS - 1))
    assert built(page).slots == ("cross", "norm", "unmasked", "norm", "ffn", "norm")
    page_agrees(page, "en")


def test_the_wiring_and_the_wanted_layer_are_controls(show):
    page = show("en", blocks.PRESETS["right_decoder"])
    lines = {}
    for joined in JOINED:
        page.get_by_role("combobox", name="Residuals and norms").select_option(joined)
        lines[joined] = page.locator(".tl-residual").evaluate_all("(all) => all.map((one) => one.getAttribute('d'))")
        assert len(lines[joined]) == len(blocks.residuals(PAPER["decoder"], joined))
        assert page.locator(".tl-before:not(:empty)").count() == (3 if joined == "before" else 0)
        assert page.locator(".tl-side").count() == (2 if joined == "parallel" else 0)
        page_agrees(page, "en")
    assert lines["after"] == lines["before"] != lines["input"]
    page.get_by_role("combobox", name="Wanted").select_option("encoder")
    assert "cannot be computed" in page.locator(".tl-sights").text_content() and page.locator(".tl-of-memory").count() == 0
    assert set(page.locator(".tl-cell").all_text_contents()) == {""}
    assert page.locator(".tl-mistakes strong[title=MC62]").count() == 1
    assert page.locator(".tl-influence tbody th").first.text_content() == "the冠詞"


def test_every_word_carries_its_language(show):
    page = show("en")
    heads = page.locator(".tl-influence thead .tl-token >> nth=6")
    assert heads.get_attribute("lang") == "en" and heads.locator(".tl-gloss").get_attribute("lang") == "ja"
    rows = page.locator(".tl-influence tbody .tl-token")
    assert rows.nth(1).get_attribute("lang") == "ja" and rows.nth(1).text_content() == "犬dog"


# --- The widget and its static twin ---


def test_what_the_browser_sends_arrives_and_an_unknown_piece_is_refused():
    bench = explorer("block-builder")("ja")
    bench.set_state({"slots": list(PAPER["decoder"]), "cursor": 3})
    title, table, text = bench.twin()
    assert title.startswith("ブロックの組み立て") and "論文のデコーダ層です。" in text
    assert table[0][1:3] == ["BOS", "犬"] and table[2] == ["犬 dog", "1", "1", "0", "0", "0", "0", *"11111"]
    for trait, value in (("slots", ["attention"] * 6), ("slots", ["masked"]), ("goal", "both"), ("cursor", 6)):
        with pytest.raises(Exception, match=r"slots|goal|cursor"):
            setattr(bench, trait, value)
    bench.lang = "en"
    assert bench.strings["reset"] == "Reset" and "This is the paper's decoder layer." in bench.twin()[2]


def test_the_sentence_of_the_twin_gives_the_code():
    assert "No cross-attention (BL3): memory moves nothing" in blocks.sentence("en", blocks.PRESETS["BL3"])
    assert "自己注意がない: " in blocks.sentence("ja", State("encoder", ("ffn", "norm")))  # no trap of the catalogue: no code


def test_it_can_start_elsewhere_and_says_what_it_cannot():
    bench = explorer("block-builder")("en", goal="encoder", slots=("masked", "norm"), joined="before")
    assert bench.slots == ["masked", "norm", "", "", "", ""] and bench.initial["joined"] == "before"
    for wrong, told in (({"goal": "both"}, "goal must be one of"), ({"joined": "x"}, "joined must be one of"),
                        ({"slots": ("norm",) * 7}, "at most 6"), ({"slots": ("attention",)}, "slots must hold"),
                        ({"slots": 5}, "slots must be a list"), ({"slots": [["norm"]]}, "slots must hold")):  # fmt: skip
        with pytest.raises(ValueError, match=told):
            explorer("block-builder")("en", **wrong)
    with pytest.raises(ValueError, match="language"):
        explorer("block-builder")("fr")


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_picture_follows_the_state_even_where_nothing_can_be_computed(lang):
    cannot = State("encoder", ("cross", "norm", "ffn", "norm", "", ""))
    pictures = [blocks.picture(lang, state) for state in (blocks.START, blocks.PRESETS["BL9"], cannot)]
    assert len({shown.png for shown in pictures}) == 3
    assert pictures[2].table[1][1:] == ["–"] * 5 and blocks.words(lang)["impossible"] in pictures[2].text
    assert blocks.mistakes(lang)["decoder"]["BL9"]["title"] in pictures[1].text
    for shown in pictures:
        assert ".." not in shown.text and "。。" not in shown.text
