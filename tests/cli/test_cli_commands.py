"""The commands as a user meets them: what they print, in which language, and their exit codes."""

import json
import os
import subprocess
import sys

import pytest

from transformer_lite import cli, content, course, journal, language


@pytest.fixture(autouse=True)
def private(tmp_path, monkeypatch):
    """A learner on an empty machine, whose locale says nothing and whose doings are recorded."""
    for name in ("TRANSFORMER_LITE_LANG", "LC_ALL", "LC_MESSAGES", "LANGUAGE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("transformer_lite.language.from_locale", lambda: None)
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "1")
    monkeypatch.setattr(language, "_current", None)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def small_course(tmp_path, monkeypatch):
    """Two chapters, built in both languages."""
    for lang in ("ja", "en"):
        (tmp_path / "notebooks" / lang).mkdir(parents=True)
        for number, name in ((0, "first-steps"), (2, "attention")):
            about = {"chapter": name, "number": number, "sections": [], "lang": lang, "title": {"ja": "題", "en": "Title"}}
            cells = [{"cell_type": "markdown", "id": "a", "metadata": {}, "source": f"# {name} {lang}"}]
            path = tmp_path / "notebooks" / lang / f"{number:02d}_{name.replace('-', '_')}.ipynb"
            path.write_text(
                json.dumps({"cells": cells, "metadata": {"transformer_lite": about}, "nbformat": 4, "nbformat_minor": 5}), "utf-8"
            )
    monkeypatch.setattr(content, "notebooks_dir", lambda lang: tmp_path / "notebooks" / lang)
    monkeypatch.setattr(content, "source_dir", lambda: None)
    return tmp_path


def test_study_fills_the_workspace_and_opens_the_first_chapter(small_course, capsys):
    assert cli.main(["study", "--prepare"]) == 0
    said = capsys.readouterr().out
    assert (small_course / "workspace/ja/02_attention.ipynb").is_file()
    assert "第 0 章" in said.splitlines()[-1] and "00_first_steps.ipynb" in said.splitlines()[-1]


def test_study_goes_on_where_the_learner_stopped(small_course, capsys):
    assert cli.main(["study", "2", "--prepare"]) == 0
    assert cli.main(["--prepare"]) == 0  # no command is study
    assert "02_attention.ipynb" in capsys.readouterr().out.splitlines()[-1]
    assert journal.default().last("open").subject == "attention"


def test_study_takes_another_workspace_and_says_what_it_kept(small_course, capsys):
    assert cli.main(["study", "--prepare", "--workspace", "私 の", "--lang", "en"]) == 0
    path = small_course / "私 の/en/02_attention.ipynb"
    path.write_text("mine", "utf-8")
    assert cli.main(["study", "--prepare", "--workspace", "私 の", "--lang", "en"]) == 0
    assert "02_attention.new.ipynb" in capsys.readouterr().out and path.read_text("utf-8") == "mine"


def test_study_gives_jupyterlab_the_file_the_language_and_no_question_about_news(small_course, monkeypatch, capsys):
    pytest.importorskip("jupyterlab")
    from jupyterlab.labapp import LabApp

    seen = {}
    monkeypatch.setattr(LabApp, "launch_instance", classmethod(lambda cls, argv: seen.update(argv=argv, cwd=os.getcwd())))
    for name in ("JUPYTER_CONFIG_PATH", "JUPYTERLAB_WORKSPACES_DIR", "JUPYTER_PREFER_ENV_PATH", "PATH"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    assert cli.main(["study", "attention", "--no-browser", "--lang", "ja"]) == 0
    assert seen["cwd"] == str(small_course / "workspace") and "--no-browser" in seen["argv"]
    assert "--LabApp.default_url=/lab/tree/ja/02_attention.ipynb" in seen["argv"]
    folder = os.environ["JUPYTER_CONFIG_PATH"].split(os.pathsep)[0]
    with open(os.path.join(folder, "labconfig", "default_setting_overrides.json"), encoding="utf-8") as file:
        settings = json.load(file)
    assert settings["@jupyterlab/translation-extension:plugin"] == {"locale": "ja_JP"}
    assert settings["@jupyterlab/apputils-extension:notification"]["fetchNews"] == "false"


def test_without_a_browser_the_address_is_promised(small_course, monkeypatch, capsys):
    pytest.importorskip("jupyterlab")
    from jupyterlab.labapp import LabApp

    seen = []
    monkeypatch.setattr(LabApp, "launch_instance", classmethod(lambda cls, argv: seen.append(argv)))
    monkeypatch.setattr(cli, "_browser", lambda: None)
    for name in ("JUPYTER_CONFIG_PATH", "JUPYTERLAB_WORKSPACES_DIR", "JUPYTER_PREFER_ENV_PATH", "PATH"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    assert cli.main(["study", "--lang", "en"]) == 0
    assert "No browser was found" in capsys.readouterr().out and "--no-browser" in seen[0]


def test_an_unknown_chapter_is_a_usage_error_with_the_nearest_names(small_course, capsys):
    assert cli.main(["study", "atention", "--prepare", "--lang", "en"]) == 2
    assert "attention" in capsys.readouterr().err
    assert not (small_course / "workspace").exists()


def test_a_workspace_that_cannot_be_made_is_for_the_user_to_mend(small_course, capsys):
    (small_course / "workspace").write_text("a file", "utf-8")
    assert cli.main(["study", "--prepare"]) == 3
    assert "--workspace" in capsys.readouterr().err


def test_a_course_without_notebooks_is_for_the_user_to_mend(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(content, "notebooks_dir", lambda lang: tmp_path / "none" / lang)
    assert cli.main(["study", "--prepare"]) == 3
    assert "build" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["stdy"], "study"),
        (["study", "--wrong"], "--wrong"),
        (["build", "--lang", "fr"], "'fr'"),
        (["--lang"], "ja"),
        (["doctor", "extra"], "extra"),
    ],
)
def test_wrong_usage_says_what_and_exits_with_2(arguments, named, capsys):
    assert cli.main(arguments) == 2
    said = capsys.readouterr().err
    assert named in said and "Traceback" not in said


