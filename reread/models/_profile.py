"""What one host refuses for one model, learned once and kept while the process lives.

`adjusted` reads a refusal and changes one thing; it answers None when there is nothing left to
change, so a service that always refuses ends the run instead of a loop.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reread.models._errors import Trouble

NEVER_DROPPED = frozenset({"model", "messages", "input", "tools", "stream"})


@dataclass(frozen=True, slots=True)
class Profile:
    """How a host wants to be asked.

    Attributes:
        dropped: parameters that it refuses.
        renamed: parameter → the name that it takes.
        values: parameter → the value that it takes.
        stream: it streams.
        strict: it takes `strict` on tools.
        schema_words: words of JSON Schema that it refuses in a tool's parameters.
        empty_content: what stands for no content beside calls: None, '' or a blank.
        fill: field → value that each assistant message with calls must carry.
        unknown_fields: it takes fields back that only it understands; with False they stay home.
        fold_users: a user message may not follow a tool's answer, so it joins it.
        merge: roles must alternate, so neighbours are joined.
        short_ids: ids of calls must be nine letters or digits.
        no_system: it takes no system message; the text goes into the first user message.
        images: `tool`, `user` or `none`: where it takes images.
        window: its context length in tokens, where it told it.
    """

    dropped: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = True
    strict: bool = True
    schema_words: frozenset[str] = frozenset()
    empty_content: str | None = None
    fill: Mapping[str, str] = field(default_factory=dict)
    unknown_fields: bool = True
    fold_users: bool = False
    merge: bool = False
    short_ids: bool = False
    no_system: bool = False
    images: str = "tool"
    window: int | None = None

    def parameters(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters as this host takes them."""
        made = {}
        for name, value in wanted.items():
            if name in self.dropped:
                continue
            made[self.renamed.get(name, name)] = self.values.get(name, value)
        return made


KNOWN: dict[tuple[str, str], Profile] = {}
"""(host, model) → what was learned about it in this process."""


def adjusted(profile: Profile, trouble: Trouble, sent: Mapping[str, Any]) -> Profile | None:
    """Change the one thing that a refusal names. `sent` is the request's body without messages."""
    words = f"{trouble.param} {trouble.code} {trouble.text}"
    for rule in (_history, _choice, _schema, _cap, _parameter):
        changed = rule(profile, words, sent)
        if changed is not None and changed != profile:
            return changed
    return None


def _said(pattern: str, words: str) -> bool:
    return re.search(pattern, words, re.IGNORECASE | re.DOTALL) is not None


def _history(profile: Profile, words: str, sent: Mapping[str, Any]) -> Profile | None:
    """Refusals of a message: its role, its content, its order, or a field of it."""
    if found := re.search(
        r"\b(reasoning_content|reasoning_details|thought_signature|(?<=['\"`.])reasoning(?=['\"`]))",
        words,
    ):
        return _reasoning(profile, found[1], words)
    if _said(r"image(?:_url)?\b", words):
        return replace(profile, images="user" if profile.images == "tool" else "none")
    if _said(r"tool.?call.?ids?.{0,120}(?:length|format|must be|too long|a-z)", words):
        return replace(profile, short_ids=True)
    if _said(
        r"role.{0,40}user.{0,60}after.{0,20}tool|after.{0,30}tool.{0,60}(?:user|assistant)", words
    ):
        return replace(profile, fold_users=True)
    if _said(
        r"roles? must alternate|alternat\w+ .{0,40}user|consecutive .{0,40}(?:user|role)", words
    ):
        return replace(profile, merge=True, fold_users=True)
    if _said(
        r"(?:role|message)s?.{0,40}(?:system|developer)|(?:system|developer).{0,20}role", words
    ):
        return replace(profile, no_system=True)
    if _said(
        r"(?:extra|additional|unknown|unexpected).{0,40}(?:inputs?|fields?|propert)", words
    ) and _said(r"messages?[.\[]", words):
        return replace(profile, unknown_fields=False)
    content = r"content.{0,80}(?:null|none|string|empty|non-empty|blank|required|missing|valid)"
    if _said(content, words) or _said(r"(?:null|none|empty).{0,40}content", words):
        return replace(profile, empty_content="" if profile.empty_content is None else " ")
    return None


def _reasoning(profile: Profile, name: str, words: str) -> Profile:
    if _said(r"missing|must be|required|provide|pass(?:ed)? back|include", words) and not _said(
        r"extra|not permitted|not allowed|unexpected|unknown|unsupported|not supported", words
    ):
        return replace(profile, fill={**profile.fill, name: ""})
    return replace(profile, unknown_fields=False)


def _choice(profile: Profile, words: str, sent: Mapping[str, Any]) -> Profile | None:
    """A forced choice of a tool is refused by models that think."""
    forced = sent.get("tool_choice", "auto") != "auto"
    if forced and _said(r"tool.?choice", words):
        return replace(profile, values={**profile.values, "tool_choice": "auto"})
    return None


def _schema(profile: Profile, words: str, sent: Mapping[str, Any]) -> Profile | None:
    strict = any(tool.get("function", tool).get("strict") for tool in sent.get("tools", ()))
    about_tools = _said(
        r"schema|function.?param|tools\[?\.?\d|function_declarations|\bstrict\b", words
    )
    if strict and about_tools and profile.strict:
        return replace(profile, strict=False)
    if not about_tools:
        return None
    named = {word for word in _SCHEMA_WORDS if word in words}
    new = named - profile.schema_words
    return replace(profile, schema_words=profile.schema_words | new) if new else None


_SCHEMA_WORDS = (
    *("additionalProperties", "$schema", "$ref", "$defs", "default", "format", "pattern", "title"),
    *("minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("minItems", "maxItems", "uniqueItems", "const", "oneOf", "anyOf", "allOf", "examples"),
)
_CAPS = ("max_completion_tokens", "max_output_tokens", "max_tokens")


def _cap(profile: Profile, words: str, sent: Mapping[str, Any]) -> Profile | None:
    """A cap on the output has another name here, or is above what the model gives."""
    name = next((cap for cap in _CAPS if cap in sent and cap in words), "")
    if not name:
        return None
    original = next((old for old, new in profile.renamed.items() if new == name), name)
    other = next((cap for cap in _CAPS if cap != name and _said(rf"\b{cap}\b", words)), "")
    if other and original not in profile.renamed:
        return replace(profile, renamed={**profile.renamed, original: other})
    bound = re.search(
        r"(?:less than or equal to|at most|<=|maximum(?: of| value)?|up to|exceed"
        r"|not? (?:more|greater|larger) than|range of[^\[]{0,24}\[\d+,|between \d+ and)"
        r"\W*(?:is\W*)?(\d+)",
        words,
        re.IGNORECASE,
    )
    if bound and original not in profile.values and int(bound[1]) < int(sent[name]):
        return replace(profile, values={**profile.values, original: int(bound[1])})
    return replace(profile, dropped=profile.dropped | {original})


def _parameter(profile: Profile, words: str, sent: Mapping[str, Any]) -> Profile | None:
    """Any other parameter that is named is left out; `stream` is asked for plainly instead."""
    for name in sorted(sent, key=len, reverse=True):
        original = next((old for old, new in profile.renamed.items() if new == name), name)
        if name in NEVER_DROPPED or original in profile.dropped:
            continue
        if re.search(rf"(?<![\w]){re.escape(name)}(?![\w])", words):
            return replace(profile, dropped=profile.dropped | {original})
    if sent.get("stream") and _said(r"\bstream(?:ing)?\b", words):
        return replace(profile, stream=False)
    return None
