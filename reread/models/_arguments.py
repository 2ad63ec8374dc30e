"""The arguments of a tool call: decoded without guessing what they mean.

Proves: what comes out is what the model wrote, read as JSON. Where that took a repair (a comma, a
fence, a missing bracket) `repaired` says so, and the loop runs no such call on a tool that changes
something. An open string is never closed, an inner quote never escaped: those change a program.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Fault = Literal["", "json", "schema", "cut"]

_FENCE = re.compile(r"\A\s*```[\w-]*[ \t]*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_BLANK = " \t\r\n\ufeff\u200b\x00"


_NOT_MENDED = (
    *(ValueError, TypeError, SyntaxError, tokenize.TokenError),
    *(RecursionError, MemoryError),
)


@dataclass(frozen=True, slots=True)
class Decoded:
    """What the arguments of one call say.

    Attributes:
        value: `{}` where there is a fault.
        fault: `json` does not parse, `schema` is JSON but no object, `cut` ends inside a string or
            a value.
        problem: the fault in words.
    """

    value: dict[str, Any]
    fault: Fault = ""
    problem: str = ""
    repaired: bool = False


class _Refused(ValueError):
    """JSON by its letters, but not to be trusted; never leaves this module."""


def decode(raw: Any) -> Decoded:
    """Decode arguments as a service sent them: text, an object, or nothing."""
    if isinstance(raw, dict):
        return _cleaned(raw, repaired=False)
    if raw is None or (isinstance(raw, str) and not raw.strip(_BLANK)):
        return Decoded({})
    if not isinstance(raw, str):
        return Decoded({}, "schema", f"they are {type(raw).__name__}, not an object")
    text = raw.strip(_BLANK)
    try:
        return _object(_loads(text), repaired=False)
    except (ValueError, RecursionError) as error:
        return _repaired(text, error)


def _repaired(text: str, error: Exception) -> Decoded:
    if isinstance(error, RecursionError):
        return Decoded({}, "json", "they are nested too deeply")
    if isinstance(error, _Refused):
        return Decoded({}, "json", str(error))
    for mend in _MENDS:
        try:
            found = mend(text)
        except _NOT_MENDED:
            continue
        if isinstance(found, dict):
            return _object(found, repaired=True)
    fault: Fault = "cut" if _ends_early(text) else "json"
    return Decoded({}, fault, str(error)[:200])


def _object(value: Any, *, repaired: bool) -> Decoded:
    if isinstance(value, str):
        try:
            inner = _loads(value.strip(_BLANK))
        except (ValueError, RecursionError):
            inner = None
        if isinstance(inner, dict):
            return _cleaned(inner, repaired=True)
    if not isinstance(value, dict):
        kind = "null" if value is None else type(value).__name__
        return Decoded({}, "schema", f"they are {kind}, not an object")
    return _cleaned(value, repaired=repaired)


def _cleaned(value: dict[str, Any], *, repaired: bool) -> Decoded:
    """Replace what cannot be written as UTF-8; that is a change, so it counts as a repair."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except UnicodeEncodeError:
        return Decoded(json.loads(clean(text)), repaired=True)
    except (ValueError, TypeError, RecursionError) as error:
        return Decoded({}, "json", str(error)[:200])
    return Decoded(value, repaired=repaired)


def clean(text: str) -> str:
    """Join split surrogate pairs, and replace lone ones, so that the text is UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _loads(text: str) -> Any:
    """Parse JSON; raw line breaks inside strings are kept as they are, doubts are refused."""
    return _DECODER.decode(text)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _Refused("a key is there twice, so it is unclear which value is meant")
    return made


def _no_constant(name: str) -> Any:
    raise _Refused(f"{name} is no JSON value")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_no_constant, strict=False)


def _unfenced(text: str) -> Any:
    found = _FENCE.match(text)
    return _loads(found[1]) if found else None


def _said_twice(text: str) -> Any:
    """Take one of several equal objects; different ones are no one's to choose from."""
    values: list[Any] = []
    at = 0
    while at < len(text):
        value, at = _DECODER.raw_decode(text, at)
        values.append(value)
        while at < len(text) and text[at] in _BLANK:
            at += 1
    return values[0] if all(value == values[0] for value in values) else None


def _without_commas(text: str) -> Any:
    """Drop commas that stand before a closing bracket, outside of strings."""
    return _loads("".join(_outside(text, lambda part: re.sub(r",(\s*[}\]])", r"\1", part))))


def _closed(text: str) -> Any:
    """Add the brackets that are missing at the end, when the last value is surely whole."""
    stack: list[str] = []
    for part, quoted in _parts(text):
        if quoted:
            continue
        for letter in part:
            if letter in "{[":
                stack.append("}" if letter == "{" else "]")
            elif letter in "}]" and (not stack or stack.pop() != letter):
                return None
    whole = text.rstrip().endswith(('"', "}", "]", "true", "false", "null"))
    return _loads(text + "".join(reversed(stack))) if stack and whole else None


def _python_literal(text: str) -> Any:
    """Read a Python dictionary of JSON types; strings that Python would join are refused."""
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = tokenize.tok_name[token.type]
        if kind == before == "STRING":
            return None
        before = kind if kind not in ("NL", "COMMENT") else before
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an escape that Python only warns about is in doubt
        tree = ast.parse(text, mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            keys = [getattr(key, "value", None) for key in node.keys]
            if len(set(keys)) != len(keys) or not all(isinstance(key, str) for key in keys):
                return None
        elif isinstance(node, ast.Tuple | ast.Set):
            return None
    value = ast.literal_eval(tree)
    json.dumps(value, allow_nan=False)
    return value


_MENDS: tuple[Callable[[str], Any], ...] = (
    _unfenced,
    _said_twice,
    _without_commas,
    _closed,
    _python_literal,
)


def _parts(text: str) -> list[tuple[str, bool]]:
    """Split into (text, inside a string), quotes belonging to the string."""
    parts: list[tuple[str, bool]] = []
    at = 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*(?:"|\Z)', text, re.DOTALL):
        parts += [(text[at : match.start()], False), (match[0], True)]
        at = match.end()
    return [*parts, (text[at:], False)]


def _outside(text: str, change: Callable[[str], str]) -> list[str]:
    return [part if quoted else change(part) for part, quoted in _parts(text)]


def _ends_early(text: str) -> bool:
    """Say whether the text stops in the middle: an open string, or brackets that stay open."""
    depth = 0
    for part, quoted in _parts(text):
        if quoted:
            if len(part) < 2 or re.search(r'(?<!\\)(?:\\\\)*"\Z', part[1:]) is None:
                return True
        else:
            depth += sum(part.count(c) for c in "{[") - sum(part.count(c) for c in "}]")
    return depth > 0 and text.lstrip()[:1] == "{"
