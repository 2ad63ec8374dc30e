"""How fast the gate is, and how often it is wrong beside three simpler ones.

The verdicts are those of the cases in tests/data/gate. The simpler gates are what people use: the
suffix, the magic bytes (puremagic), and "the usual library opens it".
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from reread.api import check_file
from reread.examine import _client, examine, format_named, format_of

HELP = "speed and memory of the gate, and its wrong verdicts beside three simpler gates"
CASES = Path(__file__).resolve().parent.parent / "tests" / "data" / "gate"
WARM_LIMIT_MS = 10.0
MEMORY_LIMIT = 300 << 20
LIBRARY_SECONDS = 5.0
LARGE = 100_000_000
ROWS = {
    "csv": b"%d,north %d,412.50,2026-04-30,moved and counted\n",
    "jsonl": b'{"id": %d, "depot": "north %d", "pallets": 412.5, "tags": ["a", "b"]}\n',
    "json": b'{"id": %d, "depot": "north %d", "pallets": 412.5, "tags": ["a", "b"]},\n',
}


class Wrong(NamedTuple):
    """Cases that a gate got wrong; unable: what it could not judge for want of a library."""

    accepts: list[str]
    rejects: list[str]
    unable: int


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--rounds", type=int, default=9, help="times each case (default: 9)")
    parser.add_argument("--quick", action="store_true", help="one round, large files of 5 MB")
    parser.add_argument("--json", action="store_true", help="print the numbers alone, as JSON")


def run(args: argparse.Namespace) -> int:
    """Measure, print, and return 0 if what is promised held, else 1."""
    cases = json.loads((CASES / "manifest.json").read_text("utf-8"))["cases"]
    medians = speed(cases, 1 if args.quick else args.rounds)
    found: dict[str, Any] = {
        "median ms": statistics.median(medians.values()),
        "slowest ms": max(medians.values()),
        "slowest": max(medians, key=lambda name: medians[name]),
        "large": {name: large(name, 5_000_000 if args.quick else LARGE) for name in ROWS},
        "gates": {name: wrong(cases, gate)._asdict() for name, gate in GATES.items()},
    }
    print(json.dumps(found, indent=1) if args.json else table(found, len(cases)))
    held = found["median ms"] <= WARM_LIMIT_MS and not any(found["gates"]["reread"].values())
    held = held and all(found["large"][name]["peak"] < MEMORY_LIMIT for name in ("csv", "jsonl"))
    print("held" if held else "not held", file=sys.stderr)
    return 0 if held else 1


def speed(cases: list[Mapping[str, Any]], rounds: int) -> dict[str, float]:
    """Return the median wall time of each case in ms, in a warm program, child included."""
    for case in cases:
        judge(case)
    times: dict[str, list[float]] = {case["id"]: [] for case in cases}
    for _ in range(rounds):
        for case in cases:
            start = time.perf_counter()
            judge(case)
            times[case["id"]].append((time.perf_counter() - start) * 1000)
    return {name: statistics.median(values) for name, values in times.items()}


def judge(case: Mapping[str, Any]) -> bool:
    """Return the verdict of this gate."""
    path = CASES / case["file"]
    return check_file(path, format=case["format"], contract=case["contract"]).ok


def large(name: str, size: int) -> dict[str, float]:
    """Return seconds, MB/s and peak memory of one large file; bytes of the child that read it."""
    with tempfile.TemporaryFile() as file:
        file.write({"csv": b"id,depot,pallets,day,note\n", "json": b"["}.get(name, b""))
        row = 0
        while file.tell() < size:
            file.write(b"".join(ROWS[name] % (row + n, n % 17) for n in range(10_000)))
            row += 10_000
        if name == "json":
            file.seek(-2, 2)
            file.write(b"]\n")
        file.seek(0)
        with Peak() as peak:
            start = time.perf_counter()
            ok = examine(file, name=f"large.{name}", format=name, contract={}).ok
            seconds = time.perf_counter() - start
    return {"ok": ok, "seconds": seconds, "MB/s": size / seconds / 1e6, "peak": peak.bytes}


class Peak:
    """The most resident memory that a child of the gate's server was seen with."""

    def __init__(self) -> None:
        import threading

        self.bytes = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        import psutil

        server = psutil.Process(_client._running().process.pid)
        while not self._over.wait(0.1):
            for child in server.children():
                with contextlib.suppress(psutil.Error):
                    self.bytes = max(self.bytes, child.memory_info().rss)


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the middle of a library that does not come to an end."""

    def over(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def by_suffix(case: Mapping[str, Any]) -> bool:
    """Accept a file that is there, is not empty, and has the suffix of its format."""
    path = CASES / case["file"]
    return path.is_file() and format_of(path.name) == format_named(case["format"])


def by_magic(case: Mapping[str, Any]) -> bool:
    """Accept a file whose first bytes are of its suffix; text has no magic and passes."""
    import puremagic

    path = CASES / case["file"]
    if not path.is_file() or not path.stat().st_size:
        return False
    try:
        found = {match.extension.lower() for match in puremagic.magic_file(path)}
    except puremagic.PureError:
        found = set()
    textual = format_named(case["format"]) in TEXTS
    return textual or path.suffix in found


def by_library(case: Mapping[str, Any]) -> bool:
    """Accept what the usual library for the format opens.

    Raises:
        ImportError, where that library is not installed.
    """
    path = CASES / case["file"]
    opens = LIBRARIES.get(format_named(case["format"]), Path.read_text)
    try:
        with warnings.catch_warnings(), limited(LIBRARY_SECONDS):
            warnings.simplefilter("ignore")
            opens(path)
    except ImportError:
        raise
    except Exception:  # whatever the library raises, it did not open the file
        return False
    return True


def _docx(path: Path) -> None:
    import docx

    docx.Document(str(path))


def _pptx(path: Path) -> None:
    import pptx

    pptx.Presentation(str(path))


def _xlsx(path: Path) -> None:
    import openpyxl

    openpyxl.load_workbook(path)


def _pdf(path: Path) -> None:
    import pypdfium2

    len(pypdfium2.PdfDocument(path))


def _picture(path: Path) -> None:
    from PIL import Image

    with Image.open(path) as image:
        image.verify()


def _parquet(path: Path) -> None:
    import pyarrow.parquet

    pyarrow.parquet.read_metadata(path)


def _zip(path: Path) -> None:
    import zipfile

    zipfile.ZipFile(path).close()


def _wav(path: Path) -> None:
    import wave

    wave.open(str(path)).close()


def _csv(path: Path) -> None:
    import csv

    with path.open(newline="", encoding="utf-8") as file:
        list(csv.reader(file))


def _yaml(path: Path) -> None:
    import yaml

    list(yaml.safe_load_all(path.read_text("utf-8")))


def _toml(path: Path) -> None:
    import tomllib

    tomllib.loads(path.read_text("utf-8"))


def _xml(path: Path) -> None:
    from lxml import etree

    etree.parse(str(path))


def _json(path: Path) -> None:
    json.loads(path.read_bytes())


def _lines(path: Path) -> None:
    for line in path.read_bytes().splitlines():
        json.loads(line or b"null")


def _python(path: Path) -> None:
    compile(path.read_bytes(), path.name, "exec")


TEXTS = frozenset(
    ("json", "jsonl", "csv", "md", "html", "svg", "xml", "yaml", "toml", "py", "ipynb", "txt")
)
LIBRARIES: Mapping[str, Callable[[Path], None]] = {
    "docx": _docx,
    "pptx": _pptx,
    "xlsx": _xlsx,
    "pdf": _pdf,
    "png": _picture,
    "jpeg": _picture,
    "gif": _picture,
    "webp": _picture,
    "parquet": _parquet,
    "zip": _zip,
    "wav": _wav,
    "csv": _csv,
    "yaml": _yaml,
    "toml": _toml,
    "svg": _xml,
    "xml": _xml,
    "json": _json,
    "ipynb": _json,
    "jsonl": _lines,
    "py": _python,
}
GATES: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "reread": judge,
    "the usual library opens it": by_library,
    "magic bytes": by_magic,
    "suffix": by_suffix,
}


def wrong(cases: list[Mapping[str, Any]], gate: Callable[[Mapping[str, Any]], bool]) -> Wrong:
    """Return which cases a gate accepts and rejects against the table."""
    result = Wrong([], [], 0)
    for case in cases:
        good = case["verdict"] == "accept"
        try:
            says = gate(case)
        except ImportError:
            result = result._replace(unable=result.unable + 1)
            continue
        if says and not good:
            result.accepts.append(case["id"])
        elif good and not says:
            result.rejects.append(case["id"])
    return result


def table(found: Mapping[str, Any], count: int) -> str:
    """Return the numbers for people, in Markdown."""
    lines = [
        f"One file, warm, child included: median {found['median ms']:.1f} ms, "
        f"slowest {found['slowest ms']:.1f} ms ({found['slowest']}).",
        "",
        "| large file | seconds | MB/s | peak MiB |",
        "|---|---|---|---|",
    ]
    for name, at in found["large"].items():
        numbers = f"{at['seconds']:.1f} | {at['MB/s']:.0f} | {at['peak'] / (1 << 20):.0f}"
        lines.append(f"| {name} | {numbers} |")
    lines += [
        "",
        f"| gate, {count} cases | wrongly accepted | wrongly rejected | not judged |",
        "|---|---|---|---|",
    ]
    for name, at in found["gates"].items():
        lines.append(f"| {name} | {len(at['accepts'])} | {len(at['rejects'])} | {at['unable']} |")
    return "\n".join(lines)


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=HELP)
    configure(flags)
    sys.exit(run(flags.parse_args()))
