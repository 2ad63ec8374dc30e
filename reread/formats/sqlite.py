"""SQLite: the database's own integrity check over every page, read from memory and never written.

Nothing that the file says is run: no view, no trigger, no virtual table, and a clock stops what
takes too long.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._bytes import nothing, posing
from reread.formats._checks import (
    Fact,
    Item,
    holds,
    hollow,
    invalid,
    not_run,
    passed,
    unsafe,
    warned,
)

FORMAT = Format(
    "sqlite", (".sqlite", ".sqlite3", ".db", ".db3"), "SQLite database", "application/vnd.sqlite3"
)
PRELOAD = ("sqlite3",)
GROWTH = 6

MAGIC = b"SQLite format 3\x00"
SECONDS = 4.0
STEPS = 20_000
LOCKED_DOWN = (
    "PRAGMA trusted_schema=OFF",
    "PRAGMA cell_size_check=ON",
    "PRAGMA mmap_size=0",
    "PRAGMA query_only=ON",
)
MAX_ROWS = 200_000
"""Rows that are kept for a contract."""
ROW_WORDS = frozenset(("table", "measure", "contains", "matches", "forbids"))


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a database."""
    data = source.data()
    found = [*nothing(source, data, "sqlite")] or [*_identity(data)]
    yield from found
    if not holds(found):
        return
    if not hasattr(sqlite3.Connection, "deserialize"):
        yield not_run("sqlite.integrity", "integrity", "this Python's sqlite3 reads no memory")
        return
    connection = sqlite3.connect(":memory:")
    try:
        yield from _database(connection, data, contract)
    except sqlite3.OperationalError as error:
        if "interrupt" in str(error):
            cause = f"Reading it takes longer than {SECONDS} s."
            yield unsafe("sqlite.bounded", "time", cause)
        else:
            yield invalid("sqlite.integrity", "damaged", f"It does not open: {error}.")
    except (sqlite3.DatabaseError, OverflowError, UnicodeDecodeError) as error:
        yield invalid("sqlite.integrity", "damaged", f"It is damaged: {error}.")
    finally:
        connection.close()


def _identity(data: bytes) -> Iterator[Item]:
    name = "sqlite.identity"
    if not data.startswith(MAGIC):
        other = "It does not start as a database does."
        yield from list(posing(data, "sqlite")) or [
            invalid(name, "format_mismatch", other, depth="identity")
        ]
        return
    yield passed(name, "identity")
    page = int.from_bytes(data[16:18], "big") if len(data) >= 100 else 0
    page = 65_536 if page == 1 else page
    pages = int.from_bytes(data[28:32], "big")
    sure = data[24:28] == data[92:96]  # only then is the number of pages in use
    if page == 0 or len(data) < page or (sure and pages * page > len(data)) or len(data) % page:
        cause = f"Its header speaks of {pages} pages of {page} bytes, and it has {len(data)} bytes."
        yield invalid("sqlite.size", "truncated", cause)


def _database(
    connection: sqlite3.Connection, data: bytes, contract: Mapping[str, Any]
) -> Iterator[Item]:
    # A database in WAL mode asks for a file beside it; in memory there is none, and none is needed.
    connection.deserialize(data[:18] + (b"\x01\x01" if data[18] == 2 else data[18:20]) + data[20:])
    until = time.monotonic() + SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > until, STEPS)
    for pragma in LOCKED_DOWN:
        connection.execute(pragma)
    told = [row[0] for row in connection.execute("PRAGMA integrity_check(5)")]
    if told != ["ok"]:
        yield invalid("sqlite.integrity", "damaged", f"Its own check says: {'; '.join(told)}"[:400])
        return
    yield passed("sqlite.integrity", "integrity")
    orphan = connection.execute("PRAGMA foreign_key_check").fetchone()
    if orphan:
        cause = f"A row of '{orphan[0]}' refers to a row of '{orphan[2]}' that is not there."
        yield warned("sqlite.foreign_keys", "integrity", "foreign_key", cause)
    yield from _tables(connection, contract)


def _tables(connection: sqlite3.Connection, contract: Mapping[str, Any]) -> Iterator[Item]:
    listed = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' "
        "ESCAPE '\\' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
    )
    names = [str(row[0]) for row in listed]
    counts = {
        name: connection.execute(f"SELECT count(*) FROM {_quoted(name)}").fetchone()[0]
        for name in names
    }
    wanted = contract.get("table", {}).get("sheet", "")
    chosen = wanted if wanted in counts else max(counts, key=lambda n: counts[n], default="")
    yield Fact("tables", len(names))
    yield Fact("sheet_names", names)
    yield Fact("rows", counts.get(chosen, 0))
    if chosen:
        yield from _rows(connection, chosen, contract)
    if contract.get("allow_empty"):
        yield passed("sqlite.has_content", "substance", "the contract allows none")
    elif not names:
        yield hollow("sqlite.has_content", "no_content", "It has no tables.")
    elif not any(counts.values()):
        yield hollow("sqlite.has_content", "no_rows", f"None of its {len(names)} tables has a row.")
    else:
        yield passed("sqlite.has_content", "substance", f"{sum(counts.values())} rows")


def _rows(
    connection: sqlite3.Connection, table: str, contract: Mapping[str, Any]
) -> Iterator[Item]:
    cursor = connection.execute(f"SELECT * FROM {_quoted(table)} LIMIT {MAX_ROWS}")
    header = [column[0] for column in cursor.description]
    yield Fact("columns", len(header))
    yield Fact("_header", header)
    if not ROW_WORDS.isdisjoint(contract):
        rows = [list(row) for row in cursor]
        yield Fact("_rows", rows)
        yield Fact("_text", "\n".join(" ".join(map(str, row)) for row in [header, *rows]))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
