"""One file per artifact format: the checks that prove a file is what it claims to be.

A module `reread/formats/NAME.py` defines

    FORMAT = Format(name, suffixes, title, media_type)
    def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Check | Fact]
    PRELOAD = ("lxml.etree",)                       # optional: readers worth loading before a fork
    def compare(old: Source, new: Source) -> Iterator[Check]   # optional: what an edit has lost

and is found by its file name: nothing else has to change. `check` runs in a child process with
limits (`reread.examine`), reads hostile bytes, and may therefore use any library; heavy ones are
imported inside the function, so that listing the formats costs nothing.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Format:
    """The name of a format and how files of it are usually called.

    Attributes:
        name: as in a task file (`docx`).
        suffixes: lower case, with the dot; macro, template and strict variants included.
        aliases: other words for it in a task file.
        title: for people ("Word document").
    """

    name: str
    suffixes: tuple[str, ...]
    title: str
    media_type: str
    aliases: tuple[str, ...] = ()


class Source:
    """The bytes of one file, hashed while they are read, each of them once.

    A check calls `data()` for the whole (it is in memory then) or `chunks()` for a stream, once.
    The digest is of exactly the bytes that the check saw.
    """

    def __init__(self, stream: BinaryIO, name: str, size: int) -> None:
        self.name = name
        """File name without its folder; for messages and suffixes only, never opened."""
        self.size = size
        self._stream = stream
        self._hash = hashlib.sha256()
        self._data: bytes | None = None
        self._streamed = False

    def data(self) -> bytes:
        """Return the whole file."""
        if self._data is None:
            if self._streamed:
                raise ValueError("the bytes of this source were streamed already")
            self._data = self._stream.read()
            self._hash.update(self._data)
        return self._data

    def chunks(self) -> Iterator[bytes]:
        """Yield the file in pieces of at most `CHUNK` bytes, holding one at a time."""
        if self._data is not None:
            yield self._data
            return
        self._streamed = True
        while piece := self._stream.read(CHUNK):
            self._hash.update(piece)
            yield piece

    def sha256(self) -> str:
        """Return the digest of the whole file, reading what no check has asked for."""
        if self._data is None:
            while piece := self._stream.read(CHUNK):
                self._hash.update(piece)
        return self._hash.hexdigest()

    @property
    def suffix(self) -> str:
        """The suffix of the name, lower case, with the dot."""
        return os.path.splitext(self.name)[1].lower()  # noqa: PTH122 - a name, not a path
