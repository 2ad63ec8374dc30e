"""PDF: opened and drawn as viewers do (PDFium), page by page.

Proves: it opens without a password, has its end, each page loads and the first ones draw, there is
ink on them, and the text has shapes. Bytes before the header are allowed, as viewers allow them.
Conformance to PDF/A or to the letter of the standard is not asked.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._bytes import nothing, posing
from reread.formats._checks import Fact, Item, failed, holds, hollow, invalid, passed, warned
from reread.formats._pdf_glyphs import boxed, stand_in_share
from reread.formats._pdf_streams import bombs
from reread.formats._placeholder import judge, word_count
from reread.values import Check, Code

FORMAT = Format("pdf", (".pdf",), "PDF document", "application/pdf")
PRELOAD = ("pypdfium2", "PIL.Image")
GROWTH = 12

HEADER_WITHIN = 1024
OBJECT = re.compile(rb"\b\d+\s+\d+\s+obj\b")
LAST_OBJECT = re.compile(rb"\b\d+\s+\d+\s+obj\b|\bendobj\b|\bendstream\b")
NO_PAGES = re.compile(rb"/Type\s*/Pages\b[^>]{0,200}?/(?:Count\s+0\b|Kids\s*\[\s*\])")
PIXELS = 400
"""Length of the longer side of a page when it is drawn."""
DRAW_SECONDS = 4.0
"""Time for drawing pages; those after it are loaded and read, and not drawn."""
MAX_TEXT = 4_000_000
GLYPH_PAGES = 8
SAME = 3
STAND_INS = 0.2
PASSWORD = 4
IMAGE = 3


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a document."""
    data = source.data()
    found = [*nothing(source, data, "pdf")] or [*_identity(data)]
    yield from found
    if not holds(found):
        return
    found = [*bombs(data)]
    yield from found
    if found:
        return
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        yield _told(error, data)
        return
    yield from _document(document, data, contract)


def compare(old: Source, new: Source) -> Iterator[Check]:
    """Yield what an edit of a document has lost."""
    import pypdfium2

    before = _inventory(pypdfium2.PdfDocument(old.data()))
    after = _inventory(pypdfium2.PdfDocument(new.data()))
    gone = {what: (n, after[what]) for what, n in before.items() if after[what] < n}
    if not gone:
        yield passed("pdf.keeps", "integrity")
    for what, (had, has) in gone.items():
        cause = f"It had {what}: {had}; now it has {has}."
        reason = f"lost_{what.replace(' ', '_')}"
        yield failed("pdf.keeps", "integrity", Code.artifact_content_lost, reason, cause)


def _inventory(document: Any) -> dict[str, int]:
    from pypdfium2 import raw

    counts = {"pages": len(document), "attachments": document.count_attachments()}
    counts["bookmarks"] = sum(1 for _ in document.get_toc())
    notes = images = 0
    for page in document:
        notes += raw.FPDFPage_GetAnnotCount(page)
        images += sum(1 for _ in page.get_objects(filter=[IMAGE]))
    return {**counts, "annotations and form fields": notes, "images": images}


def _identity(data: bytes) -> Iterator[Item]:
    name = "pdf.identity"
    if b"%PDF-" not in data[:HEADER_WITHIN]:
        no_header = "There is no %PDF- in its first 1024 bytes."
        yield from list(posing(data, "pdf")) or [
            invalid(name, "no_header", no_header, depth="identity")
        ]
    elif not OBJECT.search(data):
        cause = "It has a PDF header and no object behind it."
        yield invalid(name, "no_objects", cause, depth="identity")
    else:
        yield passed(name, "identity")


def _told(error: Any, data: bytes) -> Item:
    if getattr(error, "err_code", None) == PASSWORD or "password" in str(error).lower():
        cause = "It opens with a password only."
        return failed("pdf.opens", "integrity", Code.artifact_unreadable, "encrypted", cause)
    if _is_cut(data):
        return invalid("pdf.opens", "truncated", "It was cut off: its end is not there.")
    if NO_PAGES.search(data):
        return invalid("pdf.opens", "no_pages", "It has no pages.")
    return invalid("pdf.opens", "damaged", f"It does not open: {error}")


