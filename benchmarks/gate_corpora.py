"""Holds the gate against files that libraries ship, beside three simpler answers.

The archives come from the package index on first use and stay in a cache folder. A file counts as
broken when its name or its place says so (`BROKEN`, `LOCKED`); everything else counts as whole, so
that a wrong label shows as a disagreement. Each disagreement is printed, with a line that explains
it where there is one. Substance (blank pages, flat pictures) is counted apart: the simpler answers
have no opinion on it.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tarfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from agent_runtime import Failure
from reread.examine import all_formats, examine, format_of
from reread.values import Evidence

HELP = "false accepts and false rejects over the files that libraries ship for their tests"
PACKAGES = ("python-docx", "python-pptx", "xlsx2csv", "pypdf", "pikepdf", "pypdfium2", "pillow")
FORMATS = frozenset(
    {"docx", "pptx", "xlsx", "pdf", "png", "jpeg", "gif", "webp", "tar", "zip", "mp4", "parquet"}
)
MAX_FILE = 32 << 20
BROKEN = re.compile(
    r"/broken(?!_exif)|truncated|/crash-|/oom-|/timeout-|decompression_|/fuzz"
    r"|apng/(chunk_no_f|chunk_repeat|sequence_|syntax_num_frames_(high|zero\.))|dummy\.mp4"
)
LOCKED = re.compile(
    r"user-password|both-passwords|crazyones-encrypted|encrypted-file|writer-password"
    r"|cleartext-metadata|graph-encrypted|/encrypted\.pdf"
)
EXPLAINED: tuple[tuple[str, str], ...] = (
    ("zero_slides", "the package is whole and has no slides: no deck, by the rule of the gate"),
    (r"newline-buffer-test", "its body is a run of line ends; PDFium does not open it either"),
    (r"fuzzing/corpus/small", "it has no table of objects and no end; readers rebuild both"),
    (r"/fuzz/", "made by a fuzzer, and PDFium still finds every page of it"),
    (r"ultrahdr", "headers and no picture: the file ends where its first scan should start"),
    (r"truncated_exif", "only its EXIF is cut short, all pixels are there"),
    (r"unknown_compression", "names a compression that PNG does not have; its checksum is wrong"),
    (r"zero_width", "0 pixels wide; Pillow does not open it either"),
    (r"truncated_end_chunk", "only the last chunk is cut, all pixels are there"),
    (r"truncated_app14", "only a remark of Adobe's is cut short, all pixels are there"),
    (r"/(crash|oom|timeout)-", "once broke a reader, and is a picture that decodes"),
)


class File(NamedTuple):
    """One file of a corpus."""

    package: str
    path: str
    format: str
    data: bytes

    @property
    def whole(self) -> bool:
        """Nothing in its name says that it is broken or locked."""
        return not BROKEN.search(f"/{self.path}") and not LOCKED.search(f"/{self.path}")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    default = Path("~/.cache/reread-corpora")
    parser.add_argument(
        "--cache", type=Path, default=default, help=f"archives (default: {default})"
    )
    parser.add_argument("--only", choices=PACKAGES, action="append", help="default: all")


def run(args: argparse.Namespace) -> int:
    """Print the table and the disagreements; 0 when each of the gate's is explained."""
    answers: dict[str, Callable[[File], bool]] = {
        "magic": _magic,
        "library": _library,
        "suffix": lambda file: True,
    }
    wrong: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    seen: Counter[tuple[str, str]] = Counter()
    lines: list[tuple[str, str]] = []
    hollow: Counter[tuple[str, str]] = Counter()
    for file in _files(args.cache.expanduser(), args.only or PACKAGES):
        evidence = examine(io.BytesIO(file.data), name=file.path, format=file.format, contract={})
        key = (file.package, file.format)
        seen[key] += 1
        wrong[key]["broken"] += not file.whole
        sound = _sound(evidence)
        for name, answer in {"gate": sound, **{n: a(file) for n, a in answers.items()}}.items():
            if answer != file.whole:
                wrong[key][f"{name} {'accepts' if answer else 'rejects'}"] += 1
        if sound != file.whole:
            lines.append(_line(file, evidence))
        elif sound and not evidence.ok:
            hollow[(file.package, evidence.problems[0].reason)] += 1
    _print(seen, wrong)
    print("\nWhole and without content, by the gate:")
    for (package, reason), count in sorted(hollow.items()):
        print(f"- {package}: {count} {reason}")
    print("\nWhere the gate and the label differ:")
    for text, why in lines:
        print(f"- {text}: {why or 'NOT EXPLAINED'}")
    return 0 if all(why for _, why in lines) else 1


