"""What the exams ask of a chapter: its traps as cards (what tempts, what is right), and where its questions come from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING

from transformer_lite import content, course
from transformer_lite.explore.figures import without_tex
from transformer_lite.explore.tables import Part
from transformer_lite.language import current, message

if TYPE_CHECKING:
    from transformer_lite.content.schema import Question, Trap

G, E = "g-kentei", "e-shikaku"
MOST_CARDS, LEAST_CARDS = 5, 3  # for each exam; the rest is folded
MOST_SECTIONS = 4
KINDS = ("single", "multiple", "numeric", "ordering", "matching", "recall")


@dataclass(frozen=True)
class Card:
    """One misconception, with the code that embodies it. ``lead`` words it."""

    lead: Trap
    twins: tuple[Trap, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the misconception and of its code traps."""
        return (self.lead.key, *(twin.key for twin in self.twins))

    def tempts(self) -> str:
        """Why it tempts, or where nobody has said that yet, what goes wrong; "" if neither."""
        lang = current()
        for trap in (self.lead, *self.twins):
            if trap.tempts:
                return message("lab.card_tempts", tempts=trap.tempts(lang))
        return message("lab.card_line", line=self.lead.line(lang))

    @property
    def explained(self) -> bool:
        """Whether it is said why it tempts."""
        return any(trap.tempts for trap in (self.lead, *self.twins))

    def wrong(self) -> str:
        """What tempts."""
        return message("lab.card_wrong", title=f"{self.lead.title(current())} [{', '.join(self.keys)}]")

    def right(self) -> str:
        """What is right."""
        return message("lab.card_right", rule=self.lead.rule(current()))


@dataclass(frozen=True)
class Lens:
    """One exam's look at a chapter: a few cards, the other traps folded, and what its questions ask, without asking them."""

    title: str
    opening: str
    cards: Sequence[Card]
    rest: Sequence[Card]
    asked: Sequence[str] = field(default_factory=list)

    def html(self) -> str:
        """The lens as HTML."""
        opening = f"<p>{escape(self.opening)}</p>" if self.opening else ""
        cards = "".join(_card_html(card) for card in self.cards)
        if cards:
            cards = f'<div style="display:flex;flex-wrap:wrap;gap:8px;margin:0 0 8px 0">{cards}</div>'
        rest = "".join(f"<li>{escape(card.wrong())}<br>{escape(card.right())}</li>" for card in self.rest)
        if rest:
            title = escape(message("lab.lens_rest", count=len(self.rest)))
            rest = f'<details style="margin:0 0 8px 0"><summary style="cursor:pointer">{title}</summary><ul>{rest}</ul></details>'
        asked = f"<p>{'<br>'.join(escape(line) for line in self.asked)}</p>" if self.asked else ""
        return f"<div><p><strong>{escape(self.title)}</strong></p>{opening}{cards}{rest}{asked}</div>"

    def text(self) -> str:
        """The lens as text."""
        blocks = [f"[{self.title}]", self.opening]
        blocks += ["\n".join(f"  {line}" for line in (card.wrong(), card.right(), card.tempts())) for card in self.cards]
        if self.rest:
            lines = [f"  {line}" for card in self.rest for line in (card.wrong(), card.right())]
            blocks.append("\n".join([message("lab.lens_rest", count=len(self.rest)), *lines]))
        blocks.append("\n".join(self.asked))
        return "\n\n".join(block for block in blocks if block)


def lenses(chapter: course.Chapter) -> list[Part]:
    """What the G検定 asks of the chapter, and what the E資格 asks besides."""
    traps = [trap for trap in content.traps().values() if trap.chapter == chapter.id]
    bank = content.library().banks.get(chapter.id)
    questions = [question for question in bank.questions if not question.retired] if bank else []
    general = _ranked(_merged([trap for trap in traps if G in trap.exams and trap.family == "idea"]), questions, G)
    engineer = _ranked(_merged(traps), questions, E)
    shown = {key for card in general for key in card.keys}
    engineer = [card for card in engineer if card.lead.key not in shown]
    return [
        _lens(G, "", general, questions, chapter),
        _lens(E, message("lab.lens_also" if engineer else "lab.lens_no_cards") if general else "", engineer, questions, chapter),
    ]


