"""How long an explorer takes from a key to changed pixels, in a real JupyterLab. Run by hand:

    python benchmarks/explorers.py                 # the figures
    python benchmarks/explorers.py --shots FOLDER  # and screenshots of both explorers, both languages, light and dark

Bars (median): the Q·K·V bench with 10 tokens 30 ms, the d_k slider 80 ms. The time runs from the browser's keydown event to the
first animation frame in which the drawing differs (for the slider: in which the new image has been decoded).
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip
BARS = {"bench, 10 tokens": 30.0, "d_k slider": 80.0}
SAMPLES, WARM_UP = 40, 5

CELLS = [
    "from transformer_lite import explore",
    "explore.explorer('qkv-bench')('{lang}')",
    "explore.explorer('qkv-bench')('{lang}', tokens=['the', 'small', 'dog', 'chased', 'a', 'very', 'big', 'cat', 'up', 'it'])",
    "explore.explorer('scaling')('{lang}')",
    "print('all', 'shown')",
]
IDLE = "() => window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
# Presses are real (Playwright sends them to the browser); only the clock runs in the page.
CLOCK = """
([selector, kind]) => {
  const target = [...document.querySelectorAll(selector)].filter((element) => element.getClientRects().length).at(-1);
  const seen = () => (kind === 'image' ? target.src : target.innerHTML);
  window.__times = [];
  document.addEventListener('keydown', (event) => {
    const begin = event.timeStamp, before = seen();
    const look = () => {
      if (seen() !== before && (kind !== 'image' || (target.complete && target.naturalWidth > 0))) {
        window.__times.push(performance.now() - begin);
      } else if (performance.now() - begin < 3000) {
        requestAnimationFrame(look);
      }
    };
    requestAnimationFrame(look);
  }, { capture: true });
}
"""


@contextmanager
def jupyterlab(folder: Path) -> Iterator[str]:
    """A server over ``folder`` that reads and writes nothing of the user's; yields its address."""
    home = folder / "home"
    settings = home / "settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    variables = {"CONFIG_DIR": "config", "DATA_DIR": "data", "RUNTIME_DIR": "runtime"}
    environment = dict(os.environ, IPYTHONDIR=str(home / "ipython"), TRANSFORMER_LITE_RECORD="0")
    environment |= {f"JUPYTER_{name}": str(home / value) for name, value in variables.items()}
    environment |= {"JUPYTERLAB_SETTINGS_DIR": str(home / "settings"), "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces")}
    environment["PATH"] = os.path.dirname(sys.executable) + os.pathsep + environment["PATH"]
    environment.pop("TRANSFORMER_LITE_STATIC", None)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0",
               "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True", f"--ServerApp.root_dir={folder}",
               "--expose-app-in-browser"]  # fmt: skip
    log = home / "log"
    with log.open("wb") as output:
        server = subprocess.Popen([sys.executable, "-m", "jupyterlab", *options], env=environment, stdout=output, stderr=output)
    address = f"http://127.0.0.1:{port}"
    try:
        give_up = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(address + "/api/status", timeout=1).close()
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > give_up:
                    raise SystemExit(f"JupyterLab did not start:\n{log.read_text()}") from None
                time.sleep(0.1)
        yield address
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


def write_notebook(folder: Path, lang: str) -> str:
    cells = [nbformat.v4.new_code_cell(cell.replace("{lang}", lang)) for cell in CELLS]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / f"explorers_{lang}.ipynb")
    return f"explorers_{lang}.ipynb"


def open_and_run(page: object, address: str, name: str) -> None:
    page.goto(f"{address}/lab/tree/{name}?reset")
    page.wait_for_function("() => window.jupyterapp && document.querySelector('.jp-Notebook .jp-Cell')", timeout=60_000)
    page.wait_for_function(IDLE, timeout=60_000)  # a Run sent earlier is lost
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.locator(".jp-OutputArea-output", has_text="all shown").wait_for(timeout=60_000)
    page.locator(".tl-bench svg").nth(3).wait_for(timeout=60_000)
    page.wait_for_function("() => document.querySelector('.tl-guarded img')?.complete", timeout=60_000)


