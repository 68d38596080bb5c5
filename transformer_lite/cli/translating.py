"""The commands train, translate and score: training a translator on the grammar or on files, and using it."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformer_lite import cli
from transformer_lite.language import current, message


@contextmanager
def _explained() -> Iterator[None]:
    """What is wrong with the user's files, folder or device is said, not traced."""
    from transformer_lite.model.saving import BadModelFile
    from transformer_lite.translation.corpora import BadCorpus

    try:
        yield
    except (FileNotFoundError, BadModelFile, BadCorpus, ValueError) as trouble:
        raise cli.UserTrouble(str(trouble)) from trouble


def _needs(*names: str) -> None:
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise cli.UserTrouble(message("cli.translation.missing", names=", ".join(missing)))


def train(
    data: Sequence[str], out: Path, minutes: float | None, steps: int | None, seed: int, pieces: int, dev: Sequence[Path] | None,
    as_json: bool,
) -> int:  # fmt: skip
    """Train on ``grammar`` or on one or two files; go on where a training in ``out`` was interrupted."""
    on_grammar = list(data) == ["grammar"]
    if not on_grammar:
        _needs("sentencepiece")
    from transformer_lite.translation import making

    with _explained():
        usual = making.GRAMMAR_SETTINGS if on_grammar else making.TEXT_SETTINGS
        settings = making.longer(usual, minutes, steps, seed)
        with _bar(as_json) as report:
            if on_grammar:
                made = making.on_grammar(out, settings, report=report)
            else:
                made = making.on_text(out, data, settings, pieces, report=report, dev=dev)
    figures = made.figures
    _draw_curve(out)
    if as_json:
        print(json.dumps(figures, ensure_ascii=False))
    else:
        cli._say(message("cli.translation.trained", out=out, step=figures["step"], loss=f"{figures['dev_loss']:.3f}"))
        for name in ("exact_unseen", "exact_held_out", "alignment_error"):
            if name in figures:
                cli._say(message(f"cli.translation.{name}", share=f"{100 * figures[name]:.1f}"))
        if not figures["finished"]:
            cli._say(message("cli.translation.interrupted"))
    return cli.DONE if figures["finished"] else cli.INTERRUPTED


@contextmanager
def _bar(quiet: bool) -> Iterator[Any]:
    """A progress bar on the terminal, with loss and tokens a second; lines now and then where there is none."""
    if quiet:
        yield lambda progress: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task(message("cli.translation.counting"), total=None)

        def report(progress: Any) -> None:
            speed = f"{progress.tokens_per_second:,.0f}"
            text = message("cli.translation.progress", step=progress.step, loss=f"{progress.loss:.2f}", speed=speed)
            shown.update(task, total=progress.steps, completed=progress.step, description=text)

        yield report


def _draw_curve(out: Path) -> None:
    """The training curve as a picture beside its CSV."""
    from transformer_lite.explore import figures
    from transformer_lite.translation import training

    rows = training.curve(out)
    steps = [row["step"] for row in rows]
    every = max(1, len(rows) // 400)
    checked = [(row["step"], row["dev_loss"]) for row in rows if "dev_loss" in row]
    lang = current()
    with figures.style():
        drawn = figures.new_figure(720, 420)
        axes = drawn.add_subplot()
        axes.plot(steps[::every], [row["loss"] for row in rows][::every], color=figures.COLOURS[0], linewidth=1,
                  label=message("cli.translation.curve_loss", lang))  # fmt: skip
        if checked:
            name = message("cli.translation.curve_dev", lang)
            axes.plot(*zip(*checked, strict=True), "s--", color=figures.COLOURS[1], label=name)
        axes.set(xlabel=message("cli.translation.curve_step", lang), ylabel="nats")
        axes.legend(frameon=False)
        (out / "curve.png").write_bytes(figures.to_png(drawn))


def translate(folder: Path, text: str | None, beam: int, show_attention: bool, picture: Path | None, as_json: bool) -> int:
    """Translate ``text``, or every line of the standard input if it is ``-`` or missing."""
    from transformer_lite.model import device
    from transformer_lite.translation.translator import TextTranslator

    with _explained():
        translator = TextTranslator.load(folder, device())
        lines = [line.rstrip("\n") for line in sys.stdin] if text in (None, "-") else [text]
        written = translator.translate(lines, beam=beam)
        for line, translation in zip(lines, written, strict=True):
            unknown = translator.unknown(line)
            if unknown:
                cli._say(message("cli.translation.unknown", words=", ".join(unknown)), error=True)
            if as_json:
                print(json.dumps({"source": line, "target": translation}, ensure_ascii=False))
            else:
                cli._say(translation)
            if line.strip() and (show_attention or picture):
                _show(translator.look(line, beam=beam), show_attention and not as_json, picture)
    return cli.DONE


def _show(looked: Any, on_terminal: bool, picture: Path | None) -> None:
    """The alignment, cross-attention of the last layer averaged over its heads: on the terminal, and as PNG or HTML."""
    from transformer_lite.explore import attention_picture
    from transformer_lite.explore.tables import plain_table

    weights = looked.cross[-1].mean(axis=0)  # (n_target, n_source)
    if on_terminal:
        shades = " ░▒▓█"
        bars = [[token, *(shades[min(4, int(5 * w))] * 2 + f"{100 * w:3.0f}" for w in row)]
                for token, row in zip(looked.target, weights, strict=True)]  # fmt: skip
        cli._say(plain_table([["", *looked.source], *bars]))
    if picture:
        title = message("cli.translation.attention")
        shown = attention_picture(weights, looked.target, looked.source, title=title, lang=current())
        if picture.suffix.lower() in (".html", ".htm"):
            picture.write_text(f"<!doctype html><meta charset=utf-8>{shown.html()}", "utf-8")
        else:
            picture.write_bytes(shown.png)


def score(folder: Path, files: Sequence[Path], beam: int, tokenize: str, as_json: bool) -> int:
    """Translate the sources of parallel files and score the result against their targets."""
    _needs("sacrebleu")
    from transformer_lite.model import device
    from transformer_lite.translation import corpora, scoring
    from transformer_lite.translation.translator import TextTranslator

    with _explained():
        pairs = corpora.read(files).pairs
        translator = TextTranslator.load(folder, device())
        written = translator.translate([source for source, _ in pairs], beam=beam)
        references = [target for _, target in pairs]
        found = scoring.scores(written, references, tokenize)
        exact = scoring.exact(written, references)
    if as_json:
        figures = {each.name: each.value for each in found} | {"exact": exact, "sentences": len(pairs)}
        print(json.dumps(figures | {"signatures": {each.name: each.signature for each in found}}, ensure_ascii=False))
    else:
        for each in found:
            cli._say(f"{each.name} {each.value:.2f}  [{each.signature}]")
        cli._say(message("cli.translation.exact", share=f"{100 * exact:.1f}", count=len(pairs)))
    return cli.DONE

