"""Two contracts as one that asks for all that both ask for, or a refusal; never for less."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agent_runtime import Failure
from reread.values import Code

LISTS = ("required_keys", "front_matter_keys", "sections", "contains", "matches", "forbids")
ALSO_LISTS = ("equal", "sheets")


def stricter(word: str, first: Any, second: Any) -> Any:
    """Return the stricter of two values of one word.

    Raises:
        Failure: contract_invalid, where the two cannot both hold or be said at once.
    """
    if first == second:
        return first
    if word in WORDS:
        return WORDS[word](first, second)
    if word.startswith("min"):
        return max(first, second)
    if word.startswith("max"):
        return min(first, second)
    if word in LISTS or word in ALSO_LISTS:
        return [*first, *(item for item in second if item not in first)]
    if isinstance(first, bool) and isinstance(second, bool):
        return first or second
    raise Failure(
        Code.contract_invalid,
        f"The task asks for {word} {first!r}, and the skill's contract for {second!r}.",
        "Take the word out of one of them.",
    )


def _mapping(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(first)
    for word, value in second.items():
        merged[word] = stricter(word, merged[word], value) if word in merged else value
    return merged


def _counted(whole: str) -> Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]:
    """Return the merging of things that are counted; one word says which of them are meant."""

    def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
        # Left out, that word means all of them: more than those that the other one counts.
        if first.get(whole) != second.get(whole):
            stricter(whole, first.get(whole, "any"), second.get(whole, "any"))
        return _mapping(first, second)

    return merged


def _schemas(first: Any, second: Any) -> dict[str, Any]:
    return {"allOf": [first, second]}


def _fields(
    first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    merged = {field["name"]: dict(field) for field in first}
    for field in second:
        name = field["name"]
        merged[name] = _mapping(merged[name], field) if name in merged else dict(field)
    return list(merged.values())


def _type(first: str, second: str) -> Any:
    kinds = {first, second} - {"any"}
    if kinds == {"integer", "number"}:
        return "integer"
    return kinds.pop() if len(kinds) == 1 else stricter("type of a field", first, second)


def _enum(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    return [item for item in first if item in second] or stricter("values", first, second)


def _lowest(first: Any, second: Any) -> Any:
    return _edge("minimum", first, second, max)


def _highest(first: Any, second: Any) -> Any:
    return _edge("maximum", first, second, min)


def _edge(word: str, first: Any, second: Any, choose: Callable[[Any, Any], Any]) -> Any:
    if type(first) is not type(second) and isinstance(first, str) | isinstance(second, str):
        return stricter(f"the {word}", first, second)
    return choose(first, second)


WORDS: Mapping[str, Callable[[Any, Any], Any]] = {
    "schema": _schemas,
    "table": _mapping,
    "front_matter": _mapping,
    "constraints": _mapping,
    "code_blocks": _counted("language"),
    "links": _counted("section"),
    "fields": _fields,
    "type": _type,
    "enum": _enum,
    "minimum": _lowest,
    "maximum": _highest,
    "allow_empty": lambda first, second: first and second,
}
