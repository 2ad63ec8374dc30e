"""Scripts: the header, the environment that uv makes, one run, and how failures are told apart."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_runtime import Failure
from reread import sandbox
from reread.scripts import (
    Place,
    cache_folder,
    check_syntax,
    find_uv,
    parse_header,
    run_script,
    temp_script,
)
from reread.values import Code, Permissions, ScriptLimits, ScriptRun

HEADER = "# /// script\n# dependencies = []\n# ///\n"
ORDINARY = Permissions()


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a cache folder that all tests share, so that environments are made once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def own_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep out of the user's cache."""
    monkeypatch.setenv("REREAD_CACHE_DIR", str(cache))


class Job:
    """A work folder, and scripts that run in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.inputs = root / "inputs"
        self.work = root / "runs/this/work"
        self.logs = root / "runs/this/logs"
        self.told: list[tuple[str, Mapping[str, Any]]] = []
        self.inputs.mkdir()
        (self.work / "scripts").mkdir(parents=True)

    def run(
        self,
        body: str,
        *,
        header: str = HEADER,
        permissions: Permissions = ORDINARY,
        limits: ScriptLimits | None = None,
        mechanism: sandbox.Mechanism | None = None,
    ) -> ScriptRun:
        return asyncio.run(self.running(body, header, permissions, limits, mechanism))

    async def running(
        self,
        body: str,
        header: str = HEADER,
        permissions: Permissions = ORDINARY,
        limits: ScriptLimits | None = None,
        mechanism: sandbox.Mechanism | None = None,
    ) -> ScriptRun:
        data = (header + body).encode()
        file = self.work / "scripts/job.py"
        file.write_bytes(data)
        return await run_script(
            data,
            name="scripts/job.py",
            file=file,
            place=Place(self.work, {"inputs": self.inputs}, self.logs),
            permissions=permissions,
            limits=limits or ScriptLimits(timeout=30),
            shipped=True,
            emit=lambda kind, data: self.told.append((kind, data)),
            mechanism=mechanism,
        )


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def refused(text: str | bytes, permissions: Permissions = ORDINARY) -> Failure:
    """Return why a header was refused."""
    with pytest.raises(Failure) as found:
        parse_header(text.encode() if isinstance(text, str) else text, permissions)
    return found.value


def declaring(*dependencies: str, more: str = "") -> str:
    """Return a header with these dependencies."""
    listed = ", ".join(f'"{each}"' for each in dependencies)
    return f"# /// script\n# dependencies = [{listed}]\n{more}# ///\n"


class TestTheHeader:
    def test_an_empty_list_asks_for_nothing(self) -> None:
        assert parse_header(HEADER.encode(), ORDINARY).requirements == ()

    def test_names_are_normalised_sorted_and_taken_once(self) -> None:
        text = declaring("Typing_Extensions", "rich", "typing-extensions", "uvicorn[standard]")
        wanted = ("rich", "typing-extensions", "uvicorn[standard]")
        assert parse_header(text.encode(), ORDINARY).requirements == wanted

    @pytest.mark.parametrize("change", ["\r\n", "\r"])
    def test_line_ends_of_other_systems_hide_nothing(self, change: str) -> None:
        text = declaring("rich").replace("\n", change)
        assert parse_header(text.encode(), ORDINARY).requirements == ("rich",)

    def test_a_byte_order_mark_hides_nothing(self) -> None:
        text = declaring("rich").encode("utf-8-sig")
        assert parse_header(text, ORDINARY).requirements == ("rich",)

    def test_a_table_for_uv_is_left_unread(self) -> None:
        text = declaring("rich", more='# [tool.uv]\n# index-url = "http://127.0.0.1:1"\n')
        assert parse_header(text.encode(), ORDINARY).requirements == ("rich",)

    def test_a_block_may_contain_its_own_closing_line(self) -> None:
        text = '# /// script\n# dependencies = []\n# x = """\n# ///\n# """\n# ///\n'
        assert parse_header(text.encode(), ORDINARY).requirements == ()

    def test_a_block_of_another_kind_is_not_ours(self) -> None:
        text = '# /// other\n# dependencies = ["rich"]\n# ///\n\n' + HEADER
        assert parse_header(text.encode(), ORDINARY).requirements == ()

    @pytest.mark.parametrize(
        "text",
        [
            "print(1)\n",
            "",
            HEADER + "\n" + HEADER,
            HEADER + "#\n" + HEADER,
            "# /// script\n# dependencies = []\n",
            "# /// script\n# dependencies = []\n\n# ///\n",
            "#/// script\n# dependencies = []\n# ///\n",
            "# /// script \n# dependencies = []\n# ///\n",
            " # /// script\n # dependencies = []\n # ///\n",
            "# /// script\n#dependencies = []\n# ///\n",
            "# /// script\n# dependencies = []\n# /// \n",
            "# /// script\n# ///\n",
            "# /// script\n# requires-python = '>=3.11'\n# ///\n",
            "# /// script\n# dependencies = 'rich'\n# ///\n",
            "# /// script\n# dependencies = [1]\n# ///\n",
            "# /// script\n# dependencies = [\n# ///\n",
            "# /// script\n# dependencies = []\n# requires-python = 3\n# ///\n",
            "# /// script\n# dependencies = []\n# requires-python = 'new'\n# ///\n",
            "# /// other\n# x = 1\n# ///\n" + HEADER,
            declaring(*(f"package-{n}" for n in range(51))),
        ],
    )
    def test_anything_else_is_refused_and_never_read_as_no_dependencies(self, text: str) -> None:
        assert refused(text).code == Code.script_header_invalid

    @pytest.mark.parametrize(
        "entry", ["-r other.txt", "--index-url http://x", "./here", "/a.whl", "a b", "a\\nb", ""]
    )
    def test_what_is_no_requirement_is_refused(self, entry: str) -> None:
        assert refused(declaring(entry)).code == Code.script_header_invalid

    @pytest.mark.parametrize(
        "entry", ["rich==14", "rich>=1", "rich; python_version > '3'", "rich ~= 14.0"]
    )
    def test_versions_and_markers_need_the_humans_word(self, entry: str) -> None:
        assert refused(declaring(entry)).code == Code.dependency_not_allowed
        allowed = Permissions(version_specifiers=True)
        assert len(parse_header(declaring(entry).encode(), allowed).requirements) == 1

    @pytest.mark.parametrize(
        "entry", ["rich @ file:///x", "rich @ https://127.0.0.1/x.whl", "rich @ git+https://x/y"]
    )
    def test_an_address_is_refused_whatever_was_allowed(self, entry: str) -> None:
        allowed = Permissions(version_specifiers=True, builds=True, network=True)
        assert refused(declaring(entry), allowed).code == Code.dependency_not_allowed

    def test_other_bytes_than_utf8_are_refused(self) -> None:
        assert refused(HEADER.encode() + b"\xff").code == Code.not_utf8

    def test_many_openings_cost_little(self) -> None:
        assert refused("# /// x\n" * 30_000).code == Code.script_header_invalid

    def test_a_script_has_a_greatest_size(self) -> None:
        assert refused(HEADER + "#" * (300 << 10)).code == Code.file_too_large


