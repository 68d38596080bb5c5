"""Stock ipywidgets made safe for the keyboard and named for screen readers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

JS = Path(__file__).parent / "js"


@cache
def guard_class() -> type:
    import anywidget
    import traitlets as t

    class Guard(anywidget.AnyWidget):
        """Invisible; watches over the box with the class ``tl-guarded`` that it stands in (see js/guard.js)."""

        _esm = (JS / "guard.js").read_text(encoding="utf-8")
        _css = (JS / "explorers.css").read_text(encoding="utf-8")
        names = t.List(t.Unicode()).tag(sync=True)
        alternative = t.Unicode().tag(sync=True)
        lang = t.Unicode("ja").tag(sync=True)

    return Guard


def guard(names: Sequence[str], lang: str, alternative: str = "") -> Any:
    """A widget to put among the children of a box with the CSS class ``tl-guarded``.

    While it is shown, no key pressed in the box reaches JupyterLab's shortcuts, the box's sliders carry ``names`` in order,
    and its pictures ``alternative`` as their text.
    """
    return guard_class()(names=list(names), lang=lang, alternative=alternative)
