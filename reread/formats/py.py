"""Python source: it parses, and does something. With a PEP 723 block, that is read too."""

from __future__ import annotations

import ast
import io
import tokenize
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from reread.formats import Format, Source
from reread.formats._bytes import nothing, posing
from reread.formats._checks import Fact, Item, hollow, invalid, passed, unsafe
from reread.formats._placeholder import fenced, leaks

FORMAT = Format("py", (".py", ".pyw"), "Python source", "text/x-python", ("python",))
GROWTH = 100
PACE = 2.0
MAX_CHARACTERS = 2 << 20


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a Python file."""
    data = source.data()
    if source.name != "__init__.py":
        found = list(nothing(source, data, "py"))
        yield from found
        if found:
            return
    text = _decoded(data)
    if text is None:
        yield from posing(data, "py")
        yield invalid("py.is_text", "not_text", "It is not text in its encoding.", depth="identity")
        return
    if len(text) > MAX_CHARACTERS:
        yield unsafe("py.bounded", "too_large", f"It has {len(text)} characters.")
        return
    wrapped = list(fenced(text, "py"))
    yield from wrapped
    if wrapped:
        return
    yield from leaks(text, "py")
    try:
        tree = ast.parse(text)
    except (MemoryError, RecursionError):
        yield unsafe(
            "py.bounded", "too_deep", "It is nested too deeply, or too large, to be parsed."
        )
        return
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        shown = (text.splitlines() or [""])[min(line, len(text.splitlines())) - 1].strip()[:80]
        cause = f"Line {line}: {getattr(error, 'msg', error)}: {shown}"
        yield invalid("py.parses", "python_syntax", cause, depth="identity")
        return
    yield passed("py.parses", "identity")
    yield from _block(text)
    yield Fact("rows", len(text.splitlines()))
    yield Fact("_text", text)
    yield from _substance(tree, source.name, contract)


def _block(text: str) -> Iterator[Item]:
    """Yield whether the script block of PEP 723 can be read, where there is one."""
    blocks = list(_blocks(text))
    if not blocks:
        return
    try:
        if len(blocks) > 1:
            raise ValueError("there is more than one")
        tomllib.loads(blocks[0])
    except ValueError as error:
        yield invalid("py.script_block", "script_block", f"Its script block: {error}"[:200])
    else:
        yield passed("py.script_block", "integrity")


def _blocks(text: str) -> Iterator[str]:
    """Yield the text of each closed script block."""
    lines: list[str] | None = None
    for line in text.splitlines():
        if lines is None:
            lines = [] if line.rstrip() == "# /// script" else None
        elif line.rstrip() == "# ///":
            yield "\n".join(lines)
            lines = None
        elif line == "#" or line.startswith("# "):
            lines.append(line[2:])
        else:
            lines = None


def _decoded(data: bytes) -> str | None:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        return data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError):
        return None


def _substance(tree: ast.Module, name: str, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield whether anything happens: statements beside docstrings, `pass` and `…`."""
    if name == "__init__.py" or contract.get("allow_empty"):
        yield passed("py.has_content", "substance")
        return
    bodies = [node for node in ast.walk(tree) if _is_function(node)]
    works = [node for node in bodies if any(_does(item) for item in node.body)]
    outside = [node for node in tree.body if _does(node) and not _defines(node)]
    real = [node for node in outside if not isinstance(node, ast.Import | ast.ImportFrom)]
    if works or not all(_calls_only(node, bodies) for node in real):
        yield passed("py.has_content", "substance", f"{len(tree.body)} statements")
    elif bodies or outside or any(isinstance(node, ast.ClassDef) for node in tree.body):
        if any(_declares(node) for node in tree.body):
            yield passed("py.has_content", "substance", "declarations")
        else:
            yield hollow("py.has_content", "stub_only", "Its functions hold nothing but stand-ins.")
    else:
        yield hollow("py.has_content", "no_content", "It holds no statement that does anything.")


def _is_function(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    """Say whether a node defines a function; an async one has the same parts."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _defines(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _declares(node: ast.stmt) -> bool:
    """Say whether a class declares fields, as a dataclass, an enum or a protocol does."""
    return isinstance(node, ast.ClassDef) and any(
        isinstance(item, ast.Assign | ast.AnnAssign) for item in node.body
    )


def _does(node: ast.stmt) -> bool:
    """Say whether a statement is more than a docstring, `pass`, `…` or a refusal to work."""
    if isinstance(node, ast.Pass):
        return False
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Raise):
        return "NotImplemented" not in ast.dump(node)
    if isinstance(node, ast.Return):
        return not (
            node.value is None
            or (isinstance(node.value, ast.Constant) and node.value.value is None)
        )
    return True


def _calls_only(node: ast.stmt, bodies: list[Any]) -> bool:
    """Say whether a statement only calls functions of the file, such as the guard of `main()`."""
    names = {body.name for body in bodies}
    if isinstance(node, ast.If):
        return all(_calls_only(item, bodies) for item in node.body)
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
        and node.value.func.id in names
    )
