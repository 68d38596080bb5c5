"""The commands train, translate and score: training a translator on the grammar or on files, and using it."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformer_lite import cli, language
from transformer_lite.language import current, message

PICTURES = (".png", ".html", ".htm")
AT_ONCE = 512  # lines that are translated together: the first ones are printed before the last ones are read


@contextmanager
def _explained() -> Iterator[None]:
    """What is wrong with the user's files, folder or device is said, not traced."""
    from transformer_lite.model.saving import BadModelFile
    from transformer_lite.translation import Refused

    try:
        yield
    except Refused as trouble:
        raise cli.UserTrouble(str(trouble)) from trouble
    except BadModelFile as trouble:
        raise cli.UserTrouble(message("cli.translation.bad_model", error=trouble)) from trouble
    except BrokenPipeError:  # such as into head, which has read enough: there is nobody to tell anything
        raise
    except OSError as trouble:  # a full disk, a folder that may not be written
        raise cli.UserTrouble(message("cli.translation.disk", error=trouble)) from trouble


def _print_json(figures: dict[str, Any]) -> None:
    """Print one line of JSON that any console and any reader of JSON takes."""
    text = json.dumps(figures, ensure_ascii=False, allow_nan=False)
    if language.printable(text, sys.stdout.encoding) != text:
        text = json.dumps(figures)
    print(text, flush=True)


def _needs(command: str, *names: str) -> None:
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    if missing:
        raise cli.UserTrouble(message("cli.translation.missing", command=command, names=", ".join(missing)))


def train(
    data: Sequence[str], out: Path, minutes: float | None, steps: int | None, seed: int, pieces: int, dev: Sequence[Path] | None,
    segment: bool | None, as_json: bool,
) -> int:  # fmt: skip
    """Train on ``grammar`` or on one or two files; go on where a training in ``out`` was interrupted."""
    if minutes is not None and steps is not None:
        raise cli.UserTrouble(message("cli.translation.one_budget"))
    on_grammar = list(data) == ["grammar"]
    if not on_grammar:
        _needs("train", "sentencepiece", "sacrebleu")
    from transformer_lite.translation import making, training

    already = training.finished(out)
    with _explained():
        usual = making.GRAMMAR_SETTINGS if on_grammar else making.TEXT_SETTINGS
        settings = making.longer(usual, minutes, steps, seed)
        try:
            with _bar(as_json or bool(already)) as report:
                if on_grammar:
                    made = making.on_grammar(out, settings, report=report)
                else:
                    made = making.on_text(out, data, settings, pieces, report=report, dev=dev, segment=segment)
            _draw_curve(out)
        except KeyboardInterrupt:  # before the first step, after the last one, or twice
            cli._say(message("cli.translation.interrupted"), error=True)
            return cli.INTERRUPTED
    figures = made.figures
    if as_json:
        _print_json(figures)
    else:
        cli._say(_how_it_went(figures, out, already, settings.check_every))
        for name in ("exact_unseen", "exact_held_out", "content_words_aligned", "alignment_error"):
            if name in figures:
                cli._say(message(f"cli.translation.{name}", share=f"{100 * figures[name]:.1f}"))
        if figures.get("empty_lines") or figures.get("too_long"):
            cli._say(message("cli.translation.left_out", empty=figures["empty_lines"], long=figures["too_long"]))
        if "dev_bleu" in figures:
            cli._say(message("cli.translation.dev_bleu", bleu=figures["dev_bleu"], nearest=figures["nearest_bleu"]))
        if not figures["finished"]:
            cli._say(message("cli.translation.interrupted"))
    if figures["finished"] and figures["steps"] < training.FEW_STEPS:
        cli._say(message("cli.translation.few_steps", steps=figures["steps"]), error=True)
    if not on_grammar and figures["pairs"] < making.FEW_PAIRS:
        cli._say(message("cli.translation.few_pairs", pairs=f"{figures['pairs']:,}"), error=True)
    return cli.DONE if figures["finished"] else cli.INTERRUPTED


