"""What tokens cost and how many fit: a file that the user can edit.

Proves nothing about the bill: prices change without telling anyone. A model without a price has
none, and is never counted as free unless the service runs on this machine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from agent_runtime import Failure
from reread.documents import check, read
from reread.values import Code

SHIPPED = Path(__file__).with_name("prices.yaml")
PATH_VARIABLE = "REREAD_PRICES"
_MILLION = 1_000_000
_PRICE_SCHEMA = {
    "type": "object",
    "properties": {
        "input": {"type": "number", "minimum": 0},
        "cached_input": {"type": "number", "minimum": 0},
        "output": {"type": "number", "minimum": 0},
        "window": {"type": "integer", "minimum": 1},
    },
    "additionalProperties": False,
}
_SCHEMA = {
    "type": "object",
    "properties": {"models": {"type": "object", "additionalProperties": _PRICE_SCHEMA}},
    "required": ["models"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Price:
    """What is known of a model.

    Attributes:
        input: USD for a million tokens; `None` where no price is known.
        cached_input: for tokens that the service found in its cache.
        window: context length in tokens; `None` where it is not known.
    """

    input: float | None = None
    cached_input: float | None = None
    output: float | None = None
    window: int | None = None

    @property
    def known(self) -> bool:
        """Money can be counted."""
        return self.input is not None and self.output is not None

    def usd(self, input_tokens: int, output_tokens: int, cached: int = 0) -> float:
        """Return what tokens cost; 0 where no price is known."""
        if self.input is None or self.output is None:
            return 0.0
        cached = min(max(cached, 0), input_tokens)
        cheap = self.input if self.cached_input is None else self.cached_input
        paid = (input_tokens - cached) * self.input + cached * cheap + output_tokens * self.output
        return paid / _MILLION


FREE = Price(0.0, 0.0, 0.0)


def load(path: Path | None = None) -> Mapping[str, Price]:
    """Read a price file: the one given, the one that REREAD_PRICES names, or ours.

    Raises:
        Failure: usage_invalid, path_not_found.
    """
    named = path or (Path(env) if (env := os.environ.get(PATH_VARIABLE, "").strip()) else SHIPPED)
    try:
        return _parsed(named.read_text("utf-8"), str(named))
    except (OSError, UnicodeDecodeError) as error:
        raise Failure(
            Code.path_not_found,
            f"The price file '{named}' cannot be read: {type(error).__name__}.",
            f"Name another one with {PATH_VARIABLE}, or unset it.",
        ) from error


@cache
def _parsed(text: str, name: str) -> Mapping[str, Price]:
    document = read(text, name, code=Code.usage_invalid)
    check(document, _SCHEMA, code=Code.usage_invalid)
    models: Mapping[str, Any] = document.value["models"]
    return {pattern: Price(**entry) for pattern, entry in models.items()}


def find(table: Mapping[str, Price], model: str, *, local: bool) -> Price:
    """Return the entry with the longest pattern that fits; a local model is free."""
    names = {model, model.rpartition("/")[2]}
    fitting = [p for p in table if any(fnmatchcase(name, p) for name in names)]
    found = table[max(fitting, key=len)] if fitting else Price()
    return Price(0.0, 0.0, 0.0, found.window) if local and not found.known else found


def need_price(price: Price, model: str) -> None:
    """Refuse a limit of money for a model whose price nobody knows.

    Raises:
        Failure: usage_invalid.
    """
    if not price.known:
        raise Failure(
            Code.usage_invalid,
            f"A limit in USD was asked for, but there is no price for the model '{model}'.",
            f"Copy {SHIPPED} , add the model, and set {PATH_VARIABLE} to the copy; "
            "or limit --max-tokens instead.",
        )
