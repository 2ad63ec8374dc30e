"""Which model service to ask, and with which key: read from the environment, checked early.

The key is held in one field that no `repr` shows. What else stands here may be shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agent_runtime import Failure
from reread.values import Code

DEFAULT_BASE_URL = "https://api.openai.com/v1"
_ENDPOINTS = ("/chat/completions", "/responses")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Settings:
    """A model service.

    Attributes:
        key: never shown, logged or recorded.
        options: parameters to send along (`temperature`, `max_tokens`, …); none are sent unasked.
        stream: ask for a stream; a host that cannot stream is asked plainly.
        timeout: seconds without a byte before a request is given up.
        attempts: how often one turn is sent again after failures that may pass.
        prices: a price file; `None` takes what REREAD_PRICES names, or ours.
    """

    key: str = field(repr=False)
    model: str
    base_url: str = DEFAULT_BASE_URL
    options: Mapping[str, Any] = field(default_factory=dict)
    stream: bool = True
    timeout: float = 120.0
    attempts: int = 3
    prices: Path | None = None

    @property
    def host(self) -> str:
        """The host and port that requests go to."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    @property
    def local(self) -> bool:
        """The service is on this machine, where a token costs nothing."""
        return urlsplit(self.base_url).hostname in _LOOPBACK


def settings_from_environment(
    environ: Mapping[str, str] | None = None, *, options: Mapping[str, Any] | None = None
) -> Settings:
    """Read OPENAI_API_KEY, OPENAI_MODEL and, if given, OPENAI_BASE_URL.

    Raises:
        Failure: model_not_configured.
    """
    env = os.environ if environ is None else environ
    base_url = _base_url(env.get("OPENAI_BASE_URL", ""))
    model = env.get("OPENAI_MODEL", "").strip()
    if not model:
        raise _missing("OPENAI_MODEL", "the name of a model that the service offers")
    key = env.get("OPENAI_API_KEY", "").strip()
    if not key:
        raise _missing("OPENAI_API_KEY", "the key of the service; a local server takes any text")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise Failure(
            Code.model_not_configured,
            "OPENAI_API_KEY holds characters that no HTTP header can carry (it is not shown here).",
            "Copy the key again, without quotes, blanks or line breaks inside.",
        )
    return Settings(key, model, base_url, options or {})


def _base_url(text: str) -> str:
    """Return a usable base URL; an endpoint at its end is taken off, an empty one is unset."""
    url = text.strip().rstrip("/") or DEFAULT_BASE_URL
    for endpoint in _ENDPOINTS:
        url = url.removesuffix(endpoint)
    try:
        parts = urlsplit(url)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if fine and parts.username is not None:
        raise Failure(
            Code.model_not_configured,
            f"OPENAI_BASE_URL holds a name or a password before '{parts.hostname}'.",
            "Leave them out; what the service must know goes into OPENAI_API_KEY.",
        )
    if not fine:
        raise Failure(
            Code.model_not_configured,
            f"OPENAI_BASE_URL is '{url[:200]}', which is no http(s) address.",
            "Set it like OPENAI_BASE_URL=http://127.0.0.1:8080/v1, or unset it.",
        )
    return url


def _missing(name: str, what: str) -> Failure:
    return Failure(
        Code.model_not_configured,
        f"{name} is not set, so there is no model to ask.",
        f"Set it to {what}: export {name}=…; python app.py doctor --live then tries it.",
    )
