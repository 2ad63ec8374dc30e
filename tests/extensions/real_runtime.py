"""The breakages in the real openjiuwen: what it says itself, and what verification says.

python -m tests.extensions.real_runtime           prints the table
python -m tests.extensions.real_runtime --write   puts it into docs/openjiuwen.md
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reread.extensions import loading
from reread.values import Permissions
from reread.verify import Report, verify
from tests.extensions.packages import CASES, ported

PAGE = Path(__file__).resolve().parents[2] / "docs" / "openjiuwen.md"
BEGIN, END = "<!-- measured: breakages -->", "<!-- end of breakages -->"
ALONE = tuple(case for case in CASES if not case.get("twice"))
LOADING_SECONDS = 120.0
OWN = {"X032": ("tool_result_failed",)}
"""What is right in this runtime alone: an import inside of a call fails there, sound as it is."""


@dataclass(frozen=True, slots=True)
class Row:
    """One breakage.

    Attributes:
        alone: what the runtime says when it loads the package and nobody looks.
    """

    case: dict[str, Any]
    alone: str
    report: Report

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes that verification found, `pass` where there is none."""
        return tuple(str(one.problem.code) for one in self.report.findings) or ("pass",)

    @property
    def right(self) -> bool:
        """The first code is one that is right for this breakage."""
        return self.codes[0] in OWN.get(self.case["id"], self.case["expect"])


def rows(cases: tuple[dict[str, Any], ...] = ALONE) -> Iterator[Row]:
    """Yield each breakage as it came out; the environment is made on first use."""
    ready = asyncio.run(loading.environment({}, Permissions(), loading.OPENJIUWEN))
    if ready is None:
        raise SystemExit("there is no environment")
    for case in cases:
        with tempfile.TemporaryDirectory(prefix="reread-real-") as made:
            package = ported(Path(made), case)
            alone = _alone(ready.python, package)
        with tempfile.TemporaryDirectory(prefix="reread-real-") as made:
            report = asyncio.run(verify(ported(Path(made), case), record=False))
        yield Row(case, alone, report)


LOADING = """
import asyncio, json, sys
from openjiuwen.core.single_agent import AgentCard
from openjiuwen.harness import DeepAgentConfig
from openjiuwen.harness.deep_agent import DeepAgent
from openjiuwen.harness.rails import SkillUseRail

async def load(path):
    card = AgentCard(name="plain", description="loads a package")
    agent = DeepAgent(card).configure(DeepAgentConfig(enable_task_loop=False))
    await agent.register_rail(SkillUseRail(skills_dir=[], include_tools=False))
    try:
        record = await agent.load_plugin(path)
    except BaseException as error:
        return "raises " + type(error.__cause__ or error).__name__
    return "loads " + "+".join(ref.kind for ref in record.refs) if record.refs else "loads nothing"

said = asyncio.run(load(sys.argv[1]))
open(sys.argv[2], "w").write(said)
"""


def _alone(python: Path, package: Path) -> str:
    said = package.parent / "said.txt"
    command = [str(python), "-c", LOADING, str(package / "harness_config.yaml"), str(said)]
    subprocess.run(command, cwd=package.parent, capture_output=True, timeout=LOADING_SECONDS)
    return said.read_text("utf-8") if said.is_file() else "ends without a word"


def table(found: list[Row]) -> str:
    """Return the table in Markdown."""
    lines = ["| breakage | openjiuwen alone | verify | layer |", "|---|---|---|---|"]
    for row in found:
        layer = next(iter(row.report.findings)).layer if row.report.findings else ""
        lines.append(f"| {row.case['name']} | {row.alone} | `{row.codes[0]}` | {layer} |")
    release = next(r.report.runtime for r in found if r.report.runtime.startswith("openjiuwen "))
    silent = sum(row.alone.startswith("loads") for row in found if row.case["expect"] != ["pass"])
    harmful = sum("pass" not in row.case["expect"] for row in found)
    wrong = sum(not row.right for row in found)
    summary = (
        f"{release}: of {harmful} harmful breakages and {len(found) - harmful} that may pass, it "
        f"loads {silent} in silence; verification is wrong of {wrong}."
    )
    return "\n".join([summary, "", *lines])


def main() -> int:
    """Run from the command line; 0 where verification was right of all."""
    parser = argparse.ArgumentParser(description="The breakages in the real openjiuwen.")
    parser.add_argument("--write", action="store_true", help="put the table into docs")
    parser.add_argument("--json", action="store_true", help="one line for each, as it comes")
    flags = parser.parse_args()
    found = []
    for row in rows():
        found.append(row)
        if flags.json:
            said = {"id": row.case["id"], "alone": row.alone, "codes": row.codes}
            print(json.dumps({**said, "right": row.right}), flush=True)
    text = table(found)
    if flags.write:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", "utf-8")
    print(text)
    return 0 if all(row.right for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
