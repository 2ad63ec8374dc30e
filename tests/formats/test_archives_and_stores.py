"""ZIP, TAR, SQLite, Parquet, WAV and MP4: what holds, and how it breaks."""

from __future__ import annotations

import io
import math
import sqlite3
import struct
import tarfile
import wave
import zipfile
from collections.abc import Mapping

import pytest

from tests.formats.judging import examined, verdict, warnings

INVALID, HOLLOW = "artifact_format_invalid", "artifact_placeholder_output"
UNSAFE, UNREADABLE = "artifact_unsafe", "artifact_unreadable"
FILES = {
    "readme.txt": b"Pallets by depot.\n" * 40,
    "data/april.csv": b"depot,pallets\nnorth,4182\n",
}


def zipped(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def tarred(files: Mapping[str, bytes], mode: str = "w") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def linked(target: str, kind: bytes = tarfile.SYMTYPE) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        entry = tarfile.TarInfo("data/link")
        entry.type, entry.linkname = kind, target
        archive.addfile(entry)
        content = tarfile.TarInfo("data/a.txt")
        content.size = 5
        archive.addfile(content, io.BytesIO(b"hello"))
    return stream.getvalue()


def database(*statements: str) -> bytes:
    connection = sqlite3.connect(":memory:")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    data = connection.serialize()
    connection.close()
    return data


MOVES = ("CREATE TABLE moves (depot TEXT, pallets INTEGER)", "INSERT INTO moves VALUES ('n', 4182)")


def beep(seconds: float = 0.2, *, level: int = 9000) -> bytes:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        count = int(8000 * seconds)
        tone = (int(level * math.sin(n / 3)) for n in range(count))
        sound.writeframes(struct.pack(f"<{count}h", *tone))
    return stream.getvalue()


class TestZip:
    @pytest.mark.parametrize("method", [zipfile.ZIP_STORED, 8, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_holds_with_every_method(self, method: int) -> None:
        assert verdict("zip", zipped(FILES, method)) == "ok"

    def test_counts_its_entries_and_names_them(self) -> None:
        assert examined("zip", zipped(FILES)).facts["entries"] == 2
        assert verdict("zip", zipped(FILES), contains=["data/april.csv"], min_entries=2) == "ok"

    def test_may_have_bytes_before_its_first_entry(self) -> None:
        assert verdict("zip", b"#!/bin/sh\nexit\n" + zipped(FILES)) == "ok"

    def test_is_cut_without_its_directory(self) -> None:
        data = zipped(FILES)
        assert verdict("zip", data[: len(data) // 2]) == f"{INVALID}/truncated"

    def test_is_damaged_when_a_byte_flips(self) -> None:
        data = bytearray(zipped(FILES, zipfile.ZIP_STORED))
        data[60] ^= 1
        assert verdict("zip", bytes(data)) == f"{INVALID}/crc_mismatch"

    def test_is_hollow_without_files_or_bytes(self) -> None:
        assert verdict("zip", zipped({})) == f"{HOLLOW}/no_content"
        assert verdict("zip", zipped({"a.txt": b""})) == f"{HOLLOW}/no_content"
        assert verdict("zip", zipped({}), allow_empty=True) == "ok"

    @pytest.mark.parametrize("name", ["../a.txt", "/etc/a", "a/../../b", "..\\a", "C:\\a", "C:/a"])
    def test_is_unsafe_with_a_name_that_leads_out(self, name: str) -> None:
        assert verdict("zip", zipped({name: b"x", "b.txt": b"y"})) == f"{UNSAFE}/path_escape"

    @pytest.mark.parametrize("name", ["a..b.txt", "..a", "a/...txt"])
    def test_may_have_dots_in_a_name(self, name: str) -> None:
        assert verdict("zip", zipped({name: b"x"})) == "ok"

    def test_is_unsafe_with_a_link(self) -> None:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w") as archive:
            entry = zipfile.ZipInfo("link")
            entry.create_system, entry.external_attr = 3, 0o120777 << 16
            archive.writestr(entry, "/etc/passwd")
        assert verdict("zip", stream.getvalue()) == f"{UNSAFE}/link"

    def test_is_unsafe_when_it_inflates_without_end(self) -> None:
        assert verdict("zip", zipped({"a": b"\0" * (60 << 20)})) == f"{UNSAFE}/decompression_bomb"

    def test_is_unsafe_when_its_headers_lie_about_that(self) -> None:
        data = zipped({"a": b"\0" * (60 << 20)})
        lie = data.replace(struct.pack("<I", 60 << 20), struct.pack("<I", 10))
        assert verdict("zip", lie) == f"{UNSAFE}/decompression_bomb"

    def test_is_unsafe_when_zips_inside_of_it_do(self) -> None:
        inner = zipped({f"{n}": b"\0" * (20 << 20) for n in range(2)})
        outer = zipped({f"{n}.zip": inner for n in range(12)})
        assert verdict("zip", outer) == f"{UNSAFE}/decompression_bomb"

    def test_is_unsafe_with_zips_all_the_way_down(self) -> None:
        data = zipped(FILES)
        for _ in range(8):
            data = zipped({"inner.zip": data})
        assert verdict("zip", data) == f"{UNSAFE}/nested"

    def test_may_hold_a_zip(self) -> None:
        assert verdict("zip", zipped({"inner.zip": zipped(FILES)})) == "ok"

    def test_is_unreadable_when_an_entry_is_encrypted(self) -> None:
        data = bytearray(zipped(FILES))
        data[6] |= 1
        data[data.index(b"PK\x01\x02") + 8] |= 1
        assert verdict("zip", bytes(data)) == f"{UNREADABLE}/encrypted"


class TestTar:
    @pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
    def test_holds_in_every_packing(self, mode: str) -> None:
        evidence = examined("tar", tarred(FILES, mode))
        assert evidence.ok
        assert evidence.facts["entries"] == 2

    @pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
    def test_is_cut_wherever_it_is_cut(self, mode: str) -> None:
        data = tarred(FILES, mode)
        end = len(data.rstrip(b"\0")) if mode == "w" else len(data)
        assert verdict("tar", data[: end // 2]).startswith(INVALID)
        assert verdict("tar", data[: end - 4]).startswith(INVALID)

    @pytest.mark.parametrize("name", ["../a.txt", "/etc/a"])
    def test_is_unsafe_with_a_name_that_leads_out(self, name: str) -> None:
        assert verdict("tar", tarred({name: b"x"})) == f"{UNSAFE}/path_escape"

    def test_is_unsafe_with_a_link_that_leads_out(self) -> None:
        assert verdict("tar", linked("../../etc/passwd")) == f"{UNSAFE}/path_escape"
        assert verdict("tar", linked("/etc/passwd")) == f"{UNSAFE}/path_escape"
        assert verdict("tar", linked("", tarfile.CHRTYPE)) == f"{UNSAFE}/path_escape"

    def test_may_have_a_link_inside(self) -> None:
        assert verdict("tar", linked("../data/a.txt")) == "ok"

    def test_is_unsafe_when_it_inflates_without_end(self) -> None:
        assert verdict("tar", tarred({"a": b"\0" * (60 << 20)}, "w:gz")) == (
            f"{UNSAFE}/decompression_bomb"
        )

    def test_is_hollow_without_files(self) -> None:
        assert verdict("tar", tarred({"a": b""})) == f"{HOLLOW}/no_content"

    def test_is_none_when_it_is_text(self) -> None:
        assert verdict("tar", b"A list of files.\n" * 99).startswith(INVALID)


class TestSqlite:
    def test_holds_and_counts_its_rows(self) -> None:
        facts = examined("sqlite", database(*MOVES)).facts
        assert (facts["tables"], facts["rows"]) == (1, 1)

    def test_meets_words_about_its_table(self) -> None:
        table = {"fields": [{"name": "pallets", "type": "integer"}], "sheet": "moves"}
        assert verdict("sqlite", database(*MOVES), table=table, min_rows=1) == "ok"

    def test_is_hollow_without_tables_or_rows(self) -> None:
        empty = database("CREATE TABLE a (b)", "DROP TABLE a")
        assert verdict("sqlite", empty) == f"{HOLLOW}/no_content"
        assert verdict("sqlite", database(MOVES[0])) == f"{HOLLOW}/no_rows"

    def test_is_cut_when_pages_are_missing(self) -> None:
        data = database(*MOVES)
        assert verdict("sqlite", data[: len(data) // 2]) == f"{INVALID}/truncated"
        assert verdict("sqlite", data[:-8]) == f"{INVALID}/truncated"

    def test_is_damaged_when_a_page_is_overwritten(self) -> None:
        data = database(*MOVES)
        assert verdict("sqlite", data[:4096] + b"\x55" * (len(data) - 4096)) == f"{INVALID}/damaged"

    def test_holds_in_write_ahead_mode(self) -> None:
        data = database(*MOVES)
        assert verdict("sqlite", data[:18] + b"\2\2" + data[20:]) == "ok"

    def test_runs_nothing_that_the_file_says(self) -> None:
        endless = (
            "CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) "
            "SELECT x FROM c"
        )
        assert verdict("sqlite", database(*MOVES, endless)) == "ok"

    def test_warns_of_a_row_that_refers_to_nothing(self) -> None:
        data = database(
            "CREATE TABLE a (id INTEGER PRIMARY KEY)",
            "CREATE TABLE b (a REFERENCES a(id))",
            "INSERT INTO b VALUES (7)",
        )
        assert warnings("sqlite", data) == {"foreign_key"}


class TestWav:
    def test_holds_and_has_a_length(self) -> None:
        assert examined("wav", beep(0.5)).facts["seconds"] == 0.5
        assert verdict("wav", beep(0.5), min_seconds=0.4) == "ok"

    def test_is_cut_when_samples_are_missing(self) -> None:
        assert verdict("wav", beep()[:-100]) == f"{INVALID}/truncated"

    def test_is_hollow_without_samples_and_in_silence(self) -> None:
        assert verdict("wav", beep(0)) == f"{HOLLOW}/no_samples"
        assert verdict("wav", beep(level=0)) == f"{HOLLOW}/silent"

    def test_may_have_an_open_length_as_pipes_leave_it(self) -> None:
        data = bytearray(beep())
        data[4:8] = data[40:44] = b"\xff" * 4
        assert warnings("wav", bytes(data)) == {"unknown_length"}

    def test_is_none_when_it_is_something_else(self) -> None:
        assert verdict("wav", b"ID3\3" + b"x" * 99) == f"{INVALID}/format_mismatch"


def box(kind: bytes, *content: bytes) -> bytes:
    body = b"".join(content)
    return struct.pack(">I4s", len(body) + 8, kind) + body


def film(*, samples: int = 3, place: int = 40) -> bytes:
    mvhd = box(b"mvhd", struct.pack(">IIIII", 0, 0, 0, 1000, 2000) + bytes(80))
    tkhd = box(b"tkhd", bytes(76), struct.pack(">II", 640 << 16, 360 << 16))
    sizes = box(b"stsz", struct.pack(">III", 0, 8, samples))
    places = box(b"stco", struct.pack(">III", 0, 1, place))
    table = box(b"stbl", sizes, places)
    movie = box(b"moov", mvhd, box(b"trak", tkhd, box(b"mdia", box(b"minf", table))))
    return box(b"ftyp", b"isom\0\0\2\0isom") + box(b"mdat", bytes(range(64))) + movie


class TestMp4:
    def test_holds_and_says_how_long_and_large_it_is(self) -> None:
        evidence = examined("mp4", film())
        facts = evidence.facts
        assert (facts["seconds"], facts["width"], facts["height"]) == (2.0, 640, 360)
        assert not [p for p in evidence.problems if p.reason != "damaged"]

    def test_is_cut_wherever_it_is_cut(self) -> None:
        data = film()
        for end in (30, 60, 100, len(data) - 4):
            assert verdict("mp4", data[:end]) == f"{INVALID}/truncated"

    def test_is_cut_when_a_sample_lies_beyond_its_end(self) -> None:
        assert verdict("mp4", film(place=99_999)) == f"{INVALID}/truncated"

    def test_is_hollow_without_samples(self) -> None:
        assert verdict("mp4", film(samples=0)) == f"{HOLLOW}/no_samples"

    def test_is_none_when_it_is_a_page(self) -> None:
        assert verdict("mp4", b"<html><body>Sign in</body></html>") == f"{INVALID}/is_html"


class TestParquet:
    def test_holds_and_counts(self) -> None:
        evidence = examined("parquet", _parquet({"depot": ["n", "s"], "pallets": [1, 2]}))
        assert (evidence.facts["rows"], evidence.facts["columns"]) == (2, 2)

    def test_is_hollow_without_rows_or_values(self) -> None:
        assert verdict("parquet", _parquet({"a": []})) == f"{HOLLOW}/no_rows"
        assert verdict("parquet", _parquet({"a": [None, None]})) == f"{HOLLOW}/no_content"

    def test_is_cut_without_its_footer(self) -> None:
        assert verdict("parquet", _parquet({"a": [1, 2]})[:-9]) == f"{INVALID}/truncated"

    def test_is_damaged_when_its_pages_are(self) -> None:
        data = bytearray(_parquet({"a": list(range(5000))}))
        data[100:200] = b"\xee" * 100
        assert verdict("parquet", bytes(data)) == f"{INVALID}/damaged"

    def test_says_what_to_install_where_it_cannot_be_read(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import sys

        data = _parquet({"a": [1]})
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        evidence = examined("parquet", data)
        assert not evidence.ok
        assert [c.state for c in evidence.checks if c.depth == "integrity"] == ["not_run"]


def _parquet(columns: Mapping[str, list[object]]) -> bytes:
    pyarrow = pytest.importorskip("pyarrow", reason="pip install 'reread[formats]'")
    parquet = pytest.importorskip("pyarrow.parquet")
    stream = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), stream, write_page_checksum=True)
    return stream.getvalue()
