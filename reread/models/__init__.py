"""Live models: one file per API, and what they share in files with an underscore.

`open_model` is all that the rest of the program needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_runtime import Limits
from reread.models._context import shorten
from reread.models._settings import settings_from_environment

if TYPE_CHECKING:
    from reread.models._settings import Settings
    from reread.models.chat import ChatModel, Progress

__all__ = ["APIS", "open_model", "settings_from_environment", "shorten"]

APIS = ("chat", "responses")


def open_model(
    settings: Settings,
    *,
    api: str = "chat",
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> ChatModel:
    """Return a model behind one of the APIs. No connection is made yet.

    Raises:
        Failure: usage_invalid, where a limit in USD is asked for and no price is known.
    """
    from reread.models import _prices
    from reread.models.chat import ChatModel

    dialect = None
    if api == "responses":
        from reread.models.responses import Responses

        dialect = Responses()
    model = ChatModel(settings, dialect=dialect, progress=progress)
    if limits is not None and limits.usd is not None:
        _prices.need_price(model.price, settings.model)
    return model
