"""The exam map: every point of both syllabuses, the sections that teach it, its questions and traps; and the page to print."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from transformer_lite import content, course, journal
from transformer_lite.explore.tables import Page, plain_table
from transformer_lite.lab.examining import G, plain, section_of
from transformer_lite.lab.session import events, friendly, say, static
from transformer_lite.language import current, message, printable

if TYPE_CHECKING:
    from transformer_lite.content import exams
    from transformer_lite.content.schema import Question, Trap

MOST_TRAPS = 3  # of a point; the others are counted


@dataclass(frozen=True)
class Row:
    """One point: where it is taught, what asks it, what it is mistaken for."""

    name: str
    places: Sequence[tuple[str, str]]  # (title, file of the notebook)
    questions: Sequence[str]  # ids
    right: int  # of these, as far as the journal tells
    traps: Sequence[str]  # titles

    def asked(self) -> str:
        """How many questions, and how many of them were right at last."""
        return message("lab.map.asked", count=len(self.questions), right=self.right)

    def tempting(self) -> str:
        """The first traps by title."""
        more = len(self.traps) - MOST_TRAPS
        shown = message("lab.map.semicolon").join(self.traps[:MOST_TRAPS])
        return shown + (message("lab.map.more", count=more) if more > 0 else "")


@dataclass(frozen=True)
class Field:
    """One field of the syllabus."""

    title: str
    rows: Sequence[Row]

    def header(self) -> list[str]:
        """The names of the columns."""
        return [message(f"lab.map.{column}") for column in ("point", "where", "questions", "traps")]

    def html(self) -> str:
        """The field as an HTML table; every section links to its notebook."""
        left = ' style="text-align:left;vertical-align:top"'
        head = "".join(f'<th scope="col"{left}>{escape(name)}</th>' for name in self.header())
        body = []
        for row in self.rows:
            where = "<br>".join(f'<a href="{escape(file, quote=True)}">{escape(title)}</a>' for title, file in row.places)
            cells = (where, escape(row.asked()), escape(row.tempting()))
            body.append(
                f'<tr><th scope="row"{left}>{escape(row.name)}</th>{"".join(f"<td{left}>{cell}</td>" for cell in cells)}</tr>'
            )
        return (
            f"<table><caption>{escape(self.title)}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
        )

    def text(self) -> str:
        """The field as aligned text."""
        comma = message("lab.map.semicolon")
        rows = [[row.name, comma.join(title for title, _ in row.places), row.asked(), row.tempting()] for row in self.rows]
        return f"{self.title}\n{plain_table([self.header(), *rows])}"


@friendly
def exam_map(exam: str) -> Page:
    """Every point of an exam's syllabus (非公式 / unofficial): the sections that teach it, its questions, its traps.

    Made from ``syllabus.yaml``, the chapters, the bank and ``traps.yaml``.

    Args:
        exam: "g-kentei" or "e-shikaku".

    Raises:
        LabError: another exam.
    """
    from transformer_lite.content import exams

    asked = _exam(exam, {each.id: each for each in exams.syllabus().exams})
    lang = current()
    fields = [
        Field(f"{item.name(lang)}  {item.number}".rstrip(), [_row(point, exam) for point in item.points]) for item in asked.items
    ]
    title = message("lab.map.title", exam=asked.name(lang), points=sum(len(each.rows) for each in fields))
    return Page(title, fields, note=exams.syllabus().unofficial(lang))


@friendly
def handout(exam: str) -> Sheet:
    """Show what to remember before an exam on one page (非公式 / unofficial), and write it as a file that prints on one A4 sheet.

    Args:
        exam: "g-kentei" or "e-shikaku".

    Raises:
        LabError: another exam.
    """
    from transformer_lite.content import exams

    found = _exam(exam, {each.exam: each for each in exams.handouts().handouts})
    lang = current()
    blocks = [(block.title(lang), [line(lang) for line in block.lines]) for block in found.blocks]
    sheet = Sheet(found.title(lang), blocks, exams.handouts().unofficial(lang), lang)
    if not static():
        path = Path(f"{exam}-{lang}.html")
        try:
            folder = Path.cwd() if journal.recording() else Path(tempfile.mkdtemp(prefix="transformer_lite_"))
            path = folder / path
            path.write_text(sheet.page(), "utf-8")
            say(message("lab.handout.written", path=path))
        except OSError as error:
            say(message("lab.handout.not_written", path=path, error=error))
    return sheet


@dataclass(frozen=True)
class Sheet:
    """Blocks of short lines: in the notebook side by side, as a file on one sheet of paper."""

    title: str
    blocks: Sequence[tuple[str, Sequence[str]]]
    note: str
    lang: str

    def html(self) -> str:
        """The sheet as it stands in a notebook."""
        box = "border:1px solid rgba(128,128,128,0.55);border-radius:4px;padding:4px 10px;flex:1 1 320px;box-sizing:border-box"
        parts = "".join(f'<div style="{box}">{_block(title, lines)}</div>' for title, lines in self.blocks)
        return (
            f'<div lang="{self.lang}"><p><strong>{escape(self.title)}</strong></p>'
            f'<div style="display:flex;flex-wrap:wrap;gap:8px">{parts}</div><p>{escape(self.note)}</p></div>'
        )

    def page(self) -> str:
        """The sheet as a page of its own, laid out for A4."""
        parts = "".join(f"<section>{_block(title, lines)}</section>" for title, lines in self.blocks)
        return (
            f'<!doctype html><html lang="{self.lang}"><head><meta charset="utf-8"><title>{escape(self.title)}</title>'
            f"<style>{_PAPER}</style></head><body><h1>{escape(self.title)}</h1><main>{parts}</main>"
            f"<footer>{escape(self.note)}</footer></body></html>\n"
        )

    def text(self) -> str:
        """The sheet as text."""
        blocks = ["\n".join([f"[{title}]", *(f"  {line}" for line in lines)]) for title, lines in self.blocks]
        return "\n\n".join([self.title, *blocks, self.note])

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return printable(self.text())


_PAPER = (
    # Japanese fonts draw √ as wide as a kanji, with a gap before what follows: a Latin font draws it instead.
    "@font-face{font-family:Root;src:local('Arial'),local('Liberation Sans'),local('DejaVu Sans');unicode-range:U+221A}"
    "@page{size:A4;margin:10mm}body{font:9.5pt/1.42 Root,'Noto Sans CJK JP','Noto Sans JP','Hiragino Sans','Yu Gothic',Meiryo,"
    "'IPAexGothic',sans-serif;color:#000;background:#fff;margin:0 auto;max-width:190mm}h1{font-size:14pt;margin:0 0 3mm}"
    "main{columns:2;column-gap:7mm}section{break-inside:avoid;border:0.3mm solid #888;border-radius:1mm;padding:1mm 3mm 2mm;"
    "margin:0 0 3mm}section strong{font-size:10.5pt}ul{margin:1mm 0 0;padding-left:4.5mm}li{margin:0 0 0.6mm;text-wrap:pretty}"
    ":lang(ja) li{word-break:auto-phrase}"
    "footer{font-size:8pt;margin-top:2mm}"
)


def _block(title: str, lines: Sequence[str]) -> str:
    return f"<strong>{escape(title)}</strong><ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _exam(name: str, known: dict[str, exams.ExamMap] | dict[str, exams.Handout]):
    if not isinstance(name, str) or name not in known:
        raise content.Unknown("exam", name, known)
    return known[name]


def _row(point: exams.Point, exam: str) -> Row:
    places = point.places()
    questions = [each for each in content.library().questions.values() if _asks(each, exam, places)]
    answers = journal.question_states(events())
    traps = [each for each in content.traps().values() if _tempts(each, exam) and (each.chapter, each.anchor) in places]
    return Row(
        point.name(current()),
        _places(point),
        [each.id for each in questions],
        sum(answers[each.id].correct is True for each in questions if each.id in answers),
        [each.title(current()) for each in sorted(traps, key=lambda trap: not trap.tempts)],
    )


def _asks(question: Question, exam: str, places: set[tuple[str, str]]) -> bool:
    return exam in question.exams and not question.retired and (question.chapter, question.anchor) in places


def _tempts(trap: Trap, exam: str) -> bool:
    """The G検定 asks for no code, so a mistake that only code can make is none of its traps."""
    return exam in trap.exams and (exam != G or trap.family == "idea")


def _places(point: exams.Point) -> list[tuple[str, str]]:
    """Chapter, number and title of the sections, each once, in order, and the notebook that holds it."""
    lang = current()
    found: dict[tuple[int, int], tuple[str, str]] = {}
    for chapter_id, anchors in point.sections.items():
        chapter = course.chapter(chapter_id)
        for anchor in anchors:
            inside = section_of(anchor, chapter)
            section = next((each for each in chapter.sections if each.id == inside), None)
            if section is not None:
                heading = plain(section.title(lang))
                named = message("lab.map.section", chapter=chapter.number, number=section.number, title=heading)
                found[chapter.number, section.number] = (named, f"{chapter.file}.ipynb")
    return [found[key] for key in sorted(found)]
