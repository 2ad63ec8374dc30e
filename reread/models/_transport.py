"""The official package as transport: keys, time-outs and connections are its business.

A request is handed over encoded, and the answer taken as bytes: the package's own types walk the
whole history at each request. Runs in one event loop that ask the same service share connections.

Exceptions of the package may hold the key in what they chain, so none of them leaves this module.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reread.models._errors import Trouble, from_response, hide
from reread.models._settings import Settings

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

CONNECT_TIMEOUT = 10.0
AFTER_DONE = 0.5
"""Seconds to wait for the end of a stream that has said it is done, to keep the connection."""


class Troubled(Exception):
    """A request failed; never leaves `reread.models`."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.text)
        self.trouble = trouble


@dataclass(slots=True)
class _Shared:
    client: AsyncOpenAI
    users: int = 0


_OPEN: dict[tuple[Any, ...], _Shared] = {}


class Service:
    """One model service, as long as a model needs it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._key: tuple[Any, ...] | None = None

    async def post(self, path: str, body: bytes) -> Answer:
        """Send a request. Raises Troubled for everything that is no 2xx answer."""
        import openai

        trouble: Trouble
        try:
            return Answer(await self._send(path, body), self._settings)
        except openai.APIStatusError as error:
            trouble = from_response(
                error.status_code,
                error.response.headers,
                error.response.content,
                key=self._settings.key,
            )
        except openai.OpenAIError as error:
            trouble = unreachable(error, self._settings)
        raise Troubled(trouble)

    async def _send(self, path: str, body: bytes) -> httpx2.Response:
        import httpx2
        from openai import AsyncStream

        return await self._client().post(  # type: ignore[return-value]
            path, cast_to=httpx2.Response, content=body, stream=True, stream_cls=AsyncStream[Any]
        )

    def _client(self) -> AsyncOpenAI:
        if self._key is None:
            s = self._settings
            self._key = (asyncio.get_running_loop(), s.base_url, s.key, s.timeout)
            shared = _OPEN.get(self._key) or _OPEN.setdefault(self._key, _Shared(_open(s)))
            shared.users += 1
        return _OPEN[self._key].client

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

        packed = self._response.headers.get("content-encoding", "identity") != "identity"
        source = self._response.aiter_bytes() if packed else self._response.aiter_raw()
        trouble: Trouble
        try:
            async for chunk in source:
                yield chunk
            return
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            trouble = unreachable(error, self._settings)
        raise Troubled(trouble)

    async def aclose(self) -> None:
        """Let go of the connection."""
        import httpx2

        try:
            await self._response.aclose()
        except httpx2.HTTPError:
            return  # it was broken already; what matters was said


def _open(settings: Settings) -> AsyncOpenAI:
    import httpx2
    from openai import AsyncOpenAI, DefaultAioHttpClient

    timeout = httpx2.Timeout(settings.timeout, connect=CONNECT_TIMEOUT)
    return AsyncOpenAI(
        api_key=settings.key,
        base_url=settings.base_url,
        timeout=timeout,
        max_retries=0,  # it would ask again where a quota is used up, and never within a stream
        # To follow a redirect would hand the key and the history to another place. Where there is
        # no TLS, loading what it trusts would only cost time.
        http_client=DefaultAioHttpClient(
            timeout=timeout, follow_redirects=False, verify=settings.base_url.startswith("https:")
        ),
    )


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
