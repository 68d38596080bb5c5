"""The crossover: its numbers against the equations and the paper, the browser's against them, its page, its static twin."""

import json
import math
import re
import warnings

import explore_support as support
import pytest

from transformer_lite.equations import attention_cost, layer_cost
from transformer_lite.explore import crossover, explorer
from transformer_lite.explore.crossover import CHOICES, KINDS, PRESETS, START, Setting

SETTINGS = [
    Setting(n, d, kernel, neighbours, ratio, view)
    for i, n in enumerate((4, 30, 125, *CHOICES["n"][::9], 100_000))
    for d, kernel, neighbours in ((64, 3, 8), (512, 5, 64), (768, 31, 1024), (2048, 7, 128))
    for ratio, view in (((1, 2, 4)[i % 3], "table"), ((4, 1, 2)[i % 3], "layer"))
]


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_STATIC", raising=False)


def before_of(setting, name):
    """What the button "Double" leaves behind."""
    return {"n": setting.n, "d_model": setting.d_model, name: getattr(setting, name) // 2}


# --- The numbers ---


def test_complexities_are_table_1s():
    found = crossover.complexity(Setting(n=1000, d_model=512, kernel=5, neighbours=64))
    assert found == {
        "attention": 1000**2 * 512,
        "recurrent": 1000 * 512**2,
        "convolution": 5 * 1000 * 512**2,
        "restricted": 64 * 1000 * 512,
    }
    for setting in SETTINGS:
        assert crossover.complexity(setting)["attention"] == attention_cost(setting.n, setting.d_model).weighted_sum
    short = crossover.complexity(Setting(n=30, neighbours=64))
    assert short["restricted"] == short["attention"]  # a neighbourhood longer than the sentence is the sentence


def test_self_attention_is_below_the_others_before_the_crossings_and_above_them_after():
    for setting in SETTINGS:
        for kind, n in crossover.crossings(setting).items():
            at, earlier, later = (crossover.complexity(setting._replace(n=m)) for m in (n, n - 1, n + 1))
            assert at["attention"] == at[kind] and later["attention"] > later[kind]
            assert earlier["attention"] < earlier[kind] or kind == "restricted"  # before n = r both see everything
    assert crossover.crossings(START) == {"recurrent": 512, "convolution": 2560, "restricted": 64}
    assert crossover.crossings(START._replace(d_model=1024))["recurrent"] == 1024


@pytest.mark.parametrize(
    ("name", "fourfold"), [("n", {"attention"}), ("d_model", {"recurrent", "convolution"})]
)  # the chapter's second and third question
def test_what_becomes_four_times_as_much(name, fourfold):
    first, doubled = START, START._replace(**{name: 2 * getattr(START, name)})
    times = {kind: crossover.complexity(doubled)[kind] / crossover.complexity(first)[kind] for kind in KINDS}
    assert times == {kind: 4 if kind in fourfold else 2 for kind in KINDS}


def test_waiting_and_paths():
    for setting in SETTINGS:
        assert crossover.sequential(setting) == dict.fromkeys(KINDS, 1) | {"recurrent": setting.n}
        hops = crossover.path(setting)
        assert hops["attention"] == 1 and hops["recurrent"] == setting.n
        layers = hops["convolution"]
        assert setting.kernel**layers >= setting.n and (layers == 1 or setting.kernel ** (layers - 1) < setting.n)
        assert (hops["restricted"] - 1) * setting.neighbours < setting.n <= hops["restricted"] * setting.neighbours


def test_a_whole_layer_is_the_equations_and_its_share_is_the_chapters():
    for setting in SETTINGS:
        cost = layer_cost(setting.n, setting.d_model, setting.d_ff)
        assert crossover.layer(setting) == cost._asdict()
        assert crossover.quadratic(setting) == cost.scores + cost.weighted_sum
        assert crossover.share(setting) == pytest.approx((cost.scores + cost.weighted_sum) / sum(cost))
        at = crossover.overtakes(setting)
        assert crossover.share(setting._replace(n=at)) == pytest.approx(0.5)
        assert crossover.share(setting._replace(n=at - 1)) < 0.5 < crossover.share(setting._replace(n=at + 1))
    shown = {n: crossover.percent(crossover.share(Setting(n=n))) for n in (30, 512, 3072, 100_000)}
    assert shown == {30: "1.0 %", 512: "14.3 %", 3072: "50.0 %", 100_000: "97.0 %"}
    sizes = [(512, 4), (1024, 4), (512, 1)]
    assert [crossover.overtakes(Setting(d_model=d, ratio=ratio)) for d, ratio in sizes] == [3072, 6144, 1536]
    assert crossover.weights(Setting()) == 12 * 512**2


def test_it_starts_in_its_surprise_and_the_answer_is_so():
    costs = crossover.complexity(START)
    assert max(costs, key=costs.get) == "attention" and costs["attention"] == 8 * costs["recurrent"]
    assert crossover.sequential(START)["attention"] == 1
    for lang in ("ja", "en"):
        words = crossover.words(lang)
        assert "4,096" in words["question"] and "8" in words["question"]
        assert "n = d = 512" in words["answer"] and "1,024" in words["answer"] and "③" in words["answer"]


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_presets_say_what_they_do(lang):
    notes = {name: preset["note"] for name, preset in zip(PRESETS, crossover.presets(lang), strict=True)}
    figures = {"sentence": "0.059", "book": "195", "hook": "2.29", "half": "3,072", "book_layer": "97.0"}
    for name, figure in figures.items():
        assert figure in notes[name], name
    assert not any("{" in note for note in notes.values())
    for name, (setting, before) in PRESETS.items():
        text = crossover.sentence(lang, setting, before)
        assert ("2 倍（" in text or "has doubled" in text) == bool(before), name
        assert "4.00" in text or not before


def test_traps_that_notes_name_are_in_the_catalogue():
    from transformer_lite.content import traps

    for lang in ("ja", "en"):
        named = [key for preset in crossover.presets(lang) for key in re.findall(r"\b(?:MC|CO)\d+", preset["note"])]
        assert named == ["MC69", "CO2"] and all(key in traps() for key in named)


def test_factors_and_the_space_before_a_japanese_particle():
    assert [crossover.factor(value) for value in (4, 2.2857, 0.0586, 1 / 16, 1 / 8, 195.3, 100_000)] == [
        "×4.00", "×2.29", "×0.059", "×0.063", "×0.13", "×195", "×100,000",
    ]  # fmt: skip
    text = crossover.sentence("ja", *PRESETS["hook"])
    assert "FFN は 2.00 倍" in text and "加重和は 4.00 倍" in text


# --- The browser's numbers ---


def test_the_browser_computes_the_same():
    found = support.in_node(
        "crossover",
        f"{json.dumps([setting._asdict() for setting in SETTINGS])}.map((one) => [bench.complexity(one), bench.sequential(one),"
        " bench.path(one), bench.crossings(one), bench.layer(one), bench.quadratic(one), bench.share(one), bench.overtakes(one),"
        " bench.weights(one)])",
    )
    assert len(found) == len(SETTINGS) > 70
    for setting, one in zip(SETTINGS, found, strict=True):
        *exact, share, at, weights = one
        names = ("complexity", "sequential", "path", "crossings", "layer", "quadratic")
        for name, value in zip(names, exact, strict=True):
            assert value == getattr(crossover, name)(setting), (name, setting)
        assert share == pytest.approx(crossover.share(setting), abs=1e-12)
        assert (at, weights) == (crossover.overtakes(setting), crossover.weights(setting))


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_browser_says_what_the_twin_says(lang):
    cases = [(setting, {}) for setting in SETTINGS]
    cases += [(setting, before_of(setting, name)) for setting in SETTINGS if setting.n % 2 == 0 for name in ("n", "d_model")]
    given = [[setting._asdict(), before] for setting, before in cases]
    found = support.in_node(
        "crossover",
        f"((words) => {json.dumps(given)}.map(([one, before]) => bench.sentence(words, {json.dumps(lang)}, one, before)))"
        f"({json.dumps(crossover.words(lang))})",
    )
    for (setting, before), text in zip(cases, found, strict=True):
        assert text == crossover.sentence(lang, setting, before)


def test_the_browser_writes_numbers_as_the_twin_does_and_finds_the_nearest_stop():
    ratios = [4, 16 / 7, 0.0586, 0.5, 99.4, 99.6, 195.3, 1234.5]
    assert support.in_node("crossover", f"{ratios}.map(bench.factor)") == list(map(crossover.factor, ratios))
    shares = [0.0097, 0.0625, 0.5, 0.96987]
    assert support.in_node("crossover", f"{shares}.map(bench.percent)") == list(map(crossover.percent, shares))
    stops = json.dumps(CHOICES["n"])
    found = support.in_node("crossover", f"[4, 30, 512, 100000, 9e9].map((n) => {stops}[bench.nearest({stops}, n)])")
    assert found == [4, 28, 512, 98_304, 131_072] or found == [4, 32, 512, 98_304, 131_072]


# --- The page ---


@pytest.fixture
def show(show_module):
    def open_crossover(lang="ja", setting=START, **options):
        return show_module("crossover", crossover.traits(lang, setting), **options)

    return open_crossover


def state(page):
    return Setting(*(page.evaluate(f"() => model.get('{name}')") for name in Setting._fields))


def page_agrees(page, lang):
    """The page shows the sentence and the numbers of the twin for its state."""
    setting, before = state(page), page.evaluate("() => model.get('before')")
    _, table, text = crossover.twin(lang, setting, before)
    assert page.locator(".tl-now").text_content() == text
    rows = table[1:5] if setting.view == "table" else table[6:]
    shown = page.locator(".tl-cross-table tbody tr")
    for i, row in enumerate(rows):
        said = shown.nth(i).text_content()
        assert row[0] in said
        for number in re.findall(r"\d[\d,.]*", row[1].split("= ")[-1]):
            assert number in said
        assert row[2] in said


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_every_preset_and_the_first_state_show_their_numbers(show, lang):
    page = show(lang)
    page_agrees(page, lang)
    for index, ((setting, before), preset) in enumerate(zip(PRESETS.values(), crossover.presets(lang), strict=True)):
        page.locator(".tl-preset").nth(index).click()
        assert state(page) == setting and page.evaluate("() => model.get('before')") == before
        assert page.locator(".tl-note").text_content() == preset["note"]
        page_agrees(page, lang)
    page.locator(".tl-reset").click()
    assert state(page) == START and page.evaluate("() => model.get('before')") == {}


def test_doubling_shows_what_doubles_and_what_quadruples(show):
    page = show("en")
    times = page.locator(".tl-grown")
    assert set(times.all_text_contents()) == {"–"}
    page.locator(".tl-double-n").focus()
    page.keyboard.press("Enter")
    assert state(page).n == 8192 and times.all_text_contents() == ["×4.00", "×2.00", "×2.00", "×2.00"]
    assert page.locator(".tl-n").get_attribute("aria-valuetext") == "8,192" and page.locator("tbody th[scope=row]").count() == 4
    page.locator(".tl-view-layer").check()
    assert times.all_text_contents() == ["×2.00", "×4.00", "×4.00", "×2.00", "×3.14", "×4.00", "×1.00", "×1.00"]
    page.locator(".tl-view-table").check()
    page.locator(".tl-double-d_model").click()
    assert times.all_text_contents() == ["×2.00", "×4.00", "×4.00", "×2.00"] and page.locator(".tl-old").count() == 4
    page.locator(".tl-kernel").focus()
    page.keyboard.press("ArrowRight")  # another change: nothing has doubled any more
    assert set(times.all_text_contents()) == {"–"} and page.evaluate("() => model.get('before')") == {}
    page_agrees(page, "en")


def test_what_cannot_be_doubled_stays_and_says_so(show):
    page = show("en", Setting(n=100_000, d_model=2048))
    for name in ("n", "d_model"):
        button = page.locator(f".tl-double-{name}")
        assert button.get_attribute("aria-disabled") == "true"
        button.focus()
        page.keyboard.press("Enter")
    assert state(page) == Setting(n=100_000, d_model=2048) and page.evaluate("() => model.get('before')") == {}


def test_where_the_curves_cross_is_not_told_before_something_has_moved(show):
    page = show("en")
    names = page.locator(".tl-crossing-name")
    assert names.all_text_contents() == ["n = ?"] * 3 and page.locator(".tl-crossing").count() == 3
    page.locator(".tl-n").focus()
    page.keyboard.press("ArrowLeft")
    assert state(page).n == 3584 and names.all_text_contents() == ["n = d = 512", "n = k·d = 2,560", "n = r = 64"]
    page.locator(".tl-d_model").press("ArrowRight")
    assert names.first.text_content() == "n = d = 768"


def middle_of(page, selector):
    box = page.locator(selector).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_crossing_is_drawn_where_both_curves_are(show):
    """The marker of self-attention and that of the RNN fall together, in the circle, at n = d."""
    page = show("en", Setting(n=512, d_model=512))
    circle = middle_of(page, ".tl-crossing >> nth=0")
    for marker in (0, 1):
        assert middle_of(page, f".tl-cross-plot .tl-marker >> nth={marker}") == pytest.approx(circle, abs=1.0)
    page.locator(".tl-preset").nth(4).click()  # and in a whole layer at n = 2d + d_ff
    assert middle_of(page, ".tl-cross-plot .tl-marker >> nth=0") == pytest.approx(middle_of(page, ".tl-crossing"), abs=1.0)


def test_the_plot_moves_n_by_keys_and_by_dragging(show):
    page = show("en", Setting(n=30))
    plot = page.locator(".tl-cross-plot")
    plot.focus()
    seen = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "Home"):
        page.keyboard.press(key)
        seen.append(state(page).n)
    assert seen == [32, 40, 32, 131_072, 4]
    before = plot.screenshot()
    box = plot.bounding_box()

    def at(n):  # the plot's x of n, as it is drawn
        place = 46 + (458 - 46) * math.log(n / 4) / math.log(131_072 / 4)
        return box["x"] + place * box["width"] / 470

    page.mouse.move(at(512), box["y"] + 50)
    page.mouse.down()
    assert state(page).n == 512
    page.mouse.move(at(8192), box["y"] + 80, steps=3)
    assert state(page).n == 8192
    page.mouse.up()
    page.mouse.move(at(64), box["y"] + 80)
    assert state(page).n == 8192 and plot.screenshot() != before  # let go: it no longer follows
    assert "8,192" in plot.get_attribute("aria-label")


