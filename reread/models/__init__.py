"""Live models: one file per API, and what they share in files with an underscore.

The rest of the program needs `settings_from_environment`, `open_model` and `shorten`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_runtime import Failure, Limits
from reread.models._context import shorten
from reread.models._settings import Settings, settings_from_environment
from reread.values import Code

if TYPE_CHECKING:
    from reread.models.chat import ChatModel, Tell

__all__ = ["APIS", "Settings", "open_model", "settings_from_environment", "shorten"]

APIS = ("chat", "responses")


def open_model(
    settings: Settings, *, api: str = "chat", limits: Limits | None = None, tell: Tell | None = None
) -> ChatModel:
    """Return a model behind one of the APIs. No connection is made yet.

    Raises:
        Failure: usage_invalid, for an unknown API, a wrong price file, or a limit in USD on a model
            without a price; path_not_found, for a price file that is not there.
    """
    from reread.models import _prices, chat, responses

    if api not in APIS:
        raise Failure(
            Code.usage_invalid, f"There is no API '{api}'.", f"Use one of: {', '.join(APIS)}."
        )
    model = chat.ChatModel(
        settings,
        dialect=responses.Responses() if api == "responses" else None,
        prices=_prices.load(settings.prices),
        tell=tell,
    )
    if limits is not None and limits.usd is not None:
        _prices.need_price(model.price, settings.model)
    return model
