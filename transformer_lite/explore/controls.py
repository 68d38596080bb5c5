"""What the controls share: scripts for the browser, the base of the explorers that draw there, and stock ipywidgets made safe."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_lite.explore.tables import html_table, plain_table

if TYPE_CHECKING:
    from transformer_lite.explore.figures import Picture

JS = Path(__file__).parent / "js"


def static() -> bool:
    """Whether explorers must show pictures only (``TRANSFORMER_LITE_STATIC=1``), as when notebooks are built."""
    return os.environ.get("TRANSFORMER_LITE_STATIC") == "1"


def script(*names: str) -> str:
    """The ES module of an explorer: ``js/common.js``, then ``js/{name}.js`` for each name, in one text that imports nothing."""
    return "\n".join((JS / f"{name}.js").read_text(encoding="utf-8") for name in ("common", *names))


def style_sheet() -> str:
    """The explorers' CSS: what all share, then what each file ``js/*.css`` adds."""
    files = sorted(JS.glob("*.css"), key=lambda path: (path.stem != "explorers", path.name))
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


@cache
def bench_class() -> type:
    """The base of the explorers that draw in the browser, made on first use: importing it loads no widget library."""
    import anywidget
    import traitlets as t

    class Bench(anywidget.AnyWidget):
        """A subclass sets ``_esm = script("its_file")`` and says by `twin` and `picture` what it shows now.

        ``strings`` holds every text in the learner's language, ``initial`` the first state, to which "reset" returns.
        """

        _esm = "export default { render() {} };"
        _css = style_sheet()
        lang = t.Enum(("ja", "en"), "ja").tag(sync=True)
        strings = t.Dict().tag(sync=True)
        initial = t.Dict().tag(sync=True)

        def spoken(self, lang: str) -> dict[str, Any]:
            """The traits that follow from the language."""
            raise NotImplementedError

        @t.observe("lang")
        def _speak(self, change: Any) -> None:
            if change["old"] in ("ja", "en") and self.strings:  # not while the first state is being set
                with self.hold_sync():
                    for name, value in self.spoken(change["new"]).items():
                        setattr(self, name, value)

        def twin(self) -> tuple[str, list[list[str]], str]:
            """Title, table (header first) and one sentence: the state as it stands, without a picture."""
            raise NotImplementedError

        def picture(self) -> Picture:
            """The state as it stands, as a drawing with its table."""
            raise NotImplementedError

        def _repr_mimebundle_(self, **options: Any) -> Any:
            shown = super()._repr_mimebundle_(**options)
            data, metadata = shown if isinstance(shown, tuple) else (shown, {})
            title, table, text = self.twin()
            data = dict(data or {})  # where no widget can be shown, the table is
            data["text/html"] = html_table(table, title, self.lang, folded=False)
            data["text/plain"] = "\n".join([title, text, plain_table(table)])
            return data, metadata

    return Bench


@cache
def guard_class() -> type:
    import anywidget
    import traitlets as t

    class Guard(anywidget.AnyWidget):
        """Invisible; watches over the box with the class ``tl-guarded`` that it stands in (see js/guard.js)."""

        _esm = (JS / "guard.js").read_text(encoding="utf-8")
        _css = style_sheet()
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
