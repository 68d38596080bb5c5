"""Opens the explorers' modules in pages of the browser."""

import pytest
from explore_support import module_url, page_of


@pytest.fixture
def open_page(browser):
    """``open_page(module, state)`` shows an explorer's module in a page; scripts that fail there fail the test."""
    pages = []

    def opened(module, state, **options):
        page = browser.new_page(viewport={"width": 900, "height": 800}, **options)
        pages.append(page)
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.set_content(page_of(module, state))
        page.wait_for_function("() => window.ready")
        return page

    yield opened
    for page in pages:
        assert page.errors == []
        page.close()


@pytest.fixture
def show_module(open_page):
    """``show_module(names, state)`` shows the module ``js/{name}.js``, or of several names, in such a page."""
    return lambda names, state, **options: open_page(module_url(names), state, **options)