def measure(page: object, picture: str, kind: str, focus: str, keys: tuple[str, str]) -> list[float]:
    """Milliseconds from each key press to the changed drawing."""
    page.evaluate(CLOCK, [picture, kind])
    page.locator(focus).last.focus()
    for i in range(SAMPLES + WARM_UP):
        page.wait_for_function(IDLE)  # one press at a time: the table of the last one has been sent
        page.keyboard.press(keys[i // 5 % 2])
        page.wait_for_function(f"() => window.__times.length > {i}", timeout=5000)
    return page.evaluate("() => window.__times")[WARM_UP:]


def report(name: str, times: list[float]) -> bool:
    median, p90 = statistics.median(times), statistics.quantiles(times, n=10)[-1]
    bar = BARS.get(name)
    within = bar is None or median <= bar
    words = "" if bar is None else f"  bar {bar:.0f} ms  {'kept' if within else 'MISSED'}"
    print(f"{name:<28} median {median:6.1f} ms  p90 {p90:6.1f} ms  n {len(times)}{words}", flush=True)
    return within


def in_kernel() -> None:
    """The slider's redraw alone, without any browser: figure, PNG, table."""
    from transformer_lite.explore import scaling

    start = time.perf_counter()
    stage = scaling.Stage("ja")
    print(f"{'d_k slider, first drawing':<28} once   {1e3 * (time.perf_counter() - start):6.1f} ms, imports included")
    times = []
    for d_k in range(512, 512 - SAMPLES, -1):
        start = time.perf_counter()
        stage.png(d_k, False)
        scaling.twin(d_k, False, "ja")
        times.append(1e3 * (time.perf_counter() - start))
    report("d_k slider, kernel's share", times)


def screenshots(browser: object, address: str, folder: Path, notebooks: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for lang, name in notebooks.items():
        context = browser.new_context(viewport={"width": 1280, "height": 1000}, locale="ja-JP" if lang == "ja" else "en-GB")
        page = context.new_page()
        open_and_run(page, address, name)
        for theme in ("Light", "Dark"):
            page.evaluate(f"() => window.jupyterapp.commands.execute('apputils:change-theme', {{theme: 'JupyterLab {theme}'}})")
            page.wait_for_function(f"() => document.body.dataset.jpThemeName === 'JupyterLab {theme}'")
            page.wait_for_function("() => !document.querySelector('#jupyterlab-splash')")  # the curtain while a theme loads
            for what, selector in (("bench", ".tl-bench"), ("bench10", ".tl-bench >> nth=1"), ("scaling", ".tl-guarded")):
                page.locator(selector).first.screenshot(path=folder / f"{what}_{lang}_{theme.lower()}.png")
        context.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shots", type=Path, help="save screenshots in this folder")
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    in_kernel()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary, sync_playwright() as playwright:
        folder = Path(temporary)
        notebooks = {lang: write_notebook(folder, lang) for lang in ("ja", "en")}
        with jupyterlab(folder) as address:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            page = browser.new_page(viewport={"width": 1280, "height": 1000})
            open_and_run(page, address, notebooks["ja"])
            plane = ".tl-bench .tl-movable"
            within = report("bench, 10 tokens", measure(page, plane, "svg", plane, ("ArrowUp", "ArrowDown")))
            page.close()
            page = browser.new_page(viewport={"width": 1280, "height": 1000})
            open_and_run(page, address, notebooks["ja"])
            handle = ".tl-guarded .noUi-handle"
            within &= report("d_k slider", measure(page, ".tl-guarded img", "image", handle, ("ArrowLeft", "ArrowRight")))
            page.close()
            if arguments.shots:
                screenshots(browser, address, arguments.shots, notebooks)
            browser.close()
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
