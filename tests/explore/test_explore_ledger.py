"""The parameter ledger: its counts against equations, model and paper, the browser's against them, its page, its twin."""

import itertools
import json

import explore_support as support
import numpy as np
import pytest

from transformer_lite.equations import parameter_count
from transformer_lite.explore import explorer, ledger
from transformer_lite.explore.ledger import BASE, CHOICES, TABLE_3, Setting


@pytest.fixture(autouse=True)
def live(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_STATIC", raising=False)


def some_settings(step):
    """Every ``step``-th of all that can be set, with three vocabularies."""
    names = [CHOICES[name] for name in ("d_model", "d_ff", "n_heads", "d_k", "n_layers")]
    every = itertools.product(*names, (1_000, 37_000, 59_900), (True, False), (True, False))
    return [Setting(*sizes) for sizes in itertools.islice(every, 0, None, step)]


# --- The numbers ---


def test_the_ledger_adds_up_to_the_equations_count():
    settings = [*some_settings(37), BASE, *ledger.PRESETS.values()]
    assert len(settings) > 2000
    for setting in settings:
        expected = parameter_count(
            setting.d_model,
            setting.d_ff,
            setting.n_layers,
            setting.vocab_size,
            setting.n_heads,
            setting.d_k or None,
            setting.biases,
        )
        untied = 0 if setting.tied else 2 * setting.vocab_size * setting.d_model
        assert ledger.total(setting) == expected + untied


def test_the_base_models_numbers_are_the_known_ones():
    assert ledger.total(BASE) == 63_045_632 and ledger.total(BASE._replace(biases=True)) == 63_082_496
    parts = ledger.ledger(BASE)
    assert parts["embedding"].total == 18_944_000 and parts["positions"].total == parts["output"].total == 0
    assert parts["encoder_attention"].each == 4 * 512**2
    layer = sum(parts[f"encoder_{name}"].total for name in ("attention", "ffn", "norm")) // 6
    assert layer == 3_150_336  # of which about two thirds are the feed-forward network
    assert 0.6 < parts["encoder_ffn"].each / layer < 0.7


def test_every_part_is_what_the_models_own_parameters_are():
    from transformer_lite.model import Transformer, TransformerConfig

    def part_of(name):
        stack = name.split(".")[0]
        if stack.endswith("embedding"):
            return "embedding"
        if ".norm." in name:
            return f"{stack}_norm"
        kind = next(kind for kind in ("feed_forward", "cross_attention", "self_attention") if f".{kind}." in name)
        return {"feed_forward": f"{stack}_ffn", "self_attention": f"{stack}_attention"}.get(kind, kind)

    setting = Setting(64, 256, 4, 16, 2, 100, biases=True)
    model = Transformer(TransformerConfig(source_vocab=100, d_model=64, d_ff=256, n_heads=4, d_k=16, n_layers=2))
    found = dict.fromkeys(ledger.PARTS, 0)
    for name, one in model.named_parameters():
        found[part_of(name)] += one.numel()
    assert found == {part: entry.total for part, entry in ledger.ledger(setting).items()}
    assert sum(value > 0 for value in found.values()) == len(ledger.PARTS) - 2  # not the sinusoids, nor the tied output


def test_untied_tables_are_the_models():
    from transformer_lite.model import TransformerConfig
    from transformer_lite.model.counting import parameters_of

    config = TransformerConfig.base(bias=False, tied=False, target_vocab=37_000)
    assert ledger.total(BASE._replace(tied=False)) == parameters_of(config)


def test_table_3_is_the_models_table_3():
    """Section E (learned positions) is not in it, and the four rows D, which change no size, are one."""
    from transformer_lite.model.counting import TABLE_3 as published
    from transformer_lite.model.counting import parameters_of

    theirs = {}
    for row in published:
        if row.row != "E":
            theirs.setdefault((row.row, parameters_of(row.config)), set()).add(row.millions)
    ours = {}
    for row in TABLE_3:
        ours.setdefault((row.row, ledger.total(ledger.of_row(row, BASE))), set()).add(row.millions)
    assert ours == theirs
    sizes = ("d_model", "d_ff", "n_heads", "n_layers")
    rows = [row for row in published if row.row not in ("D", "E")]
    for mine, row in zip([row for row in TABLE_3 if row.row != "D"], rows, strict=True):
        setting = ledger.of_row(mine, BASE)
        assert (mine.row, mine.millions) == (row.row, row.millions)
        assert [getattr(setting, name) for name in sizes] == [getattr(row.config, name) for name in sizes]
        assert (setting.d_k or None) == row.config.d_k
    assert sum(row.row == "D" for row in published) == 4 and {row.millions for row in published if row.row == "D"} == {None}


def test_more_heads_cost_nothing_and_what_the_answer_says_is_so():
    assert ledger.total(ledger.START) == ledger.total(BASE) and ledger.START.n_heads == 16 == 2 * BASE.n_heads
    assert [entry.total for entry in ledger.ledger(ledger.START).values()] == [
        entry.total for entry in ledger.ledger(BASE).values()
    ]
    before, wide = ledger.ledger(BASE), ledger.ledger(ledger.PRESETS["d_model"])
    assert wide["cross_attention"].total == 4 * before["cross_attention"].total
    assert wide["embedding"].total == 2 * before["embedding"].total
    assert wide["encoder_ffn"].total == pytest.approx(2 * before["encoder_ffn"].total, rel=0.001)
    assert 2 < ledger.total(ledger.PRESETS["d_model"]) / ledger.total(BASE) < 4
    assert ledger.total(ledger.PRESETS["d_k"]) > ledger.total(BASE)
    for lang in ("ja", "en"):
        answer = ledger.words(lang)["answer"]
        assert "②" in answer and "2.60" in answer and "163,815,424" in answer


def test_one_vocabulary_explains_every_row_but_big():
    assert ledger.agreeing(BASE) == (0, 11) and ledger.agreeing(ledger.PRESETS["vocab"]) == (10, 11)
    off = [row.row for row in TABLE_3 if row.millions is not None
           and round(ledger.total(ledger.of_row(row, ledger.PRESETS["vocab"])) / 1e6) != row.millions]  # fmt: skip
    assert off == ["big"]
    big = TABLE_3[-1]
    assert ledger.fitting_vocab(big, BASE) == pytest.approx(36_000, abs=500) and ledger.fitting_vocab(TABLE_3[1], BASE) is None
    for row in TABLE_3:
        fit = ledger.fitting_vocab(row, BASE)
        if fit is not None:
            sizes = ledger.of_row(row, BASE._replace(vocab_size=round(fit)))
            assert ledger.total(sizes) == pytest.approx(row.millions * 1e6, abs=sizes.d_model)
    narrow = ledger.total(BASE) - ledger.total(BASE._replace(d_k=16))
    assert narrow == 7_077_888 and "7,077,888" in ledger.words("ja")["why"]
    assert "41,100" in ledger.words("en")["why"]


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_presets_say_what_they_do(lang):
    notes = {name: preset["note"] for name, preset in zip(ledger.PRESETS, ledger.presets(lang), strict=True)}
    more = {"d_ff": "25,190,400", "untied": "37,888,000", "d_k": "9,437,184", "layers": "1.70", "big": "214,171,648"}
    for name, figure in {**more, "heads": "63,045,632", "d_model": "2.60", "vocab": "10"}.items():
        assert figure in notes[name], name
    grown = {name: {part for part in ledger.PARTS if ledger.ledger(setting)[part].total != ledger.ledger(BASE)[part].total}
             for name, setting in ledger.PRESETS.items()}  # fmt: skip
    assert grown["heads"] == set() and grown["d_ff"] == {"encoder_ffn", "decoder_ffn"}
    assert grown["untied"] == {"embedding", "output"} and grown["vocab"] == {"embedding"}


def test_formulas_give_the_numbers():
    """Each formula, with its symbols replaced by the sizes, is the number of one such part."""
    for setting in [*some_settings(1013), *ledger.PRESETS.values()]:
        values = {
            "d_model": setting.d_model,
            "d_ff": setting.d_ff,
            "h": setting.n_heads,
            "d_k": setting.d_k,
            "V": setting.vocab_size,
        }
        for part, entry in ledger.ledger(setting).items():
            expression = ledger.formula(part, setting).replace("²", "**2").replace("·", "*")
            assert eval(expression, {}, values) == entry.each, (part, setting)


def test_signs_and_separators():
    assert [ledger.signed(value) for value in (0, 1024, -1024)] == ["±0", "+1,024", "−1,024"]
    assert [ledger.signed(value, 1) for value in (0.04, -0.04, -1.25, 3)] == ["±0.0", "±0.0", "−1.2", "+3.0"]


# --- The browser's numbers ---


def test_the_browser_counts_the_same():
    settings = [*some_settings(211), BASE, *ledger.PRESETS.values()]
    rows = [{"changes": row.changes, "millions": row.millions} for row in TABLE_3]
    given = json.dumps([list(map(int, setting)) for setting in settings], separators=(",", ":"))
    found = support.in_node(
        "parameter_ledger",
        f"((rows, base) => {given}.map((sizes) => {{"
        f" const setting = Object.fromEntries({json.dumps(Setting._fields)}.map((name, i) => [name, sizes[i]]));"
        " setting.tied = Boolean(setting.tied); setting.biases = Boolean(setting.biases);"
        " const parts = bench.ledger(setting); const formulas = Object.keys(parts).map((part) => bench.formula(part, setting));"
        " return [parts, bench.total(setting), formulas,"
        " bench.agreeing(rows, base, setting), rows.map((row) => bench.total(bench.ofRow(row, base, setting))),"
        " rows.map((row) => row.millions === null ? null : bench.fittingVocab(row, base, setting))]; }))"
        f"({json.dumps(rows)}, {json.dumps(BASE._asdict())})",
    )
    assert len(found) == len(settings) > 350
    for setting, (parts, total, formulas, agreeing, totals, fits) in zip(settings, found, strict=True):
        assert parts == {part: entry._asdict() for part, entry in ledger.ledger(setting).items()}
        assert total == ledger.total(setting) and agreeing == ledger.agreeing(setting)[0]
        assert formulas == [ledger.formula(part, setting) for part in ledger.PARTS]
        assert totals == [ledger.total(ledger.of_row(row, setting)) for row in TABLE_3]
        for fit, row in zip(fits, TABLE_3, strict=True):
            assert fit == (None if row.millions is None else pytest.approx(ledger.fitting_vocab(row, setting)))


def test_the_browser_writes_numbers_as_the_twin_does():
    values = [0, 1024, -1024, 63_045_632]
    assert support.in_node("parameter_ledger", f"{values}.map((value) => bench.signed(value))") == list(
        map(ledger.signed, values)
    )
    small = [0.04, -0.04, -1.26, 3]
    expected = [ledger.signed(value, 1) for value in small]
    assert support.in_node("parameter_ledger", f"{small}.map((value) => bench.signed(value, 1))") == expected
    assert support.in_node("parameter_ledger", "bench.whole(-12345)") == ledger.whole(-12345) == "−12,345"


# --- The page ---


@pytest.fixture
def show(show_module):
    def open_ledger(lang="ja", setting=ledger.START, **options):
        return show_module("parameter_ledger", ledger.traits(lang, setting), **options)

    return open_ledger


def now(page):
    return Setting(*(page.evaluate(f"() => model.get('{name}')") for name in Setting._fields))


def page_agrees(page, lang):
    """The page shows the numbers of the twin for its state."""
    setting, reference = now(page), Setting(**page.evaluate("() => model.get('reference')"))
    _, table, text = ledger.twin(lang, setting, reference)
    shown = page.locator(".tl-parts tbody tr")
    for i in range(len(ledger.PARTS)):
        cells = shown.nth(i).locator("th, td").all_text_contents()
        name, formula, times, total, share, difference = table[1 + i]
        assert cells == [name + formula, times, total, share, difference]
    foot = page.locator(".tl-parts tfoot").locator("th, td").all_text_contents()
    assert [foot[0], foot[2], foot[4]] == [table[len(ledger.PARTS) + 1][k] for k in (0, 3, 5)]
    rows = [page.locator(".tl-paper tbody tr").nth(i).locator("th, td").all_text_contents() for i in range(len(TABLE_3))]
    assert rows == table[-len(TABLE_3) :]
    joint = "" if lang == "ja" else " "
    assert joint.join([page.locator(".tl-now").text_content(), page.locator(".tl-fits").text_content()]) == text
    bars = page.locator(".tl-share .tl-bar > span").evaluate_all("(all) => all.map((one) => parseFloat(one.style.width))")
    totals = np.array([entry.total for entry in ledger.ledger(setting).values()])
    assert bars == pytest.approx(list(100 * totals / totals.max()), abs=0.01)


def test_the_page_starts_in_its_surprise(show):
    page = show("en")
    page_agrees(page, "en")
    assert set(page.locator(".tl-parts .tl-difference").all_text_contents()) == {"±0"}
    assert "h 8 → 16: still 63,045,632" in page.locator(".tl-now").text_content()
    assert page.locator(".tl-changed").count() == 0 and page.locator(".tl-agrees").count() == 0


def test_arrow_keys_move_the_sizes_and_the_bars(show):
    page = show("en")
    assert page.locator(".tl-d_k").get_attribute("aria-valuetext") == "d_model / h = 32"
    picture = page.locator(".tl-books").screenshot()
    for name, key, expected in (("n_heads", "ArrowLeft", 8), ("d_model", "ArrowRight", 1024), ("d_ff", "ArrowRight", 4096),
                                ("n_layers", "ArrowLeft", 5), ("d_k", "ArrowRight", 16)):  # fmt: skip
        page.locator(f".tl-{name}").focus()
        page.keyboard.press(key)
        assert getattr(now(page), name) == expected
        page_agrees(page, "en")
    assert page.locator(".tl-books").screenshot() != picture
    page.locator(".tl-vocab").focus()
    page.keyboard.press("ArrowRight")
    assert now(page).vocab_size == 37_100 and page.locator(".tl-vocab").get_attribute("aria-valuetext") == "37,100"
    page_agrees(page, "en")
    assert page.evaluate("() => window.leaked") == 0


def test_switches_and_the_reference(show):
    page = show("en", BASE)
    assert "The same as the reference" in page.locator(".tl-now").text_content()
    page.get_by_role("checkbox", name="embeddings and output share one table").uncheck()
    assert now(page).tied is False and "+37,888,000" in page.locator(".tl-parts tfoot").text_content()
    page.get_by_role("checkbox", name="biases in attention").check()
    page_agrees(page, "en")
    page.get_by_role("button", name="Make this the reference").click()
    assert page.evaluate("() => model.get('reference')") == now(page)._asdict()
    assert page.locator(".tl-changed").count() == 0 and "100,970,496" in page.locator(".tl-pinned").text_content()
    page_agrees(page, "en")
    page.get_by_role("button", name="Reset").click()
    assert now(page) == BASE and page.evaluate("() => model.get('reference')") == BASE._asdict()


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_every_preset_shows_its_numbers(show, lang):
    page = show(lang)
    for index, (setting, preset) in enumerate(zip(ledger.PRESETS.values(), ledger.presets(lang), strict=True)):
        page.locator(".tl-preset").nth(index).click()
        assert now(page) == setting
        assert page.locator(".tl-note").text_content() == preset["note"]
        page_agrees(page, lang)


def test_a_row_of_table_3_is_loaded_with_the_vocabulary_as_it_is(show):
    page = show("en", BASE._replace(vocab_size=41_100))
    assert page.locator(".tl-agrees").count() == 10
    for index, row in enumerate(TABLE_3):
        page.locator(".tl-load").nth(index).click()
        assert now(page) == ledger.of_row(row, BASE._replace(vocab_size=41_100))
        assert "tl-current" in page.locator(".tl-paper tbody tr").nth(index).get_attribute("class")
    page_agrees(page, "en")
    assert page.get_by_role("button", name="load row A of table 3 (h = 4, d_k = 128)").count() == 1


# --- The widget and its static twin ---


def test_what_the_browser_sends_arrives_and_a_size_it_does_not_offer_is_refused():
    bench = explorer("parameter-ledger")("ja")
    bench.set_state({"d_model": 1024, "n_heads": 8})
    title, table, text = bench.twin()
    assert bench.setting == ledger.PRESETS["d_model"] and title.startswith("パラメータの帳簿")
    assert "163,815,424" in text and "d_model 512 → 1024" in text and table[11][3] == "163,815,424"
    for name, value in (("d_model", 500), ("n_layers", 0), ("vocab_size", 999), ("d_k", 3)):
        with pytest.raises(Exception, match=name):
            setattr(bench, name, value)
    bench.lang = "en"
    assert bench.strings["reset"] == "Reset" and "2.60 times as many" in bench.twin()[2]


def test_it_can_start_elsewhere_and_says_what_it_cannot():
    bench = explorer("parameter-ledger")("en", n_heads=8, tied=False)
    assert bench.setting == ledger.PRESETS["untied"] and bench.initial["tied"] is False
    for wrong, told in (
        ({"d_model": 500}, "d_model must be one of 64, 128"),
        ({"vocab_size": 10}, "between 1000 and 60000; got 10"),
        ({"vocab_size": "x"}, "vocab_size must be a whole number .* got 'x'"),
        ({"vocab_size": 1000.5}, "vocab_size must be a whole number .* got 1000.5"),
    ):
        with pytest.raises(ValueError, match=told):
            explorer("parameter-ledger")("en", **wrong)
    with pytest.raises(ValueError, match="language"):
        explorer("parameter-ledger")("fr")


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_the_picture_follows_the_state(lang):
    pictures = [ledger.picture(lang, setting) for setting in (ledger.START, ledger.PRESETS["vocab"])]
    assert pictures[0].png != pictures[1].png and len(pictures[0].table) == 1 + len(ledger.PARTS) + 2 + len(TABLE_3)
    assert all(len(row) == 6 for row in pictures[0].table)
    for shown in pictures:
        assert ".." not in shown.text and "。。" not in shown.text
