"""The commands: study, build, test, doctor, train, translate, score, assign, grade, report. `course.py` hands on its arguments.

Exit codes: 0 done, 1 the thing asked about is not so (a test failed, a notebook is stale), 2 usage, 3 the user's input or
environment must be mended, 5 our fault (the details are in a log file).
"""

# Typer reads the annotations of the commands when they are made, so they are not postponed here.
import difflib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from transformer_lite import __version__, content, journal, language
from transformer_lite.language import message

DONE, NOT_SO, USAGE, MEND, OUR_FAULT = 0, 1, 2, 3, 5
INTERRUPTED = 130
COMMANDS = ("study", "build", "test", "doctor", "train", "translate", "score", "assign", "grade", "report")
SUMMARY = re.compile(r"=+ .*\b(passed|failed|error|errors|skipped|no tests ran)\b.* =+")


class UserTrouble(Exception):
    """Something that the user must mend; the text says what and how."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Nothing that goes wrong reaches the user as a stack trace."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    given, wanted = _split_language(given)
    if wanted is not None and wanted not in language.LANGUAGES:
        _say(message("cli.unknown_language", lang=wanted), error=True)
        return USAGE
    language.use(wanted or _remembered_language() or language.current())
    if wanted and (not given or given[0] == "study" or given[0].startswith("-")):
        _remember_language(wanted)
    try:
        return _run(given)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as trouble:
        return _explained(trouble, given[0] if given and given[0] in COMMANDS else "")


def _run(arguments: list[str]) -> int:
    import typer

    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("--help", "-h", "--version")):
        arguments = ["study", *arguments]
    elif arguments[0] == "--version":
        _say(f"transformer-lite {__version__}")
        return DONE
    elif arguments[0].isdecimal():
        _say(message("cli.not_a_command", name=arguments[0]), error=True)
        return USAGE
    elif not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        nearest = difflib.get_close_matches(arguments[0], COMMANDS, n=2, cutoff=0.4) or COMMANDS
        _say(message("cli.unknown_command", name=arguments[0], nearest=", ".join(nearest)), error=True)
        return USAGE
    try:
        result = application()(arguments, prog_name="python course.py", standalone_mode=False)
    except typer.Abort:
        return INTERRUPTED
    return result if isinstance(result, int) else DONE


def _explained(trouble: Exception, command: str = "") -> int:
    """Say what went wrong in one paragraph and return the exit code that fits."""
    from transformer_lite import course

    if callable(getattr(trouble, "format_message", None)) and hasattr(trouble, "exit_code"):  # a wrong option or argument
        _say(message("cli.usage", problem=_usage(trouble), command=f"{command} --help".strip()), error=True)
        return USAGE
    if isinstance(trouble, content.Unknown):
        _say(str(trouble), error=True)
        return USAGE
    if isinstance(trouble, course.CourseError | content.ContentError | UserTrouble):
        _say(str(trouble), error=True)
        return MEND
    _say(message("cli.our_fault", error=f"{type(trouble).__name__}: {trouble}", log=_log(trouble)), error=True)
    return OUR_FAULT


def _usage(trouble: Any) -> str:
    """What is wrong with an option or argument, in the language in use; as the library says it where it is nothing usual."""
    said = trouble.format_message().rstrip(".")
    name = getattr(trouble, "option_name", None) or next(iter(re.findall("'([^']+)'", said)), "")
    kind = type(trouble).__name__
    if kind == "MissingParameter":
        return message("cli.usage_missing", name=name)
    if kind == "NoSuchOption":
        return message("cli.usage_no_option", name=name, near=", ".join(trouble.possibilities or ()) or "-")
    if kind == "BadOptionUsage":
        return message("cli.usage_no_value", name=name)
    if kind == "BadParameter":
        if least := re.search(r"(?:equal to |>=)\s*(-?\d+)$", said):
            return message("cli.usage_least", name=name, least=least[1])
        wanted = "number" if "integer" in said or "number" in said or "float" in said else "value"
        return message(f"cli.usage_{wanted}", name=name, problem=said)
    if extra := re.search(r"unexpected extra arguments?(?:\(s\))? \((.+)\)", said):
        return message("cli.usage_extra", names=extra[1])
    return said


def _log(trouble: BaseException) -> str:
    """Append the stack trace to a log file and return where it is."""
    entry = f"--- {datetime.now().isoformat(timespec='seconds')} transformer_lite {__version__} {sys.argv}\n"
    entry += "".join(traceback.format_exception(trouble))
    for folder in (journal.home(), Path(tempfile.gettempdir())):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / "errors.log").open("a", encoding="utf-8") as file:
                file.write(entry)
            return str(folder / "errors.log")
    return "-"


def _say(text: str = "", error: bool = False) -> None:
    """Print ``text`` so that no terminal's encoding can break it."""
    stream = sys.stderr if error else sys.stdout
    print(language.printable(text, getattr(stream, "encoding", None)), file=stream, flush=True)


