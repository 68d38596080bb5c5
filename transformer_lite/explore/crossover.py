"""The crossover: what four kinds of layers cost as a sequence grows, and where one overtakes another (section 4 of the paper)."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from transformer_lite.equations import attention_cost, layer_cost
from transformer_lite.explore import figures
from transformer_lite.explore.controls import bench_class, script, static
from transformer_lite.explore.figures import Picture, number
from transformer_lite.language import check_language, message

LENGTHS = (4, 131_072)  # n, smallest and largest
WIDTHS = (64, 2_048)
# What each slider offers: two stops to a doubling, four for the length; k is odd, so that a window has a middle.
CHOICES = {
    "n": (*(2**power * step // 4 for power in range(2, 17) for step in (4, 5, 6, 7)), LENGTHS[1]),
    "d_model": (*(2**power * step // 2 for power in range(6, 11) for step in (2, 3)), WIDTHS[1]),
    "kernel": (3, 5, 7, 9, 15, 31),
    "neighbours": tuple(2**power for power in range(3, 11)),
}
RATIOS = (1, 2, 4)  # d_ff / d_model
VIEWS = ("table", "layer")
KINDS = ("attention", "recurrent", "convolution", "restricted")  # the rows of table 1, in its order
# Table 1 of the paper: complexity per layer, sequential operations, maximum path length.
ORDERS = {
    "attention": ("O(n²·d)", "O(1)", "O(1)"),
    "recurrent": ("O(n·d²)", "O(n)", "O(n)"),
    "convolution": ("O(k·n·d²)", "O(1)", "O(logₖ n)"),
    "restricted": ("O(r·n·d)", "O(1)", "O(n/r)"),
}
TERMS = {"projections": "4·n·d²", "scores": "n²·d", "weighted_sum": "n²·d", "feed_forward": "2·n·d·d_ff"}
QUADRATIC = ("scores", "weighted_sum")
SAMPLES = 161  # points of a curve

_WORDS = (
    "question", "open_answer", "answer", "hint", "n", "d_model", "kernel", "neighbours", "ratio", "view", "view_table",
    "view_layer", "double_n", "double_d_model", "plot_role", "plot_table", "plot_layer", "n_axis", "cost_axis", "table", "kind",
    "complexity", "grown", "sequential", "path", "kind_attention", "kind_recurrent", "kind_convolution", "kind_restricted",
    "short_attention", "short_recurrent", "short_convolution", "short_restricted", "layer", "term", "multiply_adds", "share",
    "term_projections", "term_scores", "term_weighted_sum", "term_feed_forward", "total", "weights", "waits", "quadratic",
    "linear", "sum", "now_table", "now_layer", "most", "least_waiting", "whole_sequence", "behind",
    "ahead", "level", "doubled_table", "doubled_layer", "group", "same", "comma", "and", "counting", "counting_text", "bar",
)  # fmt: skip


class Setting(NamedTuple):
    """What the explorer shows. The widths are those of the base model, and 5 and 64 the examples of the chapter."""

    n: int = 4_096
    d_model: int = 512
    kernel: int = 5  # k
    neighbours: int = 64  # r
    ratio: int = 4  # d_ff / d_model
    view: str = "table"

    @property
    def d_ff(self) -> int:
        return self.ratio * self.d_model


START = Setting()  # the surprise: the layer that waits least is the one with the most work
PRESETS: dict[str, tuple[Setting, dict[str, int]]] = {  # a setting, and what it was before something doubled
    "sentence": (Setting(n=30), {}),
    "book": (Setting(n=100_000), {}),
    "wide": (Setting(n=4_096, d_model=1_024), {"n": 4_096, "d_model": 512}),
    "hook": (Setting(n=1_024, view="layer"), {"n": 512, "d_model": 512}),
    "half": (Setting(n=3_072, view="layer"), {}),
    "book_layer": (Setting(n=100_000, view="layer"), {}),
}


def explorer(lang: str, **sizes: Any) -> Any:
    """The crossover: what self-attention, recurrence, convolution and restricted self-attention cost, and what a layer costs.

    Args:
        lang: ``"ja"`` or ``"en"``.
        sizes: where it starts: the fields of `Setting`.

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.

    Raises:
        ValueError: a size that the controls do not offer.
    """
    check_language(lang)
    first = START._replace(**sizes)
    for name, (smallest, largest) in {"n": LENGTHS, "d_model": WIDTHS}.items():
        if not isinstance(getattr(first, name), int) or not smallest <= getattr(first, name) <= largest:
            raise ValueError(f"{name} must be a whole number between {smallest} and {largest}; got {getattr(first, name)!r}.")
    for name, offered in {**{name: CHOICES[name] for name in ("kernel", "neighbours")}, "ratio": RATIOS, "view": VIEWS}.items():
        if getattr(first, name) not in offered:
            raise ValueError(f"{name} must be one of {', '.join(map(str, offered))}; got {getattr(first, name)!r}.")
    return picture(lang, first) if static() else widget_class()(lang, first)


# --- the numbers ---


def complexity(setting: Setting) -> dict[str, int]:
    """The multiply-adds of table 1 for each of `KINDS`: how the work that joins positions grows, without constants.

    A neighbourhood that is longer than the sequence is the whole sequence.

    Source: Vaswani et al. 2017, table 1.
    """
    n, d = setting.n, setting.d_model
    return {
        "attention": attention_cost(n, d).scores,
        "recurrent": n * d * d,
        "convolution": setting.kernel * n * d * d,
        "restricted": min(setting.neighbours, n) * n * d,
    }


def sequential(setting: Setting) -> dict[str, int]:
    """How many steps of one layer wait for one another: the third column of table 1."""
    return {kind: setting.n if kind == "recurrent" else 1 for kind in KINDS}


def path(setting: Setting) -> dict[str, int]:
    """The maximum path length: the last column of table 1, rounded up to whole layers.

    >>> path(Setting(n=125, kernel=5, neighbours=8))
    {'attention': 1, 'recurrent': 125, 'convolution': 3, 'restricted': 16}
    """
    layers = 1
    while setting.kernel**layers < setting.n:  # a logarithm in floating point would round 3 up to 4
        layers += 1
    return {"attention": 1, "recurrent": setting.n, "convolution": layers, "restricted": -(-setting.n // setting.neighbours)}


def crossings(setting: Setting) -> dict[str, int]:
    """The n from which on self-attention takes at least as much as each other kind, as they are in table 1."""
    d = setting.d_model
    return {"recurrent": d, "convolution": setting.kernel * d, "restricted": setting.neighbours}


def layer(setting: Setting) -> dict[str, int]:
    """The multiply-adds of a whole encoder layer by term, as `equations.layer_cost`."""
    return layer_cost(setting.n, setting.d_model, setting.d_ff)._asdict()


def quadratic(setting: Setting) -> int:
    """The part of the layer that grows with n²: scores and weighted sum, all pairs of positions."""
    return sum(attention_cost(setting.n, setting.d_model))


def share(setting: Setting) -> float:
    """The quadratic part in the whole layer, 0 to 1: n / (2d + d_ff + n)."""
    return quadratic(setting) / sum(layer(setting).values())


def overtakes(setting: Setting) -> int:
    """The n at which the quadratic part is half of the layer: 2n²d = 4nd² + 2nd·d_ff at n = 2d + d_ff."""
    return 2 * setting.d_model + setting.d_ff


def weights(setting: Setting) -> int:
    """The weights of a layer's matrices: they do not depend on n."""
    return 4 * setting.d_model**2 + 2 * setting.d_model * setting.d_ff


