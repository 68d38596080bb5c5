"""The path race: hops against the influence matrices of toy layers, its JavaScript against Python, its page in Chromium."""

import warnings
from dataclasses import asdict
from itertools import pairwise

import explore_support as support
import numpy as np
import pytest

from transformer_lite import explore
from transformer_lite.equations import Projections, influence_matrix, self_attention
from transformer_lite.explore import path_race

N, D = 12, 3


def in_node(expression):
    return support.in_node("path_race", expression)


# --- toy layers: does the output at j move when the input at i moves? ---


def weights(seed, *shape):
    return np.random.default_rng(seed).uniform(0.2, 0.9, shape)  # positive, so that nothing cancels


def rnn(x, steps):
    """States of a left-to-right RNN whose memory is cut after ``steps`` steps."""
    w, u = weights(1, D, D) / D, weights(2, D, D)
    states = []
    for j in range(len(x)):
        h = np.zeros(D)
        for i in range(max(j - steps, 0), j + 1):
            h = np.tanh(h @ w + 0.3 * x[i] @ u)
        states.append(h)
    return np.array(states)


def convolutions(x, kernel, layers, dilated):
    """Stacked convolutions with centred windows, zeros outside the sentence."""
    radius = (kernel - 1) // 2
    for layer in range(layers):
        dilation = (radius + 1) ** layer if dilated else 1
        w = weights(3 + layer, kernel, D, D) / (kernel * D)
        padded = np.pad(x, ((radius * dilation,) * 2, (0, 0)))
        x = np.tanh(sum(padded[k * dilation : k * dilation + len(x)] @ w[k] for k in range(kernel)) * 1.5)
    return x


def attention(x):
    return self_attention(x, Projections(*(weights(seed, D, D) - 0.5 for seed in range(20, 24)))).output


def within(lane, steps, kernel=3):
    """(n, n): whether j can be reached from i in at most ``steps``; a word always reaches itself."""
    found = np.eye(N, dtype=bool)
    for i in range(N):
        for j in range(N):
            if i != j:
                hops = path_race.hops(lane, N, i, j, kernel)
                found[j, i] = hops is not None and hops <= steps
    return found


X = np.random.default_rng(0).uniform(-0.5, 0.5, (N, D))


@pytest.mark.parametrize("steps", [1, 2, 5, 11])
def test_the_rnns_hops_are_how_far_back_its_memory_must_reach(steps):
    assert (within("rnn", steps) == influence_matrix(lambda x: rnn(x, steps), X)).all()


@pytest.mark.parametrize("kernel", path_race.KERNELS)
@pytest.mark.parametrize("layers", [1, 2, 3, 4])
@pytest.mark.parametrize("lane", ["convolution", "dilated"])
def test_a_convolutions_hops_are_the_layers_that_its_influence_takes(lane, layers, kernel):
    found = influence_matrix(lambda x: convolutions(x, kernel, layers, lane == "dilated"), X)
    assert (within(lane, layers, kernel) == found).all()


def test_one_layer_of_self_attention_joins_every_pair():
    assert influence_matrix(attention, X).all() and within("attention", 1).all()


