"""The fence: what it holds, how it is chosen, and that nobody of a script's tree outlives it."""

from __future__ import annotations

import asyncio
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from agent_runtime import Failure
from reread import sandbox
from reread.sandbox import Fence, Launch, Mechanism, View, _seccomp, none, seatbelt
from reread.values import Code, Isolation, Permissions, ScriptLimits
from tests import attacks
from tests.attacks import page

ROOT = Path(__file__).resolve().parent.parent
PYTHON = Path(sys.executable).resolve()
FENCED = [mechanism for mechanism in sandbox.MECHANISMS if mechanism.RANK]


@pytest.fixture(params=[mechanism.NAME for mechanism in sandbox.MECHANISMS])
def mechanism(request: pytest.FixtureRequest) -> Mechanism:
    """Give each mechanism in turn; skip those that do not work on this machine."""
    found = next(each for each in sandbox.MECHANISMS if request.param == each.NAME)
    if reason := sandbox.fault(found):
        pytest.skip(reason)
    return found


def fence(folder: Path, *, network: bool = False, limits: ScriptLimits | None = None) -> Fence:
    """Make a fence with one writable folder and one private one."""
    work, tmp = folder / "work", folder / "tmp"
    work.mkdir(exist_ok=True)
    tmp.mkdir(exist_ok=True)
    return Fence(
        readable=sandbox.interpreter(PYTHON),
        writable=(work,),
        cwd=work,
        env={"LANG": "C.UTF-8"},
        limits=limits or ScriptLimits(timeout=20),
        network=network,
        tmp=tmp,
    )


def start(
    mechanism: Mechanism,
    held: Fence,
    code: str,
    *,
    stdin: int | None = None,
    stdout: int | None = None,
    stderr: int | None = None,
) -> sandbox.Child:
    """Start Python code inside a fence."""
    launch = mechanism.launch(held, [str(PYTHON), "-I", "-S", "-c", code])
    return sandbox.spawn(launch, held, stdin=stdin, stdout=stdout, stderr=stderr)