# --- words ---


def _say(key: str, lang: str, **parameters: object) -> str:
    return message(f"explore.crossover.{key}", lang, **parameters)


def whole(value: int) -> str:
    """8,589,934,592."""
    return f"{value:,}"


def _rounded(value: float, digits: int) -> str:
    """With a half rounded up, as the browser does. Ratios of powers of two are often such halves: 0.0625 is 0.063."""
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):,}"


def factor(ratio: float) -> str:
    """How many times as much: ×4.00, or ×0.059 where two decimals would leave little; from 100 on whole."""
    return "×" + _rounded(ratio, 0 if ratio >= 99.5 else 3 if ratio < 0.0995 else 2)


def percent(value: float) -> str:
    """1.0 %"""
    return f"{_rounded(100 * value, 1)} %"


def words(lang: str) -> dict[str, str]:
    """Every text that the explorer in the browser shows."""
    plain = {word: _say(word, lang) for word in _WORDS}
    costs = complexity(START)
    times = number(costs["attention"] / costs["recurrent"], 0)
    plain["question"] = _say("question", lang, n=whole(START.n), d=START.d_model, times=times)
    plain["answer"] = _say("answer", lang, d=START.d_model, twice=whole(2 * START.d_model))
    return plain | {word: message(f"explore.qkv.{word}", lang) for word in ("guess", "presets", "reset")}