# --- language -----------------------------------------------------------------------------------------------------------


def _split_language(arguments: list[str]) -> tuple[list[str], str | None]:
    """Take ``--lang`` out, wherever it stands: every command has it, and the texts of --help depend on it."""
    rest, wanted = [], None
    position = 0
    while position < len(arguments):
        argument = arguments[position]
        if argument == "--lang":
            wanted = arguments[position + 1] if position + 1 < len(arguments) else ""
            position += 1
        elif argument.startswith("--lang="):
            wanted = argument.removeprefix("--lang=")
        else:
            rest.append(argument)
        position += 1
    return rest, wanted


def _remembered_language() -> str | None:
    """What the learner chose before, unless this is a test's or a builder's process."""
    if os.environ.get("TRANSFORMER_LITE_RECORD") == "0":
        return None
    event = journal.default().last("language")
    return event.subject if event and event.subject in language.LANGUAGES else None


def _remember_language(lang: str) -> None:
    with _somebody_is_here():
        journal.default().record("language", lang)
        _say_trouble()


@contextmanager
def _somebody_is_here() -> Iterator[None]:
    """Whoever opens the course is a person, also where standard input is no terminal; only an explicit 0 says otherwise."""
    before = os.environ.get("TRANSFORMER_LITE_RECORD")
    os.environ["TRANSFORMER_LITE_RECORD"] = before or "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TRANSFORMER_LITE_RECORD"]


def _say_trouble() -> None:
    text = journal.default().trouble_message(language.current())
    if text:
        _say(text, error=True)


# --- the commands -------------------------------------------------------------------------------------------------------