def test_the_layer_has_its_own_controls_and_its_shares(show):
    page = show("en", Setting(n=3072, view="layer"))
    assert page.locator(".tl-kernel").is_hidden() and page.locator(".tl-neighbours").is_hidden()
    assert page.locator(".tl-cross-bar").get_attribute("aria-label") == "quadratic part 50.0 %, linear maps and FFN 50.0 %"
    widths = [page.locator(f".tl-piece-{name}").bounding_box()["width"] for name in ("quadratic", "linear")]
    assert widths[0] == pytest.approx(widths[1], abs=2)
    page.locator(".tl-ratio").select_option("1")
    assert state(page).ratio == 1 and page.locator(".tl-crossing-name").text_content() == "n = 2d + d_ff = 1,536"
    page_agrees(page, "en")
    page.locator(".tl-view-table").check()
    assert page.locator(".tl-cross-bar").is_hidden() and page.locator(".tl-kernel").is_visible()


# --- The widget and its static twin ---


def test_what_the_browser_sends_arrives_and_a_size_it_does_not_offer_is_refused():
    bench = explorer("crossover")("ja")
    bench.set_state({"n": 1024, "view": "layer", "before": {"n": 512, "d_model": 512}})
    title, table, text = bench.twin()
    assert bench.setting == PRESETS["hook"][0] and title.startswith("交差点")
    assert "2.29 倍" in text and table[10][2] == "×2.29" and table[12][2] == "×1.00"
    for name, value in (("n", 3), ("d_model", 4096), ("kernel", 4), ("view", "nothing")):
        with pytest.raises(Exception, match=name):
            setattr(bench, name, value)
    bench.lang = "en"
    assert bench.strings["reset"] == "Reset" and "the whole layer 2.29 times" in bench.twin()[2]


