"""Loops of three rounds with a deployed designer, a function and a folder, their processes killed at any step.

All three run at once in one installation. The test plays the crash automation, the sweep and the laboratory's calendar.
"""

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest
from prefect.client.schemas.objects import StateType

from prefect_assay.archive import verify
from prefect_assay.looping import LoopBook
from prefect_assay.models.report import LoopReport
from prefect_assay.runs.crashes import CRASHES_MAX
from prefect_assay.runs.queries import recoverable_runs, run_filter
from prefect_assay.runs.states import reschedule
from support.runs.sweeps import swept
from support.runs.world import EGFR, a_world, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(2100)]

MODULE = '''
import os
from pathlib import Path

from prefect import flow

LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def propose(history, n, budget_cents, round):
    """Another design each time it is called: only what is in the log may be ordered."""
    best = max((design.aa_string for design in history), key=len, default="MKTAYIAKQRQISFVKSHFSRQ")
    return [{"name": f"f{round}-{os.getpid()}", "sequence": best + LETTERS[round], "parents": "wild type"}]


@flow(name="e2e-designer")
def design(round: int, n: int, history: str | None, candidates: str):
    known = len(Path(history).read_text().splitlines()) if history else 0
    Path(candidates).write_text(f"name,sequence,known\\nd{round},MKTAYIAKQRQISFVKSHFSRQE{LETTERS[round]},{known}\\n")


if __name__ == "__main__":
    design.serve(name="gpu")
'''
ROUNDS = 3
KILLS = CRASHES_MAX  # a run that crashes more often in a row is not started again


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loops")
    modules = folder / "modules"
    modules.mkdir()
    (modules / "loop_designer.py").write_text(MODULE)
    env = {"PYTHONPATH": str(modules), "PREFECT_RUNNER_POLL_FREQUENCY": "1"}
    with a_world(folder, stack_options={"env": env, "start_seconds": 300}) as made:
        command = [sys.executable, str(modules / "loop_designer.py")]
        with (folder / "designer.log").open("wb") as log:
            designer = subprocess.Popen(command, env=made.stack.env, cwd=modules, stdout=log, stderr=log)
        try:
            yield made
        finally:
            designer.terminate()
            designer.wait(30)


class Days:
    """What happens around the loops while they run: kills, crashes that are taken up, sweeps, lab days, new files."""

    def __init__(self, world, folder, runs):
        self.world, self.folder, self.runs = world, folder, runs
        self.draw = random.Random(16)
        self.kills = 0
        self.files = 1
        self.last_sweep = 0.0

    def pass_until_ended(self, seconds):
        def ended():
            self.step()
            states = [self.world.run(run).state for run in self.runs.values()]
            return all(state and state.is_final() for state in states)

        eventually(ended, seconds=seconds, what="all loops to end")

    def step(self):
        if self.kills < KILLS and self.draw.random() < 0.1:
            self.kill()
        for run in recoverable_runs(self.world.api, StateType.CRASHED):  # as the automation of `deploy` does
            reschedule(self.world.api, run.id, "killed by the test")
        if time.monotonic() > self.last_sweep + 4:
            self.world.advance(days=4)
            swept()
            self.last_sweep = time.monotonic()
        if self.files < ROUNDS and f"b-{self.files}" in self.measured("by-file"):
            self.files += 1
            drop(self.folder, self.files)
        time.sleep(0.5)

    def kill(self):
        """SIGKILL every flow process, of loops, campaigns and experiments, at whatever step each one is."""
        found = self.world.stack.runner_processes()
        for process in found:
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        self.kills += bool(found)

    def measured(self, loop_id):
        archive = self.world.archive
        rounds = LoopBook(archive.get_store(), archive.prefix, loop_id).read().rounds
        return {entry.fixed.name for entry in rounds if entry.ended}


def drop(folder, number):
    part = folder / f".b-{number}.fasta"
    part.write_text(f">b{number}\nMKTAYIAKQRQISFVKSHFSRQW{'ACDE'[number]}\n")
    part.rename(folder / f"b-{number}.fasta")


def test_three_loops_end_once_with_their_rounds_whatever_is_killed(world):
    folder = world.folder / "files"
    folder.mkdir()
    drop(folder, 1)
    assay = {"experiment_type": "affinity", "method": "bli", "target": EGFR}
    shared = world.shared() | {
        "assay": assay,
        "max_rounds": ROUNDS,
        "designs_per_round": 1,
        "settle_seconds": 1,
    }
    options = {
        "by-function": {"designer": "loop_designer:propose"},
        "by-run": {"designer": "e2e-designer/gpu"},
        "by-file": {"source": str(folder), "wait_days": 30},
    }
    eventually(
        lambda: any(d.name == "gpu" for d in world.api.read_deployments()),
        seconds=60,
        what="the designer's deployment",
    )

    def start(loop_id):
        return world.start("design-build-test", **shared, **options[loop_id], loop_id=loop_id)

    days = Days(world, folder, {loop_id: start(loop_id) for loop_id in options})
    eventually(lambda: days.measured("by-function") or days.step(), seconds=600, what="a first round")
    second = start("by-function")  # as a schedule would, while the first run goes on
    days.runs["again"] = second
    days.pass_until_ended(seconds=1200)

    assert 0 < days.kills <= KILLS
    assert world.run(second).state.name == "RunsElsewhere"
    for loop_id in options:
        run = days.runs[loop_id]
        report = world.result(world.until(run, "Completed", seconds=5), LoopReport)
        assert (report.stop, len(report.rounds)) == ("rounds", ROUNDS)
        assert all(line.table and not line.problem for line in report.rounds)
        assert len(world.orders(f"{loop_id}-")) == ROUNDS
        assert len({o.name for o in world.orders(f"{loop_id}-")}) == ROUNDS
        assert len(world.settlements(f"{loop_id}-")) == ROUNDS
        archive = world.archive
        for entry in LoopBook(archive.get_store(), archive.prefix, loop_id).read().rounds:
            names = {c.candidate.name for c in entry.fixed.choices}
            table = world.folder / "archive" / entry.fixed.campaign_id
            assert any(
                name in path.read_text() for path in table.glob("TABLE/*/results.csv") for name in names
            )
    wanted = [f"assay-group:designer-by-run-{number}@" for number in range(1, ROUNDS + 1)]
    designers = world.api.read_flow_runs(flow_run_filter=run_filter(deployed=True), limit=200)
    tags = [tag for run in designers for tag in run.tags]
    assert [sum(tag.startswith(start) for tag in tags) for start in wanted] == [1] * ROUNDS
    assert verify(archive.get_store()).ok