def _is_cut(data: bytes) -> bool:
    """Say whether objects follow the last pointer to the table of objects, or there is none."""
    pointer = data.rfind(b"startxref")
    return pointer < 0 or LAST_OBJECT.search(data, pointer) is not None


def _document(document: Any, data: bytes, contract: Mapping[str, Any]) -> Iterator[Item]:
    if len(document) == 0:
        yield invalid("pdf.pages", "no_pages", "It has no pages.")
        return
    if _is_cut(data):
        yield invalid("pdf.ends", "truncated", "It was cut off: objects follow and no end does.")
        return
    document.init_forms()  # without this, filled forms look blank
    pages = _Pages(document)
    yield from pages.read()
    if pages.broken:
        return
    text = "\n".join(pages.texts)
    yield Fact("pages", len(document))
    yield Fact("words", word_count(text))
    yield Fact("images", pages.images)
    yield Fact("_text", text)
    yield from _substance(pages, text, contract)


class _Pages:
    """Loads every page, and draws and looks at the first ones."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self.texts: list[str] = []
        self.drawn = self.blank = self.images = 0
        self.boxed = 0.0
        self.broken = False
        self._until = time.monotonic() + DRAW_SECONDS
        self._size = 0

    def read(self) -> Iterator[Item]:
        """Yield whether all pages load."""
        import pypdfium2

        for number in range(len(self.document)):
            try:
                self._page(number)
            except pypdfium2.PdfiumError as error:
                self.broken = True
                yield invalid("pdf.pages", "page_damaged", f"Page {number + 1}: {error}.")
                return
        count = len(self.document)
        yield passed("pdf.pages", "integrity", f"{count} pages, {self.drawn} drawn")

    def _page(self, number: int) -> None:
        page = self.document[number]
        text_page = page.get_textpage()
        text = text_page.get_text_range() if self._size < MAX_TEXT else ""
        self._size += len(text)
        self.texts.append(text)
        if time.monotonic() < self._until:
            self._draw(page)
            if number < GLYPH_PAGES:
                self.boxed = max(self.boxed, boxed(page, text_page))
        text_page.close()
        page.close()

    def _draw(self, page: Any) -> None:
        scale = PIXELS / max(*page.get_size(), 1.0)
        picture = page.render(scale=scale, may_draw_forms=True).to_pil()
        extrema = picture.getextrema()
        bands = extrema if isinstance(extrema[0], tuple) else (extrema,)
        self.drawn += 1
        self.blank += all(high - low <= SAME for low, high in bands)
        self.images += sum(1 for _ in page.get_objects(filter=[IMAGE], max_depth=3))


def _substance(pages: _Pages, text: str, contract: Mapping[str, Any]) -> Iterator[Item]:
    if contract.get("allow_empty"):
        yield passed("pdf.has_content", "substance", "the contract allows none")
        return
    if pages.drawn and pages.blank == pages.drawn and not (pages.drawn < len(pages.texts) and text):
        yield hollow("pdf.has_content", "blank", f"Nothing is on its {pages.drawn} pages.")
        return
    yield passed("pdf.has_content", "substance", f"{pages.drawn - pages.blank} pages with ink")
    share = max(stand_in_share(text), pages.boxed)
    if share >= STAND_INS:
        cause = "Its letters have no shapes in the font: boxes are drawn instead."
        yield hollow("pdf.glyphs", "no_glyphs", cause)
    elif share:
        cause = "Some of its letters are boxes or replacement characters."
        yield warned("pdf.glyphs", "substance", "no_glyphs", cause, "Use a font that has them.")
    else:
        yield passed("pdf.glyphs", "substance")
    if text.strip():
        yield from judge(text, "pdf")
