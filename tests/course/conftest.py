"""A small course in a temporary folder: one chapter, both languages, one exercise, written the way real sources are."""

import textwrap
from pathlib import Path

import pytest

HEADER = textwrap.dedent("""\
    ---
    jupytext:
      text_representation: {extension: .md, format_name: myst}
    kernelspec: {name: python3, display_name: Python 3}
    transformer_lite:
      id: small-chapter
      number: 3
      title: {ja: "小さな章", en: "A small chapter"}
      sections:
        - {id: addition, g: 2, e: 3}
        - {id: practice, e: 4}
    ---

    """)

BODY = textwrap.dedent("""\
    +++ {"lang": "ja"}

    **目標**

    +++ {"lang": "en"}

    **Goals**

    ```{code-cell} ipython3
    :jupyter: {source_hidden: true}
    import numpy as np
    from stand_in import lab
    lab.start("ja")
    ```

    +++ {"lang": "ja"}

    ## 足し算 {#addition}

    足し算です。E資格向けの {sec:practice}で使います。

    +++ {"lang": "en"}

    ## An addition {#addition}

    An addition. {sec:practice}, for the E資格, uses it.

    ```{code-cell} ipython3
    :tags: [nbval-check-output]
    text = "# ja: this is a string"  # ja: 文字列  # en: a string
    # ja: 日本語の注
    # en: an English note
    print(1 + 1)
    ```

    +++ {"lang": "ja"}

    ## 練習 {#practice}

    練習です。

    ### 演習 1　softmax {#practice-softmax}

    +++ {"lang": "en"}

    ## Practice {#practice}

    An exercise.

    ### Exercise 1  softmax {#practice-softmax}

    ```{code-cell} ipython3
    @lab.exercise("softmax")
    def softmax(x, axis=-1):
        \"\"\"x (..., n) -> (..., n)  # en: stays\"\"\"
        ### BEGIN SOLUTION
        # ja: 最大値を引く
        # en: subtract the maximum
        z = np.exp(x - x.max(axis=axis, keepdims=True))
        return z / z.sum(axis=axis, keepdims=True)
        ### END SOLUTION
    lab.check()
    ```
    """)


@pytest.fixture
def header():
    return HEADER


@pytest.fixture
def body():
    return BODY


@pytest.fixture
def notebooks(tmp_path, monkeypatch):
    """The folder that holds source/, ja/ and en/, with one chapter in source/ and nothing built."""
    folder = tmp_path / "notebooks"
    (folder / "source").mkdir(parents=True)
    (folder / "source" / "03_small_chapter.md").write_text(HEADER + BODY, "utf-8")
    # What chapters import at their start; the real one is tested in its own room.
    (tmp_path / "stand_in.py").write_text(
        "class lab:\n    start = staticmethod(lambda lang: None)\n    check = staticmethod(lambda: None)\n"
        "    exercise = staticmethod(lambda name: lambda function: function)\n", "utf-8")  # fmt: skip
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return folder


@pytest.fixture
def source(notebooks) -> Path:
    return notebooks / "source" / "03_small_chapter.md"
