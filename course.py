# -*- coding: utf-8 -*-
# ruff: noqa: E501, RUF005, UP009, UP010, UP025, UP030, UP032
"""Starts the course: makes the environment .venv if it is missing, then hands its arguments to the course's commands in it.

    python course.py                 study where you stopped
    python course.py test            run the tests
    python course.py --help          everything else

Needs Python 3.11 or newer and nothing else. It is written so that any Python can read it: an old one must get as far as saying
which one is needed.
"""

from __future__ import print_function

import hashlib
import json
import os
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
OLDEST = (3, 11)
STAMP = "transformer_lite.json"  # inside .venv, written last: an environment without it was never finished
MEND, INTERRUPTED = 3, 130

# What pip has to fetch into an empty environment with the versions in constraints.txt: measured on Linux (without and with the
# libraries for GPUs), estimated from the size of PyTorch elsewhere.
MEGABYTES = {"linux": (290, 2800), "darwin": (200, 200), "win32": (230, 230)}
# What some commands need besides, by the extra of pyproject.toml that holds it: measured on Linux in the same way.
MEGABYTES_MORE = {"dev": 150, "translation": 55, "classroom": 27}
HOLDS_ALL = "dev"  # this extra holds the others

TEXTS = {
    "python": (
        u"Python {needed} 以上が必要です（実行中: {found}）。https://www.python.org/downloads/ から入れて、そちらで python course.py を実行してください。",
        u"This course needs Python {needed} or newer; this is {found}. Get one from https://www.python.org/downloads/ and run course.py with it.",
    ),
    "making": (
        u"学習用の環境を作ります: {venv}",
        u"Making the course's environment: {venv}",
    ),
    "size": (
        u"必要なライブラリをダウンロードします（{size}）。回線によっては数分かかります。終わり近くの Installing collected packages では、しばらく（1 分ほど、遅い環境では数分）何も表示されません。途中で止めても、もう一度実行すれば続きから始まります。",
        u"Downloading the libraries it needs ({size}). This can take some minutes. Near the end, at Installing collected packages, nothing is shown for a while (about a minute, some minutes where it is slow). If you stop it, run the same command again to go on.",
    ),
    "updating": (
        u"環境を更新します。新しくなったものと足りないものだけをダウンロードします（ふつうは少しだけで、全部が新しくなった場合でも {size} です）。",
        u"Updating the environment. Only what is new or missing is downloaded: usually little, and where all of it is new, {size}.",
    ),
    "adding": (
        u"このコマンドに必要なライブラリを環境に加えます（約 {size} MB。ダウンロードは一度だけです）。",
        u"Adding to the environment what this command needs (about {size} MB, downloaded once).",
    ),
    "help": (
        u"Transformer の教材です。python course.py で環境 .venv を作り（{size}をダウンロードします）、JupyterLab で開きます。\n"
        u"環境ができると、python course.py --help でコマンドの一覧を、python course.py コマンド --help でそれぞれの使い方を見られます。\n"
        u"どのコマンドにも --lang ja|en を付けられます。",
        u"The Transformer course. python course.py makes its environment .venv (downloading {size}) and opens it in JupyterLab.\n"
        u"From then on python course.py --help lists the commands, and python course.py COMMAND --help says how each is used.\n"
        u"Every command takes --lang ja|en.",
    ),
    "ready": (u"環境ができました。", u"The environment is ready."),
    "no_venv": (
        u"環境を作れませんでした。{reason}\n書き込める場所にフォルダーがあるか、ディスクの空きがあるかを確かめて、もう一度実行してください。",
        u"The environment could not be made. {reason}\nCheck that this folder can be written to and that the disk has room, then run this again.",
    ),
    "no_pip": (
        u"pip が見つかりません。Debian や Ubuntu では次を実行してから、もう一度試してください: sudo apt install python3-venv",
        u"There is no pip. On Debian or Ubuntu run this, then try again: sudo apt install python3-venv",
    ),
    "failed": (
        u"ライブラリを入れられませんでした（すぐ上に理由があります）。ネットワークとディスクの空きを確かめて、もう一度 python course.py を実行してください。"
        u"入れ終わった分は残っています。何度も失敗するときは、.venv フォルダーを消してから実行してください。",
        u"The libraries could not be installed (the reason is just above). Check the network and the room on the disk, then run python course.py"
        u" again; what was fetched is kept. If it fails again and again, delete the folder .venv first.",
    ),
    "interrupted": (
        u"中断しました。もう一度 python course.py を実行すると続けられます。",
        u"Interrupted. Run python course.py again to go on.",
    ),
    "go_on": (
        u"更新できなかったので、前に作った環境のまま続けます。",
        u"The update failed; going on with the environment as it was.",
    ),
    "dev_missing": (
        u"使用中の環境 {prefix} にはテスト用のライブラリ（{names}）がありません。次を実行してください:\n"
        u"  python -m pip install -c constraints.txt -e \".[dev]\"",
        u"The active environment {prefix} lacks what tests and builds need ({names}). Run:\n"
        u"  python -m pip install -c constraints.txt -e \".[dev]\"",
    ),
}