class TestTheSyntax:
    def test_tells_line_column_text_and_pythons_own_words(self) -> None:
        with pytest.raises(Failure) as found:
            check_syntax(b"a = 1\nb = (2,\nc = 3 +\n", "x.py")
        details = found.value.details
        assert found.value.code == Code.script_syntax_error
        assert details["line"] == 2
        assert details["text"] == "b = (2,"
        assert details["python"] != ""

    @pytest.mark.parametrize("data", [b"\0", b"(" * 5000, b"-" * 100_000 + b"1"])
    def test_bytes_that_break_the_compiler_are_an_error_too(self, data: bytes) -> None:
        with pytest.raises(Failure) as found:
            check_syntax(data, "x.py")
        assert found.value.code == Code.script_syntax_error

    def test_a_warning_is_no_error(self) -> None:
        check_syntax(b"a = '\\d'\n", "x.py")


class TestAScriptHandedOverAsText:
    def test_lies_in_the_systems_temporary_folder_under_the_promised_name(self) -> None:
        path = temp_script(b"x")
        try:
            assert path.parent == Path(tempfile.gettempdir())
            assert re.fullmatch(r"uv_script_\d{14}_[0-9a-f]{8}\.py", path.name)
            assert path.read_bytes() == b"x"
        finally:
            path.unlink()

    def test_runs_from_there(self, job: Job) -> None:
        data = (HEADER + "print(__file__)").encode()
        path = temp_script(data)
        try:
            ran = asyncio.run(
                run_script(
                    data,
                    name=str(path),
                    file=path,
                    place=Place(job.work, {}, job.logs),
                    permissions=ORDINARY,
                    limits=ScriptLimits(),
                    shipped=True,
                    emit=lambda kind, data: None,
                )
            )
        finally:
            path.unlink()
        assert ran.path == str(path)
        assert ran.stdout == f"{path}\n"


