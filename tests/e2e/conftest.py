"""A real JupyterLab, started as a learner starts it, in a real browser; nothing is read from or written to the user's home."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

STARTED = "() => window.jupyterapp && document.querySelector('.jp-Notebook .jp-Cell')"
IDLE = "() => window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
# Ready to run: the kernel is idle and no cell is waiting for its turn.
QUIET = """() => { const panel = window.jupyterapp.shell.currentWidget;
  return panel.sessionContext.session?.kernel?.status === 'idle'
    && ![...document.querySelectorAll('.jp-InputPrompt')].some(p => p.textContent.includes('[*]')); }"""


class Server:
    """A running JupyterLab: its address, its workspace and the learner's private home."""

    def __init__(self, url: str, token: str, workspace: Path, home: Path):
        self.url, self.token, self.workspace, self.home = url, token, workspace, home


def environment(home: Path) -> dict[str, str]:
    """A learner's environment on an empty machine, where events are recorded."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "TRANSFORMER_LITE", "PYTEST"))}
    for name in ("CONFIG", "DATA", "RUNTIME"):
        env[f"JUPYTER_{name}_DIR"] = str(home / name.lower())
    env |= {
        "IPYTHONDIR": str(home / "ipython"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "TRANSFORMER_LITE_HOME": str(home / "journal"),
        "TRANSFORMER_LITE_RECORD": "1",
        "PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"],
    }
    return env


@pytest.fixture(scope="session")
def serve(tmp_path_factory):
    """Start `transformer-lite study` in a language; every server is stopped at the end."""
    running: list[subprocess.Popen] = []

    def start(lang: str) -> Server:
        home = tmp_path_factory.mktemp(f"home-{lang}")
        workspace = tmp_path_factory.mktemp(f"work-{lang}") / "workspace"
        (home / "config").mkdir()
        (home / "config" / "jupyter_server_config.json").write_text(
            json.dumps({"ServerApp": {"allow_root": True}, "LabApp": {"expose_app_in_browser": True}})
        )
        log = (home / "log").open("wb")
        command = [sys.executable, "-m", "transformer_lite.cli", "study", "2"]
        command += ["--lang", lang, "--workspace", str(workspace), "--no-browser"]
        process = subprocess.Popen(command, env=environment(home), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        running.append(process)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert process.poll() is None, (home / "log").read_text()
            for file in (home / "runtime").glob("jpserver-*.json"):
                try:
                    about = json.loads(file.read_text())
                except ValueError:  # being written
                    continue
                return Server(about["url"], about["token"], workspace, home)
            time.sleep(0.1)
        raise AssertionError(f"JupyterLab did not start: {(home / 'log').read_text()}")

    yield start
    for process in running:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


CELLS = "window.jupyterapp.shell.currentWidget.content.widgets"


class Notebook:
    """A notebook open in JupyterLab, driven as a learner drives it."""

    def __init__(self, page, server: Server):
        self.page, self.server = page, server

    def open(self, path: str) -> None:
        self.page.goto(f"{self.server.url}lab/tree/{path}?reset&token={self.server.token}")
        self.page.wait_for_function(STARTED, timeout=90_000)
        self.page.wait_for_function(IDLE, timeout=90_000)

    def command(self, name: str, **args) -> None:
        self.page.evaluate("([name, args]) => window.jupyterapp.commands.execute(name, args)", [name, args])

    def run_all(self) -> None:
        self.command("notebook:run-all-cells")
        # The last code cell has a number once everything before it has run.
        self.page.wait_for_function(
            """() => { const cells = window.jupyterapp.shell.currentWidget.content.widgets.filter(c => c.model.type === 'code');
                       return cells[cells.length - 1].model.executionCount; }""",
            timeout=180_000,
        )
        self.page.wait_for_function(QUIET, timeout=180_000)

    def errors(self) -> list[str]:
        """The text of every error output in the notebook's model (the screen may not show cells far away)."""
        return self.page.evaluate(
            """() => window.jupyterapp.shell.currentWidget.content.widgets.filter(c => c.model.type === 'code').flatMap(c =>
                 { const outputs = c.model.sharedModel.getOutputs(); return outputs.filter(o => o.output_type === 'error')
                   .map(o => o.ename + ': ' + o.evalue); })"""
        )

    def cells(self, text: str) -> list[int]:
        """The numbers of the code cells whose source holds ``text``."""
        return self.page.evaluate(
            """text => window.jupyterapp.shell.currentWidget.content.widgets.flatMap((c, n) =>
                 c.model.type === 'code' && c.model.sharedModel.getSource().includes(text) ? [n] : [])""",
            text,
        )

    def cell(self, text: str) -> int:
        """The number of the first of them."""
        found = self.cells(text)
        assert found, f"no code cell holds {text!r}"
        return found[0]

    def show(self, number: int):
        """Scroll to a cell and return its place on the page."""
        self.page.evaluate(
            """async number => { const notebook = window.jupyterapp.shell.currentWidget.content;
                 notebook.activeCellIndex = number; await notebook.scrollToItem(number, 'start'); }""",
            number,
        )
        place = self.page.locator(f'.jp-Cell[data-windowed-list-index="{number}"]')
        place.wait_for(timeout=20_000)
        return place

    def run(self, number: int, source: str | None = None):
        """Run one cell, with another source if given, and return its place on the page."""
        if source is not None:
            self.page.evaluate(f"([n, s]) => {CELLS}[n].model.sharedModel.setSource(s)", [number, source])
        # Forget the cell's number: a restarted kernel counts from 1 again.
        self.page.evaluate(f"n => {{ {CELLS}[n].model.executionCount = null; }}", number)
        place = self.show(number)
        self.command("notebook:run-cell")
        self.page.wait_for_function(f"n => {CELLS}[n].model.executionCount", arg=number, timeout=60_000)
        self.page.wait_for_function(QUIET, timeout=60_000)
        return place

    def source(self, number: int) -> str:
        return self.page.evaluate(f"n => {CELLS}[n].model.sharedModel.getSource()", number)

    def text(self, number: int) -> str:
        """All that a cell has printed."""
        return self.page.evaluate(
            """n => window.jupyterapp.shell.currentWidget.content.widgets[n].model.sharedModel.getOutputs()
                 .map(o => o.output_type === 'stream' ? (Array.isArray(o.text) ? o.text.join('') : o.text)
                         : JSON.stringify(o.data ?? '')).join('\\n')""",
            number,
        )

    def theme(self, dark: bool) -> None:
        self.command("apputils:change-theme", theme="JupyterLab Dark" if dark else "JupyterLab Light")
        light = "false" if dark else "true"
        self.page.wait_for_function(f"() => document.body.dataset.jpThemeLight === '{light}'", timeout=20_000)

    def picture(self, name: str) -> None:
        """Keep a screenshot where SHOTS names a folder."""
        folder = os.environ.get("SHOTS")
        if folder:
            self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            self.page.screenshot(path=str(Path(folder) / name))


@pytest.fixture(scope="session")
def notebook(serve, browser):
    """Open a language's chapter 2 in its own server and browser page."""
    contexts = []

    def make(lang: str) -> Notebook:
        server = serve(lang)
        context = browser.new_context(viewport={"width": 1280, "height": 1000}, locale="ja-JP" if lang == "ja" else "en-GB")
        contexts.append(context)
        page = context.new_page()
        page.script_errors = []
        page.on("pageerror", lambda error: page.script_errors.append(str(error)))
        return Notebook(page, server)

    yield make
    for context in contexts:
        context.close()
