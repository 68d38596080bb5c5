"""The positional-encoding map: its maths against equations and traps, its JavaScript against NumPy, its page in Chromium."""

import json
import warnings
from dataclasses import asdict

import explore_support as support
import numpy as np
import pytest

from transformer_lite import explore
from transformer_lite.equations import positional_encoding
from transformer_lite.explore import positions
from transformer_lite.traps import positions as traps


def in_node(expression):
    return support.in_node("position_map", expression)


# --- maths ---


@pytest.mark.parametrize("d_model", positions.WIDTHS)
def test_the_papers_encoding_is_the_equation_and_its_frequencies_are_its_waves(d_model):
    assert (positions.encode(50, d_model) == positional_encoding(50, d_model)).all()
    waves = positions.frequencies(d_model)
    assert waves[0] == 1 and (waves[0::2] == waves[1::2]).all()
    assert 2 * np.pi / waves[-1] < 2 * np.pi * 10000


@pytest.mark.parametrize("trap", [kind for kind in positions.ENCODINGS if kind not in ("paper", "PE9")])
@pytest.mark.parametrize("d_model", [4, 64])
def test_each_trap_is_the_trap_of_the_catalogue(trap, d_model):
    (expected,) = traps.encoding_family.traps[trap].functions[0](20, d_model)
    assert positions.encode(20, d_model, trap) == pytest.approx(expected)
    assert not np.allclose(expected, positional_encoding(20, d_model))


def test_learned_vectors_look_random_and_are_always_the_same():
    table = positions.encode(50, 128, "PE9")
    assert abs(table.mean()) < 0.02 and table.std() == pytest.approx(1 / np.sqrt(3), abs=0.01)
    assert np.abs(np.corrcoef(table)[~np.eye(50, dtype=bool)]).max() < 0.45
    assert (positions.encode(10, 8, "PE9") == table[:10, :8]).all()


@pytest.mark.parametrize("kind", positions.ENCODINGS)
def test_a_step_is_one_rotation_only_where_a_pair_shares_a_frequency(kind):
    same = kind not in ("PE4", "PE9")
    for pair, offset in ((0, 1), (1, 7), (3, 20)):
        found = positions.turns(30, 8, pair, offset, kind)
        assert found.same is same
        if same:
            angle = positions.frequencies(8, kind)[2 * pair] * offset
            assert np.cos(found.angle - angle) == pytest.approx(np.ones(30))


def test_the_rotation_matrix_takes_every_position_k_further():
    encoding, k = positional_encoding(50, 16), 6
    for pair, wave in enumerate(positions.frequencies(16)[0::2]):
        c, s = np.cos(wave * k), np.sin(wave * k)
        turned = encoding[:-k, 2 * pair : 2 * pair + 2] @ np.array([[c, s], [-s, c]]).T
        assert turned == pytest.approx(encoding[k:, 2 * pair : 2 * pair + 2])


def test_the_dot_product_depends_on_the_offset_alone_and_not_on_its_sign():
    middle, left = positions.similarities(50, 64, 25), positions.similarities(50, 64, 10)
    assert middle[25] == pytest.approx(32) == pytest.approx(middle.max())
    assert middle[25:50] == pytest.approx(left[10:35])
    assert middle[25:0:-1] == pytest.approx(middle[25:50])
    learned = positions.similarities(50, 64, 25, "PE9"), positions.similarities(50, 64, 10, "PE9")
    assert not np.allclose(learned[0][25:50], learned[1][10:35])


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_without_positions_a_swap_of_words_changes_nothing_and_with_them_every_word(lang):
    assert positions.swap(lang, False).difference.max() < 1e-12
    for kind in positions.ENCODINGS:
        difference = positions.swap(lang, True, kind).difference
        assert difference.min() > 0.0005 and difference.max() > 0.05
    places = positions.swapped_places(lang)
    assert sorted(places) == list(range(5)) != places


