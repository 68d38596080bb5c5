"""What the source of a learner's function says without running it: blank or not, its hash, the line of an error."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import textwrap
import types
from collections.abc import Callable
from typing import Any

PROXIED = "__transformer_lite_function__"  # where `lab.exercise` keeps the learner's own function


def own_function(function: Any) -> Any:
    """The learner's own function, out of what `lab.exercise` made of it."""
    return getattr(function, PROXIED, function)


def definition(function: Any) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The syntax tree of ``function``, or None where its source cannot be seen (made by exec, a lambda, a class)."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    first = tree.body[0] if tree.body else None
    return first if isinstance(first, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def is_blank(function: Any) -> bool:
    """True if nothing has been written into the function yet.

    Blank is: a docstring, ``...``, ``pass``, ``____``, ``raise NotImplementedError``, ``return None``, names set to ``...``,
    and a ``return`` of plain names after one of these.
    """
    tree = definition(own_function(function))
    if tree is None:
        return False
    statements = [statement for statement in tree.body if not _is_text(statement)]
    if all(_is_empty(statement) for statement in statements):
        return True
    holes = any(_is_hole_alone(statement) for statement in statements)
    return holes and all(_is_empty(statement) or _returns_names(statement) for statement in statements)


def _is_text(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)
    )


def _is_hole(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Tuple):
        return all(_is_hole(one) for one in value.elts)
    if isinstance(value, ast.Constant):
        return value.value is Ellipsis or value.value is None
    return isinstance(value, ast.Name) and bool(value.id) and set(value.id) == {"_"}


def _is_hole_alone(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=value):
            return _is_hole(value)
        case ast.Assign(value=value) | ast.AnnAssign(value=value):
            return value is not None and _is_hole(value)
        case ast.Raise(exc=ast.Name(id="NotImplementedError") | ast.Call(func=ast.Name(id="NotImplementedError"))):
            return True
    return isinstance(statement, ast.Pass)


def _is_empty(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Return):
        return statement.value is None or _is_hole(statement.value)
    return _is_hole_alone(statement)


def _returns_names(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Return):
        return False
    value = statement.value
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return all(isinstance(part, ast.Name) for part in parts)


def code_hash(function: Any) -> str:
    """A short hash of what the code does: comments, layout and the docstring do not change it."""
    function = own_function(function)
    tree = definition(function)
    if tree is not None:
        tree.decorator_list = []
        tree.body = [statement for statement in tree.body if not _is_text(statement)]
        what = ast.dump(tree)
    else:
        code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
        what = _code(code) if code is not None else repr(type(function))
    return "b2:" + hashlib.blake2b(what.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _code(code: types.CodeType) -> str:
    constants = [_code(constant) if isinstance(constant, types.CodeType) else repr(constant) for constant in code.co_consts]
    return repr((code.co_code, constants, code.co_names, code.co_varnames))


def line_of(function: Any, name: str | None, number: int | None) -> str | None:
    """The text of line ``number``, which lies in ``function`` or in the function ``name`` that it calls."""
    if number is None:
        return None
    for candidate in _candidates(function, name):
        try:
            lines, first = inspect.getsourcelines(candidate)
        except (OSError, TypeError, IndentationError):
            continue
        if first <= number < first + len(lines):
            return lines[number - first].strip()
    return None


def _candidates(function: Any, name: str | None) -> list[Callable[..., Any]]:
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function) if callable(function) else function
    other = own_function(getattr(function, "__globals__", {}).get(name)) if name else None
    # Two cells may both have a line 5: the function that the traceback names comes first.
    first = [other] if callable(other) and name != getattr(function, "__name__", None) else []
    return [*first, function]


def names_used(function: Any) -> set[str]:
    """Every name in the function's code, its inner functions included."""
    pending = [getattr(inspect.unwrap(function), "__code__", None)] if callable(function) else []
    names: set[str] = set()
    while pending:
        code = pending.pop()
        if code is not None:
            names.update(code.co_names)
            pending.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return names


def computes_in_single_precision(function: Any) -> bool:
    """True if the code mentions float32 or float16."""
    lower = {"float32", "float16", "single", "half", "bfloat16"}
    code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
    constants = {constant for constant in code.co_consts if isinstance(constant, str)} if code is not None else set()
    return bool(lower & (names_used(function) | constants))


def variables_read(function: Any) -> tuple[str, ...]:
    """Numbers and arrays of the notebook that the function reads although they are not its parameters."""
    scope = getattr(inspect.unwrap(function), "__globals__", {}) if callable(function) else {}
    found = (name for name in sorted(names_used(function)) if name in scope)
    return tuple(name for name in found if isinstance(scope[name], (int, float)) or hasattr(scope[name], "__array__"))
