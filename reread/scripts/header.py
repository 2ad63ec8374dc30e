"""The PEP 723 block of a script, read by ourselves, and the check of its syntax.

The script is never handed to uv: its own `[tool.uv]` table could name another index. From the block
only `dependencies` and `requires-python` are taken; every other key is left unread.

Proves: the script declares its dependencies in exactly one block, as names that a human's
permissions cover, and it compiles.
Does not prove: that the names exist, or that what they bring is harmless.
"""

from __future__ import annotations

import re
import tomllib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent_runtime import Failure
from reread.values import Code, Permissions

MAX_BYTES = 256 << 10
MAX_DEPENDENCIES = 50
OPENING = re.compile(r"# /// ([a-zA-Z0-9-]+)")
CLOSING = "# ///"
ALMOST = re.compile(r"\s*#\s*///\s*script\b", re.IGNORECASE)
EXAMPLE = "# /// script\n# dependencies = []\n# ///"
REMEDY = f"Open the script with these lines, without blanks before or after them:\n{EXAMPLE}"


@dataclass(frozen=True, slots=True)
class Header:
    """What a script asks for.

    Attributes:
        requirements: normalised, sorted, each once; empty for the standard library alone.
        requires_python: a version specifier, '' for any.
    """

    requirements: tuple[str, ...] = ()
    requires_python: str = ""


def parse_header(data: bytes, permissions: Permissions) -> Header:
    """Return what the script declares in its one block.

    Raises:
        Failure: script_header_invalid, dependency_not_allowed, not_utf8, file_too_large.
    """
    table = _table(_block(_lines(data)))
    return Header(_requirements(table, permissions), _requires_python(table))


def check_syntax(data: bytes, name: str) -> None:
    """Compile the script without running it.

    Raises:
        Failure: script_syntax_error, with line, column, the line and Python's own wording.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a doubtful escape is a warning, also for us
            compile(data, name, "exec", dont_inherit=True)
    except SyntaxError as error:
        line, column, said = error.lineno or 0, error.offset or 0, error.msg
        text = (error.text or "").rstrip("\n")
        raise _syntax(name, line, column, text, said) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise _syntax(name, 0, 0, "", str(error) or type(error).__name__) from error


def _syntax(name: str, line: int, column: int, text: str, said: str) -> Failure:
    return Failure(
        Code.script_syntax_error,
        f"{name}, line {line}, column {column}: {said}: {text.strip()!r}.",
        "Correct that line, then run it again.",
        {"line": line, "column": column, "text": text, "python": said},
    )


def _lines(data: bytes) -> list[str]:
    if len(data) > MAX_BYTES:
        raise Failure(
            Code.file_too_large,
            f"The script has {len(data)} bytes; {MAX_BYTES} are the most.",
            "Move data out of the script into a file.",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Failure(
            Code.not_utf8,
            f"The script is not UTF-8: byte {data[error.start]:#04x} at offset {error.start}.",
            "Write it again as UTF-8.",
        ) from error
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _block(lines: list[str]) -> str:
    """Return the content of the one script block, without the comment signs."""
    found = list(_blocks(lines))
    if len(found) > 1:
        raise _invalid("The script has two '# /// script' blocks.", "Keep one of them.")
    if found:
        return "\n".join(line[2:] for line in found[0])
    almost = next((i for i, line in enumerate(lines, 1) if ALMOST.match(line)), 0)
    if almost:
        raise _invalid(f"Line {almost} does not open a block: {lines[almost - 1]!r}.", REMEDY)
    raise _invalid("The script has no '# /// script' block.", REMEDY)


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Yield the lines of each script block. A block ends with the last closing line of its
    unbroken run of comment lines, as the specification has it; each line is looked at once."""
    at = 0
    while at < len(lines):
        opened = OPENING.fullmatch(lines[at])
        if not opened:
            at += 1
            continue
        end = next((i for i in range(at + 1, len(lines)) if not _is_comment(lines[i])), len(lines))
        run = lines[at:end]
        closed = max((i for i, line in enumerate(run) if line == CLOSING), default=0)
        _refuse_swallowed(run, at, closed)
        if opened[1] == "script":
            yield run[1:closed]
        at = at + closed + 1 if closed else end


def _is_comment(line: str) -> bool:
    return line == "#" or line.startswith("# ")


def _refuse_swallowed(run: list[str], at: int, closed: int) -> None:
    """Refuse a script block that has no end, and one that another block would swallow."""
    openings = [i for i, line in enumerate(run) if line == "# /// script"]
    if openings and (openings[-1] > closed or not closed):
        raise _invalid(
            f"The block in line {at + openings[-1] + 1} is not closed by '# ///'.", REMEDY
        )
    if any(0 < i < closed for i in openings):
        line = at + next(i for i in openings if i > 0) + 1
        raise _invalid(
            f"The block in line {line} stands inside another one.",
            "Keep one block, and leave an empty line between blocks of different kinds.",
        )


def _invalid(cause: str, remedy: str) -> Failure:
    return Failure(Code.script_header_invalid, cause, remedy)


def _table(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _invalid(f"The block is not TOML: {error}.", REMEDY) from error


def _requires_python(table: dict[str, Any]) -> str:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    value = table.get("requires-python", "")
    try:
        if not isinstance(value, str):
            raise InvalidSpecifier(repr(value))
        return str(SpecifierSet(value))
    except InvalidSpecifier as error:
        raise _invalid(
            f"requires-python is not a version specifier: {value!r}.",
            'Write it as: requires-python = ">=3.11"',
        ) from error


def _requirements(table: dict[str, Any], permissions: Permissions) -> tuple[str, ...]:
    listed = table.get("dependencies")
    if not isinstance(listed, list) or not all(isinstance(entry, str) for entry in listed):
        raise _invalid(
            f"'dependencies' is not a list of strings: {listed!r}.",
            'Write it as: dependencies = ["pandas"], or dependencies = [] for none.',
        )
    if len(listed) > MAX_DEPENDENCIES:
        raise _invalid(
            f"{len(listed)} dependencies; {MAX_DEPENDENCIES} are the most.",
            "Name only those that the script imports.",
        )
    return tuple(sorted({_requirement(entry, permissions) for entry in listed}))


def _requirement(entry: str, permissions: Permissions) -> str:
    """Return one requirement in its normal form, if it is a name, or may be more than that."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    try:
        found = Requirement(entry)
    except InvalidRequirement as error:
        raise _invalid(
            f"'{entry}' is not a requirement: {str(error).splitlines()[0]}.",
            "Give the bare name of the package, such as 'pandas'.",
        ) from error
    if found.url is not None:
        raise Failure(
            Code.dependency_not_allowed,
            f"'{entry}' names an address; only names of packages are taken.",
            f"Write '{found.name}'.",
        )
    if (found.specifier or found.marker) and not permissions.version_specifiers:
        raise Failure(
            Code.dependency_not_allowed,
            f"'{entry}' asks for more than a name; uv takes the newest compatible release.",
            f"Write '{_bare(found)}', or let the human allow versions: --allow-version-specifiers.",
        )
    found.name = canonicalize_name(found.name)
    return str(found)


def _bare(requirement: Any) -> str:
    extras = ",".join(sorted(requirement.extras))
    return f"{requirement.name}[{extras}]" if extras else str(requirement.name)
