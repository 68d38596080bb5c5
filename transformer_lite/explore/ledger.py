"""The parameter ledger: how many numbers a Transformer learns, part by part, beside table 3 of the paper."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from transformer_lite.explore import figures
from transformer_lite.explore.controls import bench_class, script, static
from transformer_lite.explore.figures import Picture, number
from transformer_lite.language import check_language, message

# What each control offers; d_k = 0 stands for d_model / h.
CHOICES = {
    "d_model": (64, 128, 256, 512, 1024),
    "d_ff": (256, 512, 1024, 2048, 4096),
    "n_heads": (1, 2, 4, 8, 16, 32),
    "d_k": (0, 16, 32, 64, 128, 256, 512),
    "n_layers": tuple(range(1, 13)),
}
VOCAB = (1_000, 60_000, 100)  # smallest, largest, step
SYMBOLS = {"d_model": "d_model", "d_ff": "d_ff", "n_heads": "h", "d_k": "d_k", "n_layers": "N", "vocab_size": "V"}

_WORDS = (
    "question", "open_answer", "hint", "n_heads", "n_layers", "vocab_size", "tied", "biases", "ledger", "part", "times",
    "shared", "total", "share", "difference", "sum", "reference", "pin", "changed", "change", "same", "unchanged", "on", "off",
    "table", "row", "changes", "paper", "computed", "gap", "fit", "fits", "load", "why_title", "comma",
)  # fmt: skip


class Setting(NamedTuple):
    """The sizes of a Transformer. The defaults are the paper's base model; ``d_k`` 0 is d_model / h."""

    d_model: int = 512
    d_ff: int = 2048
    n_heads: int = 8
    d_k: int = 0
    n_layers: int = 6
    vocab_size: int = 37_000
    tied: bool = True  # both embeddings and the last linear map share one table
    biases: bool = False  # in the attentions; the paper writes none


BASE = Setting()
START = BASE._replace(n_heads=16)  # the surprise: twice as many heads, and not one parameter more
PRESETS = {
    "heads": START,
    "d_model": BASE._replace(d_model=1024),
    "d_ff": BASE._replace(d_ff=4096),
    "layers": BASE._replace(n_layers=12),
    "untied": BASE._replace(tied=False),
    "d_k": BASE._replace(n_heads=16, d_k=64),
    "vocab": BASE._replace(vocab_size=41_100),
    "big": BASE._replace(d_model=1024, d_ff=4096, n_heads=16),
}


class Entry(NamedTuple):
    """One line of the ledger: how many numbers one such part learns, and how many there are of it."""

    each: int
    count: int

    @property
    def total(self) -> int:
        return self.each * self.count


class Published(NamedTuple):
    """A row of table 3: its section, what it changes in the base model, and the parameters it names, in millions (None: none)."""

    row: str
    changes: dict[str, int]
    millions: int | None


# Vaswani et al. 2017, table 3. A row without a figure has the base model's. The four rows D change P_drop and ε_ls, no size.
TABLE_3 = (
    Published("base", {}, 65),
    Published("A", {"n_heads": 1}, None),
    Published("A", {"n_heads": 4}, None),
    Published("A", {"n_heads": 16}, None),
    Published("A", {"n_heads": 32}, None),
    Published("B", {"d_k": 16}, 58),
    Published("B", {"d_k": 32}, 60),
    Published("C", {"n_layers": 2}, 36),
    Published("C", {"n_layers": 4}, 50),
    Published("C", {"n_layers": 8}, 80),
    Published("C", {"d_model": 256}, 28),
    Published("C", {"d_model": 1024}, 168),
    Published("C", {"d_ff": 1024}, 53),
    Published("C", {"d_ff": 4096}, 90),
    Published("D", {}, None),
    Published("big", {"d_model": 1024, "d_ff": 4096, "n_heads": 16}, 213),
)


def explorer(lang: str, **sizes: Any) -> Any:
    """The parameter ledger: change the sizes, and see which part of the Transformer grows, and by how much.

    Args:
        lang: ``"ja"`` or ``"en"``.
        sizes: where it starts: the fields of `Setting` (``d_k`` 0 is d_model / h). It is compared with the base model.

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.

    Raises:
        ValueError: a size that the controls do not offer.
    """
    check_language(lang)
    first = START._replace(**sizes)
    for name, offered in CHOICES.items():
        if getattr(first, name) not in offered:
            raise ValueError(f"{name} must be one of {', '.join(map(str, offered))}; got {getattr(first, name)!r}.")
    smallest, largest, _ = VOCAB
    if not isinstance(first.vocab_size, int) or not smallest <= first.vocab_size <= largest:
        raise ValueError(f"vocab_size must be a whole number between {smallest} and {largest}; got {first.vocab_size!r}.")
    return picture(lang, first) if static() else widget_class()(lang, first)


