"""What the tests of the classroom share: one small course of chapter 2, and whether there is a sandbox."""

import json
import os
import shutil

import pytest
import submissions

from transformer_lite.classroom import assigning, sandbox


@pytest.fixture(scope="session")
def made_course(tmp_path_factory):
    """Chapter 2 assigned in Japanese. Only for reading."""
    folder = tmp_path_factory.mktemp("course")
    assigning.assign([submissions.CHAPTER], "ja", folder)
    return folder


@pytest.fixture
def course(made_course, tmp_path):
    """A copy of the course to work in."""
    return shutil.copytree(made_course, tmp_path / "course")


@pytest.fixture(scope="session")
def release(made_course):
    """The notebook that students get, as JSON."""
    return json.loads((made_course / "release" / submissions.CHAPTER / submissions.FILE).read_text("utf-8"))


@pytest.fixture(scope="session")
def walls():
    """Without bubblewrap, tests of the sandbox are skipped; in CI, which installs it, that is a failure."""
    trouble = sandbox.trouble()
    if trouble == "no bwrap" and os.environ.get("CI", "").lower() == "true":
        pytest.fail("bubblewrap is missing: apt install bubblewrap")
    if trouble:
        pytest.skip(f"no sandbox here: {trouble}")