def _how_it_went(figures: dict[str, Any], out: Path, already: int | None, check_every: int) -> str:
    """How far the training came, and whether there is a model now."""
    from transformer_lite.model import saving

    if already:
        return message("cli.translation.already", out=out, step=already)
    if not (out / saving.WEIGHTS).is_file():
        return message("cli.translation.no_model_yet", step=figures["step"], first=check_every)
    validated = figures["dev_loss"] is not None
    loss = message("cli.translation.dev_loss", loss=f"{figures['dev_loss']:.3f}") if validated else ""
    return message("cli.translation.trained", out=out, step=figures["step"], loss=loss)


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
    """The training curve as a picture beside its CSV, if a step has been taken."""
    from transformer_lite.explore import curves
    from transformer_lite.translation import training

    if not (out / training.CURVE).is_file() or not training.curve(out):
        return
    (out / "curve.png").write_bytes(curves.training_picture(training.curve(out)).png)


def translate(folder: Path, text: str | None, beam: int, show_attention: bool, picture: Path | None, as_json: bool) -> int:
    """Translate ``text``, or every line of the standard input if it is ``-`` or missing."""
    from transformer_lite.model import device
    from transformer_lite.translation import corpora
    from transformer_lite.translation.translator import TextTranslator

    _check_picture(picture)
    with _explained():
        translator = TextTranslator.load(folder, device())
        lines = _lines_of_input() if text in (None, "-") else [_argument(text)]
        refused = 0
        for start in range(0, len(lines), AT_ONCE):
            here = lines[start : start + AT_ONCE]
            asked = [translator.tidied(line) for line in here]
            troubles = [_trouble(translator, each) for each in asked]
            written = translator.translate(["" if trouble else each for each, trouble in zip(asked, troubles, strict=True)], beam)
            rows = zip(here, asked, troubles, written, strict=True)
            for number, (line, sentence, trouble, translation) in enumerate(rows, start + 1):
                for warning in [trouble] if trouble else _doubts(translator, sentence, translation):
                    named = message("cli.translation.line", line=number, warning=warning) if len(lines) > 1 else warning
                    cli._say(named, error=True)
                refused += trouble is not None
                translation = corpora.joined(translation) if translator.about.get("segmented") else translation
                if as_json:
                    _print_json({"source": line, "target": translation})
                elif trouble is None or len(lines) > 1:  # one line of the output for each of the input
                    cli._say(translation)
                if sentence.strip() and trouble is None and (show_attention or picture):
                    _show(translator.look(sentence, beam=beam), show_attention and not as_json, picture)
    return cli.MEND if refused else cli.DONE


def _doubts(translator: Any, sentence: str, translation: str) -> list[str]:
    """What speaks against a translation: words that were never seen, or nothing written."""
    doubts = translator.doubts(sentence)
    nothing = message("cli.translation.nothing", start=sentence[:40]) if sentence.strip() and not translation else None
    return [each for each in (doubts, nothing) if each]


def _lines_of_input() -> list[str]:
    """The lines of the standard input, without a BOM and without their ends, those of Windows as well."""
    if sys.stdin is None:
        raise cli.UserTrouble(message("cli.translation.no_input"))
    raw = sys.stdin.buffer.read() if hasattr(sys.stdin, "buffer") else sys.stdin.read().encode()
    encoding = sys.stdin.encoding or "utf-8"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise cli.UserTrouble(message("cli.translation.input_encoding", line=line, encoding=encoding)) from None
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _argument(text: str) -> str:
    """``text`` if there is something in it to translate."""
    if not text.strip():
        raise cli.UserTrouble(message("translation.translator.empty"))
    if any("\ud800" <= character <= "\udfff" for character in text):  # bytes that the terminal's encoding does not know
        raise cli.UserTrouble(message("cli.translation.argument_encoding", encoding=sys.getfilesystemencoding()))
    return text


def _check_picture(picture: Path | None) -> None:
    """Refuse a picture that cannot be written before anything is translated."""
    if picture is None:
        return
    if picture.suffix.lower() not in PICTURES:
        raise cli.UserTrouble(message("cli.translation.picture_kind", path=picture, known=", ".join(PICTURES)))
    if not picture.parent.is_dir() or picture.is_dir():
        raise cli.UserTrouble(message("cli.translation.picture_place", path=picture))


def _trouble(translator: Any, line: str) -> str | None:
    """Why the line cannot be translated, if it cannot."""
    from transformer_lite.translation import Refused

    try:
        translator.refuse(line)
    except Refused as refused:
        return str(refused)
    return None