def application() -> Any:
    """The commands with their help in the language in use."""
    import typer

    def argument(key: str, **settings: Any) -> Any:
        return typer.Argument(help=message(f"cli.help.{key}"), show_default=False, **settings)

    def option(name: str, key: str, **settings: Any) -> Any:
        return typer.Option(name, help=message(f"cli.help.{key}"), show_default=False, **settings)

    # Plain text: boxes and colours of a help page break consoles that cannot show them.
    app = typer.Typer(
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help=message("cli.help.all"),
        epilog=message("cli.help.lang"),
        context_settings={"help_option_names": ["--help", "-h"]},
    )

    @app.command(help=message("cli.help.study"), epilog=message("cli.help.lang"))
    def study(
        chapter: Annotated[str | None, argument("chapter", metavar="CHAPTER")] = None,
        workspace: Annotated[Path, option("--workspace", "workspace")] = Path("workspace"),
        no_browser: Annotated[bool, option("--no-browser", "no_browser")] = False,
        prepare: Annotated[bool, option("--prepare", "prepare")] = False,
    ) -> int:
        return _study(chapter, workspace, browser=not no_browser, serve=not prepare)

    @app.command(help=message("cli.help.build"), epilog=message("cli.help.lang"))
    def build(
        chapters: Annotated[list[str] | None, argument("chapters", metavar="CHAPTER")] = None,
        check: Annotated[bool, option("--check", "check")] = False,
        no_run: Annotated[bool, option("--no-run", "no_run")] = False,
        as_json: Annotated[bool, option("--json", "json")] = False,
    ) -> int:
        from transformer_lite import course

        for name in (chapters or ()) if check else ():  # `course.build` knows the sources, so also a chapter never built before
            course.chapter(name)
        return _build_check(as_json) if check else _build(chapters or None, not no_run, as_json)

    @app.command(help=message("cli.help.test"), epilog=message("cli.help.lang"))
    def test(everything: Annotated[bool, option("--all", "test_all")] = False) -> int:
        return _test(everything)

    @app.command(help=message("cli.help.doctor"), epilog=message("cli.help.lang"))
    def doctor(as_json: Annotated[bool, option("--json", "json")] = False) -> int:
        return _doctor(as_json)

    @app.command(help=message("cli.help.train"), epilog=message("cli.help.lang"))
    def train(
        data: Annotated[list[str], argument("data", metavar="grammar|FILE...")],
        out: Annotated[Path, option("--out", "out")],
        minutes: Annotated[float | None, option("--minutes", "minutes")] = None,
        steps: Annotated[int | None, option("--steps", "steps", min=1)] = None,
        seed: Annotated[int, option("--seed", "seed", min=0)] = 0,
        pieces: Annotated[int, option("--pieces", "pieces", min=10)] = 4_000,
        dev: Annotated[list[Path] | None, option("--dev", "dev")] = None,
        segment: Annotated[bool | None, option("--segment/--no-segment", "segment")] = None,
        as_json: Annotated[bool, option("--json", "json")] = False,
    ) -> int:
        from transformer_lite.cli import translating

        return translating.train(data, out, minutes, steps, seed, pieces, dev, segment, as_json)

    @app.command(help=message("cli.help.translate"), epilog=message("cli.help.lang"))
    def translate(
        folder: Annotated[Path, argument("translator", metavar="DIR")],
        text: Annotated[str | None, argument("text", metavar="TEXT|-")] = None,
        beam: Annotated[int, option("--beam", "beam", min=1)] = 4,
        show_attention: Annotated[bool, option("--show-attention", "show_attention")] = False,
        picture: Annotated[Path | None, option("--picture", "picture")] = None,
        as_json: Annotated[bool, option("--json", "json")] = False,
    ) -> int:
        from transformer_lite.cli import translating

        return translating.translate(folder, text, beam, show_attention, picture, as_json)

    @app.command(help=message("cli.help.score"), epilog=message("cli.help.lang"))
    def score(
        folder: Annotated[Path, argument("translator", metavar="DIR")],
        files: Annotated[list[Path], argument("score_files", metavar="FILE...")],
        beam: Annotated[int, option("--beam", "beam", min=1)] = 4,
        tokenize: Annotated[str, option("--tokenize", "tokenize")] = "none",
        as_json: Annotated[bool, option("--json", "json")] = False,
    ) -> int:
        from transformer_lite.cli import translating

        return translating.score(folder, files, beam, tokenize, as_json)

    @app.command(help=message("cli.help.assign"), epilog=message("cli.help.lang"))
    def assign(
        chapters: Annotated[list[str], argument("assigned", metavar="CHAPTER...")],
        out: Annotated[Path, option("--out", "course_out")],
        exercises: Annotated[str | None, option("--exercises", "exercises", metavar="ID,...")] = None,
        questions: Annotated[int | None, option("--questions", "questions", min=1)] = None,
        seed: Annotated[int, option("--seed", "questions_seed", min=0)] = 0,
        bank: Annotated[Path | None, option("--bank", "bank")] = None,
        as_json: Annotated[bool, option("--json", "json")] = False,
    ) -> int:
        from transformer_lite.cli import classroom

        return classroom.assign(chapters, out, exercises, questions, seed, bank, as_json)

    @app.command(help=message("cli.help.grade"), epilog=message("cli.help.lang"))
    def grade(
        folder: Annotated[Path, argument("course_folder", metavar="DIR")],
        jobs: Annotated[int, option("--jobs", "jobs", min=1)] = 2,
        timeout: Annotated[int, option("--timeout", "timeout", min=1)] = 20,
        trust: Annotated[bool, option("--trust-submissions", "trust")] = False,
        again: Annotated[bool, option("--again", "again")] = False,
        as_json: Annotated[bool, option("--json", "json")] = False,
    ) -> int:
        from transformer_lite.cli import classroom

        return classroom.grade(folder, jobs, timeout, trust, again, as_json)

    @app.command(help=message("cli.help.report"), epilog=message("cli.help.lang"))
    def report(
        folder: Annotated[Path, argument("course_folder", metavar="DIR")],
        as_json: Annotated[bool, option("--json", "json")] = False,
    ) -> int:
        from transformer_lite.cli import reporting

        return reporting.report(folder, as_json)

    return app


