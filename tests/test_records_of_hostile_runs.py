"""Whatever a script leaves beside its outputs, the run is recorded and can be audited."""

from __future__ import annotations

from pathlib import Path

import pytest

from reread.records import read_record
from reread.replay.audit import audit
from tests.workplace import GOOD, RUN, SAY_SO, SCRIPT, Workplace, write

LEFT = {
    "a name that no path may have": "open(b'drafts/a\\xff\\x1b[2J.txt', 'w').write('x')",
    "a backslash": "open('drafts/a\\\\b', 'w').write('x')",
    "folders too deep": "os.makedirs('drafts/' + '/'.join('d' * 70))",
    "a folder at the edge of too deep": "os.makedirs('drafts/' + '/'.join('d' * 63))",
    "a closed file": "open('drafts/a', 'w').close(); os.chmod('drafts/a', 0)",
}


@pytest.mark.parametrize("what", LEFT)
def test_the_run_ends_with_a_record_that_holds(tmp_path: Path, what: str) -> None:
    place = Workplace(tmp_path)
    session = place.open()
    script = GOOD + f"import os\n{LEFT[what]}\n"
    outcome = place.run(write(SCRIPT, script), RUN, SAY_SO)
    assert outcome.status == "complete"
    assert read_record(session.work.run)["outcome"]["status"] == "complete"
    assert audit(place.workspace.folder, session.work.run).problems == ()


def test_a_change_to_a_file_with_an_odd_name_is_found(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    session = place.open()
    script = GOOD + f"import os\n{LEFT['a backslash']}\n"
    place.run(write(SCRIPT, script), RUN, SAY_SO)
    (session.work.run.root / "work/drafts/a\\b").write_text("changed")
    assert [p.code for p in audit(place.workspace.folder, session.work.run).problems]
