"""The headings of a chapter's sections, so that an explanation can say where to read again in the learner's language."""

from __future__ import annotations

import json
import re
from functools import cache

from transformer_lite import content, course


@cache
def headings(chapter: str, lang: str) -> dict[str, str]:
    """Anchor -> heading, read from the built notebook (``<a id="…"></a>`` over a heading); empty where there is none to read."""
    try:
        cells = json.loads(course.chapter(chapter).notebook(lang).read_text("utf-8"))["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    except (course.CourseError, content.ContentError, KeyError, OSError, TypeError, ValueError):
        return {}
    found = re.findall(r'<a id="([^"]+)"></a>\s*\n#+ +(.+)', "\n\n".join(texts))
    return {anchor: _plain(heading) for anchor, heading in found}


def _plain(heading: str) -> str:
    """A heading without Markdown, TeX and the minutes in brackets behind it."""
    heading = re.sub(r"\s*[（(][^（）()]*[0-9][^（）()]*[）)]\s*$", "", heading)
    heading = re.sub(r"\\sqrt\{([^{}]*)\}", r"√\1", heading)
    return re.sub(r"[$*`\\]", "", heading).strip()