# --- the numbers ---


def ledger(setting: Setting) -> dict[str, Entry]:
    """The learned numbers by part, from the embedding up.

    The sum is that of `equations.parameter_count`, plus two more tables where they are not tied.

    Source: Vaswani et al. 2017, §3.
    """
    d, d_ff, h, d_k, n, v, tied, biases = setting
    d_v = d // h
    d_k = d_k or d_v
    queries_and_keys = 2 * (d + biases) * h * d_k
    values = (d + biases) * h * d_v
    output = (h * d_v + biases) * d
    attention = queries_and_keys + values + output
    feed_forward = 2 * d * d_ff + d_ff + d
    norm = 2 * d
    return {
        "embedding": Entry(v * d, 1 if tied else 2),
        "positions": Entry(0, 1),
        "encoder_attention": Entry(attention, n),
        "encoder_ffn": Entry(feed_forward, n),
        "encoder_norm": Entry(norm, 2 * n),
        "decoder_attention": Entry(attention, n),
        "cross_attention": Entry(attention, n),
        "decoder_ffn": Entry(feed_forward, n),
        "decoder_norm": Entry(norm, 3 * n),
        "output": Entry(v * d, 0 if tied else 1),
    }


PARTS = tuple(ledger(BASE))


def total(setting: Setting) -> int:
    """All learned numbers."""
    return sum(entry.total for entry in ledger(setting).values())


def of_row(row: Published, setting: Setting) -> Setting:
    """The sizes of a row of table 3, with the vocabulary, tying and biases of ``setting``."""
    return BASE._replace(vocab_size=setting.vocab_size, tied=setting.tied, biases=setting.biases, **row.changes)


def fitting_vocab(row: Published, setting: Setting) -> float | None:
    """The vocabulary with which the row's count is what the paper names; None where it names none."""
    if row.millions is None:
        return None
    sizes = of_row(row, setting)
    tables = 1 if sizes.tied else 3
    return (row.millions * 1e6 - total(sizes._replace(vocab_size=0))) / (tables * sizes.d_model)


def agreeing(setting: Setting) -> tuple[int, int]:
    """How many rows of table 3 come out as the paper's figure when rounded to millions, and how many have a figure."""
    published = [row for row in TABLE_3 if row.millions is not None]
    return sum(_millions(total(of_row(row, setting))) == row.millions for row in published), len(published)


def _millions(parameters: int) -> int:
    """Rounded to whole millions, halves up."""
    return (parameters + 500_000) // 1_000_000


def formula(part: str, setting: Setting) -> str:
    """How the numbers of one such part come about, in the paper's symbols."""
    if part in ("embedding", "output"):
        return "V·d_model"
    if part == "positions":
        return "0"
    if part.endswith("norm"):
        return "2·d_model"
    if part.endswith("ffn"):
        return "2·d_model·d_ff + d_ff + d_model"
    if not setting.d_k:
        return "4·d_model²" + " + 4·d_model" * setting.biases
    return "2·d_model·h·d_k + 2·d_model²" + " + 2·h·d_k + 2·d_model" * setting.biases


# --- words ---


def _say(key: str, lang: str, **parameters: object) -> str:
    return message(f"explore.ledger.{key}", lang, **parameters)


def whole(value: int) -> str:
    """63,045,632, with a true minus sign."""
    return f"{value:,}".replace("-", "−")


def signed(value: float, digits: int = 0) -> str:
    """+1,024 or −1,024; ±0 for nothing."""
    text = f"{value:+,.{digits}f}"
    return text.replace("-", "−") if text.strip("+-0.,") else "±0" + text[2:]


def words(lang: str) -> dict[str, str]:
    """Every text that the ledger in the browser shows."""
    plain = {word: _say(word, lang) for word in _WORDS}
    plain |= {f"part_{part}": _say(f"part_{part}", lang) for part in PARTS}
    wide, narrow = total(PRESETS["d_model"]), total(BASE._replace(d_k=16))
    plain["answer"] = _say("answer", lang, total=whole(wide), ratio=number(wide / total(BASE)))
    plain["why"] = _say("why", lang, vocab=whole(PRESETS["vocab"].vocab_size), less=whole(total(BASE) - narrow))
    return plain | {word: message(f"explore.qkv.{word}", lang) for word in ("guess", "presets", "reset")}


