"""SVG: an XML drawing with something drawn, that runs nothing and reaches nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._checks import Fact, Item, hollow, invalid, passed, warned
from reread.formats._placeholder import FILLER, word_count
from reread.formats._xml import local, read
from reread.values import Check

FORMAT = Format("svg", (".svg",), "SVG drawing", "image/svg+xml")
PRELOAD = ("lxml.etree",)
GROWTH = 30

SHAPES = frozenset(
    {"path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "image", "use"}
    | {"foreignObject"}
)
UNSEEN = frozenset(
    {"defs", "clipPath", "mask", "marker", "pattern", "symbol", "linearGradient"}
    | {"radialGradient"}
)


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a drawing."""
    for item in read(source, "svg"):
        if isinstance(item, Check | Fact):
            yield item
        else:
            yield from _drawing(item, contract)


def _drawing(root: Any, contract: Mapping[str, Any]) -> Iterator[Item]:
    if local(root) != "svg":
        cause = f"Its root element is '{local(root)}' and not 'svg'."
        reason = "is_html" if local(root).lower() == "html" else "format_mismatch"
        yield invalid("svg.identity", reason, cause, depth="identity")
        return
    yield passed("svg.identity", "identity")
    shapes = [element for element in root.iter("*") if local(element) in SHAPES and _seen(element)]
    text = "\n".join(piece.strip() for piece in root.itertext() if piece.strip())
    for name in ("width", "height"):
        size = _size(root, name)
        if size is not None:
            yield Fact(name, size)
    yield Fact("items", len(shapes))
    yield Fact("words", word_count(text))
    yield Fact("_text", text)
    yield from _active(root)
    used = any(local(shape) == "use" for shape in shapes)
    if not shapes and not used and not contract.get("allow_empty"):
        yield hollow("svg.has_content", "no_content", "Nothing is drawn in it.")
    elif len(shapes) == 1 and local(shapes[0]) == "rect" and contract.get("purpose") != "icon":
        yield hollow("svg.has_content", "flat", "One rectangle is all that is drawn in it.")
    elif len(shapes) <= 2 and FILLER.search(text):
        yield hollow("svg.has_content", "filler_text", f"It only says '{text[:60]}'.")
    else:
        yield passed("svg.has_content", "substance", f"{len(shapes)} shapes")


def _seen(element: Any) -> bool:
    """Say whether a shape is drawn: not below something that only defines, and with a form."""
    if any(local(above) in UNSEEN for above in element.iterancestors()):
        return False
    if local(element) == "path":
        return bool(element.get("d", "").strip())
    if local(element) == "text":
        return bool("".join(element.itertext()).strip())
    return True


def _size(root: Any, name: str) -> int | None:
    value = root.get(name, "").strip().removesuffix("px")
    if not value:
        box = root.get("viewBox", "").replace(",", " ").split()
        value = box[2 if name == "width" else 3] if len(box) == 4 else ""
    try:
        return int(float(value))
    except (ValueError, OverflowError):
        return None


def _active(root: Any) -> Iterator[Item]:
    """Yield a warning for what runs or reaches out when the drawing is shown in a page."""
    for element in root.iter("*"):
        target = next((v for k, v in element.attrib.items() if k.rpartition("}")[2] == "href"), "")
        handlers = [k for k in element.attrib if k.lower().startswith("on")]
        if (
            local(element) == "script"
            or handlers
            or target.strip().lower().startswith("javascript")
        ):
            yield warned("svg.inert", "integrity", "script", "It holds a script.", "Remove it.")
            return
        if target.startswith(("http:", "https:", "//", "file:")) and local(element) != "a":
            cause = f"It loads '{target[:80]}' from elsewhere."
            yield warned(
                "svg.inert", "integrity", "external", cause, "Put the picture into the file."
            )
            return
