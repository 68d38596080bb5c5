"""The normalisation cube: its maths against the equations and the traps, its JavaScript against NumPy, its page in Chromium."""

import itertools
import json
import warnings
from dataclasses import asdict, replace

import explore_support as support
import numpy as np
import pytest

from transformer_lite import explore
from transformer_lite.equations import layer_norm
from transformer_lite.explore import norms
from transformer_lite.traps import norms as traps

CHOICES = list(itertools.product((False, True), repeat=3))
LAYER, BATCH = (False, False, True), (True, True, False)


def in_node(expression):
    return support.in_node("norm_cube", expression)


# --- maths ---


@pytest.mark.parametrize("shape", [(2, 3, 4), (1, 5, 2), (4, 1, 3)])
def test_over_the_features_it_is_the_equation(shape):
    x = np.random.default_rng(3).normal(2, 5, shape)
    ones, zeros = np.ones(shape[-1]), np.zeros(shape[-1])
    assert norms.normalise(x, LAYER).values == pytest.approx(layer_norm(x, ones, zeros))
    assert norms.normalise(x, LAYER).mean == pytest.approx(x.mean(axis=-1).ravel())


@pytest.mark.parametrize(("axes", "trap", "rms"), [(BATCH, "LN4", False), ((True, False, False), "LN1", False),
    ((False, True, False), "LN2", False), ((False, True, True), "LN3", False), (LAYER, "LN9", True)])  # fmt: skip
def test_each_named_choice_is_the_trap_of_the_catalogue(axes, trap, rms):
    x, ones, zeros = norms.batch(True), np.ones(4), np.zeros(4)
    outputs = [function(x, ones, zeros)[0] for function in traps.family.traps[trap].functions]
    found = norms.normalise(x, axes, rms).values
    assert any(np.allclose(found, output) for output in outputs)
    assert not np.allclose(found, layer_norm(x, ones, zeros))
    if not rms:
        assert norms.NAMES[axes] == trap


@pytest.mark.parametrize("axes", CHOICES)
def test_a_group_is_the_cells_that_differ_along_the_chosen_axes_only(axes):
    x = np.random.default_rng(5).normal(size=(2, 3, 4))
    found = norms.normalise(x, axes)
    for a, b in itertools.product(np.ndindex(x.shape), repeat=2):
        together = all(chosen or i == j for chosen, i, j in zip(axes, a, b, strict=True))
        assert (found.groups[a] == found.groups[b]) == together
    for group, (mean, variance) in enumerate(zip(found.mean, found.variance, strict=True)):
        members = x[found.groups == group]
        assert (mean, variance) == pytest.approx((members.mean(), members.var()))
        assert found.values[found.groups == group].mean() == pytest.approx(0, abs=1e-9)
    assert sorted(set(found.groups.ravel())) == list(range(len(found.mean)))


def test_rms_keeps_the_mean_and_makes_the_mean_square_one():
    found = norms.normalise(norms.batch(False), LAYER, rms=True)
    assert (found.values**2).mean(axis=-1) == pytest.approx(np.ones((2, 3)), abs=1e-4)
    assert np.abs(found.values.mean(axis=-1)).min() > 0.1


def test_only_groups_that_reach_across_the_batch_feel_the_other_sentence():
    for axes in CHOICES:
        for rms in (False, True):
            alone = not axes[0] or (not any(axes) and not rms)
            change = norms.largest_change(axes, rms)
            assert (change == 0) if alone else (change > 0.05), (axes, rms)


def test_what_the_question_and_the_notes_say_is_so():
    assert norms.START.axes == BATCH and not norms.START.replaced
    assert norms.largest_change(norms.START.axes) > 1
    assert set(np.abs(norms.normalise(norms.batch(False), (True, False, False)).values.ravel()).round(3)) <= {0.0, 1.0}
    alone = norms.batch(False)[:1]
    assert np.abs(norms.normalise(alone, (True, False, False)).values).max() == 0  # LN1 with a single sentence
    moved = norms.batch(False)
    moved[0, 2] += 3
    over_positions, whole_sentence = (False, True, False), (False, True, True)
    for axes, feels in ((over_positions, True), (whole_sentence, True), (LAYER, False)):  # does word 3 move word 1?
        change = np.abs(norms.normalise(moved, axes).values[0, 0] - norms.normalise(norms.batch(False), axes).values[0, 0])
        assert bool(change.max() > 0.01) is feels
    assert all(state.axes != BATCH or name == "LN4" for name, state in norms.PRESETS.items())


# --- the browser's maths ---


def test_the_browsers_normalisation_is_numpys():
    rng = np.random.default_rng(8)
    for x in (norms.batch(True), rng.normal(3, 4, (3, 2, 5))):
        for axes in CHOICES:
            for rms in (False, True):
                found = in_node(f"bench.normalise({json.dumps(x.tolist())}, {json.dumps(axes)}, {json.dumps(rms)})")
                expected = norms.normalise(x, axes, rms)
                for name in expected._fields:
                    assert np.array(found[name]) == pytest.approx(getattr(expected, name), abs=1e-9)


