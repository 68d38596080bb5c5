"""course.py: the first run, the next ones, and everything that can go wrong before the course itself starts."""

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).resolve().parents[2] / "course.py"
PROJECT = '[project]\nname = "x"\ndependencies = ["numpy"]\n[build-system]\nrequires = []\n'


@pytest.fixture
def launcher(tmp_path, monkeypatch):
    """course.py as a module, standing in an empty folder, with an installer that only writes down what it was asked."""
    specification = importlib.util.spec_from_file_location("launcher_under_test", PATH)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    here = tmp_path / "教材 フォルダー"
    here.mkdir()
    (here / "pyproject.toml").write_text(PROJECT, "utf-8")
    (here / "constraints.txt").write_text("numpy==2.0\n", "utf-8")
    module.HERE = str(here)
    module.asked, module.code, module.ran = [], 0, []
    call = subprocess.call

    def fake(command, **settings):
        if command[0] != "pip":
            return call(command, **settings)
        module.asked.append(command[1:])
        if module.code is KeyboardInterrupt:
            raise KeyboardInterrupt
        return module.code

    monkeypatch.setattr(module, "installer", lambda python: ["pip"])
    monkeypatch.setattr(module, "active_environment", lambda: False)
    monkeypatch.setattr(module.subprocess, "call", fake)
    monkeypatch.setattr(module, "run", lambda python, arguments: (module.ran.append((python, arguments)), 7)[1])
    monkeypatch.setenv("TRANSFORMER_LITE_LANG", "en")
    monkeypatch.setattr(sys, "argv", ["course.py"])
    return module


def test_any_python_can_read_it():
    text = PATH.read_text("utf-8")
    ast.parse(text, feature_version=(3, 4))
    assert not [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.JoinedStr | ast.AnnAssign | ast.NamedExpr)]


@pytest.mark.parametrize("name", ["python2.7", "python3.6", "python3.8", "python3.10"])
def test_an_old_python_is_told_which_one_is_needed(name):
    found = [shutil.which(name), *map(str, Path.home().glob(f".pyenv/versions/*/bin/{name}"))]
    works = [python for python in found if python and subprocess.call([python, "-c", ""], stderr=subprocess.DEVNULL) == 0]
    if not works:
        pytest.skip(f"{name} is not on this machine")
    python = works[0]
    for lang, word in (("en", "needs Python 3.11"), ("ja", "必要です")):
        done = subprocess.run([python, str(PATH), "--lang", lang], capture_output=True, check=False,
                              env=os.environ | {"PYTHONIOENCODING": "utf-8"})  # fmt: skip
        assert done.returncode == 3 and word in done.stderr.decode("utf-8")


def test_an_old_python_gets_no_further(launcher, monkeypatch, capfd):
    monkeypatch.setattr(launcher.sys, "version_info", (3, 10, 13, "final", 0))
    assert launcher.main([]) == 3
    assert "3.11" in capfd.readouterr().err and launcher.asked == []


def test_the_first_run_says_the_size_installs_and_passes_arguments_and_exit_code_on(launcher, capfd):
    assert launcher.main(["study", "2"]) == 7
    said = capfd.readouterr().err
    assert " MB" in said and said.index(" MB") < said.index("ready")
    (command,) = launcher.asked
    assert command == ["-c", os.path.join(launcher.HERE, "constraints.txt"), "-e", launcher.HERE]
    assert launcher.ran == [(launcher.python_in(launcher.venv_folder()), ["study", "2"])]
    assert os.path.exists(launcher.ran[0][0])


def test_the_next_run_does_nothing_but_start(launcher, monkeypatch):
    launcher.main([])
    monkeypatch.setattr(launcher, "succeeds", lambda command: pytest.fail("it looked at the environment"))
    assert launcher.main([]) == 7 and len(launcher.asked) == 1


def test_tests_and_builds_add_the_tools_once_and_studying_keeps_them(launcher):
    launcher.main([])
    launcher.main(["test"])
    launcher.main(["build", "--check"])
    launcher.main([])
    assert [command[-1] for command in launcher.asked] == [launcher.HERE, launcher.HERE + "[dev]"]
    (Path(launcher.HERE) / "constraints.txt").write_text("numpy==2.1\n", "utf-8")
    launcher.main([])
    assert launcher.asked[-1][-1] == launcher.HERE + "[dev]"


def test_comments_reinstall_nothing_but_versions_and_dependencies_do(launcher):
    launcher.main([])
    (Path(launcher.HERE) / "constraints.txt").write_text("# a comment\nnumpy==2.0  # another\n", "utf-8")
    (Path(launcher.HERE) / "pyproject.toml").write_text("# a comment\n" + PROJECT + "[tool.ruff]\nline-length = 9\n", "utf-8")
    launcher.main([])
    assert len(launcher.asked) == 1
    (Path(launcher.HERE) / "pyproject.toml").write_text(PROJECT.replace('"numpy"', '"numpy", "rich"'), "utf-8")
    launcher.main([])
    assert len(launcher.asked) == 2


