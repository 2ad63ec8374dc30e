"""The official package as transport: key, headers, time-outs, proxies and connections are its own.

A request is handed to the package's HTTP client encoded, and the answer taken as bytes: its typed
methods walk the whole history at each request, and building one anew costs as much as sending it.
Runs in one event loop that ask the same service share connections.

What the package raises may hold the key in what it chains, so none of it leaves this module.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reread.models._errors import Trouble, from_response, hide
from reread.models._settings import Settings

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

CONNECT_TIMEOUT = 10.0
ERROR_BYTES = 64 << 10
ANSWER_BYTES = 64 << 20
"""Of a body, plain or streamed; more is no answer of a model."""
AFTER_DONE = 0.5
"""Seconds to wait for the end of a stream that has said it is done, to keep the connection."""


class Troubled(Exception):
    """A request failed; never leaves `reread.models`."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.text)
        self.trouble = trouble


@dataclass(slots=True)
class _Shared:
    """The package's client and what each request takes from it."""

    client: AsyncOpenAI
    http: httpx2.AsyncClient
    headers: httpx2.Headers
    extensions: dict[str, Any]
    users: int = 0


_OPEN: dict[tuple[Any, ...], _Shared] = {}


class Service:
    """One model service, as long as a model needs it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._key: tuple[Any, ...] | None = None
        self._urls: dict[str, httpx2.URL] = {}

    async def post(self, path: str, body: bytes) -> Answer:
        """Send a request. Raises Troubled for everything that is no 2xx answer."""
        shared = self._shared()
        import httpx2  # comes with the package, which `_shared` has loaded

        url = self._urls.get(path) or self._urls.setdefault(
            path, httpx2.URL(self._settings.base_url + path)
        )
        request = httpx2.Request(
            "POST", url, headers=shared.headers, content=body, extensions=shared.extensions
        )
        trouble: Trouble
        try:
            response = await shared.http.send(request, stream=True)
            if response.is_success:
                return Answer(response, self._settings)
            said = await Answer(response, self._settings).start(ERROR_BYTES)
            await response.aclose()
            trouble = from_response(
                response.status_code, response.headers, said, key=self._settings.key
            )
        except Troubled as troubled:
            trouble = troubled.trouble
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            trouble = unreachable(error, self._settings)
        raise Troubled(trouble)

    def _shared(self) -> _Shared:
        if self._key is None:
            s = self._settings
            self._key = (asyncio.get_running_loop(), s.base_url, s.key, s.timeout)
            shared = _OPEN.get(self._key) or _OPEN.setdefault(self._key, _open(s))
            shared.users += 1
        return _OPEN[self._key]

    async def aclose(self) -> None:
        """Give the connections back; the last user closes them."""
        if self._key is None:
            return
        key, self._key = self._key, None
        shared = _OPEN[key]
        shared.users -= 1
        if shared.users == 0:
            del _OPEN[key]
            await shared.client.close()


class Answer:
    """A 2xx answer while it arrives."""

    def __init__(self, response: httpx2.Response, settings: Settings) -> None:
        self._response = response
        self._settings = settings
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.content_type = response.headers.get("content-type", "").lower()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body. Raises Troubled when it breaks off."""
        import httpx2

        left = ANSWER_BYTES
        packed = self._response.headers.get("content-encoding", "identity") != "identity"
        source = self._response.aiter_bytes() if packed else self._response.aiter_raw()
        trouble: Trouble
        try:
            async for chunk in source:
                yield chunk
                left -= len(chunk)
                if left < 0:
                    break
            else:
                return
            trouble = Trouble("fail", "protocol", text=f"more than {ANSWER_BYTES} bytes came")
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            trouble = unreachable(error, self._settings)
        raise Troubled(trouble)

    async def start(self, limit: int) -> bytes:
        """Return the first bytes of the body, at least so many if there are. Raises Troubled."""
        found = b""
        async with aclosing(self.chunks()) as chunks:
            async for chunk in chunks:
                found += chunk
                if len(found) >= limit:
                    break
        return found

    async def aclose(self) -> None:
        """Let go of the connection."""
        import httpx2

        try:
            await self._response.aclose()
        except httpx2.HTTPError:
            return  # it was broken already; what matters was said


def _load_package() -> None:
    """Import the package without looking for garbage in it meanwhile: it makes 400,000 objects.

    They stay for as long as the process lives, so later searches need not walk them either.
    """
    if "openai" in sys.modules:
        return
    searching = gc.isenabled()
    gc.disable()
    try:
        import openai  # noqa: F401 - 0.4 s, so only where a model is asked

        gc.freeze()
    finally:
        if searching:
            gc.enable()


def _open(settings: Settings) -> _Shared:
    _load_package()
    import httpx2
    from openai import AsyncOpenAI, DefaultAioHttpClient

    timeout = httpx2.Timeout(settings.timeout, connect=CONNECT_TIMEOUT)
    # To follow a redirect would hand the key and the history to another place. Where there is no
    # TLS, loading what it trusts would only cost time.
    http = DefaultAioHttpClient(
        timeout=timeout, follow_redirects=False, verify=settings.base_url.startswith("https:")
    )
    client = AsyncOpenAI(
        api_key=settings.key, base_url=settings.base_url, timeout=timeout, http_client=http
    )
    said = {**client.default_headers, **client.auth_headers}
    headers = httpx2.Headers(
        {name: value for name, value in said.items() if isinstance(value, str)}
    )
    return _Shared(client, http, headers, {"timeout": timeout.as_dict()})


def unreachable(error: BaseException, settings: Settings) -> Trouble:
    """Say why there was no answer, by the kinds of the causes and never by their raw chain."""
    kinds: set[str] = set()
    words = ""
    seen: BaseException | None = error
    while seen is not None and len(kinds) < 8:
        kinds |= {cls.__name__ for cls in type(seen).__mro__}
        words = str(seen) or words
        seen = seen.__cause__ or seen.__context__
    said = hide(words, settings.key)[:200]
    where = settings.host
    if kinds & {"SSLCertVerificationError", "ClientConnectorCertificateError"}:
        return Trouble(
            "fail",
            "config",
            text=f"the certificate of {where} is not trusted: {said}",
            remedy="Check OPENAI_BASE_URL; SSL_CERT_FILE names certificates of your own.",
        )
    if kinds & {"APITimeoutError", "TimeoutException", "TimeoutError"}:
        return Trouble("retry", "network", text=f"{where} did not answer in time")
    return Trouble("retry", "network", text=f"the connection to {where} failed: {said}")
