"""Where workers that share no disk leave what they made: blobs by digest, and small named entries.

Proves: a blob that is read has the digest that it was asked by; an entry is there whole or not.
Does not prove: who wrote it. Whoever can write to the store can write entries.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from agent_runtime import Failure
from reread import extras
from reread.values import Code

PIECE = 1 << 20


class Store(Protocol):
    """A place for blobs and named entries."""

    @property
    def url(self) -> str:
        """What another worker opens the same store with."""
        ...

    def put_blob(self, data: bytes) -> str:
        """Keep bytes and return their digest."""
        ...

    def put_stream(self, stream: BinaryIO, sha256: str) -> None:
        """Keep what a stream holds. Raises Failure store_failed where that has another digest."""
        ...

    def get_blob(self, sha256: str) -> bytes:
        """Return the bytes of a digest. Raises Failure store_failed."""
        ...

    def fetch(self, sha256: str, target: Path) -> None:
        """Write a blob to a new file. Raises Failure store_failed."""
        ...

    def has_blob(self, sha256: str) -> bool:
        """Say whether a blob is there."""
        ...

    def put(self, name: str, data: bytes) -> None:
        """Keep a small entry under a name, in one step."""
        ...

    def get(self, name: str) -> bytes | None:
        """Return an entry; None where there is none."""
        ...

    def list(self, prefix: str) -> list[str]:
        """Return the names of the entries below a folder name, sorted."""
        ...


def open_store(url: str) -> Store:
    """Open a local folder, or any URL that fsspec knows.

    Raises:
        Failure: dependency_missing, store_failed.
    """
    scheme, separator, path = url.partition("://")
    if not separator:
        return FolderStore(Path(url))
    if scheme == "file":
        return FolderStore(Path(path))
    extras.need("fsspec")
    return UrlStore(url)


class FolderStore:
    """A store in a folder, which may be a mount that machines share."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._made: set[Path] = set()
        self._folder(self.root)

    @property
    def url(self) -> str:
        """The folder's path."""
        return str(self.root)

    def put_blob(self, data: bytes) -> str:
        """Keep bytes and return their digest."""
        sha256 = hashlib.sha256(data).hexdigest()
        target = self._blob(sha256)
        if not _sound(target, len(data)):
            self._write(target, data)
        return sha256

    def put_stream(self, stream: BinaryIO, sha256: str) -> None:
        """Keep what a stream holds."""
        target = self._blob(sha256)
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        if _sound(target, size):
            return
        self._folder(target.parent)
        with _beside(target) as path:
            digest = hashlib.sha256()
            with path.open("wb") as out:
                for piece in _pieces(stream):
                    digest.update(piece)
                    out.write(piece)
            _hold(digest.hexdigest(), sha256)

    def get_blob(self, sha256: str) -> bytes:
        """Return the bytes of a digest."""
        try:
            data = self._blob(sha256).read_bytes()
        except OSError as error:
            raise failed(f"the blob {sha256[:12]}… cannot be read: {error.strerror}") from error
        _hold(hashlib.sha256(data).hexdigest(), sha256)
        return data

    def fetch(self, sha256: str, target: Path) -> None:
        """Write a blob to a new file."""
        try:
            with self._blob(sha256).open("rb") as stream:
                _copy(stream, target, sha256)
        except OSError as error:
            raise failed(f"the blob {sha256[:12]}… cannot be read: {error.strerror}") from error

    def has_blob(self, sha256: str) -> bool:
        """Say whether a blob is there."""
        return self._blob(sha256).is_file()

    def put(self, name: str, data: bytes) -> None:
        """Keep a small entry."""
        self._write(self.root / "entries" / name, data)

    def get(self, name: str) -> bytes | None:
        """Return an entry; None where there is none."""
        try:
            return (self.root / "entries" / name).read_bytes()
        except FileNotFoundError:
            return None

    def list(self, prefix: str) -> list[str]:
        """Return the names of the entries below a folder name, sorted."""
        base = self.root / "entries"
        found = []
        for folder, _, names in os.walk(base / prefix):
            place = Path(folder).relative_to(base).as_posix()
            found += [f"{place}/{name}" for name in names if not name.startswith(".")]
        return sorted(found)

    def _blob(self, sha256: str) -> Path:
        return self.root / "blobs" / sha256[:2] / sha256[2:]

    def _write(self, target: Path, data: bytes) -> None:
        self._folder(target.parent)
        with _beside(target) as path:
            path.write_bytes(data)

    def _folder(self, path: Path) -> None:
        if path in self._made:
            return
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise failed(f"'{path}' cannot be made: {error.strerror}") from error
        self._made.add(path)