def test_a_moved_folder_is_installed_again(launcher, tmp_path):
    launcher.main([])
    os.rename(launcher.HERE, tmp_path / "moved")
    launcher.HERE = str(tmp_path / "moved")
    launcher.main([])
    assert launcher.asked[1][-1] == launcher.HERE


def test_a_failed_install_says_what_to_do_and_can_be_run_again(launcher, capfd):
    launcher.code = 1
    assert launcher.main([]) == 3
    assert "again" in capfd.readouterr().err and launcher.ran == []
    launcher.code = 0
    assert launcher.main([]) == 7 and len(launcher.asked) == 2


def test_an_interrupted_install_is_not_taken_for_a_finished_one(launcher):
    launcher.code = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        launcher.main([])
    assert launcher.read_stamp() is None
    launcher.code = 0
    assert launcher.main([]) == 7 and len(launcher.asked) == 2


def test_an_environment_that_was_killed_while_it_was_made_is_made_again(launcher):
    folder = Path(launcher.venv_folder())
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_text("", "utf-8")
    assert launcher.main([]) == 7
    assert launcher.works(launcher.python_in(str(folder)))


def test_an_update_that_fails_offline_goes_on_with_what_there_is(launcher, capfd):
    launcher.main([])
    (Path(launcher.HERE) / "constraints.txt").write_text("numpy==2.1\n", "utf-8")
    launcher.code = 1
    assert launcher.main([]) == 7
    assert "going on" in capfd.readouterr().err
    assert launcher.main(["test"]) == 3  # but tests need tools that were never there


@pytest.mark.parametrize("stamp", ["", "{", "[]", "{}", '{"fingerprint": 1, "dev": true}'])
def test_a_damaged_stamp_only_means_another_install(launcher, stamp):
    launcher.main([])
    (Path(launcher.venv_folder()) / launcher.STAMP).write_text(stamp, "utf-8")
    assert launcher.main([]) == 7 and len(launcher.asked) == 2


def test_no_pip_anywhere_says_what_to_install(launcher, monkeypatch, capfd):
    monkeypatch.setattr(launcher, "installer", lambda python: None)
    assert launcher.main([]) == 3
    assert "python3-venv" in capfd.readouterr().err


def test_pip_is_looked_for_in_every_place_in_turn(tmp_path):
    specification = importlib.util.spec_from_file_location("launcher_for_pip", PATH)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    works = set()
    module.succeeds = lambda command: any(word in command for word in works) and not ("pip" in command and "pip" not in works)
    assert module.installer("py") is None
    works.add("uv")
    assert module.installer("py")[:2] == ["uv", "pip"]
    works.add("--python")
    works.add("pip")
    assert module.installer("py")[:3] == ["py", "-m", "pip"]


def test_a_folder_that_cannot_be_written_to_is_said(launcher, capfd):
    Path(launcher.venv_folder()).write_text("a file", "utf-8")
    assert launcher.main([]) == 3
    assert "could not be made" in capfd.readouterr().err and Path(launcher.venv_folder()).read_text("utf-8") == "a file"


def test_an_active_environment_that_holds_the_course_is_used(launcher, monkeypatch, capfd):
    monkeypatch.setattr(launcher, "active_environment", lambda: True)
    assert launcher.main(["study"]) == 7
    assert launcher.ran == [(sys.executable, ["study"])] and not os.path.exists(launcher.venv_folder())
    monkeypatch.setattr(launcher, "missing_tools", lambda: ["nbval"])
    assert launcher.main(["test"]) == 3
    assert "nbval" in capfd.readouterr().err


def test_an_active_environment_counts_only_if_it_holds_this_copy(tmp_path, monkeypatch):
    specification = importlib.util.spec_from_file_location("launcher_for_conda", PATH)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    module.HERE = str(tmp_path / "the course")
    installed = tmp_path / "site" / "transformer_lite-0.1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: transformer-lite\nVersion: 0.1.0\n", "utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *(place for place in sys.path if "site-packages" not in place)])
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "conda"))
    for place, right in ((tmp_path / "the course", True), (tmp_path / "another", False)):
        (installed / "direct_url.json").write_text(json.dumps({"url": place.as_uri(), "dir_info": {"editable": True}}), "utf-8")
        assert module.active_environment() is right
    (installed / "direct_url.json").unlink()
    assert module.active_environment() is False


@pytest.mark.parametrize("encoding", ["ascii", "cp932"])
def test_no_console_breaks_its_messages(encoding):
    code = f"import sys; sys.path.insert(0, {str(PATH.parent)!r}); import course; [course.say(key, **dict.fromkeys("
    code += "('needed', 'found', 'venv', 'size', 'reason', 'prefix', 'names'), 'x')) for key in course.TEXTS]"
    for lang in ("ja", "en"):
        environment = os.environ | {"PYTHONIOENCODING": encoding, "TRANSFORMER_LITE_LANG": lang, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
        assert done.returncode == 0 and len(done.stderr.splitlines()) > 9
