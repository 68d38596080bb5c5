"""A page used by keyboard alone, in the tests that drive one in a browser."""


def focused(page):
    """The focused element as a screen reader would call it: its label or text."""
    return page.evaluate(
        """() => { const e = document.activeElement;
             return (e.getAttribute('aria-label') || e.labels?.[0]?.innerText || e.innerText || '').trim(); }"""
    )


def tab_to(page, text, limit=25):
    """Press Tab until the focus is on what ``text`` belongs to."""
    for _ in range(limit):
        page.keyboard.press("Tab")
        if text in focused(page):
            return
    raise AssertionError(f"Tab never reached {text!r}")


def press(page, *keys):
    """Press one key after the other."""
    for key in keys:
        page.keyboard.press(key)
