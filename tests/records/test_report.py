"""The page of a run: what it shows, and that nothing in it comes alive. In a real browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html import unescape
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from reread import records
from reread.report import index_page, run_page
from reread.report.highlight import python
from tests.records.runs import events, killed, last_run, opened, record, run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""


def need_browser() -> None:
    if not CHROMIUM and not os.environ.get("REREAD_ALL_TESTS"):
        pytest.skip("no chromium here")
    assert CHROMIUM, "install chromium"


class Trap:
    """A server on loopback that keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def trap() -> Iterator[Trap]:
    made = Trap()
    yield made
    made.server.shutdown()
    made.server.server_close()


def hostile(address: str) -> list[str]:
    """Return texts that would run a script or ask for something, were they taken for HTML."""
    ping = f"fetch('{address}/script')"
    mark = "document.documentElement.dataset.alive=1"
    return [
        f"<script>{ping};{mark}</script>",
        f"</title></style></pre><script>{mark};{ping}</script>",
        f'"><img src="{address}/img" onerror="{mark}">',
        f"<svg onload=\"{mark}\"><image href='{address}/svg'/></svg>",
        f"<iframe src='{address}/frame' srcdoc='<script>parent.{mark}</script>'></iframe>",
        f"<link rel=stylesheet href={address}/css><base href={address}/>",
        f"<meta http-equiv=refresh content='0;url={address}/refresh'>",
        f"<style>@import '{address}/import'; body{{background:url({address}/bg)}}</style>",
        f"<form action='{address}/form'><input autofocus onfocus='{mark}'></form>",
        f"{{{{ ''.__class__ }}}} {{% for x in range(3) %}}{mark}{{% endfor %}}",
        "javascript:alert(1)//",
        "\u202egnp.exe\u202c \x1b[31mred\x07",
    ]