def presets(lang: str) -> list[dict[str, Any]]:
    """The named settings; the numbers in their notes are computed."""
    made = []
    for name, (setting, before) in PRESETS.items():
        costs = complexity(setting)
        grown = sum(layer(setting).values()) / sum(layer(setting._replace(**before)).values())
        found = {
            "times": factor(costs["attention"] / costs["recurrent"])[1:],
            "waits": whole(setting.n),
            "percent": percent(share(setting)),
            "grown": number(grown),
            "overtakes": whole(overtakes(setting)),
        }
        note = _say(f"preset.{name}.note", lang, **found)
        made.append({"label": _say(f"preset.{name}.label", lang), "note": note, "before": before, **setting._asdict()})
    return made


def sentence(lang: str, setting: Setting, before: dict[str, int] | None = None) -> str:
    """What the state shows in words: the work and the waiting, or the layer's share; and what has doubled and quadrupled."""
    parts = _table_says(lang, setting) if setting.view == "table" else _layer_says(lang, setting)
    if before:
        parts.append(_doubled(lang, setting, before))
    return ("" if lang == "ja" else " ").join(parts)


def _table_says(lang: str, setting: Setting) -> list[str]:
    costs = complexity(setting)
    ratio = costs["attention"] / costs["recurrent"]
    highest = max(costs.values())
    most = [_say(f"short_{kind}", lang) for kind in KINDS if costs[kind] == highest]
    parts = [
        _say("now_table", lang, n=whole(setting.n), d=whole(setting.d_model), times=factor(ratio)[1:]),
        _say("most", lang, kinds=_say("and", lang).join(most)),
        _say("least_waiting", lang, n=whole(setting.n)),
    ]
    return parts + [_say("whole_sequence", lang, r=setting.neighbours)] * (setting.neighbours >= setting.n)


def _layer_says(lang: str, setting: Setting) -> list[str]:
    at = overtakes(setting)
    key = "level" if setting.n == at else "ahead" if setting.n > at else "behind"
    return [
        _say("now_layer", lang, n=whole(setting.n), d=whole(setting.d_model), percent=percent(share(setting))),
        _say(key, lang, at=whole(at)),
    ]


def _doubled(lang: str, setting: Setting, before: dict[str, int]) -> str:
    """By how much each line of the table has grown, lines that grew alike together."""
    old = setting._replace(**before)
    name = next(name for name in ("n", "d_model") if getattr(old, name) != getattr(setting, name))
    rows, names = (complexity, KINDS) if setting.view == "table" else (layer, tuple(TERMS))
    now, then = rows(setting), rows(old)
    groups: dict[str, list[str]] = {}
    prefix = "short" if setting.view == "table" else "term"
    for row in names:
        groups.setdefault(factor(now[row] / then[row])[1:], []).append(_say(f"{prefix}_{row}", lang))

    def spaced(members: list[str]) -> str:  # Japanese parts Latin letters from a particle by a space
        return _say("and", lang).join(members) + " " * (lang == "ja" and members[-1].isascii())

    listed = _say("comma", lang).join(_say("group", lang, rows=spaced(members), times=times) for times, members in groups.items())
    total = factor(sum(now.values()) / sum(then.values()))[1:]
    return _say(
        f"doubled_{setting.view}",
        lang,
        name="n" if name == "n" else "d",
        before=whole(getattr(old, name)),
        after=whole(getattr(setting, name)),
        groups=listed,
        total=total,
    )


