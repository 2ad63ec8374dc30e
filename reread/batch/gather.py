"""From the store into batches/<id>/, and what is done already.

Proves: an item counts as done only when its record is there and every digest and check in it still
holds on this disk. What anybody noted elsewhere counts for nothing.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_runtime import Failure
from reread import records
from reread.batch.plan import Item
from reread.batch.store import Store
from reread.files import ConfinedFolder, check_name
from reread.replay.audit import audit

RESULTS = "results.jsonl"


def result_of(store: Store, sha256: str) -> dict[str, Any]:
    """Read how an item ended.

    Raises:
        Failure: store_failed.
    """
    value: dict[str, Any] = json.loads(store.get_blob(sha256))
    return value


def lay_out(store: Store, result: Mapping[str, Any], target: Path) -> None:
    """Write an item's workspace, whole or not at all.

    Raises:
        Failure: store_failed; path_not_allowed, for a path that leads out of it.
    """
    made = target.with_name(f".{target.name}.new")
    old = target.with_name(f".{target.name}.old")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    for path, sha256 in result["files"].items():
        place = made.joinpath(*check_name(path))
        place.parent.mkdir(parents=True, exist_ok=True)
        store.fetch(sha256, place)
    shutil.rmtree(old, ignore_errors=True)
    if os.path.lexists(target):
        target.rename(old)
    made.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def holds(place: Path, result: Mapping[str, Any]) -> bool:
    """Say whether the record of an item is there and its evidence matches the disk."""
    run_id = str(result["outcome"]["run_id"])
    run = place / "runs" / run_id
    if not run_id or not (run / records.RECORD).is_file():
        return False
    try:
        found = audit(ConfinedFolder(place), ConfinedFolder(run))
    except Failure:
        return False
    return found.ok and found.status == result["outcome"]["status"]


def line(item: Item, result: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the line of an item in results.jsonl."""
    if result is None:
        ended = {"status": "not-ended", "reason": "", "cause": "", "remedy": "", "run_id": ""}
        return {"item": item.number, "name": item.name, **ended, "workspace": item.folder}
    outcome = result["outcome"]
    kept = ("status", "reason", "cause", "remedy", "run_id")
    return {
        "item": item.number,
        "name": item.name,
        **{key: outcome.get(key, "") for key in kept},
        "published": outcome.get("published", {}),
        "turns": outcome.get("turns", 0),
        "usage": outcome.get("usage", {}),
        "workspace": item.folder,
    }


def write_results(folder: Path, lines: list[dict[str, Any]]) -> None:
    """Write results.jsonl, in the order of the plan."""
    data = b"".join(records.as_line(value) for value in lines)
    ConfinedFolder(folder).write(RESULTS, data)
