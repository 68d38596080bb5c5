"""What the tests of the explorers share: JavaScript under node, a page with a model of a few lines, and what is read from it."""

import base64
import json
import os
import re
import shutil
import subprocess
from typing import NamedTuple

import pytest

from transformer_lite.explore import controls

PAGE = """<!doctype html><meta charset="utf-8"><style>{css}
body {{ background: #fff; color: #000; }}</style>
<div id="place"></div>
<script type="module">
const handlers = {{}};
const state = {state};
window.model = {{
  get: (name) => state[name],
  set: (name, value) => {{
    state[name] = value;
    (handlers["change:" + name] || []).slice().forEach((handler) => handler());
  }},
  on: (name, handler) => (handlers[name] ||= []).push(handler),
  off: (name, handler) => (handlers[name] = (handlers[name] || []).filter((one) => one !== handler)),
  save_changes: () => (window.saved = (window.saved || 0) + 1),
}};
window.put = (changes) => {{ // what Python sends together: all is set before anybody hears of it
  Object.assign(state, changes);
  for (const name of Object.keys(changes)) (handlers["change:" + name] || []).slice().forEach((handler) => handler());
}};
window.leaked = 0;
document.addEventListener("keydown", () => window.leaked++);
const module = await import("{module}");
window.clean = module.default.render({{ model, el: document.getElementById("place") }});
window.ready = true;
</script>"""


def address(script):
    """An ES module as an address that a page or node can import."""
    return "data:text/javascript;base64," + base64.b64encode(script.encode()).decode()


def module_url(names):
    """The address of the explorer's module ``js/{name}.js``; of several names, one after the other."""
    return address(controls.script(*((names,) if isinstance(names, str) else names)))


def in_node(names, expression):
    """The value of a JavaScript ``expression`` in which ``bench`` is the module of ``names``: one, or several in their order."""
    if not shutil.which("node"):  # in CI a missing node must not let the comparison vanish unnoticed
        (pytest.fail if os.environ.get("CI", "").lower() == "true" else pytest.skip)("node is not installed")
    code = f"import * as bench from {json.dumps(module_url(names))}; console.log(JSON.stringify({expression}));"
    done = subprocess.run(["node", "--input-type=module", "-e", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def page_of(module, state):
    """An HTML page that shows the module of that address with ``state`` as its model; see ``PAGE`` for what its window has."""
    return PAGE.format(css=controls.style_sheet(), state=json.dumps(state).replace("</", "<\\/"), module=module)


# --- What is read from the page ---

FOCUSABLE = ".tl-root :is(button, input, select, summary, [tabindex])"
INK = "rgb(250, 250, 250)"


def put(page, changes):
    """Set traits together, as Python does."""
    page.evaluate("(changes) => put(changes)", changes)


def drawn(page):
    """All that the explorer shows now, but the line that is spoken, which comes later, and the names that join radio buttons."""
    return page.evaluate(
        """() => { const root = document.querySelector(".tl-root"), copy = root.cloneNode(true);
          for (const one of copy.querySelectorAll(".tl-hidden[role=status]")) one.textContent = "";
          for (const one of copy.querySelectorAll("[name]")) one.removeAttribute("name");
          return [copy.outerHTML, [...root.querySelectorAll("input, select")].map((one) => [one.value, one.checked])]; }"""
    )


def colours_of_labels(page, selector):
    """The colours of what ``selector`` finds when the theme's ink is `INK`: of its letters, within a drawing of its filling."""
    return page.evaluate(
        """([selector, ink]) => { document.body.style.setProperty("--jp-content-font-color1", ink);
          return [...document.querySelectorAll(selector)]
            .map((one) => getComputedStyle(one)[one.closest("svg") ? "fill" : "color"]); }""",
        [selector, INK],
    )


class Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def before(self, other):
        """Whether it ends where ``other`` begins, or earlier: to the left of it or above it."""
        return self.right <= other.left + 1 or self.bottom <= other.top + 1


def boxes(page, selectors):
    """Where each element that one of ``selectors`` finds is drawn, in the order of the selectors."""
    return [Box(*box) for box in page.evaluate(
        """(selectors) => selectors.flatMap((selector) => [...document.querySelectorAll(selector)]
          .map((one) => one.getBoundingClientRect()).map(({ left, top, right, bottom }) => [left, top, right, bottom]))""",
        list(selectors),
    )]  # fmt: skip


def selectors_of(style):
    """Every selector of a file ``js/*.css``."""
    text = re.sub(r"/\*.*?\*/", "", (controls.JS / style).read_text(encoding="utf-8"), flags=re.DOTALL)
    found = [found for found in re.findall(r"([^{};]+)\{", text) if "@" not in found]
    return [one.strip() for several in found for one in re.split(r",(?![^(]*\))", several)]
