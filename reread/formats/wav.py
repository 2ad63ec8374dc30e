"""WAV: the chunks have their declared lengths, and the samples are sound and not silence.

Plain, extensible, float and compressed kinds are walked alike; samples are not decoded, since
nothing in them could tell damage: the format has no checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from reread.formats import Format, Source
from reread.formats._bytes import nothing, posing
from reread.formats._checks import Fact, Item, hollow, invalid, passed, warned

FORMAT = Format("wav", (".wav", ".wave"), "WAV sound", "audio/wav")
GROWTH = 4

UNKNOWN = (0, 0xFFFFFFFF)
"""Lengths that a writer into a pipe leaves, which cannot go back to correct them."""
PLAIN = frozenset({1, 3, 0xFFFE})


class Sound(NamedTuple):
    """What the `fmt ` chunk says."""

    kind: int
    channels: int
    rate: int
    bytes_per_second: int
    frame: int
    bits: int


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a sound."""
    data = source.data()
    found = list(nothing(source, data, "wav"))
    if not found and not (data[:4] in (b"RIFF", b"RF64") and data[8:12] == b"WAVE"):
        found = list(posing(data, "wav")) or [
            invalid("wav.identity", "format_mismatch", "It is no WAVE file.", depth="identity")
        ]
    yield from found
    if found:
        return
    yield passed("wav.identity", "identity")
    yield from _chunks(data, contract)


def _chunks(data: bytes, contract: Mapping[str, Any]) -> Iterator[Item]:
    at, sound, samples = 12, None, None
    while at + 8 <= len(data):
        kind, length = struct.unpack_from("<4sI", data, at)
        start, at = at + 8, at + 8 + length + length % 2
        if kind == b"data":
            if length == 0xFFFFFFFF or (length == 0 and at < len(data) and data[4:8] in _OPEN):
                yield warned("wav.lengths", "integrity", "unknown_length", "Its length is open.")
                length, at = len(data) - start, len(data)
            samples = data[start : start + length]
        if start + length > len(data):
            cause = f"Its chunk {kind!r} declares {length} bytes; {len(data) - start} are there."
            yield invalid("wav.chunks", "truncated", cause)
            return
        if kind == b"fmt " and length >= 16:
            sound = Sound(*struct.unpack_from("<HHIIHH", data, start))
    if sound is None or samples is None:
        yield invalid("wav.chunks", "damaged", "It has no 'fmt ' or no 'data' chunk.")
    elif 0 in (sound.channels, sound.rate, sound.frame, sound.bytes_per_second):
        yield invalid("wav.chunks", "damaged", f"Its format makes no sense: {tuple(sound)}.")
    else:
        yield passed("wav.chunks", "integrity", f"{sound.channels} channels at {sound.rate} Hz")
        yield from _substance(samples, sound, contract)


_OPEN = tuple(struct.pack("<I", value) for value in UNKNOWN)


def _substance(samples: bytes, sound: Sound, contract: Mapping[str, Any]) -> Iterator[Item]:
    name = "wav.has_content"
    yield Fact("seconds", round(len(samples) / sound.bytes_per_second, 3))
    yield Fact("channels", sound.channels)
    yield Fact("sample_rate", sound.rate)
    if contract.get("allow_empty"):
        yield passed(name, "substance", "the contract allows none")
    elif len(samples) < sound.frame:
        yield hollow(name, "no_samples", "It has a header and no sample.")
    elif sound.kind in PLAIN and _silent(samples, sound):
        yield hollow(name, "silent", f"All of its {len(samples) // sound.frame} samples are alike.")
    else:
        yield passed(name, "substance", f"{len(samples) // sound.frame} samples")


def _silent(samples: bytes, sound: Sound) -> bool:
    whole = len(samples) - len(samples) % sound.frame
    return samples[:whole] == samples[: sound.frame] * (whole // sound.frame)