def test_what_the_question_and_the_notes_say_is_so():
    assert (positions.frequencies(128)[0::2] > 0.1 - 1e-12).sum() == 17
    last = {kind: 2 * np.pi / positions.frequencies(64, kind)[62] for kind in ("paper", "PE3", "PE6")}
    assert {kind: round(wave) for kind, wave in last.items()} == {"paper": 47117, "PE3": 544, "PE6": 5063}
    assert positions.encode(1, 4, "PE1")[0].tolist() == [1, 0, 1, 0]
    assert positions.encode(1, 4, "PE5")[0].round(2).tolist() == [0.84, 0.54, 0.01, 1]
    assert positions.encode(2, 4)[1].round(2).tolist() == [0.84, 0.54, 0.01, 1]
    texts = [preset["note"] for lang in ("ja", "en") for preset in positions._texts(lang)["presets"]]
    for figure in ("47,117", "544", "5,063"):
        assert sum(figure in text for text in texts) >= 2


# --- the browser's maths ---


def test_the_browsers_encodings_turns_and_dot_products_are_numpys():
    for kind in positions.ENCODINGS:
        found = in_node(
            f"[bench.encode(70, 128, '{kind}'), bench.encode(7, 4, '{kind}'), bench.frequencies(16, '{kind}'), "
            f"bench.turns(30, 16, 3, 7, '{kind}'), bench.similarities(40, 16, 12, '{kind}')]"
        )
        assert np.array(found[0]) == pytest.approx(positions.encode(70, 128, kind), abs=1e-12)
        assert np.array(found[1]) == pytest.approx(positions.encode(7, 4, kind), abs=1e-12)
        assert np.array(found[2], dtype=float) == pytest.approx(positions.frequencies(16, kind), nan_ok=True)
        expected = positions.turns(30, 16, 3, 7, kind)
        assert found[3]["angle"] == pytest.approx(expected.angle, abs=1e-9) and found[3]["same"] is expected.same
        assert found[3]["radius"] == pytest.approx(expected.radius)
        assert found[4] == pytest.approx(positions.similarities(40, 16, 12, kind))


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_browsers_swap_is_numpys(lang):
    texts = positions._texts(lang)
    vectors = [entry["vector"] for entry in texts["sentence"]]
    for on, kind in ((False, "paper"), (True, "paper"), (True, "PE9")):
        found = in_node(f"bench.swap({json.dumps(vectors)}, {texts['places']}, {json.dumps(on)}, '{kind}')")
        expected = positions.swap(lang, on, kind)
        for name in expected._fields:
            assert np.array(found[name]) == pytest.approx(getattr(expected, name), abs=1e-12)


def test_the_browsers_colours_are_matplotlibs_and_its_list_of_pairs_is_pythons():
    from matplotlib import colormaps

    values = np.linspace(-1, 1, 41)
    found = np.array(in_node(f"{values.tolist()}.map(bench.signedShade)"))
    assert np.abs(found - 255 * colormaps["PuOr"]((values + 1) / 2)[:, :3]).max() <= 3
    for d_model, pair in ((4, 1), (16, 3), (64, 5), (128, 40)):
        assert in_node(f"bench.listedPairs({d_model}, {pair})") == positions.listed_pairs(d_model, pair)


# --- the widget and its twin ---


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_every_preset_has_a_picture_and_a_twin(lang):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for state in positions.PRESETS.values():
            shown = positions.picture(lang, state)
            assert shown.png.startswith(b"\x89PNG") and str(state.position) in shown.text
            assert len({len(row) for row in shown.table}) == 1 and len(set(shown.table[0])) == 6


