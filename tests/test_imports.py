"""Starting is quick because nothing heavy is loaded before it is needed."""

import importlib.util
import json
import subprocess
import sys

import pytest

HEAVY = ("torch", "matplotlib", "IPython", "ipywidgets", "anywidget", "pydantic", "hypothesis", "jupyterlab", "rich", "typer")


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh Python has loaded after ``statement``."""
    code = f"import json, sys; {statement}; print(json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout))


def heavy(modules: set[str]) -> set[str]:
    return modules & set(HEAVY)


def test_the_package_loads_nothing_heavy():
    modules = loaded_by("import transformer_lite")
    assert "transformer_lite" in modules
    assert heavy(modules) == set()


def test_the_journal_loads_only_the_standard_library():
    modules = loaded_by("from transformer_lite import journal")
    ours = {name.split(".")[0] for name in modules - loaded_by("pass")} - set(sys.stdlib_module_names)
    assert ours == {"transformer_lite"}


@pytest.mark.skipif(importlib.util.find_spec("transformer_lite.lab") is None, reason="there is no lab yet")
def test_the_learners_front_door_loads_nothing_heavy():
    modules = loaded_by("from transformer_lite import lab")
    assert "transformer_lite.lab" in modules
    assert heavy(modules) == set()


def test_the_measure_itself_notices_what_is_heavy():
    assert heavy(loaded_by("import IPython")) == {"IPython"}
