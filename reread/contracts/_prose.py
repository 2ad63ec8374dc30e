"""Words about text: front matter, sections, code blocks, links, `contains`, `matches`, topic."""

from __future__ import annotations

import ast
import json
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from reread.formats._checks import Item, not_run, passed, unmet

Facts = Mapping[str, Any]


def fold(text: str) -> str:
    """Return text as it is compared: NFKC, case folded, runs of blanks as one."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def checks(contract: Mapping[str, Any], facts: Facts, format: str) -> Iterator[Item]:
    """Yield a check for each word about text."""
    for word, needs, check in (
        ("front_matter_keys", "_front", _front_keys),
        ("front_matter", "_front", _front),
        ("sections", "_sections", _sections),
        ("code_blocks", "_code", _code_blocks),
        ("links", "_links", _links),
        ("contains", "_text", _contains),
        ("matches", "_text", _matches),
        ("forbids", "_text", _forbids),
        ("topic", "_text", _topic),
    ):
        if word not in contract:
            continue
        if needs in facts:
            yield check(contract[word], facts)
        else:
            yield not_run(f"contract.{word}", "contract", f"{format} files have none")


def _front_keys(keys: Sequence[str], facts: Facts) -> Item:
    front = facts["_front"] or {}
    missing = [key for key in keys if front.get(key) in (None, "", [])]
    if missing:
        return unmet("contract.front_matter_keys", "missing_keys", f"Front matter lacks {missing}.")
    return passed("contract.front_matter_keys", "contract")


def _front(asked: Mapping[str, Any], facts: Facts) -> Item:
    from jsonschema import Draft202012Validator

    name, front = "contract.front_matter", facts["_front"]
    if front is None:
        return unmet(name, "no_front_matter", "It has no front matter.")
    if asked.get("format", facts["_front_format"]) != facts["_front_format"]:
        cause = f"Its front matter is {facts['_front_format']} and should be {asked['format']}."
        return unmet(name, "front_matter_format", cause)
    errors = [
        f"{error.json_path}: {error.message[:160]}"
        for error in Draft202012Validator(asked.get("schema", {})).iter_errors(front)
    ]
    if errors:
        return unmet(name, "front_matter", "; ".join(errors[:5]))
    return passed(name, "contract")


def _sections(wanted: Sequence[str], facts: Facts) -> Item:
    there = {fold(section["title"]): section for section in facts["_sections"]}
    missing = [title for title in wanted if fold(title) not in there]
    if missing:
        return unmet("contract.sections", "missing_sections", f"It has no section {missing}.")
    empty = [title for title in wanted if not there[fold(title)]["content"].strip()]
    if empty:
        return unmet("contract.sections", "empty_sections", f"Nothing stands below {empty}.")
    return passed("contract.sections", "contract", f"{len(wanted)} sections")


def _code_blocks(asked: Mapping[str, Any], facts: Facts) -> Item:
    name, language = "contract.code_blocks", asked["language"].lower()
    blocks = [block for block in facts["_code"] if block["language"] == language]
    if len(blocks) < asked.get("min", 1):
        cause = f"It has {len(blocks)} {language} blocks, and {asked.get('min', 1)} are asked for."
        return unmet(name, "too_few", cause)
    if asked.get("parses", False):
        for number, block in enumerate(blocks, 1):
            wrong = _does_not_parse(block["text"], language)
            if wrong:
                cause = f"The {language} block {number} {wrong}."
                return unmet(name, "code_does_not_parse", cause)
    return passed(name, "contract", f"{len(blocks)} {language} blocks")


def _does_not_parse(text: str, language: str) -> str:
    if not text.strip():
        return "is empty"
    try:
        if language in ("python", "py"):
            return "" if ast.parse(text).body else "holds no statement"
        if language == "json":
            json.loads(text)
        elif language == "toml":
            tomllib.loads(text)
        elif language in ("yaml", "yml"):
            import yaml

            yaml.safe_load(text)
    except Exception as error:  # whatever the parser of the language says about hostile text
        return f"does not parse: {str(error)[:120]}"
    return ""


def _links(asked: Mapping[str, Any], facts: Facts) -> Item:
    name = "contract.links"
    section = fold(asked.get("section", ""))
    links = [link for link in facts["_links"] if not section or fold(link["section"]) == section]
    least = asked.get("min", 1)
    if len(links) < least:
        place = f" below '{asked['section']}'" if section else ""
        return unmet(name, "too_few", f"It has {len(links)} links{place}; {least} are asked for.")
    wrong = [link["target"] for link in links if not _sound(link["target"])]
    if wrong:
        return unmet(name, "link_without_host", f"These links lead nowhere: {wrong[:5]}.")
    return passed(name, "contract", f"{len(links)} links")


def _sound(target: str) -> bool:
    """Say whether a link has what its scheme needs; local ones are resolved elsewhere."""
    try:
        parts = urlsplit(target)
    except ValueError:
        return False
    if parts.scheme in ("http", "https"):
        return bool(parts.hostname) and "." in f"{parts.hostname}." and " " not in target
    return bool(target.strip())


def _contains(wanted: Sequence[str], facts: Facts) -> Item:
    text = fold(facts["_text"])
    missing = [item for item in wanted if fold(item) not in text]
    if missing:
        return unmet("contract.contains", "missing_text", f"It does not contain {missing}.")
    return passed("contract.contains", "contract")


def _matches(wanted: Sequence[str], facts: Facts) -> Item:
    missing = [
        pattern for pattern in wanted if not re.search(pattern, facts["_text"], re.MULTILINE)
    ]
    if missing:
        return unmet("contract.matches", "no_match", f"Nothing in it matches {missing}.")
    return passed("contract.matches", "contract")


def _forbids(unwanted: Sequence[str], facts: Facts) -> Item:
    text = fold(facts["_text"])
    found = [item for item in unwanted if fold(item) in text]
    if found:
        return unmet("contract.forbids", "forbidden_text", f"It contains {found}.")
    return passed("contract.forbids", "contract")


def _topic(topic: str, facts: Facts) -> Item:
    text = fold(facts.get("_prose", facts["_text"]))
    if fold(topic) in text:
        return passed("contract.topic", "contract", topic)
    return unmet("contract.topic", "topic_missing", f"The topic '{topic}' is not in its prose.")