# --- the widget ---


@cache
def widget_class() -> type:
    """The widget's class, made on first use so that importing this module loads neither anywidget nor ipywidgets."""
    import traitlets as t

    class Crossover(bench_class()):
        """Lives in the browser; the fields of `Setting`, and what they were before a doubling, come back as they are moved."""

        _esm = script("crossover")
        n = t.Int(START.n, min=LENGTHS[0], max=LENGTHS[1]).tag(sync=True)
        d_model = t.Int(START.d_model, min=WIDTHS[0], max=WIDTHS[1]).tag(sync=True)
        kernel = t.Enum(CHOICES["kernel"], START.kernel).tag(sync=True)
        neighbours = t.Enum(CHOICES["neighbours"], START.neighbours).tag(sync=True)
        ratio = t.Enum(RATIOS, START.ratio).tag(sync=True)
        view = t.Enum(VIEWS, START.view).tag(sync=True)
        before = t.Dict().tag(sync=True)
        preset = t.Int(-1).tag(sync=True)
        presets = t.List(t.Dict()).tag(sync=True)
        choices = t.Dict().tag(sync=True)
        orders = t.Dict().tag(sync=True)

        def __init__(self, lang: str, first: Setting) -> None:
            super().__init__(**traits(lang, first))

        def spoken(self, lang: str) -> dict[str, Any]:
            return texts(lang)

        @property
        def setting(self) -> Setting:
            """The sizes as they stand."""
            return Setting(*(getattr(self, name) for name in Setting._fields))

        def twin(self) -> tuple[str, list[list[str]], str]:
            return twin(self.lang, self.setting, self.before)

        def picture(self) -> Picture:
            return picture(self.lang, self.setting, self.before)

    return Crossover


def texts(lang: str) -> dict[str, Any]:
    """The traits that follow from the language."""
    return {"lang": lang, "strings": words(lang), "presets": presets(lang)}


def traits(lang: str, first: Setting = START) -> dict[str, Any]:
    """All traits of the first state."""
    state = {**first._asdict(), "before": {}}
    choices = {**{name: list(values) for name, values in CHOICES.items()}, "ratio": list(RATIOS)}
    orders = {"kinds": {kind: list(row) for kind, row in ORDERS.items()}, "terms": TERMS}
    return {**texts(lang), **state, "choices": choices, "orders": orders, "initial": state, "preset": -1}


# --- the static twin ---


def twin(lang: str, setting: Setting, before: dict[str, int] | None = None) -> tuple[str, list[list[str]], str]:
    """Title, table (table 1 with numbers, then a whole layer by term) and sentence of one state."""
    old = setting._replace(**(before or {}))
    table = [[_say("kind", lang), *(_say(name, lang) for name in ("complexity", "grown", "sequential", "path"))]]
    costs, then, waits, hops = complexity(setting), complexity(old), sequential(setting), path(setting)
    for kind in KINDS:
        order = ORDERS[kind]
        grown = factor(costs[kind] / then[kind]) if before else ""
        cells = [f"{order[0]} = {whole(costs[kind])}", grown, *(f"{o} → {whole(v)}" for o, v in _pairs(order, waits, hops, kind))]
        table.append([_say(f"kind_{kind}", lang), *cells])
    table.append([_say("term", lang), _say("multiply_adds", lang), _say("grown", lang), _say("share", lang), ""])
    parts, parts_then = layer(setting), layer(old)
    everything, everything_then = sum(parts.values()), sum(parts_then.values())
    for term, formula in TERMS.items():
        grown = factor(parts[term] / parts_then[term]) if before else ""
        cells = [f"{formula} = {whole(parts[term])}", grown, percent(parts[term] / everything), ""]
        table.append([_say(f"term_{term}", lang), *cells])
    table.append([_say("total", lang), whole(everything), factor(everything / everything_then) if before else "", "100.0 %", ""])
    two = factor(quadratic(setting) / quadratic(old)) if before else ""
    table.append([_say("quadratic", lang), whole(quadratic(setting)), two, percent(share(setting)), ""])
    fixed = factor(weights(setting) / weights(old)) if before else ""
    table.append([_say("weights", lang), whole(weights(setting)), fixed, "", ""])
    return _say("title", lang), table, sentence(lang, setting, before)