def test_the_language_is_asked_for_then_remembered_then_of_the_environment_then_japanese(small_course, monkeypatch, capsys):
    def spoken(*arguments):
        assert cli.main(["study", "--prepare", *arguments]) == 0
        return {"第": "ja", "O": "en"}[capsys.readouterr().out.splitlines()[-1][0]]

    def fresh():
        monkeypatch.setattr(language, "_current", None)

    assert spoken() == "ja"
    fresh()
    monkeypatch.setattr("transformer_lite.language.from_locale", lambda: "en")
    assert spoken() == "en"
    fresh()
    monkeypatch.setenv("TRANSFORMER_LITE_LANG", "ja")
    assert spoken() == "ja"
    fresh()
    assert spoken("--lang", "en") == "en"
    fresh()
    assert spoken() == "en"  # chosen before, although the environment says ja
    fresh()
    assert spoken("--lang=ja") == "ja"
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "0")
    monkeypatch.setenv("TRANSFORMER_LITE_LANG", "en")
    fresh()
    assert spoken() == "en"  # nothing is remembered where nothing is recorded


def test_help_speaks_both_languages(capsys):
    assert cli.main(["--help", "--lang", "ja"]) == 0
    assert "ワークスペース" in capsys.readouterr().out
    assert cli.main(["study", "--help", "--lang", "en"]) == 0
    assert "Print the address" in capsys.readouterr().out