def test_the_widget_follows_the_browser_its_language_and_its_limits(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_STATIC", raising=False)
    bench = explore.explorer("positional-encoding")(lang="ja")
    bench.set_state({"encoding": "PE6", "n": 10, "position": 40, "d_model": 4, "pair": 40})
    assert bench.state() == positions.State("PE6", 10, 4, 9, 1, 1)  # a cursor outside is drawn at the edge
    title, table, text = bench.twin()
    assert "PE6" in text and len(table) == 3
    bench.lang = "en"
    assert bench.strings["reset"] == "Reset" and bench.sentence[0]["word"] == "the" and bench.twin()[0] != title
    data, _ = bench._repr_mimebundle_()
    assert bench.twin()[0] in data["text/html"] and "<caption>" in data["text/html"]
    for wrong in ({"n": 51}, {"d_model": 5}, {"encoding": "PE2"}):
        with pytest.raises(Exception, match=r"trait|should be"):
            bench.set_trait(*next(iter(wrong.items())))


@pytest.mark.parametrize("wrong", [{"encoding": "PE2"}, {"n": 1}, {"d_model": 6}, {"pair": 64}, {"position": 50}, {"offset": 21}])
def test_a_start_outside_the_map_is_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        explore.explorer("positional-encoding")(lang="en", **wrong)


# --- the page ---


@pytest.fixture
def show(show_module):
    def open_map(lang="ja", state=positions.START, **options):
        return show_module(
            "position_map", {**positions._texts(lang), **asdict(state), "initial": asdict(state), "preset": -1}, **options
        )

    return open_map


def model(page, *names):
    return [page.evaluate(f"() => model.get('{name}')") for name in names]


def test_keys_move_the_cursor_and_the_picture_follows(show):
    page = show()
    place = page.locator(".tl-pe-map")
    before, spoken = place.screenshot(), place.get_attribute("aria-label")
    place.focus()
    for key in ("ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
    assert model(page, "position", "pair") == [25, 39]
    assert place.screenshot() != before and place.get_attribute("aria-label") != spoken
    expected = positions.encode(26, 128)[25, 78:80]
    assert f"({expected[0]:.3f}, {expected[1]:.3f})" in place.get_attribute("aria-label")
    wanted_after = {"Home": [25, 0], "End": [25, 63], "PageUp": [15, 63], "PageDown": [25, 63], "ArrowRight": [25, 63]}
    for key, wanted in wanted_after.items():
        page.keyboard.press(key)
        assert model(page, "position", "pair") == wanted
    assert page.evaluate("() => window.leaked") == 0


def test_the_mouse_moves_the_cursor(show):
    page = show()
    box = page.locator(".tl-pe-map").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.05)
    position, pair = model(page, "position", "pair")
    assert position in (0, 1) and 28 <= pair <= 32


def test_the_page_says_what_the_twin_says(show):
    for name, state in positions.PRESETS.items():
        page = show("en")
        page.get_by_role("button", name=positions._say(f"preset.{name}.label", "en"), exact=True).click()
        _, table, _ = positions.twin("en", state)
        page.locator("details:has(.tl-pair-table) summary").click()
        rows = page.locator(".tl-pair-table tbody tr")
        assert [rows.nth(i).locator("th, td").all_text_contents() for i in range(rows.count())] == table[1:]
        said = page.locator(".tl-pe-map").get_attribute("aria-label") + page.locator(".tl-positions").text_content()
        for sentence in (*positions._sentences("en", state), positions._say(f"preset.{name}.note", "en")):
            assert sentence in said
        page.get_by_role("button", name="Reset").click()
        assert model(page, "n", "d_model", "encoding") == [50, 128, "paper"]


def test_the_switch_of_the_swap_shows_the_differences(show):
    page = show("en")
    cells = page.locator(".tl-difference")
    assert cells.all_text_contents() == ["0.000"] * 5 and "0.000" in page.locator(".tl-swap-note").text_content()
    page.locator(".tl-with-positions").check()
    assert cells.all_text_contents() == [f"{value:.3f}" for value in positions.swap("en", True).difference]
    assert page.locator(".tl-moved").count() == 5


def test_the_formula_and_the_sizes_are_controls(show):
    page = show("en")
    image = page.locator(".tl-pe-map image")
    before = image.get_attribute("href")
    page.locator(".tl-encoding").select_option("PE9")
    assert image.get_attribute("href") != before
    page.locator(".tl-n").focus()
    page.keyboard.press("Home")
    assert model(page, "n", "position") == [2, 1]
    page.locator(".tl-d-model").select_option("4")
    assert model(page, "d_model", "pair") == [4, 1]
    assert page.locator(".tl-cell-numbers text").count() == 8
