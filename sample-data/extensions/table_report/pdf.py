"""The bytes of a PDF: pages of monospaced text, no dependency, no compression."""

from collections.abc import Sequence

WIDTH, HEIGHT = 595, 842
MARGIN, SIZE, LEADING = 50, 9.5, 13.5


def document(title: str, pages: Sequence[Sequence[str]]) -> bytes:
    """Return a PDF 1.4 with one page for each list of lines."""
    kids = " ".join(f"{4 + 2 * place} 0 R" for place in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>",
    ]
    for place, lines in enumerate(pages):
        content = _content(lines)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * place} 0 R >>".encode()
        )
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(content), content))
    info = b"<< /Title (%b) >>" % _text(title)
    return _assembled([*objects, info])


def _content(lines: Sequence[str]) -> bytes:
    start = f"BT /F1 {SIZE} Tf {LEADING} TL {MARGIN} {HEIGHT - MARGIN} Td".encode()
    shown = [b"(%b) Tj T*" % _text(line) for line in lines]
    return b"\n".join([start, *shown, b"ET"])


def _text(line: str) -> bytes:
    data = line.encode("cp1252", "replace")
    return data.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def _assembled(objects: Sequence[bytes]) -> bytes:
    """Number the objects, and say in the table at the end where each begins."""
    out = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\n" % (len(objects) + 1, len(objects))
    return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)