def test_build_check_says_each_problem_and_exits_with_1(monkeypatch, capsys):
    monkeypatch.setattr(course, "stale", lambda: ["a.md:3: no"])
    assert cli.main(["build", "--check"]) == 1
    assert "a.md:3: no" in capsys.readouterr().out
    assert cli.main(["build", "--check", "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"ok": False, "problems": ["a.md:3: no"]}
    monkeypatch.setattr(course, "stale", list)
    assert cli.main(["build", "--check"]) == 0


def test_build_and_tests_are_refused_where_there_are_no_sources(small_course, capsys):
    assert cli.main(["build"]) == 3
    assert cli.main(["test"]) == 3
    assert "Traceback" not in capsys.readouterr().err


def test_our_own_fault_is_one_paragraph_and_a_log(small_course, tmp_path, monkeypatch, capsys):
    def break_down(*_):
        raise RuntimeError("inner workings")

    monkeypatch.setattr(course, "chapters", break_down)
    assert cli.main(["study", "--lang", "en"]) == 5
    said = capsys.readouterr().err
    log = tmp_path / "home" / "errors.log"
    assert "inner workings" in said and str(log) in said and "Traceback" not in said
    assert "Traceback" in log.read_text("utf-8") and "break_down" in log.read_text("utf-8")


def test_a_log_that_cannot_be_written_goes_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(tmp_path / "file" / "home"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "temp"))
    assert cli._log(RuntimeError("x")) == str(tmp_path / "temp" / "errors.log")


def test_ctrl_c_is_no_fault(small_course, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(course, "chapters", interrupt)
    assert cli.main(["study"]) == 130
    assert capsys.readouterr().err == ""


def test_doctor_says_ok_or_how_to_mend(monkeypatch, capsys):
    from transformer_lite.lab import health

    wrong = [health.Finding("font", "-", "install a font")]
    monkeypatch.setattr(health, "findings", lambda: [health.Finding("python", "3.11"), *wrong])
    assert cli.main(["doctor", "--lang", "en"]) == 3
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("ok ") and said[1].startswith("MEND") and "install a font" in said[2]
    assert cli.main(["doctor", "--json"]) == 3
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False and report["findings"][1] == {
        "name": "font",
        "found": "-",
        "ok": False,
        "mend": "install a font",
    }
    wrong.clear()
    assert cli.main(["doctor"]) == 0


@pytest.mark.parametrize("encoding", ["ascii", "cp932", "latin-1"])
def test_no_console_breaks_the_output(encoding, tmp_path):
    environment = os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    for lang in ("ja", "en"):
        done = subprocess.run(
            [sys.executable, "-m", "transformer_lite.cli", "stdy", "--lang", lang],
            env=environment,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 2 and b"study" in done.stderr and b"Traceback" not in done.stderr


def test_the_commands_load_nothing_heavy(tmp_path):
    code = (
        "import sys, transformer_lite.cli as cli\n"
        "cli.main(['--version'])\n"
        "heavy = {'torch', 'matplotlib', 'IPython', 'ipywidgets', 'pydantic', 'jupyterlab', 'nbformat', 'jupytext', 'numpy'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# --- test: the gates ----------------------------------------------------------------------------------------------------


def gate_named(name, folder, everything=False):
    root = content.source_dir().parent.parent
    return next(gate for gate in cli._gates(root, folder, dict(os.environ), everything) if gate.name.endswith(name))


@pytest.mark.parametrize(
    ("name", "code", "printed", "right"),
    [
        ("ruff", 0, "All checks passed!", True),
        ("ruff", 1, "Found 1 error.", False),
        ("ruff", 0, "warning: No Python files found under the given path(s)", False),
        ("import-linter", 0, "Contracts: 2 kept, 0 broken.", True),
        ("import-linter", 0, "Contracts: 0 kept, 0 broken.", False),
        ("import-linter", 1, "Contracts: 1 kept, 1 broken.", False),
        ("import-linter", 0, "", False),
        ("build --check", 1, "x.md:1: stale", False),
        ("build --check", 0, "All notebooks agree", True),
        ("pytest", 0, "12 passed in 3.10s", True),
        ("pytest", 1, "1 failed, 12 passed in 3.10s", False),
        ("pytest", 5, "no tests ran in 0.10s", False),
        ("pytest", 0, "3 skipped in 0.10s", False),
    ],
)
def test_a_gate_fails_on_failure_and_on_having_matched_nothing(name, code, printed, right, tmp_path, monkeypatch):
    monkeypatch.setattr(cli, "_stream", lambda *_: (code, [printed]))
    assert gate_named(name, tmp_path).run()[0] is right


@pytest.mark.parametrize(("ci", "right"), [("", True), ("true", False)])
def test_skipped_browser_tests_fail_only_in_ci(ci, right, tmp_path, monkeypatch):
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(cli, "_stream", lambda *_: (0, ["4 skipped in 0.10s"]))
    assert gate_named("tests/e2e", tmp_path, everything=True).run()[0] is right


def test_every_gate_runs_and_one_failure_fails_the_whole(monkeypatch, capsys):
    asked = []

    def gate(name, right):
        return cli.Gate(name, lambda: (asked.append(name), (right, f"{name} looked"))[1])

    monkeypatch.setattr(cli, "_gates", lambda *_: [gate("one", False), gate("two", True)])
    assert cli.main(["test"]) == 1
    assert asked == ["one", "two"]
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()[-2:]] == [["FAILED", "one"], ["ok", "two"]]
    monkeypatch.setattr(cli, "_gates", lambda *_: [gate("two", True)])
    assert cli.main(["test"]) == 0


def test_what_a_gate_prints_is_passed_on_with_its_exit_code(tmp_path, capsys):
    code, lines = cli._stream([sys.executable, "-c", "print('犬'); raise SystemExit(4)"], tmp_path, dict(os.environ))
    assert (code, lines) == (4, ["犬"]) and "犬" in capsys.readouterr().out


def test_a_language_chosen_without_a_terminal_is_remembered(tmp_path):
    """A learner may start the course from an icon or an editor, where standard input is no terminal."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRANSFORMER_LITE")}
    environment |= {"TRANSFORMER_LITE_HOME": str(tmp_path / "home"), "LC_ALL": "ja_JP.UTF-8"}

    def prepare(*options):
        command = [sys.executable, "-m", "transformer_lite.cli", "study", "--prepare", "--workspace", str(tmp_path / "w")]
        command += options
        return subprocess.run(command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, check=True)

    assert (tmp_path / "w").exists() is False
    prepare("--lang", "en")
    prepare()
    assert [folder.name for folder in (tmp_path / "w").iterdir() if folder.is_dir()] == ["en"]


def test_build_check_of_an_unknown_chapter_is_a_wrong_use(capsys):
    assert cli.main(["build", "--check", "nope"]) == 2
    assert "nope" in capsys.readouterr().err