def split_language(arguments):
    """The arguments without --lang, which may stand anywhere, and its value (None where it is not given)."""
    rest, wanted, given = [], None, iter(arguments)
    for argument in given:
        if argument == "--lang":
            wanted = next(given, "")
        elif argument.startswith("--lang="):
            wanted = argument[len("--lang="):]
        else:
            rest.append(argument)
    return rest, wanted


def language():
    """"ja" or "en" for the texts here, chosen as the commands choose it: --lang, else what was chosen before, else the environment,
    else ja."""
    names = [split_language(sys.argv[1:])[1], remembered_language()]
    names += [os.environ.get(name) for name in ("TRANSFORMER_LITE_LANG", "LC_ALL", "LC_MESSAGES", "LANGUAGE", "LANG")]
    for name in names:
        if name and name[:2] in ("ja", "en"):
            return name[:2]
    return "ja"


def journal_folder():
    """Where the learner's journal is: `journal.home` without its libraries. The two are compared in a test."""
    chosen = os.environ.get("TRANSFORMER_LITE_HOME")
    if chosen:
        return os.path.expanduser(chosen)
    if sys.platform == "win32":
        place = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    else:
        place = os.environ.get("XDG_DATA_HOME", "").strip()
        if not os.path.isabs(place):
            place = os.path.expanduser("~/Library/Application Support" if sys.platform == "darwin" else "~/.local/share")
    return os.path.join(place, "transformer_lite")


def remembered_language():
    """The language that the learner chose last, from the journal; None where there is none, or where it cannot be read now."""
    path = os.path.join(journal_folder(), "journal.db")
    if os.environ.get("TRANSFORMER_LITE_RECORD") == "0" or not os.path.isfile(path):
        return None
    try:
        import pathlib
        import sqlite3

        connection = sqlite3.connect(pathlib.Path(path).absolute().as_uri() + "?mode=ro", uri=True, timeout=1)
        try:
            newest = "SELECT subject FROM event WHERE kind = 'language' ORDER BY at DESC, number DESC LIMIT 1"
            found = connection.execute(newest).fetchone()
        finally:
            connection.close()
        return found[0] if found else None
    except Exception:  # a damaged or locked journal, a Python without SQLite: the commands say what is wrong with it
        return None


def say(key, **parameters):
    """Print one text in the learner's language, whatever the console can show."""
    text = TEXTS[key][0 if language() == "ja" else 1].format(**parameters) + u"\n"
    stream = sys.stdout if key == "help" else sys.stderr
    encoding = getattr(stream, "encoding", None) or "utf-8"
    data = text.encode(encoding, "replace")
    stream.flush()
    getattr(stream, "buffer", stream).write(data)
    stream.flush()


# --- which environment --------------------------------------------------------------------------------------------------


def venv_folder():
    return os.path.join(HERE, ".venv")


def python_in(folder):
    if os.name == "nt":
        return os.path.join(folder, "Scripts", "python.exe")
    return os.path.join(folder, "bin", "python")


def active_environment():
    """Whether this Python is a conda or virtual environment, other than .venv, that already holds this copy of the course."""
    inside = sys.prefix != getattr(sys, "base_prefix", sys.prefix) or os.environ.get("CONDA_PREFIX") == sys.prefix
    if not inside or os.path.realpath(sys.prefix) == os.path.realpath(venv_folder()):
        return False
    from importlib import metadata
    from urllib.parse import unquote, urlparse

    for found in metadata.distributions(name="transformer-lite", path=[place for place in sys.path if os.path.abspath(place) != HERE]):
        address = json.loads(found.read_text("direct_url.json") or "{}").get("url", "")
        place = unquote(urlparse(address).path)
        if os.name == "nt":
            place = place.lstrip("/")  # file:///C:/a -> /C:/a -> C:/a
        if place and os.path.realpath(place) == os.path.realpath(HERE):
            return True
    return False