def _merged(traps: Sequence[Trap]) -> list[Card]:
    """Each misconception with the code traps that embody it, in the order of the file; a code trap without one stands alone."""
    ideas = {trap.key: trap for trap in traps if trap.family == "idea"}
    twins: dict[str, list[Trap]] = {key: [] for key in ideas}
    alone = []
    for trap in traps:
        if trap.family == "idea":
            continue
        for idea in (idea for idea in trap.ideas if idea in ideas):
            twins[idea].append(trap)
        if not any(idea in ideas for idea in trap.ideas):
            alone.append(Card(trap))
    return [Card(idea, tuple(twins[key])) for key, idea in ideas.items()] + alone


def _ranked(cards: Sequence[Card], questions: Sequence[Question], exam: str) -> list[Card]:
    """The cards that say why they tempt before the others, and the ones that more questions of the exam use before the rest."""
    met = Counter(key for question in questions if exam in question.exams for key in content.traps_of(question))
    return sorted(
        cards, key=lambda card: (not card.explained, exam not in card.lead.exams, -sum(met[key] for key in card.keys))
    )


def _lens(exam: str, opening: str, cards: Sequence[Card], questions: Sequence[Question], chapter: course.Chapter) -> Lens:
    asked = [question for question in questions if exam in question.exams]
    title = message(f"lab.lens_{exam}")
    # A card that does not say why it tempts is worth its room only where there are few that do.
    room = min(max(sum(card.explained for card in cards), LEAST_CARDS), MOST_CARDS)
    return Lens(title, opening, cards[:room], cards[room:], _asked(asked, chapter) if asked else [])


def _asked(questions: Sequence[Question], chapter: course.Chapter) -> list[str]:
    """How many questions of which kind, how difficult, and which sections answer them."""
    comma = message("lab.lens_comma")
    kinds = Counter(question.kind for question in questions)
    difficulty = Counter(question.difficulty for question in questions)
    counted = comma.join(f"{message(f'lab.kind_{kind}')} {kinds[kind]}" for kind in KINDS if kinds[kind])
    places = Counter(section_of(question.anchor, chapter) for question in questions if question.kind != "recall")
    places.pop("", None)
    most = {name for name, _ in places.most_common(MOST_SECTIONS)}
    sections = comma.join(
        message("lab.lens_section", number=section.number, title=plain(section.title(current())), count=places[section.id])
        for section in chapter.sections
        if section.id in most
    )
    return [
        message("lab.lens_asked", count=len(questions), kinds=counted)
        + ("" if current() == "ja" else " ")
        + message("lab.lens_difficulty", easy=difficulty[1], medium=difficulty[2], hard=difficulty[3]),
        *([message("lab.lens_sections", sections=sections)] if sections else []),
    ]


def section_of(anchor: str, chapter: course.Chapter) -> str:
    """The section that an anchor lies in: ``build-softmax`` lies in ``build``; "" if the chapter has no such anchor."""
    inside = [section.id for section in chapter.sections if anchor in section.anchors]
    # While a chapter is being built, its notebook of before does not have its newest headings.
    inside = inside or [each.id for each in chapter.sections if anchor == each.id or anchor.startswith(f"{each.id}-")]
    return max(inside, key=len, default="")


def plain(heading: str) -> str:
    """A section's title without Markdown and TeX."""
    return without_tex(re.sub(r"[*`]", "", heading)).strip()


def _card_html(card: Card) -> str:
    lines = (
        f"<div>{escape(card.wrong())}</div>",
        f"<div><strong>{escape(card.right())}</strong></div>",
        f'<div style="font-size:90%">{escape(card.tempts())}</div>',
    )
    box = "border:1px solid rgba(128,128,128,0.55);border-left:4px solid #D55E00;border-radius:4px;padding:6px 10px"
    return f'<div style="{box};flex:1 1 320px;box-sizing:border-box;line-height:1.5">{"".join(lines)}</div>'
