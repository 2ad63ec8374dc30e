"""Runs alone, as a child with limits: reads one file that may be hostile, prints a preview as JSON.

It imports nothing of ours, so that it starts fast and has nothing to lose. The parent believes
only the shape of what is printed.

    python -I _child.py FORMAT < FILE
"""

from __future__ import annotations

import base64
import csv
import io
import itertools
import json
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

MEMORY = 1 << 30
CPU_SECONDS = 20
READ_LIMIT = 64 << 20
TEXT_LINES, TEXT_CHARACTERS = 200, 20_000
ROWS, COLUMNS, CELL, SHEETS = 20, 16, 200, 4
IMAGE_SIDE, IMAGE_PIXELS = 1200, 64_000_000
PAGES, PAGE_WIDTH = 6, 900

Preview = dict[str, Any]


def limit() -> None:
    """Take away what a reader of a file does not need; where the system cannot, say nothing."""
    try:
        import resource
    except ImportError:
        return
    for kind, value in (
        (resource.RLIMIT_DATA, MEMORY),
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_FSIZE, 1 << 20),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (value, value))


def text(data: bytes) -> Preview:
    """Return the first lines; what is no UTF-8 is shown as escapes."""
    whole = data.decode("utf-8-sig", "backslashreplace")
    lines = whole.splitlines()
    shown = "\n".join(lines[:TEXT_LINES])[:TEXT_CHARACTERS]
    return {"kind": "text", "text": shown, "cut": len(shown) < len(whole.rstrip("\r\n"))}


def pretty(data: bytes) -> Preview:
    """Return JSON with one value a line, or the text as it is."""
    try:
        made = json.dumps(json.loads(data), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text(data)
    return text(made.encode("utf-8", "backslashreplace"))


def table(data: bytes, delimiter: str = ",") -> Preview:
    """Return the first rows of delimited text."""
    whole = data.decode("utf-8-sig", "backslashreplace")
    csv.field_size_limit(1 << 20)
    rows = csv.reader(io.StringIO(whole, newline=""), delimiter=delimiter)
    sheet = _sheet("", itertools.islice(rows, ROWS + 2))
    return {"kind": "tables", "sheets": [sheet]}


def tabs(data: bytes) -> Preview:
    """Return the first rows of tab-separated text."""
    return table(data, "\t")


def workbook(data: bytes) -> Preview:
    """Return the first rows of the first sheets."""
    from python_calamine import CalamineWorkbook

    book = CalamineWorkbook.from_filelike(io.BytesIO(data))
    sheets = [
        _sheet(name, book.get_sheet_by_name(name).to_python(nrows=ROWS + 2))
        for name in book.sheet_names[:SHEETS]
    ]
    return {"kind": "tables", "sheets": sheets, "more": len(book.sheet_names) - len(sheets)}


def _sheet(name: str, rows: Iterable[Sequence[Any]]) -> Mapping[str, Any]:
    every = [[_cell(value) for value in row] for row in rows]
    wide = any(len(row) > COLUMNS for row in every)
    shown = [row[:COLUMNS] for row in every[: ROWS + 1]]
    return {"name": name, "rows": shown, "cut": len(every) > ROWS + 1 or wide}


def _cell(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)[:CELL]


def image(data: bytes) -> Preview:
    """Return a picture, read and written anew, so that nothing but its pixels is left."""
    from PIL import Image, ImageOps

    Image.MAX_IMAGE_PIXELS = IMAGE_PIXELS
    with Image.open(io.BytesIO(data)) as opened:
        size = list(opened.size)
        if opened.size[0] * opened.size[1] > IMAGE_PIXELS:
            return {"kind": "none", "why": f"{size[0]} by {size[1]} pixels are too many to show"}
        opened.draft("RGB", (IMAGE_SIDE, IMAGE_SIDE))
        made = ImageOps.exif_transpose(opened)
        made.thumbnail((IMAGE_SIDE, IMAGE_SIDE))
        return {"kind": "pictures", "pictures": [_encoded(made)], "size": size}


def _encoded(picture: Any) -> Mapping[str, Any]:
    clear = "A" in picture.mode or "transparency" in picture.info
    mode = "RGBA" if clear else "RGB"
    best: tuple[str, bytes] | None = None
    for name, options in (("png", {"optimize": True}), ("jpeg", {"quality": 82})):
        if clear and name == "jpeg":
            continue
        out = io.BytesIO()
        picture.convert(mode).save(out, name, **options)
        if best is None or len(out.getvalue()) * 2 < len(best[1]):
            best = (name, out.getvalue())
    name, data = best or ("png", b"")
    return {
        "type": name,
        "data": base64.b64encode(data).decode(),
        "width": picture.size[0],
        "height": picture.size[1],
    }


def pages(data: bytes) -> Preview:
    """Return the first pages of a PDF as pictures."""
    import pypdfium2  # type: ignore[import-untyped,unused-ignore]

    document = pypdfium2.PdfDocument(data)
    made = []
    for number in range(min(len(document), PAGES)):
        page = document[number]
        width = max(page.get_width(), 1.0)
        scale = min(PAGE_WIDTH / width, 4.0, 3000 / max(page.get_height(), 1.0))
        made.append(_encoded(page.render(scale=scale).to_pil().convert("RGB")))
    return {"kind": "pictures", "pictures": made, "more": len(document) - len(made)}


def office(data: bytes) -> Preview:
    """Return the words of a document or a deck, where no renderer has made pages of it."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    lines: list[str] = []
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in _parts(archive.namelist()):
            with archive.open(name) as part:
                root = etree.fromstring(part.read(READ_LIMIT), parser)
            paragraphs = (e for e in root.iter() if str(e.tag).endswith("}p"))
            for paragraph in paragraphs:
                words = (t.text or "" for t in paragraph.iter() if str(t.tag).endswith("}t"))
                lines.append("".join(words))
    return text("\n".join(line for line in lines if line.strip()).encode())


def _parts(names: Sequence[str]) -> list[str]:
    slides = [n for n in names if n.startswith("ppt/slides/slide") and n.endswith(".xml")]
    slides.sort(key=lambda name: (len(name), name))
    return slides or [name for name in ("word/document.xml",) if name in names]


READERS: Mapping[str, Callable[[bytes], Preview]] = {
    "csv": table,
    "tsv": tabs,
    "xlsx": workbook,
    "ods": workbook,
    "json": pretty,
    "ipynb": pretty,
    "pdf": pages,
    "docx": office,
    "pptx": office,
    **dict.fromkeys(("png", "jpeg", "jpg", "gif", "webp", "bmp", "tiff", "ico"), image),
    **dict.fromkeys(
        ("md", "txt", "html", "xml", "svg", "yaml", "toml", "py", "jsonl", "log", "ics"), text
    ),
}


def preview(format: str, data: bytes) -> Preview:
    """Return a preview of a file; what cannot be read says why."""
    reader = READERS.get(format)
    if reader is None:
        return {"kind": "none", "why": f"there is no preview for the format {format}"}
    try:
        return reader(data)
    # A reader of hostile bytes may raise anything, and the answer is the same for all of it.
    except Exception as error:
        return {"kind": "none", "why": f"{type(error).__name__}: {error}"[:300]}


def main() -> None:
    """Read standard input, print one JSON object."""
    limit()
    data = sys.stdin.buffer.read(READ_LIMIT + 1)
    made = (
        preview(sys.argv[1], data)
        if len(data) <= READ_LIMIT
        else {"kind": "none", "why": "the file is too large to show"}
    )
    sys.stdout.buffer.write(json.dumps(made).encode())


if __name__ == "__main__":
    main()
