"""Parquet: every page of every column read back, with its checksum where the writer left one.

Reading needs pyarrow, which is an extra; without it the magic and the footer are checked, and the
rest says `not_run`.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator, Mapping
from typing import Any

from reread.formats import Format, Source
from reread.formats._bytes import nothing, posing
from reread.formats._checks import (
    Fact,
    Item,
    failed,
    holds,
    hollow,
    invalid,
    not_run,
    passed,
    unsafe,
)
from reread.values import Code

FORMAT = Format("parquet", (".parquet", ".pq"), "Parquet table", "application/vnd.apache.parquet")
PRELOAD = ("pyarrow.parquet",)
GROWTH = 24

MAGIC, ENCRYPTED = b"PAR1", b"PARE"
BATCH = 16_384
MAX_CELLS = 2_000_000
"""Cells that are kept for a contract."""
MAX_READ = 1 << 30
ROW_WORDS = frozenset(("table", "measure", "contains", "matches", "forbids"))


def check(source: Source, contract: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the checks of a table."""
    data = source.data()
    found = [*nothing(source, data, "parquet")] or [*_identity(data)]
    yield from found
    if not holds(found):
        return
    try:
        pyarrow = importlib.import_module("pyarrow")
        importlib.import_module("pyarrow.parquet")
    except ImportError:
        yield not_run("parquet.pages_read", "integrity", "pip install 'reread[formats]' (pyarrow)")
        return
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())  # the limit of this process is small
    try:
        yield from _table(pyarrow, data, contract)
    except (MemoryError, pyarrow.ArrowMemoryError):
        yield unsafe("parquet.bounded", "memory", "Reading it needs more memory than is allowed.")
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        yield invalid("parquet.pages_read", "damaged", f"It cannot be read: {error}"[:300])


def _identity(data: bytes) -> Iterator[Item]:
    name = "parquet.identity"
    if data[:4] == ENCRYPTED or data[-4:] == ENCRYPTED:
        cause = "Its footer is encrypted."
        yield failed(name, "identity", Code.artifact_unreadable, "encrypted", cause)
    elif data[:4] != MAGIC:
        cause = "It does not start as a table does."
        yield from list(posing(data, "parquet")) or [
            invalid(name, "format_mismatch", cause, depth="identity")
        ]
    elif data[-4:] != MAGIC or len(data) < 12:
        yield invalid(name, "truncated", "It ends before its footer.")
    elif int.from_bytes(data[-8:-4], "little") + 12 > len(data):
        yield invalid(name, "damaged", "Its footer is longer than the file.")
    else:
        yield passed(name, "identity")


def _table(pyarrow: Any, data: bytes, contract: Mapping[str, Any]) -> Iterator[Item]:
    file = pyarrow.parquet.ParquetFile(
        io.BytesIO(data), page_checksum_verification=True, pre_buffer=False
    )
    header = list(file.schema_arrow.names)
    keep = not ROW_WORDS.isdisjoint(contract)
    rows: list[list[Any]] = []
    count = size = nulls = 0
    for batch in file.iter_batches(batch_size=BATCH, use_threads=False):
        batch.validate(full=True)
        count += batch.num_rows
        size += batch.nbytes
        nulls += sum(column.null_count for column in batch.columns)
        if size > MAX_READ:
            cause = f"Its {len(data)} bytes hold more than {size >> 20} MiB of values."
            yield unsafe("parquet.bounded", "decompression_bomb", cause)
            return
        if keep and len(rows) * len(header) < MAX_CELLS:
            rows += [list(row.values()) for row in batch.to_pylist()]
    if count != file.metadata.num_rows:
        cause = f"Its footer speaks of {file.metadata.num_rows} rows, and {count} are there."
        yield invalid("parquet.pages_read", "damaged", cause)
        return
    yield passed("parquet.pages_read", "integrity", f"{count} rows, {len(header)} columns")
    yield Fact("rows", count)
    yield Fact("columns", len(header))
    yield Fact("_header", header)
    if keep:
        yield Fact("_rows", rows)
        yield Fact("_text", "\n".join(" ".join(map(str, row)) for row in [header, *rows]))
    name = "parquet.has_content"
    if contract.get("allow_empty"):
        yield passed(name, "substance", "the contract allows none")
    elif count == 0:
        yield hollow(name, "no_rows", "It has columns and no row.")
    elif nulls == count * len(header):
        yield hollow(name, "no_content", f"All {nulls} values are missing.")
    else:
        yield passed(name, "substance", f"{count} rows")
