"""course.py: the first run, the next ones, and everything that can go wrong before the course itself starts."""

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from transformer_lite import cli, journal

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


def installed(launcher):
    """The extras that pip was asked for, call by call."""
    targets = [command[-1].removeprefix(launcher.HERE) for command in launcher.asked]
    return [target[1:-1].split(",") if target else [] for target in targets]


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
    assert installed(launcher) == [[], ["dev"]]
    (Path(launcher.HERE) / "constraints.txt").write_text("numpy==2.1\n", "utf-8")
    launcher.main([])
    assert installed(launcher)[-1] == ["dev"]


@pytest.mark.parametrize(
    ("arguments", "extras"),
    [
        (["train", "pairs.tsv", "--out", "grammar"], ["translation"]),
        (["train", "--json", "--minutes", "1", "a.en", "a.ja", "--out", "x"], ["translation"]),
        (["--lang", "en", "score", "x", "test.tsv"], ["translation"]),
        (["assign", "2", "--out", "x"], ["classroom"]),
        (["grade", "x", "--lang=ja"], ["classroom"]),
        (["report", "x"], ["classroom"]),
        (["train", "grammar", "--out", "x"], []),
        (["train", "--lang", "en", "--out", "x", "grammar"], []),
        (["train"], []),
        (["translate", "x", "test"], []),
        (["study", "score"], []),
    ],
)
def test_a_command_installs_what_it_needs_once_and_says_how_much(launcher, arguments, extras, capfd):
    launcher.main([])
    capfd.readouterr()
    launcher.main(arguments)
    launcher.main(arguments)
    launcher.main([])
    assert installed(launcher) == [[], extras] if extras else [[]]
    said = capfd.readouterr().err
    assert (f"about {launcher.MEGABYTES_MORE[extras[0]]} MB" in said) if extras else not said
    assert len(launcher.ran) == 4 and launcher.ran[1][1] == arguments


def test_extras_gather_and_the_one_for_tests_holds_the_others(launcher):
    launcher.main(["score", "x", "y"])
    launcher.main(["grade", "x"])
    launcher.main(["test"])
    launcher.main(["assign", "2", "--out", "x"])
    assert installed(launcher) == [["translation"], ["classroom", "translation"], ["dev"]]
    extras = tomllib.loads((PATH.parent / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(extras) == set(launcher.MEGABYTES_MORE)
    assert all(set(needed) <= set(extras[launcher.HOLDS_ALL]) for needed in extras.values())


def test_an_update_says_how_much_it_may_download(launcher, capfd):
    launcher.main(["grade", "x"])
    first = capfd.readouterr().err
    (Path(launcher.HERE) / "constraints.txt").write_text("numpy==2.1\n", "utf-8")
    launcher.main([])
    assert launcher.size({"classroom"}) in first and launcher.size({"classroom"}) in capfd.readouterr().err
    assert launcher.size({"classroom"}) != launcher.size(set())


def test_a_stamp_of_before_there_were_extras_is_understood(launcher):
    launcher.main([])
    (Path(launcher.venv_folder()) / launcher.STAMP).write_text(
        json.dumps({"fingerprint": launcher.fingerprint(), "dev": True}), "utf-8"
    )
    assert launcher.main(["test"]) == launcher.main(["grade", "x"]) == 7 and len(launcher.asked) == 1


@pytest.mark.parametrize("arguments", [["--help"], ["test", "-h"], ["build", "--help"], ["score", "--help", "--lang", "en"]])
def test_help_installs_nothing(launcher, arguments, capfd):
    assert launcher.main(arguments) == 0  # nothing is there yet
    said = capfd.readouterr()
    assert "COMMAND --help" in said.out and " MB" in said.out and not said.err
    assert not launcher.asked and not launcher.ran and not os.path.exists(launcher.venv_folder())
    launcher.main([])
    (Path(launcher.HERE) / "constraints.txt").write_text("numpy==2.1\n", "utf-8")
    assert launcher.main(arguments) == 7 and len(launcher.asked) == 1 and launcher.ran[-1][1] == arguments


def test_the_language_chosen_before_is_used_as_the_commands_use_it(launcher, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(tmp_path / "記録 %20#?"))
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "1")
    assert launcher.language() == "en" and not os.path.exists(launcher.journal_folder())
    book = journal.Journal()
    for lang in ("en", "ja"):
        book.record("language", lang)
        assert launcher.language() == lang == cli._remembered_language()
    book.close()
    launcher.main([])
    assert "環境ができました" in capfd.readouterr().err
    monkeypatch.setattr(sys, "argv", ["course.py", "--lang", "en"])
    assert launcher.language() == "en"
    monkeypatch.setattr(sys, "argv", ["course.py"])
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "0")
    assert launcher.language() == "en"
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "1")
    Path(launcher.journal_folder(), "journal.db").write_bytes(b"no journal")
    assert launcher.language() == "en"


@pytest.mark.parametrize("chosen", [None, "/somewhere/else", "not/absolute"])
def test_the_journal_is_looked_for_where_it_is_kept(launcher, chosen, monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_HOME")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    if chosen:
        monkeypatch.setenv("XDG_DATA_HOME", chosen)
    assert Path(launcher.journal_folder()) == journal.home()


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
    assert launcher.main(["grade", "x"]) == 7  # which says itself what it lacks, if anything
    assert launcher.main(["test"]) == 3  # but tests need tools that were never there


@pytest.mark.parametrize(
    "stamp",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"fingerprint": 1, "dev": true}',
        '{"fingerprint": "a", "extras": 1}',
        '{"fingerprint": "a", "extras": ["b"]}',
    ],
)
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
