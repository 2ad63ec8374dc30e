"""What a model service means when it says no: one classifier for every shape of error.

Statuses, bodies of any form, errors inside a 200 and inside a stream all come here. The answer is
one of: wait and send again, make the history shorter, change the request, or stop with a name.

Proves nothing about the service: wordings differ and change. What is not recognised stops the run.
"""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Action = Literal["retry", "compact", "adjust", "fail"]
Kind = Literal["auth", "quota", "rate_limit", "config", "refused", "protocol", "server", "network"]

LONGEST_WAIT = 120.0
_SHOWN = 400


@dataclass(frozen=True, slots=True)
class Trouble:
    """One failed request, as far as it was understood.

    Attributes:
        status: HTTP status, or the one that an error inside a 200 names; 0 where there is none.
        code: the service's own word.
        param: the parameter that it names.
        text: its message, without keys and without HTML, short enough to show.
        wait: seconds that it asked to wait; `None` where it did not say.
        window: the model's context length, where the message tells it.
        begun: bytes of an answer that came before it broke; they are paid for.
    """

    action: Action
    kind: Kind
    status: int = 0
    code: str = ""
    param: str = ""
    text: str = ""
    wait: float | None = None
    window: int | None = None
    remedy: str = ""
    begun: int = 0


# Kept as text: `re` compiles what is used and keeps it, and most runs meet no error.
_QUOTA = (
    r"(?i)insufficient[_ ](?:quota|balance|credits?|funds)|exceeded your current quota|billing"
    r"|payment required|out of credits|余额不足|欠费"
)
_THROTTLE = (
    r"(?i)rate.?limit|too many requests|overloaded|throttl|tokens per (?:min|day|hour)|requests per"
    r"|capacity|try again (?:later|in)|slow down|concurren|请求过于频繁|速率限制"
)
_OVERFLOW = (
    r"(?i)context_length_exceeded|exceed_context_size|string_above_max_length"
    r"|(?:maximum|max|model'?s?)\s+(?:\w+\s+)?context\s+(?:length|window|size)"
    r"|context (?:length|window|size)[^.]{0,60}(?:exceed|too|limit|overflow)"
    r"|exceed(?:s|ed|ing)?[^.]{0,60}context (?:length|window|size|limit)"
    r"|(?:prompt|input|request|conversation|messages?)[^.]{0,40}too (?:long|large|many tokens)"
    r"|(?:input|prompt) (?:token count|tokens?|length)[^.]{0,80}"
    r"(?:exceed|greater|larger|longer|maximum)"
    r"|too many (?:input )?tokens|token limit exceeded|reduce (?:the length|your prompt)"
    r"|larger than the (?:model'?s )?context|上下文(?:长度|窗口)?[^。]{0,20}(?:超|过长)|输入过长"
)
_OUTPUT_CAP = (
    r"(?i)max(?:_completion|_new|_output)?_tokens\W+(?:\w+\W+){0,3}?"
    r"(?:must be|should be|less than|at most|cannot|exceed|too large|range|has to)"
    r"|(?:invalid|unsupported)[^.]{0,30}max(?:_completion)?_tokens"
)
_WINDOW = (
    r"(?i)(?:context (?:length|window|size)|n_ctx|maximum)[^0-9]{0,40}?(\d{3,8})"
    r"|(\d{3,8})[- ]tokens? (?:context|limit)"
)
_TOOLS_OFF = (
    r"(?i)enable-auto-tool-choice|tool-call-parser|--jinja|does not support (?:tools|function)"
    r"|tool (?:use|calling|calls?)[^.]{0,20}(?:not supported|unsupported|not enabled|not available)"
    r"|(?:tools|functions?)(?: param(?:eter)?)?[^.]{0,20}not supported"
)
_FILTER = (
    r"(?i)content[_ ]?(?:filter|policy|management)|responsibleai|safety (?:system|filter)"
    r"|data_inspection_failed|moderation|内容(?:安全|审核)|敏感"
)
_AUTH = (
    r"(?i)(?:incorrect|invalid|missing|no|wrong|expired|revoked)[^.]{0,20}(?:api|access)[ _-]?"
    r"(?:key|token)\b"
    r"|invalid_api_key|unauthori[sz]ed|authentication|permission denied|not authori[sz]ed"
)
_IN_TEXT = (
    r"(?i)(?:try again|retry|wait)[^0-9]{0,24}?((?:\d+(?:\.\d+)?\s*"
    r"(?:ms|milliseconds?|h(?:ours?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)\s*)+)"
)
_UNIT = r"(?i)(\d+(?:\.\d+)?)\s*(ms|milli|h|m|s)"
_SECRET = r"(?i)\b(?:sk|pk|rk|gsk|key|xai|nvapi)-[\w*.…-]{3,}|Bearer\s+\S+|\S*\*{2,}\S*"


def from_response(
    status: int, headers: Mapping[str, str], body: bytes, *, key: str = ""
) -> Trouble:
    """Classify an HTTP response that is no answer."""
    content_type = headers.get("content-type", "").lower()
    text = body[:65536].decode("utf-8", "replace")
    if "html" in content_type or text.lstrip()[:1] == "<":
        return _page(status, headers, text, key)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = {"message": text}
    return from_body(value, status=status, headers=headers, key=key)


def from_body(
    value: Any, *, status: int = 0, headers: Mapping[str, str] | None = None, key: str = ""
) -> Trouble:
    """Classify an error object in any of its shapes, inside a 200 or not."""
    code, param, text = _words(value)
    inner = code if code.isdigit() and 400 <= int(code) < 600 else ""
    seen = int(inner) if inner and status in (0, 200) else status
    base = Trouble("fail", "protocol", seen, hide(code, key)[:80], param, hide(text, key)[:_SHOWN])
    wait = retry_after(headers or {}, text)
    return _classified(replace(base, wait=wait), f"{code} {text}")


