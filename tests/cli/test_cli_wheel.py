"""The wheel: what a learner gets who installs the course instead of cloning it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


@pytest.mark.parametrize(
    ("folder", "pattern", "inside"),
    [
        ("notebooks/ja", "*.ipynb", "transformer_lite/_course/notebooks/ja"),
        ("notebooks/en", "*.ipynb", "transformer_lite/_course/notebooks/en"),
        ("quizzes", "*.yaml", "transformer_lite/_course/quizzes"),
        ("transformer_lite/messages", "*.toml", "transformer_lite/messages"),
    ],
)
def test_notebooks_questions_and_messages_travel_in_it(names, folder, pattern, inside):
    here = [path.name for path in (ROOT / folder).glob(pattern)]
    assert here, f"nothing in {folder}"
    assert {f"{inside}/{name}" for name in here} <= names


def test_nothing_else_travels_in_it(names):
    assert not [name for name in names if "/source/" in name or ".ipynb_checkpoints" in name or name.startswith("tests/")]
    assert not [name for name in names if name.endswith(".pyc")]