# --- study --------------------------------------------------------------------------------------------------------------


def _study(name: str | None, folder: Path, browser: bool, serve: bool) -> int:
    from transformer_lite import course
    from transformer_lite.course import workspace

    lang = language.current()
    listed = course.chapters()
    if not listed:
        raise course.CourseError(message("cli.no_chapters"))
    try:
        chapter = course.chapter(name) if name else _where_stopped(listed)
    except course.UnknownChapter as unknown:
        _say(str(unknown), error=True)
        _say(message("cli.chapters", listed=", ".join(f"{each.number} {each.id}" for each in listed)), error=True)
        return USAGE
    done = workspace.update(folder, lang, listed)
    for text in [*done.notes, *filter(None, (change.text(lang) for change in done.changes))]:
        _say(text)
    notebook = done.change(chapter.id).notebook
    if notebook is None:
        return MEND  # why is in the texts above
    if name:
        with _somebody_is_here():
            journal.default().record("open", chapter.id, lang=lang, notebook=notebook.name)
            _say_trouble()
    content.library()  # compiles the questions once, so that no learner waits for it; a mistake in them is said here
    _say(message("cli.opening", number=chapter.number, title=chapter.title(), path=notebook))
    return _jupyterlab(folder, notebook, lang, browser) if serve else DONE


def _where_stopped(listed: Sequence[Any]) -> Any:
    """The chapter that was opened last; else the first."""
    if journal.recording():
        event = journal.default().last("open")
        known = {chapter.id: chapter for chapter in listed}
        if event and event.subject in known:
            return known[event.subject]
    return listed[0]


def _jupyterlab(folder: Path, notebook: Path, lang: str, browser: bool) -> int:
    """Run JupyterLab in this process, in the workspace, with ``notebook`` open. Ctrl-C ends it."""
    if browser and not _browser():
        _say(message("cli.no_browser"))
        browser = False
    settings = _jupyterlab_settings(lang)
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, [str(settings), os.environ.get("JUPYTER_CONFIG_PATH")]))
    # The layout that JupyterLab remembers is this course's own, not the one of the learner's other work.
    os.environ.setdefault("JUPYTERLAB_WORKSPACES_DIR", str(settings.parent / "layouts"))
    # Kernels must be of this environment, even if the learner has one of the same name in their home.
    os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    place = folder.resolve()
    arguments = [
        f"--ServerApp.root_dir={place}",
        f"--LabApp.default_url=/lab/tree/{notebook.resolve().relative_to(place).as_posix()}",
        "--ServerApp.answer_yes=True",
    ]
    if not browser:
        arguments.append("--no-browser")
    if getattr(os, "geteuid", lambda: 1)() == 0:
        arguments.append("--allow-root")  # containers and hosted machines: it still listens on this machine only
    _say(message("cli.how_to_end"))
    os.chdir(place)
    from jupyterlab.labapp import LabApp

    LabApp.launch_instance(argv=arguments)
    return DONE


def _jupyterlab_settings(lang: str) -> Path:
    """A folder of defaults for JupyterLab: its language is ours, and it asks nothing about news.

    Defaults of ours, not settings of the learner's: what they choose in JupyterLab's menu still wins, and nothing of theirs is
    written to.
    """
    defaults = {
        "@jupyterlab/translation-extension:plugin": {"locale": {"ja": "ja_JP", "en": "en"}[lang]},
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
    }
    for home in (journal.home(), Path(tempfile.gettempdir()) / f"transformer_lite_{os.getpid()}"):
        with suppress(OSError):
            folder = home / "jupyter" / lang / "labconfig"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "default_setting_overrides.json").write_text(json.dumps(defaults), "utf-8")
            return folder.parent
    return Path(tempfile.mkdtemp(prefix="transformer_lite_"))


def _browser() -> str | None:
    """The name of the browser that Python would open, or None."""
    import webbrowser

    try:
        return getattr(webbrowser.get(), "name", "") or type(webbrowser.get()).__name__
    except webbrowser.Error:
        return None


# --- build --------------------------------------------------------------------------------------------------------------