def _show(looked: Any, on_terminal: bool, picture: Path | None) -> None:
    """The alignment, cross-attention of the last layer averaged over its heads: on the terminal, and as PNG or HTML."""
    from transformer_lite.explore import attention_picture
    from transformer_lite.explore.tables import plain_table

    weights = looked.cross[-1].mean(axis=0)  # (n_target, n_source)
    if on_terminal:
        shades = " ░▒▓█"
        bars = [[token, *(shades[min(4, int(5 * w))] * 2 + f"{100 * w:3.0f}" for w in row)]
                for token, row in zip(looked.target, weights, strict=True)]  # fmt: skip
        cli._say(message("cli.translation.attention_legend"))
        cli._say(plain_table([["", *looked.source], *bars]))
    if picture:
        title = message("cli.translation.attention")
        shown = attention_picture(weights, looked.target, looked.source, title=title, lang=current())
        if picture.suffix.lower() in (".html", ".htm"):
            picture.write_text(f"<!doctype html><meta charset=utf-8>{shown.html()}", "utf-8")
        else:
            picture.write_bytes(shown.png)
        cli._say(message("cli.translation.picture_written", path=picture), error=True)


def score(folder: Path, files: Sequence[Path], beam: int, tokenize: str, as_json: bool) -> int:
    """Translate the sources of parallel files and score the result against their targets."""
    _needs("score", "sacrebleu")
    from transformer_lite.model import device
    from transformer_lite.translation import corpora, making, scoring
    from transformer_lite.translation.translator import TextTranslator

    with _explained():
        scoring.bleu_measure(tokenize)  # a tokenizer that is not there is said before all is translated
        translator = TextTranslator.load(folder, device())
        pairs = corpora.read(files).pairs
        _check_lengths(translator, pairs)
        if translator.about.get("segmented"):
            pairs = making.in_words(pairs)
        sources, references = [translator.tidied(source) for source, _ in pairs], [target for _, target in pairs]
        written = translator.translate(sources, beam=beam)
        learned = _learned_from(translator)
        nearest = scoring.nearest(sources, learned) if learned else None
        if corpora.unsegmented(references):  # there are no words to compare
            written, nearest = [corpora.joined(each) for each in written], nearest and [corpora.joined(each) for each in nearest]
            if tokenize == "none":
                tokenize = "char"
                cli._say(message("cli.translation.by_characters"), error=True)
        found = scoring.scores(written, references, tokenize)
        exact = scoring.exact(written, references)
        baseline = scoring.scores(nearest, references, tokenize)[0].value if nearest else None
    if as_json:
        figures = {each.name: each.value for each in found} | {"exact": exact, "sentences": len(pairs), "nearest_BLEU": baseline}
        _print_json(figures | {"signatures": {each.name: each.signature for each in found}})
    else:
        for each in found:
            cli._say(f"{each.name} {each.value:.2f}  [{each.signature}]")
        if baseline is None:
            cli._say(message("cli.translation.no_baseline"))
        else:
            cli._say(message("cli.translation.baseline", bleu=f"{baseline:.2f}"))
        cli._say(message("cli.translation.exact", share=f"{100 * exact:.1f}", count=len(pairs)))
    return cli.DONE


def _check_lengths(translator: Any, pairs: Sequence[tuple[str, str]]) -> None:
    """Refuse a sentence that is too long, by its first words."""
    for source, _ in pairs:
        if trouble := _trouble(translator, source):
            raise cli.UserTrouble(message("cli.translation.sentence", start=source[:40], trouble=trouble))


def _learned_from(translator: Any) -> list[tuple[str, str]] | None:
    """The pairs that the translator was trained on, for the baseline that copies the nearest; None: they are not there now."""
    from transformer_lite.translation import corpora, grammar, making

    about = translator.about
    if about.get("data") == "grammar":
        return [(" ".join(p.source), " ".join(p.target)) for p in grammar.split(about["seed"], about["pairs"], 500, 500, 0).train]
    try:
        pairs = corpora.read(about.get("data") or [], tuple(about.get("columns", (0, 1)))).pairs
        return making.in_words(pairs) if about.get("segmented") else pairs
    except corpora.BadCorpus:
        return None