class UrlStore:
    """A store behind any URL that fsspec opens: s3://, gs://, az://, sftp://, memory://."""

    def __init__(self, url: str) -> None:
        import fsspec  # type: ignore[import-untyped]

        self.url = url.rstrip("/")
        try:
            self._system, self._root = fsspec.core.url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise failed(f"'{url}' cannot be opened: {error}") from error

    def put_blob(self, data: bytes) -> str:
        """Keep bytes and return their digest."""
        sha256 = hashlib.sha256(data).hexdigest()
        if not self.has_blob(sha256):
            self._write(self._blob(sha256), data)
        return sha256

    def put_stream(self, stream: BinaryIO, sha256: str) -> None:
        """Keep what a stream holds; held against its digest before it is sent."""
        data = stream.read()
        _hold(hashlib.sha256(data).hexdigest(), sha256)
        self._write(self._blob(sha256), data)

    def get_blob(self, sha256: str) -> bytes:
        """Return the bytes of a digest."""
        data = self._read(self._blob(sha256))
        if data is None:
            raise failed(f"the blob {sha256[:12]}… is not there")
        _hold(hashlib.sha256(data).hexdigest(), sha256)
        return data

    def fetch(self, sha256: str, target: Path) -> None:
        """Write a blob to a new file."""
        target.write_bytes(self.get_blob(sha256))

    def has_blob(self, sha256: str) -> bool:
        """Say whether a blob is there."""
        return bool(self._system.exists(self._blob(sha256)))

    def put(self, name: str, data: bytes) -> None:
        """Keep a small entry."""
        self._write(f"{self._root}/entries/{name}", data)

    def get(self, name: str) -> bytes | None:
        """Return an entry; None where there is none."""
        return self._read(f"{self._root}/entries/{name}")

    def list(self, prefix: str) -> list[str]:
        """Return the names of the entries below a folder name, sorted."""
        self._system.invalidate_cache()
        base = f"{self._root}/entries/"
        found = self._system.find(f"{base}{prefix}")
        return sorted(
            str(path)[str(path).index(base.lstrip("/")) + len(base.lstrip("/")) :] for path in found
        )

    def _blob(self, sha256: str) -> str:
        return f"{self._root}/blobs/{sha256[:2]}/{sha256[2:]}"

    def _read(self, path: str) -> bytes | None:
        try:
            return bytes(self._system.cat_file(path))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise failed(f"'{path}' cannot be read: {error}") from error

    def _write(self, path: str, data: bytes) -> None:
        try:
            self._system.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._system.pipe_file(path, data)
        except OSError as error:
            raise failed(f"'{path}' cannot be written: {error}") from error


def failed(what: str) -> Failure:
    """Return the failure of a store."""
    return Failure(
        Code.store_failed,
        f"The workspace store does not work: {what}.",
        "See that the place named by --store can be read and written, then start the batch again.",
    )


def _copy(stream: BinaryIO, target: Path, sha256: str) -> None:
    digest = hashlib.sha256()
    with target.open("xb") as out:
        for piece in _pieces(stream):
            digest.update(piece)
            out.write(piece)
    _hold(digest.hexdigest(), sha256)


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    while piece := stream.read(PIECE):
        yield piece


def _hold(found: str, sha256: str) -> None:
    if found != sha256:
        raise failed(f"a blob has the sha256 {found[:12]}… and was asked by {sha256[:12]}…")


def _sound(path: Path, size: int) -> bool:
    """Say whether a blob is there whole; a power cut can leave an empty one."""
    try:
        return path.stat().st_size == size
    except OSError:
        return False


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """Yield a path to write to; it becomes the target in one step, or nothing is left of it."""
    path = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        yield path
        path.replace(target)
    except OSError as error:
        raise failed(f"'{target}' cannot be written: {error.strerror}") from error
    finally:
        path.unlink(missing_ok=True)