def test_the_browsers_changes_and_names_are_pythons():
    start = json.dumps(norms._numbers()["numbers"])
    for axes in CHOICES:
        for rms in (False, True):
            found = in_node(f"bench.largestChange({start}, {json.dumps(norms.OTHER)}, {json.dumps(axes)}, {json.dumps(rms)})")
            assert found == pytest.approx(norms.largest_change(axes, rms), abs=1e-9)
    assert in_node(f"{json.dumps(CHOICES)}.map(bench.nameOf)") == [norms.NAMES[axes] for axes in CHOICES]
    assert in_node("[0, 1, 23].map(bench.letter)") == [norms.letter(group) for group in (0, 1, 23)]


# --- the widget and its twin ---


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_every_state_has_a_picture_and_a_twin(lang):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for state in (*norms.PRESETS.values(), norms.State(False, False, False, replaced=True)):
            shown = norms.picture(lang, state)
            assert shown.png.startswith(b"\x89PNG") and len(shown.table) == 7
            assert norms.name(state, lang) in shown.text
    assert norms.twin("en", norms.State(False, False, True, replaced=True))[2].endswith("(largest change 0.000).")


def test_the_widget_follows_the_browser_and_its_language(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_STATIC", raising=False)
    bench = explore.explorer("normalisation-cube")(lang="ja", replaced=True)
    assert "BatchNorm" in bench.twin()[2]
    bench.set_state({"batch": False, "position": False, "feature": True, "rms": True, "token": 2})
    assert bench.state() == norms.State(False, False, True, True, True, 0, 2, 2)
    assert "RMSNorm" in bench.twin()[2]
    bench.lang = "en"
    assert bench.strings["reset"] == "Reset" and "dog" in bench.twin()[1][1][0] and bench.tokens[0][0]["gloss"] == "犬"
    data, _ = bench._repr_mimebundle_()
    assert bench.twin()[0] in data["text/plain"]
    with pytest.raises(ValueError, match="token must be between 0 and 2; got 3"):
        explore.explorer("normalisation-cube")(lang="en", token=3)


# --- the page ---


@pytest.fixture
def show(show_module):
    def open_cube(lang="ja", state=norms.START, **options):
        traits = {**norms._numbers(), **norms._texts(lang), **asdict(state), "initial": asdict(state), "preset": -1}
        return show_module("norm_cube", traits, **options)

    return open_cube


def model(page, *names):
    return [page.evaluate(f"() => model.get('{name}')") for name in names]


def values(page, side):
    return page.locator(f".tl-slices >> nth={side}").locator(".tl-value").all_text_contents()


def text_of(state):
    x, found = norms.batch(state.replaced), state.normalised()
    return [norms.number(value, 0) for value in x.ravel()], [norms.number(value) for value in found.values.ravel()]


def test_the_page_says_what_the_twin_says(show):
    page = show("en")
    for name, state in norms.PRESETS.items():
        page.get_by_role("button", name=norms._say(f"preset.{name}.label", "en"), exact=True).click()
        assert (values(page, 0), values(page, 1)) == text_of(state)
        shown = page.locator(".tl-norms").text_content()
        assert all(sentence in shown for sentence in norms._sayings(state, "en")), name
        assert page.locator(".tl-note").text_content() == norms._say(f"preset.{name}.note", "en")
        groups = page.locator(".tl-slices >> nth=0").locator(".tl-letter").all_text_contents()
        assert groups == [norms.letter(group) for group in state.normalised().groups.ravel()]
        assert page.locator(".tl-group-table tbody tr").count() == len(state.normalised().mean)
        assert ("mean square" in page.locator(".tl-group-table thead").text_content()) == state.rms
    page.get_by_role("button", name="Reset").click()
    assert model(page, "batch", "position", "feature", "rms", "replaced") == [True, True, False, False, False]


def test_replacing_the_other_sentence_moves_sentence_1_under_batch_norm_only(show):
    page = show("en")
    button = page.locator(".tl-replace")
    before = values(page, 1)[:12]
    button.click()
    assert values(page, 1)[:12] != before and page.locator(".tl-shifted").count() == 12
    assert f"up to {norms.largest_change(BATCH):.3f}" in page.locator(".tl-change").text_content()
    assert page.locator(".tl-was").first.text_content() == f"was {before[0]}"
    for axis in ("batch", "position"):
        page.locator(f".tl-axis-{axis}").uncheck()
    page.locator(".tl-axis-feature").check()
    assert "0.000" in page.locator(".tl-change").text_content() and page.locator(".tl-shifted").count() == 0
    layer = values(page, 1)[:12]
    button.focus()
    page.keyboard.press("Enter")
    assert model(page, "replaced") == [False] and values(page, 1)[:12] == layer
    assert page.evaluate("() => window.leaked") == 0


def test_keys_and_clicks_choose_the_cell(show):
    page = show("en")
    grid = page.locator(".tl-slices").first
    before, spoken = grid.screenshot(), grid.get_attribute("aria-label")
    grid.focus()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown"):  # stops at the edge, goes on to sentence 2
        page.keyboard.press(key)
    assert model(page, "sentence", "token", "component") == [1, 0, 3]
    assert grid.screenshot() != before and grid.get_attribute("aria-label") != spoken
    assert norms._cell(replace(norms.START, sentence=1, token=0, component=3), "en") in grid.get_attribute("aria-label")
    page.locator(".tl-slices").first.locator(".tl-norm-cell").nth(5).click()
    assert model(page, "sentence", "token", "component") == [0, 1, 1]
    assert page.locator(".tl-same-group").count() == 12  # six cells before, six after
    assert page.evaluate("() => window.leaked") == 0
