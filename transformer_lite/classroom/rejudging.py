"""Run in a sandbox of its own: judges once more, where no student's code can reach, the functions that a notebook left behind.

    python -m transformer_lite.classroom.rejudging FOLDER SEED EXERCISE…

What students wrote runs in the checker's worker process only. In here their functions are looked at as text; nothing of theirs is
unpickled. The last line holds the verdicts in JSON: exercise -> ``CheckResult.to_dict()`` and the tests that are passed. That
worker could write into our output, so the line is signed with the key that is read from the standard input before all else.
"""

from __future__ import annotations

import ast
import hashlib
import hmac
import json
import linecache
import sys
from pathlib import Path
from typing import Any

from transformer_lite import practice
from transformer_lite.classroom import testing

LARGEST = 50_000_000
LONGEST = 2_000  # characters of a text in a verdict: a class may have a name of millions


def main(folder: Path, seed: int, exercises: list[str]) -> None:
    """Judge the functions in ``folder`` and print the verdicts."""
    key = sys.stdin.buffer.read()
    print("\n" + signed(json.dumps({name: judged(folder, seed, name) for name in exercises}), key))


def signed(text: str, key: bytes) -> str:
    """``text`` with a signature before it."""
    return f"{hmac.new(key, text.encode(), hashlib.sha256).hexdigest()} {text}"


def verdicts(output: str, key: bytes) -> dict[str, Any] | None:
    """What `main` printed into ``output``; None if there is nothing that was signed with ``key``."""
    for line in reversed(output.splitlines()):
        text = line.partition(" ")[2]
        if hmac.compare_digest(signed(text, key).encode(), line.encode()):
            return json.loads(text)
    return None


def judged(folder: Path, seed: int, exercise: str) -> dict[str, Any] | None:
    """The verdict on one function; None if none was left. ``passes`` is None where it could not be taken out of its notebook."""
    path = folder / f"{exercise}.pickle"
    if not path.is_file() or path.stat().st_size > LARGEST:
        return None
    pickled = path.read_bytes()
    if not pickled:
        return {"verdict": None, "passes": None}
    result = practice.judge(exercise, look_alike(folder / f"{exercise}.json"), seed=seed, pickled=pickled)
    verdict = _shortened(result.to_dict())
    if result.status == "grader_problem":
        return {"verdict": verdict, "passes": None}
    return {"verdict": verdict, "passes": [part for part in testing.parts(exercise) if testing.passes(result, part)]}


def _shortened(thing: Any) -> Any:
    if isinstance(thing, dict):
        return {key: _shortened(part) for key, part in thing.items()}
    if isinstance(thing, list | tuple):
        return [_shortened(part) for part in thing[:LONGEST]]
    return thing[:LONGEST] if isinstance(thing, str) else thing


def look_alike(path: Path) -> Any:
    """A function with the text and the parameters of the one described in ``path``, to be looked at and never called.

    Its decorators and annotations are gone, and defaults that are no plain values are ``...``, so that making it runs nothing.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError("too long a source")
        seen = json.loads(path.read_text("utf-8"))
        file, lines, name = str(seen["file"]), [str(line) for line in seen["lines"]], str(seen["name"])
        tree = ast.parse("".join(lines))
        found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
        function = found[-1]
        function.decorator_list, function.returns = [], None
        arguments = function.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
            if argument is not None:
                argument.annotation = None
        arguments.defaults = [_plain(value) for value in arguments.defaults]
        arguments.kw_defaults = [value and _plain(value) for value in arguments.kw_defaults]
        space: dict[str, Any] = {"__builtins__": {}}
        exec(compile(ast.fix_missing_locations(ast.Module([function], [])), file, "exec"), space)
        linecache.cache[file] = (sum(map(len, lines)), None, lines, file)
        return space[name]
    except (OSError, ValueError, KeyError, TypeError, IndexError, SyntaxError, RecursionError, MemoryError):
        return lambda *arguments: NotImplemented


def _plain(value: ast.expr) -> ast.expr:
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return ast.Constant(...)
    return value


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
