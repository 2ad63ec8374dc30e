"""MP4: the boxes nest as they declare, every sample lies inside of the file, and there are samples.

Frames are decoded only where PyAV is installed; without it that one check says `not_run`.
"""

from __future__ import annotations

import importlib
import io
import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from reread.formats import Format, Source
from reread.formats._bytes import nothing, posing
from reread.formats._checks import Fact, Item, hollow, invalid, not_run, passed
from reread.values import Check

FORMAT = Format("mp4", (".mp4", ".m4v", ".m4a", ".mov"), "MP4 film", "video/mp4")
PRELOAD = ("struct",)

TOP = frozenset((b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"styp", b"sidx", b"moof"))
NESTS = frozenset((b"moov", b"trak", b"mdia", b"minf", b"stbl", b"moof", b"traf", b"mvex"))
MAX_BOXES = 200_000
DECODED = 240
"""Frames of each track that are decoded where a decoder is there."""


class Box(NamedTuple):
    """One box: where its content starts and ends."""

    kind: bytes
    start: int
    end: int


class Film:
    """What the boxes say, gathered in one walk."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.seconds = 0.0
        self.width = self.height = self.tracks = self.samples = self.boxes = 0
        self.kinds: set[bytes] = set()
        self.wrong: tuple[str, str] | None = None
        self._fragments = 0

    def walk(self, start: int, end: int) -> None:
        """Take the boxes between two places."""
        at = start
        while at < end and self.wrong is None:
            box = self._box(at, end)
            if box is None:
                return
            self.boxes += 1
            self.kinds.add(box.kind)
            if box.kind in NESTS:
                self.walk(box.start, box.end)
            else:
                self._take(box)
            at = box.end

    def _box(self, at: int, end: int) -> Box | None:
        if at + 8 > end or self.boxes > MAX_BOXES:
            if at + 8 > end and end == len(self.data) and self.data[at:].strip(b"\x00"):
                self.wrong = ("truncated", f"It ends inside a box at byte {at}.")
            return None
        size, kind = struct.unpack_from(">I4s", self.data, at)
        start = at + 8
        if size == 1 and at + 16 <= end:
            size, start = int.from_bytes(self.data[at + 8 : at + 16], "big"), at + 16
        elif size == 0:
            size = end - at
        if size < start - at or at + size > end:
            cause = f"Its box {kind!r} at byte {at} declares {size} bytes; {end - at} are there."
            self.wrong = ("truncated" if size > end - at else "damaged", cause)
            return None
        return Box(kind, start, at + size)

    def _take(self, box: Box) -> None:
        content = self.data[box.start : box.end]
        try:
            if box.kind == b"mvhd":
                self._time(content)
            elif box.kind == b"tkhd":
                self.tracks += 1
                width, height = struct.unpack_from(">II", content, len(content) - 8)
                self.width = max(self.width, width >> 16)
                self.height = max(self.height, height >> 16)
            elif box.kind in (b"stsz", b"stz2"):
                self.samples += struct.unpack_from(">I", content, 8)[0]
            elif box.kind in (b"stco", b"co64"):
                self._places(content, 4 if box.kind == b"stco" else 8)
            elif box.kind == b"trun":
                self.samples += struct.unpack_from(">I", content, 4)[0]
        except struct.error:
            self.wrong = ("damaged", f"Its box {box.kind!r} is too short.")

    def _time(self, content: bytes) -> None:
        form, at = (">IQ", 20) if content[:1] == b"\x01" else (">II", 12)
        scale, length = struct.unpack_from(form, content, at)
        self.seconds = length / scale if scale else 0.0

    def _places(self, content: bytes, width: int) -> None:
        (count,) = struct.unpack_from(">I", content, 4)
        places = memoryview(content)[8 : 8 + count * width]
        if len(places) < count * width:
            self.wrong = ("damaged", "Its table of places is too short.")
            return
        last = max(
            (int.from_bytes(places[n : n + width], "big") for n in range(0, len(places), width)),
            default=0,
        )
        if last >= len(self.data):
            self.wrong = ("truncated", f"A sample lies at byte {last}, beyond its end.")


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a film."""
    data = source.data()
    found = list(nothing(source, data, "mp4"))
    if not found and not (data[4:8] in TOP and int.from_bytes(data[:4], "big") != 2):
        found = list(posing(data, "mp4")) or [
            invalid("mp4.identity", "format_mismatch", "It starts with no box.", depth="identity")
        ]
    yield from found
    if found:
        return
    film = Film(data)
    film.walk(0, len(data))
    if not film.kinds & TOP - {b"free", b"skip"}:
        yield invalid("mp4.identity", "format_mismatch", "It is no film.", depth="identity")
        return
    yield passed("mp4.identity", "identity", data[8:12].decode("latin-1"))
    if film.wrong is None and b"moov" not in film.kinds:
        film.wrong = ("truncated", "It has no 'moov' box: the writer did not finish it.")
    if film.wrong is not None:
        yield invalid("mp4.boxes", *film.wrong)
        return
    yield passed("mp4.boxes", "integrity", f"{film.boxes} boxes, {film.tracks} tracks")
    yield from _substance(film, contract)


def _substance(film: Film, contract: Mapping[str, Any]) -> Iterator[Item]:
    yield Fact("seconds", round(film.seconds, 3))
    yield Fact("width", film.width)
    yield Fact("height", film.height)
    yield Fact("tracks", film.tracks)
    if contract.get("allow_empty"):
        yield passed("mp4.has_content", "substance", "the contract allows none")
    elif film.tracks == 0 or film.samples == 0:
        yield hollow("mp4.has_content", "no_samples", f"Its {film.tracks} tracks have no samples.")
    else:
        yield passed("mp4.has_content", "substance", f"{film.samples} samples")
        yield _decoded(film.data)


def _decoded(data: bytes) -> Check:
    """Decode the first frames where a decoder is there."""
    name = "mp4.decodes"
    try:
        av = importlib.import_module("av")
    except ImportError:
        return not_run(name, "substance", "pip install av: frames were not decoded")
    count = 0
    try:
        with av.open(io.BytesIO(data), format="mp4") as container:
            for stream in container.streams:
                stream.thread_count = 1
            for _ in container.decode():
                count += 1
                if count >= DECODED:
                    break
    except (av.FFmpegError, ValueError, OSError) as error:
        return hollow(name, "damaged", f"After {count} frames: {error}.")
    if count == 0:
        return hollow(name, "no_samples", "No frame of it decodes.")
    return passed(name, "substance", f"{count} frames")