class TestARun:
    def test_keeps_both_streams_apart(self, job: Job) -> None:
        ran = job.run("import sys\nprint('ä')\nprint('b', file=sys.stderr)")
        assert (ran.exit_code, ran.failure) == (0, None)
        assert (ran.stdout, ran.stderr) == ("ä\n", "b\n")

    def test_says_which_bytes_ran_and_where_they_lie(self, job: Job) -> None:
        ran = job.run("pass")
        data = (job.work / "scripts/job.py").read_bytes()
        assert (ran.path, ran.sha256) == ("scripts/job.py", hashlib.sha256(data).hexdigest())

    def test_reads_the_inputs_and_leaves_its_outputs(self, job: Job) -> None:
        (job.inputs / "名前.csv").write_text("1")
        ran = job.run("open('outputs/a', 'w').write(open('inputs/名前.csv').read() * 3)")
        assert ran.failure is None, ran.stderr
        assert (job.work / "outputs/a").read_text() == "111"

    def test_gets_neither_arguments_nor_input(self, job: Job) -> None:
        ran = job.run("import sys\nprint(sys.argv[1:], sys.stdin.read() == '')")
        assert ran.stdout == "[] True\n"

    def test_inherits_nothing_of_the_users_environment(
        self, job: Job, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        monkeypatch.setenv("PYTHONPATH", str(job.root))
        monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@127.0.0.1:1")
        ran = job.run("import os, sys\nprint(os.environ, sys.path)")
        assert "secret" not in ran.stdout
        assert "PYTHONPATH" not in ran.stdout

    def test_its_private_folder_is_gone_afterwards_however_deep_it_is(self, job: Job) -> None:
        deep = "import os, tempfile\nos.chdir(tempfile.gettempdir())\n"
        deep += "for _ in range(1500):\n    os.mkdir('d')\n    os.chdir('d')\n"
        assert job.run(deep).failure is None
        assert sorted(path.name for path in job.work.iterdir()) == [
            "drafts", "inputs", "outputs", "scripts",
        ]  # fmt: skip

    def test_shows_head_and_tail_and_keeps_the_whole(self, job: Job) -> None:
        ran = job.run("print('first')\nprint('x' * 100_000)\nprint('last')")
        assert ran.stdout.startswith("first\n")
        assert ran.stdout.endswith("last\n")
        assert len(ran.stdout) < 20_000
        whole = next(job.logs.glob("*.stdout")).read_text()
        assert len(whole) == 100_012

    def test_an_earlier_runs_output_is_never_written_over(self, job: Job) -> None:
        for word in ("one", "two"):
            job.run(f"print('{word}')")
        assert [log.read_text() for log in sorted(job.logs.glob("*.stdout"))] == ["one\n", "two\n"]

    def test_what_it_prints_is_told_while_it_runs(self, job: Job) -> None:
        job.run("import time\nprint('early', flush=True)\ntime.sleep(0.3)")
        said = [facts["text"] for kind, facts in job.told if kind == "script.output"]
        assert "early\n" in said[0]

    def test_names_the_sandbox_that_was_active(self, job: Job) -> None:
        assert job.run("pass").isolation.mechanism == sandbox.available().NAME

    def test_a_module_beside_it_is_not_found(self, job: Job) -> None:
        (job.work / "scripts/json.py").write_text("raise SystemExit('shadowed')")
        assert job.run("import json\nprint(json.dumps(1))").stdout == "1\n"

    def test_bytes_other_than_those_that_were_checked_do_not_run(self, job: Job) -> None:
        data = (HEADER + "print(1)").encode()
        file = job.work / "scripts/job.py"
        file.write_bytes(data + b"\nprint(2)")
        with pytest.raises(Failure) as found:
            asyncio.run(
                run_script(
                    data,
                    name="job.py",
                    file=file,
                    place=Place(job.work, {}, job.logs),
                    permissions=ORDINARY,
                    limits=ScriptLimits(),
                    shipped=True,
                    emit=lambda kind, data: None,
                )
            )
        assert found.value.code == Code.changed_meanwhile

    def test_cancelling_ends_it_and_leaves_no_private_folder(self, job: Job) -> None:
        async def cancelled() -> None:
            body = "import time\nopen('outputs/began', 'w')\ntime.sleep(60)"
            running = asyncio.create_task(job.running(body))
            while not (job.work / "outputs/began").exists():
                await asyncio.sleep(0.02)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

        asyncio.run(cancelled())
        assert list(job.work.glob(".tmp*")) == []

    def test_several_run_at_once(self, tmp_path: Path) -> None:
        jobs = []
        for number in range(4):
            (tmp_path / str(number)).mkdir()
            jobs.append(Job(tmp_path / str(number)))

        async def together() -> list[ScriptRun]:
            bodies = (each.running(f"print({n})") for n, each in enumerate(jobs))
            return await asyncio.gather(*bodies)

        assert [ran.stdout for ran in asyncio.run(together())] == ["0\n", "1\n", "2\n", "3\n"]


class TestFailuresAreToldApart:
    """By what happened: a script may print whatever it likes."""

    def code(self, job: Job, body: str, **limits: Any) -> Code | None:
        return job.run(body, limits=ScriptLimits(**{"timeout": 20, **limits})).failure

    def test_it_raised(self, job: Job) -> None:
        ran = job.run("1 / 0")
        assert (ran.failure, ran.exit_code) == (Code.script_failed, 1)
        assert "ZeroDivisionError" in ran.stderr
        assert (job.work / "scripts/job.py").exists()

    @pytest.mark.parametrize("status", [2, 77, 127])
    def test_it_ended_with_a_status_of_its_own(self, job: Job, status: int) -> None:
        ran = job.run(f"print('error: No solution found')\nraise SystemExit({status})")
        assert (ran.failure, ran.exit_code) == (Code.script_failed, status)

    def test_it_crashed(self, job: Job) -> None:
        assert self.code(job, "import os\nos.kill(os.getpid(), 11)") == Code.script_killed

    def test_time(self, job: Job) -> None:
        ran = job.run("print('so far')\nwhile True: pass", limits=ScriptLimits(timeout=0.5))
        assert (ran.failure, ran.exit_code) == (Code.script_timeout, None)
        assert ran.stdout == "so far\n"

    def test_processor(self, job: Job) -> None:
        assert self.code(job, "while True: pass", cpu=0.3) == Code.script_cpu_limit

    def test_memory(self, job: Job) -> None:
        body = "import time\nx = bytearray(b'x') * (200 << 20)\ntime.sleep(5)"
        assert self.code(job, body, memory=100 << 20) == Code.script_memory_limit

    def test_processes(self, job: Job) -> None:
        body = "import os, time\nfor _ in range(30):\n    if not os.fork(): break\ntime.sleep(5)"
        assert self.code(job, body, processes=10) == Code.script_process_limit

    def test_pages_shared_after_a_fork_count_once(self, job: Job) -> None:
        body = "import os, time\nx = bytearray(b'x') * (60 << 20)\n"
        body += "for _ in range(5):\n    if not os.fork(): break\ntime.sleep(0.5)"
        assert self.code(job, body, memory=150 << 20) is None

    def test_disk(self, job: Job) -> None:
        body = "import time\nfor n in range(9): open(f'outputs/{n}', 'wb').write(b'x' * (1 << 20))"
        assert self.code(job, body, written=4 << 20) == Code.script_disk_limit

    def test_one_file(self, job: Job) -> None:
        body = "open('outputs/a', 'wb').write(b'x' * (2 << 20))"
        assert self.code(job, body, file_size=1 << 20) == Code.script_disk_limit

    def test_output(self, job: Job) -> None:
        ran = job.run("while True: print('x' * 999)", limits=ScriptLimits(output=1 << 20))
        assert ran.failure == Code.script_output_limit
        assert sum(log.stat().st_size for log in job.logs.iterdir()) <= 1 << 20


def wheel(folder: Path, name: str, version: str, files: Mapping[str, str]) -> None:
    """Write a small wheel."""
    info = f"{name}-{version}.dist-info"
    content = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = []
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in content.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
            record.append(f"{path},sha256={digest.decode()},{len(text.encode())}")
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,", ""]))


@pytest.fixture
def index(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the user's own index: a folder of wheels, and no network."""
    folder = tmp_path_factory.mktemp("index")
    wheel(folder, "greeting", "1.0", {"greeting.py": "WORD = 'old'\n"})
    wheel(folder, "greeting", "2.0", {"greeting.py": "WORD = 'hello'\n"})
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_OFFLINE", "1")
    return folder


class TestTheEnvironment:
    def test_without_dependencies_it_needs_no_network(
        self, job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("REREAD_CACHE_DIR", str(tmp_path / "new"))
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
        assert job.run("print(1)").stdout == "1\n"

    def test_is_made_once_for_the_same_requirements(self, job: Job, index: Path) -> None:
        header = declaring("greeting")
        first, second = (job.run("pass", header=header).environment for _ in range(2))
        assert first and second
        assert (first.cached, second.cached, first.key) == (False, True, second.key)

    def test_has_the_newest_release_and_its_lock(self, job: Job, index: Path) -> None:
        ran = job.run("import greeting\nprint(greeting.WORD)", header=declaring("greeting"))
        assert ran.stdout == "hello\n"
        assert ran.environment
        assert dict(ran.environment.packages) == {"greeting": "2.0"}
        assert "sha256:" in ran.environment.lock

    def test_a_version_is_part_of_the_key(self, job: Job, index: Path) -> None:
        allowed = Permissions(version_specifiers=True)
        body = "import greeting\nprint(greeting.WORD)"
        ran = job.run(body, header=declaring("greeting==1.0"), permissions=allowed)
        assert ran.stdout == "old\n"

    def test_is_not_changed_by_what_runs_in_it(self, job: Job, index: Path) -> None:
        header = declaring("greeting")
        body = "import greeting\nopen(greeting.__file__, 'a').write('WORD = 1')"
        if sandbox.available().RANK == 0:
            pytest.skip("there is no sandbox here")
        assert job.run(body, header=header).failure == Code.script_failed
        assert job.run("import greeting\nprint(greeting.WORD)", header=header).stdout == "hello\n"

    def test_nothing_that_a_package_brings_runs_while_it_is_installed(
        self, job: Job, index: Path, tmp_path: Path
    ) -> None:
        mark = tmp_path / "ran"
        trap = f"import pathlib; pathlib.Path({str(mark)!r}).write_text('x')\n"
        wheel(index, "trap", "1.0", {"trap.py": "", "trap.pth": trap, "sitecustomize.py": trap})
        job.run("pass", header=declaring("trap"))
        job.run("pass", header=declaring("trap", "greeting"))
        assert not mark.exists()

    @pytest.mark.parametrize("name", ["uv.toml", "pyproject.toml", ".python-version"])
    def test_no_configuration_of_a_workspace_is_honoured(
        self, job: Job, index: Path, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        evil = tmp_path / "evil"
        evil.mkdir()
        wheel(evil, "greeting", "9.0", {"greeting.py": "WORD = 'evil'\n"})
        text = {
            "uv.toml": f"find-links = ['{evil}']",
            "pyproject.toml": f"[tool.uv]\nfind-links = ['{evil}']",
            ".python-version": "3.99",
        }[name]
        for folder in (job.root, job.work, job.inputs, job.work / "scripts"):
            (folder / name).write_text(text)
        monkeypatch.chdir(job.root)
        monkeypatch.setenv("REREAD_CACHE_DIR", str(tmp_path / "new"))
        body = "import greeting\nprint(greeting.WORD)"
        assert job.run(body, header=declaring("greeting")).stdout == "hello\n"

    def test_a_name_that_nobody_has_is_a_dependency_error(self, job: Job, index: Path) -> None:
        with pytest.raises(Failure) as found:
            job.run("pass", header=declaring("no-such-thing"))
        assert found.value.code == Code.dependency_error
        assert found.value.details["phase"] == "resolve"
        assert "no-such-thing" in found.value.details["uv"]

    def test_what_must_be_built_needs_the_humans_word(
        self, job: Job, index: Path, tmp_path: Path
    ) -> None:
        source = tmp_path / "source/built-1.0"
        source.mkdir(parents=True)
        (source / "setup.py").write_text("raise SystemExit('ran')")
        (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: built\nVersion: 1.0\n")
        import tarfile

        with tarfile.open(index / "built-1.0.tar.gz", "w:gz") as archive:
            archive.add(source, "built-1.0")
        with pytest.raises(Failure) as found:
            job.run("pass", header=declaring("built"))
        assert found.value.code == Code.dependency_error
        assert "ran" not in found.value.details["uv"].split()

    def test_a_python_that_is_not_installed_is_a_dependency_error(self, job: Job) -> None:
        with pytest.raises(Failure) as found:
            job.run("pass", header=declaring(more='# requires-python = ">=3.99"\n'))
        assert found.value.code == Code.dependency_error
        assert found.value.details["phase"] == "interpreter"

    def test_one_that_is_broken_is_made_again(self, job: Job, index: Path) -> None:
        header = declaring("greeting")
        environment = job.run("pass", header=header).environment
        assert environment
        Path(environment.python).unlink()
        assert job.run("print(1)", header=header).stdout == "1\n"

    def test_a_failed_one_leaves_nothing_behind(self, job: Job, index: Path) -> None:
        before = sorted((cache_folder() / "environments").glob("*"))
        with pytest.raises(Failure):
            job.run("pass", header=declaring("no-such-thing"))
        assert sorted((cache_folder() / "environments").glob("*")) == before
        assert list((cache_folder() / "staging").glob("*")) == []

    def test_two_that_make_the_same_one_at_once_share_it(
        self, tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("REREAD_CACHE_DIR", str(tmp_path / "new"))
        jobs = []
        for number in range(2):
            (tmp_path / str(number)).mkdir()
            jobs.append(Job(tmp_path / str(number)))

        async def together() -> list[ScriptRun]:
            header = declaring("greeting")
            return await asyncio.gather(*(each.running("print(1)", header) for each in jobs))

        assert [ran.stdout for ran in asyncio.run(together())] == ["1\n", "1\n"]


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Give the variables of a Python that has no uv package, and a PATH without uv."""
    yield {"PATH": str(tmp_path), "PYTHONPATH": str(Path(__file__).resolve().parents[1])}


class TestUv:
    def test_is_found_in_its_own_package_first(self, monkeypatch: pytest.MonkeyPatch) -> None:
        uv = pytest.importorskip("uv")
        monkeypatch.setenv("PATH", "")
        assert find_uv() == Path(uv.find_uv_bin())

    def test_that_is_missing_is_named_with_the_command_that_installs_it(
        self, elsewhere: dict[str, str]
    ) -> None:
        code = "from reread.scripts import find_uv\ntry: find_uv()\n"
        code += "except Exception as e: print(e.code, e.remedy)"
        argv = [sys.executable, "-S", "-c", code]
        shown = subprocess.run(argv, env=elsewhere, capture_output=True, text=True, check=True)
        assert shown.stdout.startswith("uv_missing ")
        assert "-m pip install uv" in shown.stdout

    def test_on_path_will_do(self, elsewhere: dict[str, str], tmp_path: Path) -> None:
        (tmp_path / "uv").write_text("#!/bin/sh\n")
        (tmp_path / "uv").chmod(0o755)
        code = "from reread.scripts import find_uv; print(find_uv())"
        argv = [sys.executable, "-S", "-c", code]
        shown = subprocess.run(argv, env=elsewhere, capture_output=True, text=True, check=True)
        assert shown.stdout.strip() == str(tmp_path / "uv")


class TestTheCacheFolder:
    @pytest.mark.parametrize(
        ("variables", "expected"),
        [
            ({"REREAD_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
            ({"XDG_CACHE_HOME": "/b"}, "/b/reread"),
            ({"HOME": "/c"}, "/c/.cache/reread"),
        ],
    )
    def test_is_the_users_unless_it_was_moved(
        self, variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("REREAD_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
            monkeypatch.delenv(name, raising=False)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        assert os.fspath(cache_folder()) == expected
