"""One SKILL.md becomes one Skill, or findings that say why not. It reads nothing but the bytes.

Proves: name, description and triggers are what the file says, or what a finding says was guessed.
Does not prove: that the instructions are good, nor that they are harmless; the text stays
untrusted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reread.skills import front_matter
from reread.skills.diagnostics import Diagnostic, visible
from reread.skills.values import Front, Refused, Value

FILE_NAME = "SKILL.md"
MAX_FILE = 1 << 20
CONTEXT_CAP = 64 << 10
BODY_LINES = 500
NAME_LENGTH = 64
DESCRIPTION_LENGTH = 1024
COMPATIBILITY_LENGTH = 500
SEED_FIELDS = frozenset({"name", "description", "triggers", "references"})
_OWN_FIELDS = SEED_FIELDS | {"allowed-tools"}
_OPTIONAL = frozenset({"license", "compatibility", "metadata"})
STANDARD_FIELDS = frozenset(
    {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
)


@dataclass(frozen=True, slots=True)
class Skill:
    """What a SKILL.md says.

    Attributes:
        name: the key: the name of the front matter where it is a valid one, else the folder's.
        folder: name of the folder that holds it.
        alias: the other of the two names, '' where they are equal.
        triggers: as declared; which of them can match is the business of the selection.
        references: as declared; eager only where `seed` is true.
        allowed_tools: a request to narrow, never a grant.
        seed: it has exactly the four keys of the seed profile.
        salvaged: the metadata was guessed, so it is never selected automatically.
        hidden: not for the model's catalog (`disable-model-invocation`).
        body_line: the line of the file at which the body begins.
        body_size: bytes of the body.
        fields: the other values, inert.
    """

    name: str
    folder: str
    description: str
    alias: str = ""
    triggers: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    seed: bool = False
    salvaged: bool = False
    hidden: bool = False
    body_line: int = 1
    body_size: int = 0
    fields: Mapping[str, Value] = field(default_factory=dict)


class Parts(NamedTuple):
    """A SKILL.md split at its fences.

    Attributes:
        body_at: where the body begins in `text`, and `body_line` its line, from 1.
        loose: there is white space around a fence.
    """

    front: str
    text: str
    body_at: int
    body_line: int
    loose: bool = False

    @property
    def body(self) -> str:
        """Return the text behind the closing fence."""
        return self.text[self.body_at :]


@dataclass(frozen=True, slots=True)
class Parsed:
    """What came of one file.

    Attributes:
        skill: None where it cannot be used.
        parts: the text at its fences, its line ends as line feeds and else untouched.
        front: the front matter, None where it could not be read.
    """

    skill: Skill | None
    diagnostics: tuple[Diagnostic, ...]
    parts: Parts | None = None
    front: Front | None = None

    @property
    def body(self) -> str:
        """Return the text behind the front matter, its line ends as line feeds."""
        return self.parts.body if self.parts else ""


def parse(data: bytes, *, folder: str, path: str) -> Parsed:
    """Parse the bytes of a SKILL.md leniently.

    Args:
        folder: name of the folder that the file is in.
        path: for the findings.
    """
    return _Parser(folder, path).parse(data)


FRONT_LINE = 2
_CLOSING = re.compile(r"^[ \t]*---[ \t]*$", re.MULTILINE)


def split(text: str) -> Parts:
    """Split a text, line ends already line feeds, at its first two fences.

    Raises:
        Refused: E-FM-MISSING, E-FM-UNCLOSED.
    """
    if text.startswith("---\n"):
        at = text.find("---", 4)
        if text[at - 1 : at] == "\n" and text[at + 3 : at + 4] == "\n":  # the usual fences
            front = text[4 : at - 1] if at > 4 else ""
            return Parts(front, text, at + 4, 3 + text.count("\n", 4, at))
    first, _, rest = text.partition("\n")
    if first.strip(" \t") != "---":
        raise Refused("E-FM-MISSING", 1, f"the first line is '{visible(first, limit=60)}'")
    closing = _CLOSING.search(rest)
    if closing is None:
        raise Refused("E-FM-UNCLOSED", 1, "no line --- follows the first one")
    front = rest[: closing.start()].removesuffix("\n")
    body_at = min(len(text), len(first) + 1 + closing.end() + 1)
    body_line = 3 + rest.count("\n", 0, closing.start())
    return Parts(front, text, body_at, body_line, first != "---" or closing[0] != "---")


class _Parser:
    """Collects the findings about one file; each step may add some."""

    def __init__(self, folder: str, path: str) -> None:
        self.folder = folder
        self.path = path
        self.key = folder
        self.found: list[Diagnostic] = []
        self.front: Front | None = None

    def say(self, code: str, line: int, message: str) -> None:
        self.found.append(Diagnostic(code, self.key, self.path, line, message))

    def parse(self, data: bytes) -> Parsed:
        try:
            parts = split(self._decode(data))
            if parts.loose:
                self.say("I-FENCE-WS", 1, "there is white space around a fence")
            self.front = front_matter.read(parts.front, FRONT_LINE)
            skill = self._skill(self.front, parts)
        except Refused as refused:
            self.say(refused.code, refused.line, refused.message)
            return Parsed(None, tuple(self.found), front=self.front)
        return Parsed(skill, tuple(self.found), parts, self.front)

    def _decode(self, data: bytes) -> str:
        if len(data) > MAX_FILE:
            raise Refused("E-TOO-LARGE", 0, f"it has {len(data)} bytes; {MAX_FILE} are the limit")
        if data.startswith(b"\xef\xbb\xbf"):
            self.say("I-BOM", 1, "it starts with a byte order mark")
            data = data[3:]
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = 1 + data.count(b"\n", 0, error.start)
            raise Refused(
                "E-ENCODING", line, f"byte {error.start} is 0x{data[error.start]:02x}, not UTF-8"
            ) from error
        if "\r" in text:
            self.say("I-CRLF", 1, "there are carriage returns")
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        return text

    def _skill(self, front: Front, parts: Parts) -> Skill:
        values = front.values
        description = self._description(front)
        name, alias = self._name(front)
        self.key = name
        self._say_how_read(front)
        seed = values.keys() == SEED_FIELDS
        self._say_unknown(front)
        if not values.keys().isdisjoint(_OPTIONAL):
            self._check_optional(front)
        triggers = self._triggers(front)
        references = self._texts(front, "references") if "references" in values else ()
        ascii = parts.text.isascii()
        size = len(parts.text) - parts.body_at if ascii else len(parts.body.encode())
        self._check_body(parts, size)
        return Skill(
            name,
            self.folder,
            description,
            alias=alias,
            triggers=triggers,
            references=references,
            allowed_tools=self._allowed_tools(front) if "allowed-tools" in values else (),
            seed=seed,
            salvaged=front.salvaged,
            hidden=_is_true(values.get("disable-model-invocation")),
            body_line=parts.body_line,
            body_size=size,
            fields={key: value for key, value in values.items() if key not in _OWN_FIELDS},
        )

    def _say_how_read(self, front: Front) -> None:
        if front.salvaged:
            self.say("W-YAML-SALVAGED", 2, "only name and description could be recovered")
        for key in front.mended:
            line = front.lines.get(key, 2)
            self.say("W-YAML-REPAIRED", line, f"the value of '{key}' was not YAML")
        if "description" in front.cut:
            line = front.lines["description"]
            self.say("I-DESC-COMMENT", line, "a # begins a comment inside the description")

    def _name(self, front: Front) -> tuple[str, str]:
        """Return the key and the other name."""
        line = front.lines.get("name", 2)
        _check_safe(self.folder, line)
        value = front.values.get("name")
        if value == self.folder and len(value) <= NAME_LENGTH and _SLUG.fullmatch(value):
            return value, ""  # the usual case, and a scan sees thousands
        folder = unicodedata.normalize("NFC", self.folder)
        if value is None or value == "":
            self.say("W-NAME-MISSING", line, f"the folder's name '{folder}' is used")
            return folder, ""
        if not isinstance(value, str):
            self.say("W-FIELD-TYPE", line, "name is no text; the folder's name is used")
            return folder, ""
        _check_safe(value, line)
        name = value if value.isascii() else unicodedata.normalize("NFKC", value)
        valid = _is_slug(name)
        if not valid:
            self.say("W-NAME-CHARS", line, f"the name '{visible(name, limit=80)}' is no slug")
        elif not name.isascii():
            self.say("I-NAME-NONASCII", line, f"the name '{name}' is not ASCII")
        if len(name) > NAME_LENGTH:
            self.say("W-NAME-LEN", line, f"the name has {len(name)} characters")
        if name == (folder if folder.isascii() else unicodedata.normalize("NFKC", folder)):
            return (name if valid else folder), ""
        self.say("W-NAME-DIR", line, f"the name is '{name[:80]}', the folder '{folder}'")
        return (name, folder) if valid else (folder, name)

    def _description(self, front: Front) -> str:
        line = front.lines.get("description", 2)
        value = front.values.get("description", "")
        if not isinstance(value, str):
            raise Refused("E-DESC-TYPE", line, "description is no text")
        value = value.strip()
        if not value or (value == "null" and ("description",) in front.typed):
            raise Refused("E-DESC-MISSING", line, "there is no description")
        if len(value) > DESCRIPTION_LENGTH:
            self.say("W-DESC-LONG", line, f"the description has {len(value)} characters")
        if "<" in value and re.search(r"<[/!?]?[A-Za-z][^<>]*>", value):
            self.say("I-DESC-MARKUP", line, "there is markup in the description")
        return value

    def _say_unknown(self, front: Front) -> None:
        if not front.values.keys() <= STANDARD_FIELDS:
            unknown = [key for key in front.values if key not in STANDARD_FIELDS]
            line = front.lines.get(unknown[0], 2)
            shown = ", ".join(visible(key, limit=40) for key in unknown[:10])
            self.say("W-UNKNOWN-FIELD", line, f"not in the standard: {shown}")

    def _check_optional(self, front: Front) -> None:
        for key in ("license", "compatibility"):
            if not isinstance(front.values.get(key, ""), str):
                self.say("W-FIELD-TYPE", front.lines.get(key, 2), f"{key} is no text")
        compatibility = front.values.get("compatibility")
        if isinstance(compatibility, str) and len(compatibility) > COMPATIBILITY_LENGTH:
            line = front.lines.get("compatibility", 2)
            self.say("W-COMPAT-LONG", line, f"compatibility has {len(compatibility)} characters")
        metadata, line = front.values.get("metadata"), front.lines.get("metadata", 2)
        if isinstance(metadata, dict):
            if not all(isinstance(value, str) for value in metadata.values()):
                self.say("W-METADATA-NESTED", line, "metadata holds lists or maps")
        elif metadata:
            self.say("W-METADATA-TYPE", line, "metadata is no map")

    def _triggers(self, front: Front) -> tuple[str, ...]:
        if "triggers" in front.values:
            return self._texts(front, "triggers")
        metadata = front.values.get("metadata")
        value = metadata.get("triggers") if isinstance(metadata, dict) else None
        if isinstance(value, str):
            parts = re.split(r"[,，、;；\n]", value)
            return tuple(part.strip() for part in parts if part.strip())
        if isinstance(value, list):
            return tuple(item for item in value if isinstance(item, str) and item.strip())
        return ()

    def _texts(self, front: Front, key: str) -> tuple[str, ...]:
        """Return a list of texts; one text is a list of one."""
        value = front.values.get(key)
        items = value if isinstance(value, list) else [value] if value else []
        texts = tuple(item for item in items if isinstance(item, str) and item.strip())
        if isinstance(value, dict) or len(texts) < len(items):
            self.say("W-FIELD-TYPE", front.lines.get(key, 2), f"{key} is not a list of texts")
        return texts

    def _allowed_tools(self, front: Front) -> tuple[str, ...]:
        value, line = front.values.get("allowed-tools"), front.lines.get("allowed-tools", 2)
        if isinstance(value, list):
            self.say("I-ALLOWED-TOOLS-LIST", line, "allowed-tools is a list")
            return self._texts(front, "allowed-tools")
        if isinstance(value, dict):
            self.say("W-FIELD-TYPE", line, "allowed-tools is no text")
            return ()
        outside = re.sub(r"\([^()]*\)", "", value or "")
        if "," in outside:
            self.say("I-ALLOWED-TOOLS-COMMA", line, "allowed-tools is separated by commas")
        return tuple(re.findall(r"(?:\([^()]*\)|[^\s,(])+", value or ""))

    def _check_body(self, parts: Parts, size: int) -> None:
        if not parts.text[parts.body_at : parts.body_at + 80].strip() and not parts.body.strip():
            self.say("I-BODY-EMPTY", parts.body_line, "there is no body")
        lines = parts.text.count("\n", parts.body_at)
        if lines > BODY_LINES:
            self.say("I-BODY-LONG", parts.body_line, f"the body has {lines} lines")
        if size > CONTEXT_CAP:
            self.say("W-BODY-OVER-CAP", parts.body_line, f"the body has {size} bytes")


def headings(body: str) -> Iterator[tuple[int, str]]:
    """Yield (level, text) of each ATX heading that does not stand in a code block."""
    fence = ""
    for line in body.split("\n"):
        mark = re.match(r"^ {0,3}(`{3,}|~{3,})(.*)$", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
        elif not fence and (found := re.match(r"^ {0,3}(#{1,6})[ \t]+(\S.*)$", line)):
            yield len(found[1]), found[2]


def _check_safe(name: str, line: int) -> None:
    """Refuse a name that hides something or goes elsewhere.

    Raises:
        Refused: E-NAME-UNSAFE.
    """
    if name.isascii() and name.replace("-", "").isalnum():
        return
    hides = any(unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs", "Co") for c in name)
    if hides or "/" in name or "\\" in name or name.strip(". ") == "":
        shown = visible(name, limit=80)
        raise Refused("E-NAME-UNSAFE", line, f"the name '{shown}' hides characters or is a path")


_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def _is_slug(name: str) -> bool:
    if name.isascii():
        return _SLUG.fullmatch(name) is not None
    return all(part and all(map(_is_slug_character, part)) for part in name.split("-"))


def _is_slug_character(c: str) -> bool:
    if c.isascii():
        return c.isdigit() or c.islower()
    return unicodedata.category(c)[0] in "LMN" and c == c.lower()


def _is_true(value: Value | None) -> bool:
    return isinstance(value, str) and value.strip().lower() in ("true", "yes", "on", "1")
