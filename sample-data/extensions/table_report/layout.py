"""Where the text of a table stands on its pages."""

from collections.abc import Sequence

LINES_ON_A_PAGE = 48
CHARACTERS_IN_A_LINE = 84
GAP = "  "


def page_count(rows: int) -> int:
    """Return how many pages a number of rows needs."""
    return max(1, -(-rows // LINES_ON_A_PAGE))


def paged(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str | float]]
) -> list[list[str]]:
    """Return the lines of each page, the head of the table on every one."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [
        max(len(name), *(len(row[place]) for row in texts)) if texts else len(name)
        for place, name in enumerate(columns)
    ]
    room = (CHARACTERS_IN_A_LINE - len(GAP) * (len(columns) - 1)) // len(columns)
    widths = [min(width, max(room, 4)) for width in widths]
    head = [_line(columns, widths), "-" * min(sum(widths) + len(GAP) * (len(widths) - 1), 84)]
    count = page_count(len(texts))
    pages = []
    for number in range(count):
        part = texts[number * LINES_ON_A_PAGE : (number + 1) * LINES_ON_A_PAGE]
        lines = [_line(row, widths) for row in part]
        pages.append([title, "", *head, *lines, "", f"page {number + 1} of {count}"])
    return pages


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    pairs = zip(cells, widths, strict=True)
    return GAP.join(_cut(cell, width).ljust(width) for cell, width in pairs).rstrip()


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