def alive(mark: str) -> list[int]:
    """Return the processes whose command line holds `mark`."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if mark.encode() in words and int(folder.name) != os.getpid():
                found.append(int(folder.name))
    return found


def gone(mark: str, seconds: float = 5.0) -> bool:
    """Say whether they are all gone within some seconds."""
    until = time.monotonic() + seconds
    while alive(mark):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture(scope="module")
def measured() -> dict[tuple[str, str], str]:
    """Measure everything once: (attack, mechanism and user) → held or not held."""
    return page.cells(page.measure_all(attacks.names()))


class TestWhatIsMeasuredIsWhatThePageSays:
    def test_every_attack_is_held_by_every_fence(
        self, measured: dict[tuple[str, str], str]
    ) -> None:
        through = [at for at, cell in measured.items() if "none" not in at[1] and cell != "held"]
        assert through == []

    def test_the_page_agrees_with_this_machine(self, measured: dict[tuple[str, str], str]) -> None:
        written = page.written()
        differences = {
            at: (cell, written[at])
            for at, cell in measured.items()
            if at in written and written[at] != cell
        }
        assert differences == {}

    def test_the_page_has_every_attack(self) -> None:
        assert {attack for attack, _ in page.written()} == set(attacks.names())

    def test_the_control_shows_that_the_attacks_are_real(self) -> None:
        through = {at[0] for at, cell in page.written().items() if cell == "not held"}
        assert {"write_outside", "read_home_secret", "connect_tcp", "kill_parent"} <= through


class Sieve:
    """A mechanism that is installed, starts everything, and holds nothing."""

    NAME, RANK, MOUNTS = "sieve", 3, False

    def missing(self) -> str:
        return ""

    def launch(self, fence: Fence, argv: Sequence[str]) -> Launch:
        return none.launch(fence, argv)

    def isolation(self, fence: Fence) -> Isolation:
        return none.isolation(fence)


class Broken(Sieve):
    """A mechanism that cannot start anything."""

    def launch(self, fence: Fence, argv: Sequence[str]) -> Launch:
        return Launch(["/usr/bin/false"], {})


class TestAMechanismIsBelievedWhenItWasSeenToHold:
    def test_one_that_holds_nothing_is_found_out(self) -> None:
        assert "did not hold" in sandbox.fault(Sieve())

    def test_one_that_cannot_start_is_found_out(self) -> None:
        assert sandbox.fault(Broken()) != ""

    def test_neither_is_chosen(self) -> None:
        assert sandbox.choose(Permissions(), True, (Sieve(), Broken(), none)) is none


class TestTheChoice:
    def test_without_a_fence_the_default_is_refusal_with_the_remedy(self) -> None:
        with pytest.raises(Failure) as refused:
            sandbox.choose(Permissions(), False, (Broken(), none))
        assert refused.value.code == Code.sandbox_unavailable
        assert "--unsandboxed" in refused.value.remedy

    def test_a_shipped_script_runs_with_what_there_is(self) -> None:
        assert sandbox.choose(Permissions(), True, (none,)) is none

    def test_the_humans_word_switches_it_off(self) -> None:
        assert sandbox.choose(Permissions(unsandboxed=True)) is none

    @pytest.mark.parametrize("shipped", [True, False])
    def test_a_required_level_is_never_replaced_by_less(self, shipped: bool) -> None:
        with pytest.raises(Failure) as refused:
            sandbox.choose(Permissions(require_sandbox="bwrap"), shipped, (none,))
        assert refused.value.code == Code.sandbox_unavailable

    def test_what_is_required_cannot_be_switched_off(self) -> None:
        asked = Permissions(require_sandbox="landlock", unsandboxed=True)
        with pytest.raises(Failure) as refused:
            sandbox.choose(asked)
        assert refused.value.code == Code.sandbox_unavailable

    def test_an_unknown_level_is_wrong_usage(self) -> None:
        with pytest.raises(Failure) as refused:
            sandbox.choose(Permissions(require_sandbox="strong"))
        assert refused.value.code == Code.usage_invalid

    def test_more_than_required_will_do(self) -> None:
        best = sandbox.available()
        if best.RANK < 2:
            pytest.skip("there is nothing stronger than landlock here")
        assert sandbox.choose(Permissions(require_sandbox="landlock")) is best


class TestTheLabel:
    def test_names_the_mechanism_and_its_layers(self, mechanism: Mechanism, tmp_path: Path) -> None:
        label = mechanism.isolation(fence(tmp_path))
        assert label.mechanism == mechanism.NAME
        assert bool(label.layers) == (mechanism.RANK > 0)

    def test_no_fence_claims_nothing(self, tmp_path: Path) -> None:
        label = none.isolation(fence(tmp_path))
        assert (label.filesystem, label.network) == ("unconfined", "not enforced")

    def test_an_open_network_is_told(self, mechanism: Mechanism, tmp_path: Path) -> None:
        label = mechanism.isolation(fence(tmp_path, network=True))
        assert label.network == "open"
        assert label.degraded != ()

    def test_every_limit_is_accounted_for(self, mechanism: Mechanism, tmp_path: Path) -> None:
        label = mechanism.isolation(fence(tmp_path))
        assert set(label.limits) == set(ScriptLimits.__dataclass_fields__)


class TestWhatLibrariesRead:
    def test_the_types_of_files_can_be_looked_up(
        self, mechanism: Mechanism, tmp_path: Path
    ) -> None:
        child = start(mechanism, fence(tmp_path), "import mimetypes; mimetypes.init()")
        assert asyncio.run(child.ended()).exit_code == 0


class TestAChildThatLives:
    def test_it_is_spoken_to_through_pipes(self, mechanism: Mechanism, tmp_path: Path) -> None:
        to_child, ours = os.pipe()
        theirs, from_child = os.pipe()
        code = "import sys\nfor line in sys.stdin: print(line.upper(), end='', flush=True)"
        child = start(mechanism, fence(tmp_path), code, stdin=to_child, stdout=from_child)
        os.close(to_child)
        os.close(from_child)
        with os.fdopen(ours, "wb", 0) as ask, os.fdopen(theirs, "rb") as answer:
            ask.write(b"one\n")
            assert answer.readline() == b"ONE\n"
            ask.write(b"two\n")
            assert answer.readline() == b"TWO\n"
        assert child.wait(10).exit_code == 0

    def test_closing_it_ends_its_tree(self, mechanism: Mechanism, tmp_path: Path) -> None:
        mark = f"mark-{tmp_path.name}-{os.getpid()}"
        child = start(
            mechanism, fence(tmp_path), f"import os, time; os.fork(); time.sleep(60)#{mark}"
        )
        while not alive(mark):
            time.sleep(0.01)
        child.close()
        assert gone(mark)

    def test_cancelling_the_wait_ends_its_tree(self, mechanism: Mechanism, tmp_path: Path) -> None:
        mark = f"mark-{tmp_path.name}-{os.getpid()}"

        async def cancelled() -> None:
            child = start(mechanism, fence(tmp_path), f"import time; time.sleep(60)#{mark}")
            waiting = asyncio.create_task(child.ended())
            await asyncio.sleep(0)  # it begins to wait
            while not alive(mark):
                await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert alive(mark) == []

        asyncio.run(cancelled())

    def test_the_death_of_the_program_ends_its_tree(
        self, mechanism: Mechanism, tmp_path: Path
    ) -> None:
        mark = f"mark-{tmp_path.name}-{os.getpid()}"
        fence(tmp_path)
        program = (
            "import sys; sys.path[:0] = sys.argv[3:]\n"
            "import pathlib, test_sandbox as t\n"
            "m = next(m for m in t.sandbox.MECHANISMS if m.NAME == sys.argv[1])\n"
            "t.start(m, t.fence(pathlib.Path(sys.argv[2])), "
            f"'import time; time.sleep(60)#' + '{mark[:4]}' + '{mark[4:]}').wait()\n"
        )
        argv = [sys.executable, "-c", program, mechanism.NAME, str(tmp_path), str(ROOT)]
        running = subprocess.Popen([*argv, str(ROOT / "tests")])
        while not alive(mark):
            time.sleep(0.01)
        running.send_signal(signal.SIGKILL)
        running.wait()
        assert gone(mark)


class TestHowItEnds:
    def test_an_exit_code_is_the_scripts_own(self, mechanism: Mechanism, tmp_path: Path) -> None:
        ended = start(mechanism, fence(tmp_path), "raise SystemExit(77)").wait(10)
        assert (ended.exit_code, ended.started, ended.verdict) == (77, True, "")

    def test_a_signal_is_128_and_more(self, mechanism: Mechanism, tmp_path: Path) -> None:
        code = "import os; os.kill(os.getpid(), 11)"
        assert start(mechanism, fence(tmp_path), code).wait(10).exit_code == 139

    def test_a_command_that_is_not_there_did_not_start(
        self, mechanism: Mechanism, tmp_path: Path
    ) -> None:
        held = fence(tmp_path)
        ended = sandbox.spawn(mechanism.launch(held, ["/nowhere"]), held).wait(10)
        assert not ended.started
        assert ended.problem != ""

    def test_a_time_limit_ends_it(self, mechanism: Mechanism, tmp_path: Path) -> None:
        held = fence(tmp_path, limits=ScriptLimits(timeout=0.3))
        ended = start(mechanism, held, "import time; time.sleep(60)").wait(10)
        assert (ended.exit_code, ended.verdict, ended.survivors) == (None, "timeout", 0)


class TestProcessOne:
    def test_its_memory_cannot_be_written(self, mechanism: Mechanism, tmp_path: Path) -> None:
        if not mechanism.RANK:
            pytest.skip("there is no fence")
        code = "import os; os.open('/proc/1/mem', os.O_RDWR)"
        assert start(mechanism, fence(tmp_path), code).wait(15).exit_code == 1


class TestAnOrdinaryScriptCan:
    @pytest.mark.parametrize(
        "code",
        [
            "import threading as t; [t.Thread(target=int).start() for _ in range(30)]",
            "import subprocess, sys; subprocess.run([sys.executable, '-c', '0'], check=True)",
            "import sqlite3; sqlite3.connect('a.db').execute('create table a (b)')",
            "import tempfile; tempfile.TemporaryFile().write(b'x')",
            "import asyncio; asyncio.run(asyncio.sleep(0))",
            "import random, secrets, uuid; secrets.token_hex(), uuid.uuid4()",
            "import shutil; open('a', 'w').close(); shutil.copy2('a', 'b')",
            "import pwd, os; pwd.getpwuid(os.getuid())",
            "import zipfile; zipfile.ZipFile('a.zip', 'w').writestr('a', 'b')",
        ],
    )
    def test_do_its_work(self, mechanism: Mechanism, tmp_path: Path, code: str) -> None:
        held = fence(tmp_path)
        errors = (tmp_path / "errors").open("w+b")
        with errors:
            ended = start(mechanism, held, code, stderr=errors.fileno()).wait(15)
        assert ended.exit_code == 0, (tmp_path / "errors").read_text()

    @pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
    def test_use_several_processes_where_it_has_a_root_of_its_own(
        self, mechanism: Mechanism, tmp_path: Path, method: str
    ) -> None:
        if not mechanism.MOUNTS:
            pytest.skip("there is no private /dev/shm")
        file = tmp_path / "work/many.py"
        held = fence(tmp_path)
        file.write_text(
            "import multiprocessing as m\n"
            f"if __name__ == '__main__':\n    with m.get_context('{method}').Pool(2) as pool:\n"
            "        assert pool.map(abs, [-1, -2]) == [1, 2]\n"
        )
        argv = [str(PYTHON), "-I", str(file)]
        assert sandbox.spawn(mechanism.launch(held, argv), held).wait(15).exit_code == 0

    def test_be_where_a_link_leads(self, mechanism: Mechanism, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "linked").symlink_to(tmp_path / "real")
        ended = start(mechanism, fence(tmp_path / "linked"), "open('a', 'w').close()").wait(10)
        assert ended.exit_code == 0
        assert (tmp_path / "real/work/a").exists()

    def test_see_a_file_that_is_readable_alone(self, mechanism: Mechanism, tmp_path: Path) -> None:
        (tmp_path / "alone").write_text("x")
        held = fence(tmp_path)
        held = replace(held, readable=(*held.readable, tmp_path / "alone"))
        code = f"assert open({str(tmp_path / 'alone')!r}).read() == 'x'"
        assert start(mechanism, held, code).wait(10).exit_code == 0


class TestTheNetworkWhenItWasAllowed:
    def test_a_server_can_be_reached(self, mechanism: Mechanism, tmp_path: Path) -> None:
        import socket

        with socket.create_server(("127.0.0.1", 0)) as server:
            address = server.getsockname()
            code = f"import socket; socket.create_connection({address!r}, 5)"
            ended = start(mechanism, fence(tmp_path, network=True), code).wait(10)
        assert ended.exit_code == 0


class TestTheFilter:
    """The program is run here by a small interpreter, for both machines."""

    def answer(self, machine: str, call: int, *arguments: int, arch: int = 0) -> int:
        program = _seccomp.build((1, 2, 10), shared_world=True, machine=machine)
        code = list(struct.iter_unpack("=HBBI", program))
        words = [value for argument in arguments for value in (argument & 0xFFFFFFFF, 0)]
        data = [call, arch or _seccomp.ARCHITECTURES[machine], 0, 0, *words, *[0] * 12]
        at = value = 0
        while True:
            operation, if_true, if_false, constant = code[at]
            at += 1
            if operation == 0x20:
                value = data[constant // 4]
            elif operation == 0x06:
                return int(constant)
            else:
                met = {
                    0x15: value == constant,
                    0x25: value > constant,
                    0x45: bool(value & constant),
                }[operation]
                at += if_true if met else if_false

    @pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
    def test_refuses_what_is_listed_and_lets_the_rest_through(self, machine: str) -> None:
        column = 0 if machine == "x86_64" else 1
        for name in _seccomp.FORBIDDEN:
            number = _seccomp.CALLS[name][column]
            if number is not None:
                assert self.answer(machine, number) == _seccomp.EPERM, name
        read, write = ((0, 1), (63, 64))[column]
        assert self.answer(machine, read) == _seccomp.ALLOW
        assert self.answer(machine, write) == _seccomp.ALLOW

    @pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
    def test_a_foreign_call_table_is_the_end(self, machine: str) -> None:
        assert self.answer(machine, 0, arch=0x40000003) == _seccomp.KILL

    @pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
    def test_what_nobody_has_judged_is_not_there(self, machine: str) -> None:
        for number in (_seccomp.NEWEST_KNOWN + 1, 0x40000000 | 101, 0xFFFFFFFF):
            assert self.answer(machine, number) == _seccomp.ENOSYS

    @pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
    def test_socket_families_and_new_namespaces_are_looked_at(self, machine: str) -> None:
        column = 0 if machine == "x86_64" else 1
        sockets, clone = _seccomp.CALLS["socket"][column], _seccomp.CALLS["clone"][column]
        assert sockets is not None and clone is not None
        assert self.answer(machine, sockets, 2) == _seccomp.ALLOW
        assert self.answer(machine, sockets, 40) == _seccomp.EAFNOSUPPORT
        assert self.answer(machine, clone, 0x11) == _seccomp.ALLOW
        assert self.answer(machine, clone, 0x10000011) == _seccomp.EPERM


class TestTheProfileForMacOS:
    """Its text alone: nobody has run it here."""

    def held(self, folder: Path, network: bool = False) -> str:
        made = fence(folder, network=network)
        inputs = folder / 'in "puts'
        inputs.mkdir(exist_ok=True)
        view = View(inputs, folder / "work/inputs")
        return seatbelt.profile(
            Fence(made.readable, made.writable, made.cwd, {}, network=network, views=(view,))
        )

    def test_denies_by_default(self, tmp_path: Path) -> None:
        assert self.held(tmp_path).splitlines()[:2] == ["(version 1)", "(deny default)"]

    def test_writes_only_where_it_may(self, tmp_path: Path) -> None:
        lines = self.held(tmp_path).splitlines()
        written = [line for line in lines if line.startswith("(allow file-write*")]
        assert written == [f'(allow file-write* (subpath "{(tmp_path / "work").resolve()}"))']

    def test_a_quote_in_a_name_cannot_end_the_text(self, tmp_path: Path) -> None:
        assert 'in \\"puts"' in self.held(tmp_path)

    def test_the_network_is_not_named_unless_it_was_allowed(self, tmp_path: Path) -> None:
        assert "(allow network" not in self.held(tmp_path)
        assert "(allow network-outbound)" in self.held(tmp_path, network=True)

    def test_its_label_says_that_it_is_untested(self, tmp_path: Path) -> None:
        assert "untested" in " ".join(seatbelt.isolation(fence(tmp_path)).degraded)