def _build(chapters: list[str] | None, run: bool, as_json: bool) -> int:
    from transformer_lite import course

    def progress(path: Path) -> None:
        if not as_json:
            _say(message("cli.building", path=path))

    changed = course.build(chapters, run, progress=progress)
    if as_json:
        _say(json.dumps({"changed": [str(path) for path in changed]}, ensure_ascii=False))
    else:
        _say(message("cli.built", count=len(changed)))
    return DONE


def _build_check(as_json: bool) -> int:
    from transformer_lite import course

    problems = course.stale()
    if as_json:
        _say(json.dumps({"ok": not problems, "problems": problems}, ensure_ascii=False))
    else:
        _say(
            "\n".join(problems) if problems else message("cli.not_stale", count=len(course.chapters()) * len(language.LANGUAGES))
        )
    return NOT_SO if problems else DONE


# --- test ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Gate:
    """One thing that `test` asks: ``run`` returns whether it is so and one line that says what was looked at."""

    name: str
    run: Callable[[], tuple[bool, str]]


def _test(everything: bool) -> int:
    from transformer_lite import course

    root = Path(__file__).resolve().parents[2]
    if not (root / "tests").is_dir() or content.source_dir() is None:
        raise course.CourseError(message("cli.no_tests"))
    tools = ("pytest", "nbval", "xdist", "ruff", "importlinter", "jupytext", "nbgrader")
    if missing := [name for name in tools if not importlib.util.find_spec(name)]:
        raise course.CourseError(message("cli.no_dev_tools", names=", ".join(missing)))
    with tempfile.TemporaryDirectory(prefix="transformer_lite_test_") as folder:
        environment = os.environ | {"TRANSFORMER_LITE_RECORD": "0", "TRANSFORMER_LITE_HOME": str(Path(folder) / "home")}
        gates = _gates(root, Path(folder), environment, everything)
        results = []
        for gate in gates:
            _say(f"\n--- {gate.name}")
            start = time.monotonic()
            right, line = gate.run()
            results.append((right, gate.name, time.monotonic() - start, line))
    _say()
    for right, name, seconds, line in results:
        _say(f"{'ok' if right else 'FAILED':<7} {name:<22} {seconds:6.1f} s   {line}")
    return DONE if all(right for right, *_ in results) else NOT_SO


