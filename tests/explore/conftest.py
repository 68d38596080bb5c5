"""Opens the explorers' modules in pages of the browser."""

import pytest
from explore_support import page_of


@pytest.fixture
def show_module(browser):
    """``show_module(names, state)`` opens an explorer's module in a page; scripts that fail there fail the test."""
    pages = []

    def open_module(names, state, **options):
        page = browser.new_page(viewport={"width": 900, "height": 800}, **options)
        pages.append(page)
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.set_content(page_of(names, state))
        page.wait_for_function("() => window.ready")
        return page

    yield open_module
    for page in pages:
        assert page.errors == []
        page.close()
