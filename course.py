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
MEGABYTES_FOR_TESTS = 80

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
        u"環境を更新します。足りないものだけをダウンロードします。",
        u"Updating the environment. Only what is missing is downloaded.",
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


def language():
    """"ja" or "en" for the texts here: --lang, else the environment, else ja. The commands themselves also know earlier choices."""
    given = sys.argv[1:]
    for position, argument in enumerate(given):
        if argument.startswith("--lang="):
            given = [argument[7:]]
            break
        if argument == "--lang":
            given = given[position + 1:position + 2]
            break
    else:
        given = []
    for name in given + [os.environ.get(each, "") for each in ("TRANSFORMER_LITE_LANG", "LC_ALL", "LC_MESSAGES", "LANGUAGE", "LANG")]:
        if name[:2] in ("ja", "en"):
            return name[:2]
    return "ja"


def say(key, **parameters):
    """Print one text in the learner's language, whatever the console can show."""
    text = TEXTS[key][0 if language() == "ja" else 1].format(**parameters) + u"\n"
    encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
    data = text.encode(encoding, "replace")
    sys.stderr.flush()
    getattr(sys.stderr, "buffer", sys.stderr).write(data)
    sys.stderr.flush()


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
    """What the last finished install was, or None."""
    try:
        with open(os.path.join(venv_folder(), STAMP), "rb") as file:
            stamp = json.loads(file.read().decode("utf-8"))
        return stamp if isinstance(stamp.get("fingerprint"), str) and isinstance(stamp.get("dev"), bool) else None
    except (OSError, ValueError, AttributeError):
        return None


def write_stamp(dev):
    path = os.path.join(venv_folder(), STAMP)
    with open(path + ".new", "wb") as file:
        file.write(json.dumps({"fingerprint": fingerprint(), "dev": dev}).encode("utf-8"))
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


def size(dev):
    least, most = MEGABYTES.get(sys.platform, MEGABYTES["linux"])
    more = MEGABYTES_FOR_TESTS if dev else 0
    if least == most:
        return (u"約 {0} MB" if language() == "ja" else u"about {0} MB").format(least + more)
    if language() == "ja":
        return u"GPU なしの PyTorch なら約 {0} MB、GPU 用が選ばれると約 {1:.1f} GB".format(least + more, (most + more) / 1000.0)
    return u"about {0} MB with a PyTorch for CPUs, about {1:.1f} GB where pip chooses the one for GPUs".format(
        least + more, (most + more) / 1000.0)


def install(dev):
    """Install the course into .venv with the tested versions. True if it worked; what went wrong is said."""
    command = installer(python_in(venv_folder()))
    if command is None:
        say("no_pip")
        return False
    target = HERE + ("[dev]" if dev else "")
    # pip's own progress bars go straight to the terminal.
    if subprocess.call(command + ["-c", os.path.join(HERE, "constraints.txt"), "-e", target], cwd=HERE) != 0:
        say("failed")
        return False
    write_stamp(dev)
    return True


def prepare(dev):
    """Make sure that .venv is there and up to date. Returns an exit code; 0 is ready."""
    stamp = read_stamp()
    python = python_in(venv_folder())
    there = os.path.exists(python)
    if there and stamp and stamp["fingerprint"] == fingerprint() and (stamp["dev"] or not dev):
        return 0
    finished_before = stamp is not None and there and works(python)
    if not works(python):
        if not make_environment():
            return MEND
        finished_before = False
    if finished_before:
        say("updating")
    else:
        say("size", size=size(dev))
    # What was installed for tests stays so: an update for studying must not turn it into an old mixture.
    if install(dev or bool(stamp and stamp["dev"])):
        say("ready")
        return 0
    if finished_before and (stamp["dev"] or not dev):
        say("go_on")  # offline, say: yesterday's environment still teaches
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
    dev = any(argument in ("test", "build") for argument in arguments)
    if active_environment():
        missing = missing_tools() if dev else []
        if missing:
            say("dev_missing", prefix=sys.prefix, names=", ".join(missing))
            return MEND
        return run(sys.executable, arguments)
    code = prepare(dev)
    return code if code else run(python_in(venv_folder()), arguments)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        say("interrupted")
        sys.exit(INTERRUPTED)
