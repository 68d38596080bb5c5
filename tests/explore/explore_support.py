"""What the tests of the explorers share: their JavaScript under node, and a page with a model of ten lines."""

import base64
import json
import os
import shutil
import subprocess

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
window.leaked = 0;
document.addEventListener("keydown", () => window.leaked++);
const module = await import("{module}");
window.clean = module.default.render({{ model, el: document.getElementById("place") }});
window.ready = true;
</script>"""


def module_url(*names):
    """The ES module ``script(*names)``, as an address that a page or node can import."""
    return "data:text/javascript;base64," + base64.b64encode(controls.script(*names).encode()).decode()


def several(names):
    return (names,) if isinstance(names, str) else names


def in_node(names, expression):
    """The value of a JavaScript ``expression`` in which ``bench`` is the module of ``names``: one, or several in their order."""
    if not shutil.which("node"):  # in CI a missing node must not let the comparison vanish unnoticed
        (pytest.fail if os.environ.get("CI", "").lower() == "true" else pytest.skip)("node is not installed")
    code = f"import * as bench from {json.dumps(module_url(*several(names)))}; console.log(JSON.stringify({expression}));"
    done = subprocess.run(["node", "--input-type=module", "-e", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def page_of(names, state):
    """An HTML page that shows that module with ``state`` as its model; ``window.model`` and ``window.leaked`` can be read."""
    given = json.dumps(state).replace("</", "<\\/")
    return PAGE.format(css=controls.style_sheet(), state=given, module=module_url(*several(names)))
