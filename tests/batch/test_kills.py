"""kill -9 at any moment: every task ends exactly once, and no recorded turn is asked again."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.batch import postgres
from tests.batch.program import Place, account, children, kill, recorded
from tests.batch.service import Service, serving

SLOW = os.environ.get("REREAD_SLOW_TESTS") == "1"
TASKS = 200 if SLOW else 40
KILLS = 40 if SLOW else 6
PATIENCE = 600 if SLOW else 60


@pytest.fixture
def service() -> Iterator[Service]:
    with serving(delay=0.15) as running:
        yield running


@pytest.fixture
def place(tmp_path: Path, database_url: str, service: Service) -> Iterator[Place]:
    made = Place(tmp_path / "place", database_url, service.environment)
    yield made
    made.end()


class TestKills:
    def test_workers_killed_at_random_points_lose_no_task_and_repeat_no_turn(
        self, place: Place, service: Service
    ) -> None:
        seed = random.randrange(1 << 30)
        chance = random.Random(seed)
        place.tasks(TASKS)
        process = place.start("--workers", "3", "--at-once", "3")
        kills, until = 0, time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < until:
            time.sleep(chance.uniform(0.3, 1.2))
            workers = children(process.pid)
            if kills < KILLS and workers and service.asked:
                kill(chance.choice(workers))
                kills += 1
        assert process.poll() == 0, f"seed {seed}\n{place.output}"
        print(f"seed {seed}: {kills} kills, {service.asked.total()} requests for {4 * TASKS} turns")
        account(place, TASKS, service)
