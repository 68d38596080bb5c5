"""What every test shares: none writes into a learner's journal, changes the language for the next, or is skipped unseen in CI."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from transformer_lite import language

_home = Path(tempfile.mkdtemp(prefix="transformer_lite_test_home_"))

# Set when this file is read, before any test module is: kernels and programs that tests start inherit it.
os.environ["TRANSFORMER_LITE_RECORD"] = "0"
os.environ["TRANSFORMER_LITE_HOME"] = str(_home)


def pytest_unconfigure(config):
    shutil.rmtree(_home, ignore_errors=True)


@pytest.fixture(autouse=True)
def same_language():
    """The language in use is as it was, whatever the test did."""
    before = language._current
    yield
    language._current = before


def chromium() -> str | None:
    """The browser of the end-to-end tests: what ``CHROMIUM`` names, one on the PATH, or Playwright's own."""
    names = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = next(filter(None, (shutil.which(name) for name in names if name)), None)
    if found:
        return found
    try:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            own = playwright.chromium.executable_path
    except Exception:  # Playwright is missing or not set up: so is its browser
        return None
    return own if Path(own).exists() else None


@pytest.fixture(scope="session")
def chromium_path() -> str:
    """The path of the browser; without one, end-to-end tests are skipped, and fail in CI, where they must run."""
    path = chromium()
    if path is None:
        reason = "no Chromium: install it (apt install chromium, or playwright install chromium), or set CHROMIUM to its path"
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return path


FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


@pytest.fixture(scope="session")
def browser(chromium_path):
    """One Chromium for all tests of a process (Playwright's own loop must not be started twice)."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium_path, args=FLAGS)
        yield launched
        launched.close()


def pytest_collection_modifyitems(items):
    for item in items:
        if "browser" in item.fixturenames:
            item.add_marker("browser")
        if item.get_closest_marker("e2e") and "chromium_path" not in item.fixturenames:
            item.fixturenames.insert(0, "chromium_path")
