"""Which packages, by digest, have passed verification on this machine.

Kept in the user's state folder, outside of every workspace and of what any agent can reach.

Proves: exactly these bytes passed all three layers, with this acceptance spec.
Does not prove: that they are harmless; they run in the fence all the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agent_runtime import Failure
from reread.files import ConfinedFolder
from reread.values import Code


def default_store() -> Path:
    """Return the file that remembers them."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "reread" / "verified-extensions.json"


def find(sha256: str, store: Path | None = None) -> Mapping[str, Any] | None:
    """Return what is known of a package, None where it has not passed."""
    found = _read(store or default_store()).get(sha256)
    return found if isinstance(found, Mapping) else None


def remember(
    sha256: str, *, name: str, acceptance: str, runtime: str, store: Path | None = None
) -> None:
    """Write down that a package passed.

    Raises:
        Failure: write_failed.
    """
    place = store or default_store()
    entry = {
        "name": name,
        "acceptance": acceptance,
        "runtime": runtime,
        "at": datetime.now(UTC).isoformat(),
    }
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        data = json.dumps({**_read(place), sha256: entry}, indent=1, sort_keys=True)
        ConfinedFolder(place.parent.resolve()).write(place.name, data.encode("ascii"))
    except OSError as error:
        raise Failure(
            Code.write_failed,
            f"'{place}' cannot be written: {error.strerror}.",
            "Set XDG_STATE_HOME to a folder that you can write to.",
        ) from error


def _read(store: Path) -> dict[str, Any]:
    try:
        value = json.loads(store.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