def poisoned(place: Path, words: list[str]) -> None:
    """Put hostile text into every string of a run's record, names of files and tools included."""
    folder = last_run(place)
    turn = iter(range(10**9))

    def poison(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {
                (
                    f"{k} {words[next(turn) % len(words)]}" if key in ("inputs", "files") else k
                ): poison(v, k)
                for k, v in value.items()
            }
        if isinstance(value, list):
            return [poison(item, key) for item in value]
        if isinstance(value, str) and key not in ("schema", "kind", "status", "state", "depth"):
            return value + words[next(turn) % len(words)]
        return value

    lines = [{**line, "data": poison(line["data"])} for line in events(folder)]
    (folder / records.EVENTS).write_bytes(b"".join(records.as_line(line) for line in lines))
    value = {k: v for k, v in record(folder).items() if k != "digest"}
    value = {**poison(value), "schema": records.RECORD_SCHEMA}
    path = folder / records.RECORD
    path.write_bytes(records.as_line({**value, "digest": records.digest(value)}))


def in_browser(page: Path, *flags: str) -> str:
    """Return the page's tree after the browser has made of it what it would."""
    command = [
        *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
        *("--virtual-time-budget=2000", f"--user-data-dir={page.parent / 'profile'}"),
        *flags,
        page.as_uri(),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
    return ran.stdout


class TestHostileContent:
    def test_nothing_comes_alive_and_no_request_leaves(self, tmp_path: Path, trap: Trap) -> None:
        need_browser()
        place = tmp_path / "w"
        run("repair", place)
        poisoned(place, hostile(trap.address))
        page = tmp_path / "page.html"
        page.write_text(run_page(*opened(place)), "utf-8")
        index = tmp_path / "index.html"
        index.write_text(index_page(opened(place)[0], {}), "utf-8")
        for path in (page, index):
            tree = in_browser(path)
            assert "data-alive" not in tree.partition("<body>")[0]
            assert re.search(r"<(script|iframe|form|object|embed|base)\b", tree) is None
            inside = re.sub(r'"[^"]*"', '""', tree)  # what stands in quotes is no attribute
            assert re.search(r"<[^>]*\son[a-z]+=", inside) is None
        assert trap.asked == []

    def test_the_trap_would_have_noticed(self, tmp_path: Path, trap: Trap) -> None:
        need_browser()
        page = tmp_path / "page.html"
        page.write_text(f"<html><body>{hostile(trap.address)[0]}</body></html>", "utf-8")
        assert "data-alive" in in_browser(page)
        assert trap.asked

    def test_the_policy_alone_would_stop_it(self, tmp_path: Path, trap: Trap) -> None:
        need_browser()
        place = tmp_path / "w"
        run("skip", place)
        words = "".join(word for word in hostile(trap.address) if "refresh" not in word)
        whole = run_page(*opened(place)).replace("</main>", f"{words}</main>")
        page = tmp_path / "page.html"
        page.write_text(whole, "utf-8")
        assert "data-alive" not in in_browser(page)
        assert trap.asked == []

    def test_characters_that_hide_are_shown(self, tmp_path: Path) -> None:
        place = tmp_path / "w"
        run("success", place)
        poisoned(place, ["\u202egnp.exe", "\x1b[31m"])
        whole = run_page(*opened(place))
        assert "\u202e" not in whole
        assert "\x1b" not in whole
        assert "\\u202e" in whole


class TestWhatItShows:
    def test_it_stands_alone(self, tmp_path: Path) -> None:
        run("success", tmp_path / "w")
        whole = run_page(*opened(tmp_path / "w"))
        assert re.findall(r'(?:src|href)="(?!data:|#)([^"]+)"', whole) == []
        assert "<script" not in whole
        assert "script-src 'none'" in unescape(whole)

    def test_every_check_with_its_problem(self, tmp_path: Path) -> None:
        run("invalid", tmp_path / "w")
        whole = run_page(*opened(tmp_path / "w"))
        outcome = record(last_run(tmp_path / "w"))["outcome"]
        for artifact in outcome["artifacts"]:
            for check in artifact["checks"]:
                assert f"<code>{check['name']}</code>" in whole
        assert outcome["reason"] in whole
        assert "not proven" in whole

    def test_the_file_that_was_judged_and_no_other(self, tmp_path: Path) -> None:
        place = tmp_path / "w"
        run("success", place)
        assert "266,451.25 EUR from 295 orders" in run_page(*opened(place))
        (place / "outputs/report.md").write_text("# changed by somebody")
        whole = run_page(*opened(place))
        assert "changed by somebody" not in whole
        assert "has changed since it was judged" in whole

    def test_a_run_that_was_cut_off(self, tmp_path: Path) -> None:
        assert killed("success", tmp_path / "w", 12)
        whole = run_page(*opened(tmp_path / "w"))
        assert "not ended" in whole
        assert "complete" not in re.sub(r"<style>.*?</style>", "", whole, flags=re.DOTALL)

    def test_the_index_tells_of_every_run(self, tmp_path: Path) -> None:
        place = tmp_path / "w"
        for name in ("skip", "success"):
            run(name, place)
        killed("invalid", place, 5)
        whole = index_page(opened(place)[0], {})
        assert "1 of 3 runs complete" in whole
        assert [whole.count(f">{word}<") for word in ("not ended", "complete")] == [1, 1]


class TestTheCommand:
    def test_it_writes_the_page_beside_the_record(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        from app import main

        place = tmp_path / "w"
        run("success", place)
        assert main(["report", "--workspace", str(place)]) == 0
        assert (last_run(place) / "report.html").is_file()
        assert main(["audit", "--workspace", str(place)]) == 0  # the page is no part of the record
        assert main(["report", "--all", "--workspace", str(place), "--json"]) == 0
        told = json.loads(capsys.readouterr().out.splitlines()[-1])
        text = Path(told["report"]).read_text("utf-8")
        assert f'href="{last_run(place).name}/report.html"' in text

    def test_a_place_that_cannot_be_written_is_told(self, tmp_path: Path) -> None:
        from app import main

        run("skip", tmp_path / "w")
        flags = ["--workspace", str(tmp_path / "w"), "--to", str(tmp_path / "no" / "x.html")]
        assert main(["report", *flags]) == 1


class TestHighlighting:
    def test_it_keeps_every_character(self) -> None:
        for text in ("def f(x):\n    return 'a' # b\n", "'''open", '"\\', "@", "x\n\n\ny", "é = 1"):
            shown = re.sub(r"<[^>]+>", "", str(python(text)))
            assert shown.rstrip("\n") == re.sub(
                r"[&<>'\"]", lambda found: ESCAPES[found.group()], text
            ).rstrip("\n")

    def test_markup_in_source_is_text(self) -> None:
        assert "<b>" not in python("x = '<b>' # <b>\n<b>")


ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "'": "&#x27;", '"': "&quot;"}
