"""Puts a package that passed into the workspace's `extensions/`, in one step, with its digest."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from pathlib import Path

from agent_runtime import Failure
from reread.extensions import package, verified
from reread.files import ConfinedFolder
from reread.values import Code
from reread.verify.report import Report

FOLDER = "extensions"


def activate(
    report: Report,
    held: Mapping[str, bytes],
    workspace: Path,
    *,
    replace: bool = False,
    store: Path | None = None,
) -> Path:
    """Return the folder of the activated package.

    Args:
        held: the files that were verified; nothing is read again.
        replace: another version that is there may go.

    Raises:
        Failure: extension_not_verified; approval_required, where another version is there;
            write_failed.
    """
    if not report.ok or package.digest_of(dict(held)) != report.sha256:
        raise Failure(
            Code.extension_not_verified,
            f"'{report.name}' has not passed all three layers as it is now.",
            "Mend what the findings say, or let an agent: verify PACKAGE --repair",
        )
    root = workspace / FOLDER
    root.mkdir(parents=True, exist_ok=True)
    folder, target = ConfinedFolder(root.resolve()), root.resolve() / report.name
    if target.exists():
        there = package.digest_of(package.contents(package.open_package(target)))
        if there != report.sha256 and not replace:
            raise Failure(
                Code.approval_required,
                f"'{target}' holds another version (sha256 {there[:12]}…) that would be replaced.",
                "Look at it, then add --replace.",
            )
    staged = f".{report.name}.{secrets.token_hex(4)}"
    package.write(dict(held), root.resolve() / staged)
    if target.exists():
        old = f".{report.name}.{secrets.token_hex(4)}.old"
        target.rename(target.with_name(old))
        (root.resolve() / staged).rename(target)
        folder.remove_tree(old)
    else:
        (root.resolve() / staged).rename(target)
    facts = {"name": report.name, "sha256": report.sha256, "acceptance": report.acceptance}
    folder.write(f"{report.name}.json", json.dumps(facts, sort_keys=True).encode())
    verified.remember(
        report.sha256,
        name=report.name,
        acceptance=report.acceptance,
        runtime=report.runtime,
        store=store,
    )
    return target