def presets(lang: str) -> list[dict[str, Any]]:
    """The named settings, each beside the base model; their numbers are computed."""
    made = []
    for name, setting in PRESETS.items():
        found = total(setting)
        grown = {"total": whole(found), "more": whole(found - total(BASE)), "ratio": number(found / total(BASE))}
        fitting, published = agreeing(setting)
        note = _say(f"preset.{name}.note", lang, **grown, fitting=fitting, published=published)
        made.append({"label": _say(f"preset.{name}.label", lang), "note": note, "reference": BASE._asdict(), **setting._asdict()})
    return made


def row_changes(row: Published, lang: str) -> str:
    """What a row of table 3 changes, in symbols."""
    if row.row == "D":
        return _say("row_d", lang)
    changes = dict(row.changes)
    if row.row == "A":
        changes["d_k"] = BASE.d_model // changes["n_heads"]
    return _say("comma", lang).join(f"{SYMBOLS[name]} = {value}" for name, value in changes.items()) or _say("row_base", lang)


# --- the widget ---


@cache
def widget_class() -> type:
    """The widget's class, made on first use so that importing this module loads neither anywidget nor ipywidgets."""
    import traitlets as t

    class ParameterLedger(bench_class()):
        """Lives in the browser; the fields of `Setting`, and with what it is compared, come back as the learner moves them."""

        _esm = script("parameter_ledger")
        d_model = t.Enum(CHOICES["d_model"], START.d_model).tag(sync=True)
        d_ff = t.Enum(CHOICES["d_ff"], START.d_ff).tag(sync=True)
        n_heads = t.Enum(CHOICES["n_heads"], START.n_heads).tag(sync=True)
        d_k = t.Enum(CHOICES["d_k"], START.d_k).tag(sync=True)
        n_layers = t.Enum(CHOICES["n_layers"], START.n_layers).tag(sync=True)
        vocab_size = t.Int(START.vocab_size, min=VOCAB[0], max=VOCAB[1]).tag(sync=True)
        tied = t.Bool(START.tied).tag(sync=True)
        biases = t.Bool(START.biases).tag(sync=True)
        reference = t.Dict(BASE._asdict()).tag(sync=True)
        preset = t.Int(-1).tag(sync=True)
        presets = t.List(t.Dict()).tag(sync=True)
        choices = t.Dict().tag(sync=True)
        table_3 = t.List(t.Dict()).tag(sync=True)

        def __init__(self, lang: str, first: Setting) -> None:
            super().__init__(**traits(lang, first))

        def spoken(self, lang: str) -> dict[str, Any]:
            return texts(lang)

        @property
        def setting(self) -> Setting:
            """The sizes as they stand."""
            return Setting(*(getattr(self, name) for name in Setting._fields))

        def twin(self) -> tuple[str, list[list[str]], str]:
            return twin(self.lang, self.setting, Setting(**self.reference))

        def picture(self) -> Picture:
            return picture(self.lang, self.setting, Setting(**self.reference))

    return ParameterLedger


def texts(lang: str) -> dict[str, Any]:
    """The traits that follow from the language."""
    rows = [{"row": row.row, "changes": row.changes, "says": row_changes(row, lang), "millions": row.millions} for row in TABLE_3]
    return {"lang": lang, "strings": words(lang), "presets": presets(lang), "table_3": rows}


def traits(lang: str, first: Setting = START) -> dict[str, Any]:
    """All traits of the first state."""
    state = {**first._asdict(), "reference": BASE._asdict()}
    choices = {**{name: list(values) for name, values in CHOICES.items()}, "vocab_size": list(VOCAB)}
    return {**texts(lang), **state, "choices": choices, "initial": state, "preset": -1}


# --- the static twin ---


def twin(lang: str, setting: Setting, reference: Setting = BASE) -> tuple[str, list[list[str]], str]:
    """Title, table (the ledger, then table 3 of the paper) and sentence of one state."""
    parts, before, everything = ledger(setting), ledger(reference), total(setting)
    table = [[_say(name, lang) for name in ("part", "formula", "times", "total", "share", "difference")]]
    for name, entry in parts.items():
        share = f"{100 * entry.total / everything:.1f} %"
        difference = signed(entry.total - before[name].total)
        table.append(
            [_say(f"part_{name}", lang), formula(name, setting), _times(name, entry, lang), whole(entry.total), share, difference]
        )
    table.append([_say("sum", lang), "", "", whole(everything), "100.0 %", signed(everything - total(reference))])
    table.append([_say("row", lang), *(_say(name, lang) for name in ("changes", "paper", "computed", "gap", "fit"))])
    for row in TABLE_3:
        table.append([row.row, *_row_cells(row, setting, lang)])
    return _say("title", lang), table, sentence(lang, setting, reference)


