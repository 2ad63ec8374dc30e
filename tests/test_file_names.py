"""Names of confined files: what is refused, on every system, and what is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_runtime import Failure
from reread.files import ConfinedFolder, check_name, printable
from reread.files.names import MAX_DEPTH, NAME_BYTES
from reread.values import Code

REFUSED = {
    "nothing": "",
    "an absolute path": "/etc/passwd",
    "a path of Windows": "C:\\Windows\\win.ini",
    "a share of Windows": "\\\\host\\share",
    "a drive": "C:a.txt",
    "a backslash": "a\\b",
    "here": ".",
    "here, in the middle": "a/./b",
    "up": "..",
    "up, in the middle": "a/../b",
    "up, at the end": "a/..",
    "an empty component": "a//b",
    "a slash at the end": "a/",
    "three dots": "a/...",
    "NUL": "a\0b",
    "a line end": "a\nb",
    "a carriage return": "a\rb",
    "an escape sequence": "\x1b[31mred",
    "DEL": "a\x7f",
    "a C1 control": "a\x9b31m",
    "a line separator": "a\u2028b",
    "a lone surrogate": "a\udcffb",
    "a high surrogate": "\ud800",
    "right to left override": "cod\u202efdp.exe",
    "an isolate": "a\u2066b\u2069",
    "a mark of direction": "a\u200fb",
    "a zero width space": "a\u200bb",
    "a byte order mark": "\ufeffa",
    "a soft hyphen": "a\u00adb",
    "a tag character": "a\U000e0041",
    "a dot at the end": "a.",
    "a dot at the end of a folder": "a./b",
    "a space at the end": "a ",
    "a space at the end of a folder": "a /b",
    "a no-break space at the end": "a\u00a0",
    "an ideographic space at the end": "a\u3000",
    "a stream": "a.txt:hidden",
    "the default stream": "a.txt::$DATA",
    "NUL the device": "NUL",
    "a device in lower case": "con",
    "a device with a suffix": "aux.txt",
    "a device with two suffixes": "prn.tar.gz",
    "a device and a space": "con .txt",
    "a device as a folder": "com1/a.txt",
    "a port": "LPT9",
    "a port of number nought": "COM0",
    "a port with a superscript": "COM\u00b2.txt",
    "the console for reading": "CONIN$",
    "an unfinished write": ".reread-0123456789abcdef.part",
    "an unfinished write in capitals": ".REREAD-0123456789ABCDEF.PART",
    "a name of 256 bytes": "a" * (NAME_BYTES + 1),
    "a name of 86 Chinese characters": "\u4e2d" * 86,
    "a long path": "/".join(["a" * 200] * 6),
    "a deep path": "/".join(["a"] * (MAX_DEPTH + 1)),
    "a path of a million characters": "a" * 1_000_000,
}
ALLOWED = (
    "outputs/summary.json",
    ".hidden",
    "-rf",
    "~",
    "a b.txt",
    " a",
    "..a",
    "a..b",
    "console.txt",
    "com10",
    "null",
    "$HOME",
    "%2e%2e",
    "汇总/季度报告.xlsx",
    "café.txt",
    "cafe\u0301.txt",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645.txt",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467.png",
    "a" * NAME_BYTES,
    "/".join(["a"] * MAX_DEPTH),
)
TWINS = (
    ("café", "cafe\u0301"),
    ("a", "A"),
    ("STRASSE", "straße"),
    ("Ω", "\u2126"),
    ("ΣΑΣ", "σας"),
    ("İ", "i\u0307"),
    ("fi", "\ufb01"),
    ("a\u200db", "ab"),
    ("가", "\u1100\u1161"),
)


def code_of(relative: object) -> str:
    with pytest.raises(Failure) as caught:
        check_name(relative)  # type: ignore[arg-type]
    caught.value.cause.encode("utf-8")  # what it says can be printed anywhere
    return caught.value.code


class TestRefusedNames:
    @pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED)
    def test_it_is_refused(self, name: str) -> None:
        assert code_of(name) == Code.path_not_allowed

    @pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED)
    def test_no_operation_takes_it(self, name: str, tmp_path: Path) -> None:
        folder = ConfinedFolder(tmp_path)
        calls = (
            lambda: folder.read(name),
            lambda: folder.open(name),
            lambda: folder.sha256(name),
            lambda: folder.write(name, b""),
            lambda: folder.make_folder(name),
            lambda: folder.remove(name),
            lambda: folder.move(name, folder, "b"),
            lambda: folder.move("b", folder, name),
            lambda: folder.subfolder(name),
        )
        for call in calls:
            with pytest.raises(Failure) as caught:
                call()
            assert caught.value.code == Code.path_not_allowed
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("value", (None, 1, b"a", ["a"], Path("a")))
    def test_what_is_no_text_is_no_name(self, value: object) -> None:
        assert code_of(value) == Code.path_not_allowed

    def test_the_cause_is_short_whatever_the_name_is(self) -> None:
        with pytest.raises(Failure) as caught:
            check_name("\x1b" * 1_000_000)
        assert len(caught.value.cause) < 600


class TestAllowedNames:
    @pytest.mark.parametrize("name", ALLOWED)
    def test_it_is_taken_apart_and_can_be_written(self, name: str, tmp_path: Path) -> None:
        folder = ConfinedFolder(tmp_path)
        folder.write(name, b"x")
        assert check_name(name) == tuple(name.split("/"))
        assert folder.read(name) == b"x"


class TestTwins:
    @pytest.mark.parametrize(("first", "second"), TWINS)
    def test_a_twin_never_makes_a_second_file(
        self, first: str, second: str, tmp_path: Path
    ) -> None:
        folder = ConfinedFolder(tmp_path)
        folder.write(first, b"first")
        with pytest.raises(Failure) as caught:
            folder.write(second, b"second")
        assert caught.value.code == Code.path_not_allowed
        assert printable(first) in caught.value.cause
        assert os.listdir(tmp_path) == [first]  # noqa: PTH208 names as they are

    @pytest.mark.parametrize(("first", "second"), TWINS)
    def test_a_twin_of_a_folder_makes_none(self, first: str, second: str, tmp_path: Path) -> None:
        folder = ConfinedFolder(tmp_path)
        folder.make_folder(f"x/{first}")
        for call in (folder.make_folder, lambda path: folder.write(f"{path}/a", b"")):
            with pytest.raises(Failure) as caught:
                call(f"x/{second}")
            assert caught.value.code == Code.path_not_allowed

    def test_nothing_is_moved_to_a_twin(self, tmp_path: Path) -> None:
        folder = ConfinedFolder(tmp_path)
        folder.write("a", b"a")
        folder.write("new", b"new")
        with pytest.raises(Failure) as caught:
            folder.move("new", folder, "A")
        assert caught.value.code == Code.path_not_allowed
        assert folder.read("new") == b"new"

    def test_reading_names_the_twin_that_is_there(self, tmp_path: Path) -> None:
        folder = ConfinedFolder(tmp_path)
        folder.write("Report.md", b"")
        with pytest.raises(Failure) as caught:
            folder.read("report.md")
        assert caught.value.code == Code.path_not_found
        assert "Report.md" in caught.value.remedy

    def test_a_file_can_be_written_again_beside_a_twin_that_others_made(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "a").write_text("a")
        (tmp_path / "A").write_text("A")
        ConfinedFolder(tmp_path).write("a", b"new")
        assert (tmp_path / "A").read_text() == "A"