def _sound(evidence: Evidence) -> bool:
    """Say whether identity and integrity hold, which is what the simpler answers are about."""
    checks = [check for check in evidence.checks if check.depth in ("identity", "integrity")]
    return bool(checks) and all(check.state in ("passed", "warned") for check in checks)


def _line(file: File, evidence: Evidence) -> tuple[str, str]:
    problem = next(iter(evidence.problems), None)
    said = f"{problem.code}/{problem.reason}" if problem else "holds"
    text = f"{file.package} {file.path}, {said}"
    return text, next((why for pattern, why in EXPLAINED if re.search(pattern, text)), "")


def _files(cache: Path, packages: list[str] | tuple[str, ...]) -> Iterator[File]:
    for package in packages:
        with tarfile.open(_archive(cache / package, package)) as archive:
            for member in archive:
                path = member.name.partition("/")[2]
                if not member.isfile() or member.size > MAX_FILE:
                    continue
                try:
                    format = format_of(PurePosixPath(path).name)
                except Failure:
                    continue
                stream = archive.extractfile(member)
                if format in FORMATS and stream is not None:
                    yield File(package, path, format, stream.read())


def _archive(folder: Path, package: str) -> Path:
    """Return the package's source archive, fetched once."""
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.glob("*.tar.gz")):
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", package, "--dest", str(folder), package]
        subprocess.run(command, check=True, timeout=600)
    return next(folder.glob("*.tar.gz"))


def _magic(file: File) -> bool:
    """Say what the first bytes say."""
    import puremagic

    known = all_formats()[file.format]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = {match.extension for match in puremagic.magic_string(file.data)}
    except puremagic.PureError:
        return False
    return bool(found & {*known.suffixes, f".{known.name}"})


def _library(file: File) -> bool:
    """Say whether the usual library opens it."""
    stream = io.BytesIO(file.data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _open(file.format, stream)
    except Exception:  # whatever a library raises is its answer
        return False
    return True


def _open(format: str, stream: io.BytesIO) -> None:
    """Open with the library that people use for the format; others are taken to open."""
    if format == "docx":
        import docx

        docx.Document(stream)
    elif format == "pptx":
        import pptx

        pptx.Presentation(stream)
    elif format == "xlsx":
        import openpyxl

        openpyxl.load_workbook(stream)
    elif format == "pdf":
        import pypdf

        len(pypdf.PdfReader(stream).pages)
    elif format in ("png", "jpeg", "gif", "webp"):
        from PIL import Image

        Image.open(stream).verify()
    elif format == "tar":
        with tarfile.open(fileobj=stream) as archive:
            archive.getnames()


def _print(seen: Counter[tuple[str, str]], wrong: dict[tuple[str, str], Counter[str]]) -> None:
    columns = [
        f"{name} {what}"
        for name in ("gate", "magic", "library", "suffix")
        for what in ("accepts", "rejects")
    ]
    print("| corpus | format | files | broken | " + " | ".join(f"{c}" for c in columns) + " |")
    print("|" + "---|" * (len(columns) + 4))
    total: Counter[str] = Counter()
    for key, count in sorted(seen.items()):
        cells = [str(wrong[key][column]) for column in columns]
        print(f"| {key[0]} | {key[1]} | {count} | {wrong[key]['broken']} | {' | '.join(cells)} |")
        total.update({**wrong[key], "files": count})
    cells = [str(total[column]) for column in columns]
    print(f"| all |  | {total['files']} | {total['broken']} | {' | '.join(cells)} |")


def main() -> int:
    """Run it by itself: python -m benchmarks.gate_corpora."""
    parser = argparse.ArgumentParser(description=HELP)
    configure(parser)
    return run(parser.parse_args())


if __name__ == "__main__":
    raise SystemExit(main())