def missing_tools():
    from importlib.util import find_spec

    return [name for name in ("jupytext", "nbclient", "nbval", "pytest", "xdist", "ruff", "importlinter") if find_spec(name) is None]


def extras_for(arguments):
    """The extras of pyproject.toml that a command needs besides the course itself; ``arguments`` without --lang."""
    command = arguments[0] if arguments else ""
    if command in ("test", "build"):
        return {"dev"}
    if command in ("assign", "grade", "report"):
        return {"classroom"}
    if command == "score" or (command == "train" and values(arguments[1:]) not in ([], ["grammar"])):
        return {"translation"}
    return set()


def values(arguments):
    """The arguments that are neither options nor the values of options."""
    found, is_value = [], False
    for argument in arguments:
        is_option = argument.startswith("--")
        if not is_option and not is_value:
            found.append(argument)
        is_value = is_option and "=" not in argument and argument not in ("--json", "--segment", "--no-segment")
    return found


def fingerprint():
    """A hash of everything that an installed environment depends on, so that an edited comment reinstalls nothing."""
    import tomllib

    with open(os.path.join(HERE, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)
    with open(os.path.join(HERE, "constraints.txt"), "rb") as file:
        constraints = [line.split("#")[0].strip() for line in file.read().decode("utf-8").splitlines()]
    try:
        with open(os.path.join(venv_folder(), "pyvenv.cfg"), "rb") as file:
            made = file.read().decode("utf-8", "replace")
    except OSError:
        made = ""
    parts = [project.get("project"), project.get("build-system"), project.get("tool", {}).get("hatch"),
             sorted(filter(None, constraints)), made, HERE]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode("utf-8")).hexdigest()


def read_stamp():
    """What the last finished install was: its fingerprint and the extras in it; or None."""
    try:
        with open(os.path.join(venv_folder(), STAMP), "rb") as file:
            stamp = json.loads(file.read().decode("utf-8"))
        if isinstance(stamp.get("dev"), bool):  # as it was written before there were several extras
            stamp["extras"] = ["dev"] if stamp["dev"] else []
        right = isinstance(stamp.get("fingerprint"), str) and all(extra in MEGABYTES_MORE for extra in stamp["extras"])
        return {"fingerprint": stamp["fingerprint"], "extras": set(stamp["extras"])} if right else None
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return None


def write_stamp(extras):
    path = os.path.join(venv_folder(), STAMP)
    with open(path + ".new", "wb") as file:
        file.write(json.dumps({"fingerprint": fingerprint(), "extras": sorted(extras)}).encode("utf-8"))
    os.replace(path + ".new", path)


# --- making it ----------------------------------------------------------------------------------------------------------


def succeeds(command):
    """Whether ``command`` can be started and exits with 0; what it prints goes nowhere."""
    try:
        with open(os.devnull, "rb") as nothing, open(os.devnull, "wb") as nowhere:
            return subprocess.call(command, stdin=nothing, stdout=nowhere, stderr=nowhere) == 0
    except OSError:
        return False


