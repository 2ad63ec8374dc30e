"""The structure of a Markdown text: front matter, sections, code, links, prose.

Source: CommonMark, read with markdown-it-py.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FRONT = re.compile(r"\A\ufeff?(---|\+\+\+)[ \t]*\r?\n(.*?)(?:^|\n)\1[ \t]*(?:\r?\n|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Front:
    """Front matter.

    Attributes:
        values: None where there is none, or where it is broken.
        problem: why it is broken.
        length: characters that it takes up, fences included.
    """

    format: str = ""
    values: Mapping[str, Any] | None = None
    problem: str = ""
    length: int = 0


@dataclass(frozen=True, slots=True)
class Structure:
    """What a text is made of.

    Attributes:
        sections: each {title, level, content}.
        links: each {target, section}, pictures among them.
    """

    sections: Sequence[Mapping[str, Any]]
    code: Sequence[Mapping[str, str]]
    links: Sequence[Mapping[str, str]]
    images: int
    tables: int
    prose: str


def front_matter(text: str) -> Front:
    """Read TOML (`+++`) or YAML (`---`) front matter."""
    found = FRONT.match(text)
    if not found:
        return Front()
    mark, body = found.group(1), found.group(2)
    try:
        values = _toml(body) if mark == "+++" else _yaml(body)
    except ValueError as error:
        if mark == "---" and "\n\n" in body:
            return Front()  # two horizontal rules around prose
        return Front("toml" if mark == "+++" else "yaml", None, str(error)[:200], found.end())
    if values is None:
        return Front()
    return Front("toml" if mark == "+++" else "yaml", values, "", found.end())


def _toml(body: str) -> Mapping[str, Any]:
    return tomllib.loads(body)


def _yaml(body: str) -> Mapping[str, Any] | None:
    import yaml

    try:
        value = yaml.safe_load(body)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from error
    return value if isinstance(value, Mapping) else None


def structure(text: str) -> Structure:
    """Walk the blocks of a text."""
    from markdown_it import MarkdownIt

    walk = _Walk()
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        walk.take(token)
    return walk.done()


class _Section:
    """A heading and what stands below it, subsections included."""

    def __init__(self, title: str, level: int) -> None:
        self.title, self.level = title, level
        self.content: list[str] = []


class _Walk:
    """Gathers the structure from the tokens, in their order."""

    def __init__(self) -> None:
        self._sections: list[_Section] = []
        self._open: list[_Section] = []
        self._code: list[dict[str, str]] = []
        self._links: list[dict[str, str]] = []
        self._prose: list[str] = []
        self._counts = {"image": 0, "table_open": 0}
        self._heading: int | None = None

    def take(self, token: Any) -> None:
        """Take one token."""
        if token.type in self._counts:
            self._counts[token.type] += 1
        if token.type == "heading_open":
            self._heading = int(token.tag[1:])
        elif token.type == "inline":
            self._inline(token)
        elif token.type in ("fence", "code_block"):
            language = (token.info or "").strip().split()[0].lower() if token.info.strip() else ""
            self._code.append({"language": language, "text": token.content})
            self._add(token.content)
        elif token.type == "html_block":
            self._add(token.content)

    def _inline(self, token: Any) -> None:
        text = self._text(token)
        self._prose.append(text)
        if self._heading is None:
            self._add(text)
            return
        while self._open and self._open[-1].level >= self._heading:
            self._open.pop()
        # A heading is content of the sections above it, so that one with only subsections counts.
        self._add(text)
        section = _Section(text.strip(), self._heading)
        self._sections.append(section)
        self._open.append(section)
        self._heading = None

    def _text(self, token: Any) -> str:
        parts = []
        for child in token.children or ():
            if child.type in ("text", "code_inline", "html_inline"):
                parts.append(child.content if child.type != "html_inline" else "")
            elif child.type in ("softbreak", "hardbreak"):
                parts.append("\n")
            elif child.type == "link_open":
                self._link(str(child.attrs.get("href", "")))
            elif child.type == "image":
                self._counts["image"] += 1
                self._link(str(child.attrs.get("src", "")))
                parts.append(child.content)
        return "".join(parts)

    def _link(self, target: str) -> None:
        self._links.append(
            {"target": target, "section": self._open[-1].title if self._open else ""}
        )

    def _add(self, text: str) -> None:
        for section in self._open:
            section.content.append(text)

    def done(self) -> Structure:
        """Return what was gathered."""
        return Structure(
            sections=[
                {"title": one.title, "level": one.level, "content": "\n".join(one.content)}
                for one in self._sections
            ],
            code=self._code,
            links=self._links,
            images=self._counts["image"],
            tables=self._counts["table_open"],
            prose="\n".join(self._prose),
        )