def _pairs(order: tuple[str, str, str], waits: dict[str, int], hops: dict[str, int], kind: str) -> list[tuple[str, int]]:
    return [(order[1], waits[kind]), (order[2], hops[kind])]


def picture(lang: str, setting: Setting = START, before: dict[str, int] | None = None) -> Picture:
    """Table 1 as curves and, beside it, a whole layer, both against n, with what crosses where; with matplotlib."""
    title, table, text = twin(lang, setting, before)
    lengths = np.unique(np.geomspace(*LENGTHS, SAMPLES).round().astype(int)).tolist()
    with figures.style():
        figure = figures.new_figure(900, 430)
        left, right = figure.subplots(1, 2, sharey=True)
        paper = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5}
        exact = [setting._replace(n=n) for n in lengths]
        for i, kind in enumerate(KINDS):
            look = {"color": figures.COLOURS[i], "linestyle": figures.DASHES[i], "linewidth": 2}
            left.plot(lengths, [complexity(one)[kind] for one in exact], label=_say(f"kind_{kind}", lang), **look)
            left.plot(setting.n, complexity(setting)[kind], marker=figures.MARKERS[i], color=figures.COLOURS[i], markersize=8)
        for kind, n in crossings(setting).items():
            at = complexity(setting._replace(n=n))["attention"]
            left.plot(n, at, "o", color="black", markersize=9, fillstyle="none", markeredgewidth=1.5)
            away = {"xytext": (-8, 7), "ha": "right"} if kind == "convolution" else {"xytext": (7, -13)}
            left.annotate(_mark(kind, n), (n, at), textcoords="offset points", size=9, bbox=paper, **away)
        left.set_title(_say("plot_table", lang), size=11)

        curves = {
            "quadratic": [quadratic(one) for one in exact],
            "linear": [sum(layer(one).values()) - quadratic(one) for one in exact],
            "sum": [sum(layer(one).values()) for one in exact],
        }
        for i, (name, costs) in enumerate(curves.items()):
            look = {"color": (*figures.COLOURS[:2], "#555555")[i], "linestyle": figures.DASHES[i], "linewidth": 2 if i < 2 else 1}
            right.plot(lengths, costs, label=_say(name, lang), **look)
        at = overtakes(setting)
        height = quadratic(setting._replace(n=at))
        right.plot(at, height, "o", color="black", markersize=9, fillstyle="none", markeredgewidth=1.5)
        right.annotate(f"n = 2d + d_ff = {whole(at)}", (at, height), (7, -13), textcoords="offset points", size=9, bbox=paper)
        right.set_title(f"{_say('plot_layer', lang)}: {percent(share(setting))}", size=11)
        for axes in (left, right):
            axes.axvline(setting.n, color="#777777", linewidth=1, linestyle=":")
            axes.set(xscale="log", yscale="log", xlim=LENGTHS, xlabel=f"{_say('n_axis', lang)} ({whole(setting.n)})")
            axes.grid(True, color="#dddddd", linewidth=0.8)
            axes.legend(loc="upper left", frameon=True, fontsize=9)
        left.set_ylabel(_say("cost_axis", lang))
        figure.suptitle(f"d = {setting.d_model}, k = {setting.kernel}, r = {setting.neighbours}, d_ff = {setting.d_ff}", size=10)
        png = figures.to_png(figure)
    return Picture(png, title, table, text, lang)


def _mark(kind: str, n: int) -> str:
    """What stands at a crossing: n = d = 512."""
    return f"n = {({'recurrent': 'd', 'convolution': 'k·d', 'restricted': 'r'})[kind]} = {whole(n)}"