def _times(part: str, entry: Entry, lang: str) -> str:
    return str(entry.count) if entry.count or part != "output" else _say("shared", lang)


def _row_cells(row: Published, setting: Setting, lang: str) -> list[str]:
    """What the row changes; the paper's figure, the computed one and their difference in millions; and the V that fits."""
    found = total(of_row(row, setting)) / 1e6
    fit = fitting_vocab(row, setting)
    if fit is None:
        return [row_changes(row, lang), f"({TABLE_3[0].millions})", number(found, 1), "–", "–"]
    gap = signed(found - row.millions, 1)  # type: ignore[operator]
    return [row_changes(row, lang), str(row.millions), number(found, 1), gap, whole(int(round(fit, -2)))]


def sentence(lang: str, setting: Setting, reference: Setting = BASE) -> str:
    """What was changed, what became of the total, and how many rows of table 3 agree with the paper."""
    fitting, published = agreeing(setting)
    gap = "" if lang == "ja" else " "
    return gap.join(
        [changed(lang, setting, reference), _say("fits", lang, n=fitting, of=published, vocab=whole(setting.vocab_size))]
    )


def changed(lang: str, setting: Setting, reference: Setting = BASE) -> str:
    """Every size that differs from the reference, and by how much the total does."""
    after, before = total(setting), total(reference)
    changes = [
        _say("change", lang, name=_say(name, lang) if name in ("tied", "biases") else SYMBOLS[name],
             before=_value(name, getattr(reference, name), lang), after=_value(name, value, lang))
        for name, value in setting._asdict().items()
        if value != getattr(reference, name)
    ]  # fmt: skip
    if not changes:
        return _say("same", lang, total=whole(after))
    key = "unchanged" if after == before else "changed"
    listed = _say("comma", lang).join(changes)
    return _say(key, lang, changes=listed, total=whole(after), difference=signed(after - before), ratio=number(after / before))


def _value(name: str, value: int, lang: str) -> str:
    if name in ("tied", "biases"):
        return _say("on" if value else "off", lang)
    if name == "d_k" and not value:
        return "d_model / h"
    return whole(value) if name == "vocab_size" else str(value)


def picture(lang: str, setting: Setting = START, reference: Setting = BASE) -> Picture:
    """The parts as bars, now and in the reference, and how far the count is from each figure of table 3; with matplotlib."""
    title, table, text = twin(lang, setting, reference)
    with figures.style():
        figure = figures.new_figure(900, 420)
        left, right = figure.subplots(1, 2, width_ratios=[1.25, 1.0])
        places = np.arange(len(PARTS))
        for values, shift, colour, hatch, name in (
            (ledger(setting), -0.2, figures.COLOURS[0], "", _say("now", lang)),
            (ledger(reference), 0.2, figures.COLOURS[4], "///", _say("reference_short", lang)),
        ):
            lengths = [entry.total / 1e6 for entry in values.values()]
            left.barh(
                places + shift, lengths, 0.38, color=colour, hatch=hatch, edgecolor="white" if hatch else colour, label=name
            )
        for place, entry in zip(places, ledger(setting).values(), strict=True):
            left.text(entry.total / 1e6, place - 0.2, f" {number(entry.total / 1e6, 1)}", va="center", size=8)
        left.set_yticks(places, [_say(f"part_{name}", lang) for name in PARTS])
        left.invert_yaxis()
        left.set_xlabel(_say("millions", lang))
        left.set_title(_say("drawn", lang, now=whole(total(setting)), reference=whole(total(reference))), size=10)
        left.legend(loc="lower right", frameon=True)

        published = [row for row in TABLE_3 if row.millions is not None]
        rows = np.arange(len(published))
        gaps = [total(of_row(row, setting)) / 1e6 - row.millions for row in published]  # type: ignore[operator]
        right.axvspan(-0.5, 0.5, color="#dddddd")
        right.axvline(0, color="black", linewidth=1)
        right.barh(rows, gaps, 0.5, color=figures.COLOURS[1])
        for row, gap in zip(rows, gaps, strict=True):
            right.text(gap, row, f" {signed(gap, 1)} ", va="center", ha="left" if gap > 0 else "right", size=8)
        names = [f"{row.row}: {row_changes(row, lang)}" if row.changes and row.row != "big" else row.row for row in published]
        right.set_yticks(rows, [f"{name} ({row.millions})" for name, row in zip(names, published, strict=True)])
        right.invert_yaxis()
        right.margins(x=0.2)
        right.set_xlabel(_say("rounding", lang))
        right.set_title(_say("gaps", lang, vocab=whole(setting.vocab_size)), size=10, loc="right")
        png = figures.to_png(figure)
    return Picture(png, title, table, text, lang)