def test_hops_follow_the_orders_of_table_1():
    for n in (2, 3, 9, 16, 32):
        assert path_race.longest("rnn", n) == n - 1
        assert path_race.longest("attention", n) == 1
        for kernel in path_race.KERNELS:
            radius = (kernel - 1) // 2
            assert path_race.longest("convolution", n, kernel) == -(-(n - 1) // radius)
            layers = path_race.longest("dilated", n, kernel)
            assert (radius + 1) ** (layers - 1) < n <= (radius + 1) ** layers  # the logarithm of n to the base (k + 1) / 2
    pairs = [(i, j) for i in range(9) for j in range(9) if i != j]
    for lane in ("convolution", "dilated", "attention"):
        assert path_race.longest(lane, 9) == max(path_race.hops(lane, 9, i, j) for i, j in pairs)


def test_the_signal_goes_where_the_layers_let_it():
    for lane in path_race.LANES:
        for source, target in ((0, 31), (31, 0), (7, 12), (20, 19), (3, 30)):
            way = path_race.path(lane, 32, source, target)
            if way is None:
                assert lane == "rnn" and target < source
                continue
            assert (way[0], way[-1]) == (source, target)
            for layer, (a, b) in enumerate(pairwise(way)):
                assert b in path_race.passes_to(lane, 32, a, layer)


@pytest.mark.parametrize("wrong", [{"target": 0}, {"target": 32}, {"n": 33}, {"kernel": 4}, {"step": 32}, {"source": -1}])
def test_a_start_that_cannot_be_is_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        explore.explorer("path-race")(lang="en", **wrong)
    with pytest.raises(ValueError, match="lane must be"):
        path_race.path("lstm", 3, 0, 1)


def test_what_the_question_and_the_notes_say_is_so():
    hops = {
        name: [None if way is None else len(way) - 1 for way in state.paths().values()]
        for name, state in path_race.PRESETS.items()
    }
    assert hops["MC71"] == [31, 31, 5, 1] and hops["half"] == [15, 15, 4, 1]
    assert hops["neighbours"] == [1, 1, 1, 1] and hops["sentence"][0] == 4
    assert hops["backwards"] == [None, 31, 5, 1] and hops["wide"] == [31, 11, 3, 1]
    assert [max(d for d in range(1, 32) if path_race.hops("dilated", 32, 0, d) <= layers) for layers in range(1, 6)] == [
        1,
        3,
        7,
        15,
        31,
    ]
    text = path_race._say("answer", "en")
    assert "1, 3, 7, 15, 31" in text and "4 layers become 5" in text


# --- the browser's maths ---


def test_the_browsers_paths_are_pythons():
    for n in (2, 5, 13, 32):
        for kernel in path_race.KERNELS:
            pairs = [(0, n - 1), (n - 1, 0), (n // 2, 0), (0, n // 2 or 1), (n - 1, n // 2 if n // 2 != n - 1 else 0)]
            cases = [[lane, n, i, j, kernel] for lane in path_race.LANES for i, j in pairs if i != j]
            found = in_node(f"{cases}.map((one) => bench.path(...one))")
            assert found == [path_race.path(*case) for case in cases]
            steps = in_node(f"{list(path_race.LANES)}.map((lane) => bench.sequentialSteps(lane, {n}, {kernel}))")
            assert steps == [path_race.sequential_steps(lane, n, kernel) for lane in path_race.LANES]


def test_the_browser_keeps_the_two_words_apart_as_python_does():
    cases = [(5, 9, 9), (5, 0, 0), (2, 1, 1), (32, 3, 31), (4, 7, 2)]
    states = [path_race.State(n, source, target).clamped() for n, source, target in cases]
    found = in_node(f"{[list(case) for case in cases]}.map((one) => bench.clampPair(...one))")
    assert found == [[state.source, state.target] for state in states]


# --- the widget and its twin ---


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_every_preset_has_a_picture_and_a_twin(lang):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for state in path_race.PRESETS.values():
            shown = path_race.picture(lang, state)
            assert shown.png.startswith(b"\x89PNG") and [row[1] for row in shown.table[1:]][3] == "1"
    text = path_race.twin(lang, path_race.PRESETS["backwards"])[2]
    assert path_race._say("backwards", lang) in text


def test_the_widget_follows_the_browser_and_its_language(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_STATIC", raising=False)
    bench = explore.explorer("path-race")(lang="ja")
    bench.set_state({"n": 5, "source": 9, "target": 9, "kernel": 5})
    assert bench.state() == path_race.State(5, 4, 3, 5, 5)
    assert "追いかけた" in bench.twin()[2]
    bench.lang = "en"
    assert bench.strings["reset"] == "Reset" and "cat" in bench.twin()[2]
    data, _ = bench._repr_mimebundle_()
    assert "O(logₖ n)" in data["text/html"] and bench.twin()[0] in data["text/plain"]


# --- the page ---


@pytest.fixture
def show(show_module):
    def open_race(lang="ja", state=path_race.START, **options):
        return show_module(
            "path_race", {**path_race._texts(lang), **asdict(state), "initial": asdict(state), "preset": -1}, **options
        )

    return open_race


def model(page, *names):
    return [page.evaluate(f"() => model.get('{name}')") for name in names]


def table(page):
    rows = page.locator(".tl-race-table tbody tr")
    return [rows.nth(i).locator("th, td").all_text_contents() for i in range(rows.count())]


def test_the_page_says_what_the_twin_says(show):
    page = show("en")
    for name, state in path_race.PRESETS.items():
        page.get_by_role("button", name=path_race._say(f"preset.{name}.label", "en"), exact=True).click()
        _, expected, text = path_race.twin("en", state)
        assert table(page) == expected[1:]
        assert text in page.locator(".tl-strip").get_attribute("aria-label")
        assert page.locator(".tl-note").text_content() == path_race._say(f"preset.{name}.note", "en")
    page.get_by_role("button", name="Reset").click()
    assert model(page, "n", "source", "target", "kernel", "step") == [32, 0, 31, 3, 5]


def test_keys_move_target_and_source_past_each_other(show):
    page = show("en", path_race.State(8, 2, 4))
    strip = page.locator(".tl-strip")
    before = strip.screenshot()
    strip.focus()
    page.keyboard.press("ArrowLeft")
    assert model(page, "source", "target") == [2, 3] and strip.screenshot() != before
    page.keyboard.press("ArrowLeft")
    assert model(page, "source", "target") == [2, 1]  # past the source
    page.keyboard.press("Shift+ArrowLeft")
    assert model(page, "source", "target") == [0, 1]
    assert page.evaluate("() => window.leaked") == 0


def test_clicks_choose_the_two_words(show):
    page = show()
    box = page.locator(".tl-strip").bounding_box()

    def at(position):  # the drawing is 560 wide, its words from 16 to 544
        return (16 + 528 * position / 31) * box["width"] / 560, box["height"] * 0.3

    page.locator(".tl-strip").click(position=dict(zip(("x", "y"), at(10), strict=True)))
    assert model(page, "source", "target") == [0, 10]
    page.locator(".tl-strip").click(position=dict(zip(("x", "y"), at(20), strict=True)), modifiers=["Shift"])
    assert model(page, "source", "target") == [20, 10]
    assert "—" in table(page)[0] and page.locator(".tl-taken").count() > 0


def test_the_step_moves_every_signal(show):
    page = show("en")
    results = page.locator(".tl-result")
    assert results.all_text_contents() == ["5 of 31", "5 of 31", "arrived after 5", "arrived after 1"]
    track = page.locator(".tl-track").nth(2)
    before = track.screenshot()
    page.locator(".tl-step").focus()
    page.keyboard.press("ArrowLeft")
    assert results.nth(2).text_content() == "4 of 5" and track.screenshot() != before
    assert page.locator(".tl-track").nth(2).get_attribute("aria-label").endswith("4 of 5")


def test_playing_runs_to_the_end_and_stops(show):
    page = show("en", path_race.State(5, 0, 4, 3, 0))
    page.get_by_role("button", name="Play").click()
    assert page.get_by_role("button", name="Pause").count() == 1
    page.wait_for_function("() => model.get('step') === 4", timeout=8000)
    page.get_by_role("button", name="Play").wait_for(timeout=4000)
    assert page.locator(".tl-done").count() == 4


def test_who_wants_no_motion_gets_the_end_at_once(show):
    page = show("en", reduced_motion="reduce")
    page.get_by_role("button", name="Play").click()
    assert model(page, "step") == [31] and page.get_by_role("button", name="Play").count() == 1


def test_closing_it_ends_the_playing(show):
    page = show("en", path_race.State(step=0))
    page.clock.install()
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(1000)
    (step,) = model(page, "step")
    assert 0 < step < 31
    page.evaluate("() => clean()")
    page.clock.run_for(5000)
    assert model(page, "step") == [step]


def test_the_number_of_words_and_the_kernel_are_controls(show):
    page = show("en")
    page.locator(".tl-count").fill("6")
    assert model(page, "n", "source", "target") == [6, 0, 5]
    assert page.locator(".tl-target").get_attribute("aria-valuetext") == "word 6"
    page.locator(".tl-count").fill("5")
    assert page.locator(".tl-target").get_attribute("aria-valuetext") == "cat"
    assert page.locator(".tl-strip .tl-gloss").all_text_contents()[1] == "犬"
    page.locator(".tl-kernel").select_option("5")
    assert table(page)[1][1] == "2"