def test_it_can_start_elsewhere_and_says_what_it_cannot():
    bench = explorer("crossover")("en", n=100_000, view="layer")
    assert bench.setting == PRESETS["book_layer"][0] and bench.initial["n"] == 100_000
    for wrong, told in (
        ({"n": 2}, "n must be a whole number between 4 and 131072; got 2"),
        ({"n": "8"}, "n must be a whole number .* got '8'"),
        ({"d_model": 65.5}, "d_model must be a whole number .* got 65.5"),
        ({"n": None}, "n must be a whole number .* got None"),
        ({"neighbours": 7}, "neighbours must be one of 8, 16"),
        ({"ratio": 3}, "ratio must be one of 1, 2, 4; got 3"),
    ):
        with pytest.raises(ValueError, match=told):
            explorer("crossover")("en", **wrong)
    with pytest.raises(ValueError, match="language"):
        explorer("crossover")("fr")


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_picture_follows_the_state(lang):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pictures = [crossover.picture(lang, *state) for state in ((START,), PRESETS["hook"])]
    assert pictures[0].png != pictures[1].png
    for shown in pictures:
        assert len({len(row) for row in shown.table}) == 1 and len(shown.table) == 1 + 4 + 1 + 4 + 3
        assert ".." not in shown.text and "。。" not in shown.text and "{" not in shown.text