def _classified(base: Trouble, words: str) -> Trouble:
    status = base.status
    if re.search(_QUOTA, words) or status == 402:
        return _fail(base, "quota", "Look at the account's plan and balance at the service.")
    throttled = status in (429, 503, 529) or (
        re.search(_THROTTLE, words) and status not in (400, 422)
    )
    if throttled and not (status == 429 and base.wait is not None and base.wait > LONGEST_WAIT):
        return replace(base, action="retry", kind="rate_limit")
    if throttled:
        return _fail(base, "rate_limit", f"Wait {base.wait:.0f} seconds, then run it again.")
    if status in (401, 403) or (re.search(_AUTH, words) and status in (0, 200)):
        return _fail(base, "auth", "Check OPENAI_API_KEY, and that it may use OPENAI_MODEL.")
    if re.search(_FILTER, words):
        return _fail(base, "refused", "Word the task differently, or use another model.")
    if re.search(_OVERFLOW, words) and not re.search(_OUTPUT_CAP, words):
        return replace(base, action="compact", window=_window(base.text))
    if re.search(_TOOLS_OFF, words):
        return _fail(
            base,
            "config",
            "Start the server with tool calling on, as it says, or name a model that has tools.",
        )
    return _by_status(base, words)


def _by_status(base: Trouble, words: str) -> Trouble:
    status = base.status
    if status == 404:
        return _fail(
            base,
            "config",
            "Check OPENAI_MODEL and OPENAI_BASE_URL; most services need /v1 at its end.",
        )
    if status in (400, 413, 415, 422) or (status >= 500 and _names_request(words)):
        return replace(base, action="adjust", kind="config")
    if status in (408, 409, 425) or status >= 500:
        return replace(base, action="retry", kind="server")
    if status in (0, 200):
        return replace(base, action="retry", kind="server")
    return _fail(base, "config", "Check OPENAI_BASE_URL and OPENAI_MODEL.")


def _names_request(words: str) -> bool:
    """Say whether a 500 complains about the request; some servers answer everything with 500."""
    return bool(
        re.search(r"validation error|invalid_request|unsupported (?:parameter|value)", words)
    )


def _fail(base: Trouble, kind: Kind, remedy: str) -> Trouble:
    return replace(base, action="fail", kind=kind, remedy=remedy)


def _page(status: int, headers: Mapping[str, str], text: str, key: str) -> Trouble:
    """Classify a web page where an API's answer should be. Only its title is shown."""
    found = re.search(r"<(title|h1)[^>]*>(.*?)</\1>", text, re.IGNORECASE | re.DOTALL)
    title = hide(" ".join(found[2].split()), key)[:100] if found else "no title"
    said = f"a web page came back ('{title}') instead of an answer of the API"
    base = Trouble("fail", "config", status, "", "", said, retry_after(headers, ""))
    if status >= 500 or status in (408, 425, 429):
        return replace(base, action="retry", kind="rate_limit" if status == 429 else "server")
    if status in (401, 403, 407):
        return _fail(
            base, "auth", "A proxy or firewall may stand in the way; check the key as well."
        )
    return _fail(
        base,
        "config",
        "Check OPENAI_BASE_URL; most services need /v1 at its end. A proxy may also answer.",
    )


def _words(value: Any) -> tuple[str, str, str]:
    """Return (code, parameter, message) of an error object, however it is wrapped."""
    if isinstance(value, list):
        # Gemini wraps its error in a list; FastAPI lists what does not validate.
        texts = [_words(item) for item in value if isinstance(item, dict | str)]
        return texts[0] if len(texts) == 1 else ("", "", "; ".join(text for _, _, text in texts))
    if not isinstance(value, dict):
        return "", "", str(value)
    inner = value.get("error") or value.get("detail") or value.get("errors")
    if isinstance(inner, dict | list) and inner:
        code, param, text = _words(inner)
        outer = value.get("message")
        return code, param, text or (outer if isinstance(outer, str) else "")
    text = next(
        (
            value[key]
            for key in ("message", "msg", "error", "detail")
            if isinstance(value.get(key), str)
        ),
        "" if value.get("loc") else json.dumps(value, ensure_ascii=False)[:_SHOWN],
    )
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("raw"), str):
        text = f"{text}: {metadata['raw']}"
    location = value.get("loc")
    if isinstance(location, list) and location:
        text = f"{'.'.join(str(part) for part in location)}: {text}"
    code = value.get("code") or value.get("status") or value.get("type") or ""
    param = value.get("param") or ""
    return str(code), str(param), text if value.get("type") is None else f"{text}"


def hide(text: str, key: str = "") -> str:
    """Take keys out of a text, whole ones and the parts that services echo."""
    if len(key) > 3:
        text = text.replace(key, "[key]")
    return re.sub(_SECRET, "[key]", text)


def retry_after(headers: Mapping[str, str], text: str) -> float | None:
    """Return the seconds that a service asked to wait, from its headers or its words."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = headers.get(name, "").strip()
        if re.fullmatch(r"\d+(?:\.\d+)?", said):
            return float(said) / scale
        if said and (date := email.utils.parsedate_tz(said)):
            return max(0.0, email.utils.mktime_tz(date) - time.time())
    if found := re.search(_IN_TEXT, text):
        scales = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "milli": 0.001}
        return sum(float(n) * scales[unit.lower()] for n, unit in re.findall(_UNIT, found[1]))
    return None


def _window(text: str) -> int | None:
    found = re.search(_WINDOW, text)
    return int(found[1] or found[2]) if found else None
