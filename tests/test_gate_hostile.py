"""Hostile bytes: each bomb ends as unsafe, soon, in little memory, and harms no other file."""

from __future__ import annotations

import asyncio
import io
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from reread.examine import _client, examine
from reread.values import Code, Evidence

MEMORY = 512 << 20
CPU_SECONDS = 6.0
GOOD = b'{"pallets": 412}'


def judged(data: bytes, format: str) -> Evidence:
    return examine(io.BytesIO(data), name=f"file.{format}", format=format, contract={})


def aliases() -> bytes:
    levels = [b"a0: &a0 [" + b"x, " * 9 + b"x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]".encode() for n in range(1, 12)]
    return b"\n".join(levels)


def laughs() -> bytes:
    inner = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    return f'<!DOCTYPE a [<!ENTITY e0 "ha">{inner}]><a>&e9;</a>'.encode()


BOMBS = {
    "deep-json": ("json", b"[" * 2_000_000),
    "deep-objects": ("json", b'{"a":' * 500_000 + b"1" + b"}" * 500_000),
    "deep-yaml": ("yaml", b"[" * 500_000),
    "aliases": ("yaml", aliases()),
    "alias-of-itself": ("yaml", b"a: &a [*a]\n"),
    "laughs": ("xml", laughs()),
    "deep-xml": ("xml", b"<a>" * 500_000 + b"</a>" * 500_000),
    "dots": ("toml", b"a" + b".a" * 20_000 + b" = 1\n"),
    "attributes": ("html", b"<p " + b" ".join(b"a%d=1" % n for n in range(150_000)) + b">x</p>"),
    "small-values": ("json", b"[" + b",".join([b"[[]]"] * 4_000_000) + b"]"),
    "minus": ("py", b"x = " + b"-" * 500_000 + b"1"),
}
SLOW = {
    "fences": ("md", b"````\n" + b"```\n" * 100_000),
    "brackets": ("md", b"[" * 100_000),
    "headings": ("md", b"# a\n" * 20_000),
    "blanks": ("txt", b"\n" * 2_000_000 + b"x"),
    "closing-tags": ("txt", b"</content " * 100_000),
    "half-a-promise": ("md", b"to be " * 100_000),
    "empty-lines": ("csv", b"\n" * 2_000_000 + b"a,b\n1,2\n"),
    "a-long-field": ("csv", b'a,b\n"' + b"x" * 20_000_000),
}


class Watch:
    """The most memory and CPU time that any child of the server was seen with."""

    def __init__(self) -> None:
        self.memory, self.cpu = 0, 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Watch:
        judged(GOOD, "json")  # the server is there
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        server = psutil.Process(_client._running().process.pid)
        while not self._over.wait(0.02):
            for child in server.children():
                try:
                    self.memory = max(self.memory, child.memory_info().rss)
                    times = child.cpu_times()
                    self.cpu = max(self.cpu, times.user + times.system)
                except psutil.Error:
                    continue


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_as_unsafe_in_bounded_time_and_memory(name: str) -> None:
    format, data = BOMBS[name]
    with Watch() as watch:
        evidence = judged(data, format)
    assert {problem.code for problem in evidence.problems} & {Code.artifact_unsafe}
    assert not evidence.ok
    assert evidence.sha256
    assert watch.memory < MEMORY
    assert watch.cpu < CPU_SECONDS + len(data) / (2 << 20)


@pytest.mark.parametrize("name", SLOW)
def test_text_made_to_be_slow_is_judged_in_bounded_time(name: str) -> None:
    format, data = SLOW[name]
    with Watch() as watch:
        judged(data, format)
    assert watch.memory < MEMORY
    assert watch.cpu < CPU_SECONDS


class TestOneFileNeverHarmsAnother:
    def test_a_bomb_beside_good_files(self) -> None:
        format, data = BOMBS["attributes"]
        with ThreadPoolExecutor(4) as pool:
            bomb = pool.submit(judged, data, format)
            good = list(pool.map(lambda _: judged(GOOD, "json").ok, range(20)))
        assert all(good)
        assert not bomb.result().ok

    def test_a_server_that_was_killed_is_started_again(self) -> None:
        assert judged(GOOD, "json").ok
        process = _client._running().process
        process.kill()
        process.wait()
        assert judged(GOOD, "json").ok

    def test_no_child_is_left(self) -> None:
        judged(BOMBS["minus"][1], "py")
        time.sleep(0.2)
        server = psutil.Process(_client._running().process.pid)
        assert [child for child in server.children() if child.status() != "zombie"] == []

    def test_it_works_in_threads_of_an_asyncio_program(self) -> None:
        async def many() -> list[bool]:
            jobs = (asyncio.to_thread(judged, GOOD, "json") for _ in range(16))
            return [evidence.ok for evidence in await asyncio.gather(*jobs)]

        assert all(asyncio.run(many()))


class TestWhatAChildMayUse:
    def test_memory_does_not_grow_with_the_rows_of_a_table(self, tmp_path: Path) -> None:
        for format, row in (("csv", b"4711,north,412,2026-04-30\n"), ("jsonl", b'{"n": 412}\n')):
            path = tmp_path / f"rows.{format}"
            with path.open("wb") as file:
                for piece in _pieces(row, 20 << 20):
                    file.write(piece)
            with Watch() as watch, path.open("rb") as stream:
                assert examine(stream, name=path.name, format=format, contract={}).ok
            assert watch.memory < 120 << 20


def _pieces(row: bytes, size: int) -> Iterator[bytes]:
    block = row * 10_000
    yield from (block for _ in range(size // len(block)))