def _gates(root: Path, folder: Path, environment: dict[str, str], everything: bool) -> list[Gate]:
    def run(*command: str, **more: str) -> tuple[int, list[str]]:
        return _stream([sys.executable, "-m", *command], root, environment | more)

    def style() -> tuple[bool, str]:
        code, lines = run("ruff", "check", ".")
        return code == 0 and not any("No Python files" in line for line in lines), _last(lines)

    def floors() -> tuple[bool, str]:
        code, lines = _stream(
            [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()"], root, environment
        )
        kept = re.search(r"Contracts: (\d+) kept, (\d+) broken", "\n".join(lines))
        return code == 0 and kept is not None and int(kept[1]) > 0, kept[0] if kept else _last(lines)

    def fresh() -> tuple[bool, str]:
        code, lines = run("transformer_lite.cli", "build", "--check", "--lang", language.current())
        return code == 0, f"{len(lines)} problems" if code else _last(lines)

    def pytest(*arguments: str, **more: str) -> tuple[bool, str]:
        code, lines = run("pytest", "-q", "-c", str(root / "pyproject.toml"), f"--rootdir={root}", *arguments, **more)
        line = next(
            (line for line in reversed(lines) if re.search(r"\b(passed|failed|errors?|skipped|no tests ran)\b.* in \d", line)), ""
        )
        # A run in which everything was skipped exits with 0 but has shown nothing.
        return code == 0 and "passed" in line, line.strip("= ")

    def unit() -> tuple[bool, str]:
        which = () if everything else ("-m", "not browser and not whole_class")
        return pytest("tests", f"--ignore={root / 'tests' / 'e2e'}", "-n", "2", "--dist", "loadfile", *which)

    def catalogue() -> tuple[bool, str]:
        code, lines = _stream([sys.executable, str(root / "tests" / "practice" / "catalogue.py")], root, environment)
        total = next((line for line in lines if line.startswith("all ")), "")
        return code == 0 and bool(total), " ".join(total.split())

    def notebooks() -> tuple[bool, str]:
        from transformer_lite.course import building

        # pytest names a notebook by its place below the root folder: these copies get one each, and xdist must not mix them up.
        place = folder / "notebooks"
        shutil.copytree(content.notebooks_dir("ja"), place / "ja", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
        (place / "en_solved").mkdir()
        try:
            building.write_solved(place / "en_solved", "en")
        except building.BuildError as trouble:
            return False, str(trouble)
        paths = sorted(place.glob("*/*.ipynb"))
        if not everything:  # every chapter once: the even ones blank in Japanese, the odd ones solved in English
            paths = [path for path in paths if (int(path.name[:2]) % 2 == 0) is (path.parent.name == "ja")]
        cells = sum(cell["cell_type"] == "code" for path in paths for cell in json.loads(path.read_text("utf-8"))["cells"])
        # The cells of one notebook share a kernel: --dist loadfile keeps them together.
        options = (
            "--nbval-lax",
            "--nbval-current-env",
            "--nbval-cell-timeout=300",
            "-p",
            "no:cacheprovider",
            "-n",
            "2",
            "--dist",
            "loadfile",
        )
        right, line = pytest(*options, f"--rootdir={place}", *map(str, paths), TRANSFORMER_LITE_STATIC="1", OMP_NUM_THREADS="1")
        return right and line.startswith(f"{cells} passed") and cells > 0, f"{line} ({len(paths)} notebooks, {cells} code cells)"

    def browser() -> tuple[bool, str]:
        right, line = pytest("tests/e2e")
        # Without a Chromium these tests skip themselves, and fail where CI=true says that they must run.
        return right or (
            "skipped" in line and "failed" not in line and "error" not in line and os.environ.get("CI") != "true"
        ), line

    gates = [
        Gate("ruff", style),
        Gate("import-linter", floors),
        Gate("build --check", fresh),
        Gate("pytest", unit),
        Gate("catalogue", catalogue),
        Gate("nbval", notebooks),
    ]
    return [*gates, Gate("pytest tests/e2e", browser)] if everything else gates


def _stream(command: list[str], folder: Path, environment: dict[str, str]) -> tuple[int, list[str]]:
    """Run ``command``, pass on what it prints as it comes, and return its exit code and lines."""
    lines = []
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment | {"PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            _say(lines[-1])
    return process.returncode, lines


def _last(lines: list[str]) -> str:
    return next((line for line in reversed(lines) if line.strip()), "")


# --- doctor -------------------------------------------------------------------------------------------------------------


def _doctor(as_json: bool) -> int:
    from transformer_lite.lab.health import Finding, findings

    with _no_display():
        found = [*findings(), *_own_findings(Finding)]
    wrong = [finding for finding in found if not finding.ok]
    if as_json:
        listed = [{"name": each.name, "found": each.found, "ok": each.ok, "mend": each.mend} for each in found]
        _say(json.dumps({"ok": not wrong, "findings": listed}, ensure_ascii=False, indent=1))
        return MEND if wrong else DONE
    names = [_name_of(finding.name) for finding in found]
    columns = max(map(language.width, names))
    for name, finding in zip(names, found, strict=True):
        _say(f"{'ok  ' if finding.ok else 'MEND'}  {name}{' ' * (columns - language.width(name))}  {finding.found}")
        if not finding.ok:
            _say(f"      {' ' * columns}  -> {finding.mend}")
    _say(message("cli.doctor.some" if wrong else "cli.doctor.all_well", count=len(wrong)))
    return MEND if wrong else DONE


def _name_of(finding: str) -> str:
    own = f"cli.doctor.{finding}"
    return message(own if own in language.catalogue() else f"lab.doctor_{finding}")


def _own_findings(finding: Any) -> Iterator[Any]:
    """What only the commands need: a browser, and JupyterLab's Japanese."""
    # No browser is no fault: on a machine without a screen the address is opened elsewhere.
    yield finding("browser", _browser() or message("cli.doctor.no_browser"))
    pack = importlib.util.find_spec("jupyterlab_language_pack_ja_JP")
    yield finding("japanese_lab", "ja_JP" if pack else "-", "" if pack else message("cli.doctor.mend_pack"))


@contextmanager
def _no_display() -> Iterator[None]:
    """Keep what libraries print while they are looked at out of the report."""
    import contextlib
    import io

    with contextlib.redirect_stderr(io.StringIO()):
        yield