def works(python):
    return os.path.exists(python) and succeeds([python, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"])


def make_environment():
    """Make .venv without pip, since some systems ship a Python whose venv cannot put pip in."""
    say("making", venv=venv_folder())
    # A program of .venv itself cannot clear the folder that it runs from; its base can.
    base = getattr(sys, "_base_executable", None) or sys.executable
    command = [base, "-m", "venv", "--without-pip", "--clear", venv_folder()]
    try:
        code = subprocess.call(command)
    except OSError as trouble:
        say("no_venv", reason=trouble)
        return False
    if code != 0 or not works(python_in(venv_folder())):
        say("no_venv", reason=" ".join(command))
        return False
    return True


def installer(python):
    """The beginning of a command that installs into ``python``'s environment: its pip, a bundled one, the outer one, or uv."""
    own = [python, "-m", "pip", "install", "--disable-pip-version-check"]
    if succeeds([python, "-m", "pip", "--version"]):
        return own
    if succeeds([python, "-m", "ensurepip", "--upgrade", "--default-pip"]) and succeeds([python, "-m", "pip", "--version"]):
        return own
    if succeeds([sys.executable, "-m", "pip", "--python", python, "--version"]):
        return [sys.executable, "-m", "pip", "--python", python, "install", "--disable-pip-version-check"]
    if succeeds(["uv", "--version"]):
        return ["uv", "pip", "install", "--python", python]
    return None


def together(extras):
    """The extras that have to be named so that pip installs all of ``extras``."""
    return {HOLDS_ALL} if HOLDS_ALL in extras else set(extras)


def size(extras):
    """What an empty environment has to download, in words."""
    least, most = MEGABYTES.get(sys.platform, MEGABYTES["linux"])
    more = sum(MEGABYTES_MORE[extra] for extra in together(extras))
    if least == most:
        return (u"約 {0} MB" if language() == "ja" else u"about {0} MB").format(least + more)
    if language() == "ja":
        return u"GPU なしの PyTorch なら約 {0} MB、GPU 用が選ばれると約 {1:.1f} GB".format(least + more, (most + more) / 1000.0)
    return u"about {0} MB with a PyTorch for CPUs, about {1:.1f} GB where pip chooses the one for GPUs".format(
        least + more, (most + more) / 1000.0)


def install(extras):
    """Install the course into .venv with the tested versions. True if it worked; what went wrong is said."""
    command = installer(python_in(venv_folder()))
    if command is None:
        say("no_pip")
        return False
    target = HERE + ("[" + ",".join(sorted(extras)) + "]" if extras else "")
    # pip's own progress bars go straight to the terminal.
    if subprocess.call(command + ["-c", os.path.join(HERE, "constraints.txt"), "-e", target], cwd=HERE) != 0:
        say("failed")
        return False
    write_stamp(extras)
    return True


def prepare(extras):
    """Make sure that .venv is there, up to date and with these extras. Returns an exit code; 0 is ready."""
    stamp = read_stamp()
    python = python_in(venv_folder())
    there = os.path.exists(python)
    held = stamp["extras"] if stamp else set()
    wanted = together(held | extras)  # what was installed once stays: an update for studying must not make it an old mixture
    current = stamp is not None and stamp["fingerprint"] == fingerprint()
    if there and current and wanted == held:
        return 0
    finished_before = stamp is not None and there and works(python)
    if not works(python):
        if not make_environment():
            return MEND
        finished_before = False
    if not finished_before:
        say("size", size=size(wanted))
    elif current:
        say("adding", size=sum(MEGABYTES_MORE[extra] for extra in wanted - held))
    else:
        say("updating", size=size(wanted))
    if install(wanted):
        say("ready")
        return 0
    if finished_before and "dev" not in wanted - held:
        say("go_on")  # offline, say: yesterday's environment still teaches, and the commands say what they lack
        return 0
    return MEND


# --- running ------------------------------------------------------------------------------------------------------------


def run(python, arguments):
    """Run the course's commands in place of this program, or as its child where that cannot be done, and return the exit code."""
    environment = dict(os.environ)
    folder = os.path.dirname(python)
    environment["PATH"] = folder + os.pathsep + environment.get("PATH", "")
    if os.path.realpath(folder) == os.path.realpath(os.path.dirname(python_in(venv_folder()))):
        environment["VIRTUAL_ENV"] = venv_folder()
        environment.pop("PYTHONHOME", None)
    command = [python, "-m", "transformer_lite.cli"] + arguments
    if os.name != "nt":
        sys.stderr.flush()
        os.execve(python, command, environment)
    # Windows has no exec. Ctrl-C reaches both programs: the child deals with it, and this one waits for its exit code.
    child = subprocess.Popen(command, env=environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return child.wait()


def main(arguments):
    if sys.version_info < OLDEST:
        say("python", needed=".".join(map(str, OLDEST)), found=".".join(map(str, sys.version_info[:3])))
        return MEND
    rest = split_language(arguments)[0]
    explaining = "--help" in rest or "-h" in rest  # that installs nothing
    extras = set() if explaining else extras_for(rest)
    if active_environment():  # not ours to install into; what else is missing, the commands say
        missing = missing_tools() if "dev" in extras else []
        if missing:
            say("dev_missing", prefix=sys.prefix, names=", ".join(missing))
            return MEND
        return run(sys.executable, arguments)
    if explaining and not (read_stamp() and works(python_in(venv_folder()))):
        say("help", size=size(set()))
        return 0
    code = 0 if explaining else prepare(extras)
    return code if code else run(python_in(venv_folder()), arguments)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(INTERRUPTED)
