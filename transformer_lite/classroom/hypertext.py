"""Elements of a page: every text in them is escaped, so that a name or an error of a student's is shown and never obeyed."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

STYLE = Path(__file__).with_name("pages.css")
VOID = ("meta", "br", "rect", "line")  # elements without an end
# No script, no font, no picture from anywhere: whatever got into a page could still do nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


class Html(str):
    """Text that is HTML already; only `tag` and `joined` make it."""


def tag(name: str, /, *children: str | Html | None, **attributes: object) -> Html:
    """An element. Texts among ``children`` and in ``attributes`` are escaped.

    Attributes that are None or False are left out; ``class_`` stands for ``class``, ``aria_label`` for ``aria-label``.
    """
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(plain(str(value)))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{given}/>" if name in VOID else f"<{name}{given}>{joined(children)}</{name}>")


def joined(children: Iterable[str | Html | None], between: str = "") -> Html:
    """The children after one another, those that are no HTML escaped."""
    return Html(between.join(each if isinstance(each, Html) else escape(plain(each)) for each in children if each is not None))


def plain(text: str) -> str:
    """``text`` without control characters, and with a mark for what no file can hold."""
    kinds = {"Cc": "", "Cs": "\N{REPLACEMENT CHARACTER}"}
    return "".join(
        character if character in "\n\t" else kinds.get(unicodedata.category(character), character) for character in text
    )


def foreign(text: str) -> Html:
    """A text of somebody else's: its direction of writing does not reach the rest of the line."""
    return tag("bdi", text)


def table(caption: str, header: Sequence[str], rows: Sequence[Sequence[str | Html]], numbers: Sequence[int] = ()) -> Html:
    """A table whose first column names its rows. ``numbers`` are the columns set to the right.

    On a narrow screen the rows become blocks (see the style sheet); the roles keep it a table for those who hear it.
    """
    right = dict.fromkeys(numbers, "number")
    head = joined(tag("th", text, scope="col", role="columnheader", class_=right.get(place)) for place, text in enumerate(header))
    body = []
    for row in rows:
        first = tag("th", row[0], scope="row", role="rowheader", class_=right.get(0))
        rest = (
            tag("td", cell, role="cell", class_=right.get(place), data_label=header[place])
            for place, cell in enumerate(row[1:], 1)
        )
        body.append(tag("tr", first, *rest, role="row"))
    return tag(
        "table",
        tag("caption", caption),
        tag("thead", tag("tr", head, role="row"), role="rowgroup"),
        tag("tbody", *body, role="rowgroup"),
        role="table",
    )


def bar(part: float, whole: float) -> Html:
    """How much of something it is, as a bar beside the number that says it."""
    filled = 100 * part / whole if whole else 0
    outline = tag("rect", x="0", y="0", width="100", height="8", class_="ground")
    inside = tag("rect", x="0", y="0", width=f"{filled:.1f}", height="8", class_="filled")
    return tag("svg", outline, inside, class_="bar", viewBox="0 0 100 8", preserveAspectRatio="none", aria_hidden="true")


def page(lang: str, title: str, skip: str, *body: str | Html | None) -> Html:
    """A whole page that needs nothing but itself."""
    head = (
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", Html(STYLE.read_text("utf-8"))),
    )
    link = tag("a", skip, class_="skip", href="#main")
    return Html("<!doctype html>\n" + tag("html", tag("head", *head), tag("body", link, *body), lang=lang) + "\n")
