"""What front matter is made of: texts, lists and maps, and why it was refused."""

from __future__ import annotations

from dataclasses import dataclass, field

Value = str | list["Value"] | dict[str, "Value"]


class Refused(Exception):
    """Front matter that is not used; never leaves the package."""

    def __init__(self, code: str, line: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.line = line
        self.message = message


@dataclass(slots=True)
class Front:
    """What the front matter says.

    Attributes:
        values: top-level key → value; no YAML type but text, list and map.
        lines: top-level key → its line in the file.
        typed: paths of plain scalars that YAML itself would not read as text, such as `no` and 3.
        cut: top-level keys whose value a comment ends.
        mended: keys whose value was quoted to make the YAML readable.
        salvaged: only name and description could be recovered.
    """

    values: dict[str, Value] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    typed: set[tuple[str | int, ...]] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)
    mended: tuple[str, ...] = ()
    salvaged: bool = False
