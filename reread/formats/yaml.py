"""YAML: every document parses, and what it refers to stays small.

Read with the safe loader; a tag that is not known becomes an opaque value and runs nothing. Aliases
are counted before anything is built, so that a few lines cannot stand for billions of values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._checks import Item, invalid, passed, unsafe
from reread.formats._placeholder import fenced, leaks
from reread.formats._text import Text, read_text
from reread.formats.json import facts_of, substance

FORMAT = Format("yaml", (".yaml", ".yml"), "YAML", "application/yaml", ("yml",))
PRELOAD = ("yaml",)
GROWTH = 100
PACE = 8.0

MAX_CHARACTERS = 4 << 20
MAX_VALUES = 2_000_000
"""Values that a document may stand for, aliases followed."""


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a YAML file."""
    import yaml

    text = None
    for item in read_text(source, "yaml"):
        if isinstance(item, Text):
            text = item.text
        else:
            yield item
    if text is None:
        return
    wrapped = list(fenced(text, "yaml"))
    yield from wrapped
    if wrapped:
        return
    if len(text) > MAX_CHARACTERS:
        yield unsafe("yaml.bounded", "too_large", f"It has {len(text)} characters.")
        return
    try:
        nodes = list(yaml.compose_all(text, Loader=_loader(yaml)))
        weights = [_weight(node, yaml) for node in nodes if node is not None]
        if None in weights:
            yield unsafe("yaml.bounded", "alias_cycle", "An alias in it stands for itself.")
            return
        if sum(weight or 0 for weight in weights) > MAX_VALUES:
            yield unsafe(
                "yaml.bounded", "alias_expansion", "Its aliases stand for too many values."
            )
            return
        values = list(yaml.load_all(text, Loader=_loader(yaml)))
    except yaml.YAMLError as error:
        if "nesting depth" in str(error):
            yield unsafe("yaml.bounded", "too_deep", "It is nested too deeply to be read.")
            return
        yield from leaks(text, "yaml")
        cause = f"It is not YAML: {' '.join(str(error).split())[:200]}"
        yield invalid("yaml.parses", "yaml_syntax", cause, depth="identity")
        return
    except (ValueError, TypeError, OverflowError) as error:
        cause = f"A value in it is none of its type: {error}"[:200]
        yield invalid("yaml.parses", "yaml_value", cause)
        return
    value = values[0] if len(values) == 1 else values
    if isinstance(value, str):
        # Any line of prose is a YAML string; nobody means that by a YAML file.
        yield invalid(
            "yaml.identity", "only_text", "It is one string and no data.", depth="identity"
        )
        return
    yield passed("yaml.parses", "identity", f"{len(values)} documents")
    yield from facts_of(value, contract)
    yield from substance(value, "yaml", contract)


def _loader(yaml: Any) -> Any:
    """Return a safe loader that takes unknown tags as opaque values."""

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        pass

    Loader.add_multi_constructor("", lambda loader, suffix, node: f"!{suffix}")
    return Loader


def _weight(top: Any, yaml: Any) -> int | None:
    """Count the values that a node stands for, a shared one each time; None for endless ones."""
    known: dict[int, int] = {}
    open_: set[int] = set()
    waiting = [(top, False)]
    while waiting:
        node, done = waiting.pop()
        inner = _inner(node, yaml)
        if done:
            known[id(node)] = 1 + sum(known[id(child)] for child in inner)
            open_.discard(id(node))
        elif id(node) in open_:
            return None  # all that is taken between opening and closing a node stands below it
        elif id(node) not in known:
            open_.add(id(node))
            waiting.append((node, True))
            waiting.extend((child, False) for child in inner)
    return known[id(top)]


def _inner(node: Any, yaml: Any) -> list[Any]:
    if isinstance(node, yaml.MappingNode):
        return [child for pair in node.value for child in pair]
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    return []
