"""What the crash tests share: one lab, one process that forks, and for the whole flow one Prefect server."""

import os
import sys
import time

import pytest

from assay_lab.testing import LocalLab
from support.crash.core_player import a_core_player
from support.crash.limits import END, SEED
from support.crash.story import Schedule, judge, play
from support.crash.world import a_flow_player
from support.runs.world import a_world


@pytest.fixture(scope="session")
def core(tmp_path_factory):
    """Ordering and paying alone."""
    with LocalLab() as lab, a_core_player(lab, tmp_path_factory.mktemp("core")) as player:
        yield player


@pytest.fixture(scope="session")
def flow(tmp_path_factory):
    """The whole flow on a Prefect server."""
    folder = tmp_path_factory.mktemp("flow")
    (folder / "crashes").mkdir()
    with a_world(folder) as world, a_flow_player(world, folder / "crashes") as player:
        yield player


@pytest.fixture(scope="session")
def clean():
    """Stories without kills, each recorded once: they say which points there are.

    The first story of an archive also names the archive, which no later one does. `core` begins each story in a new one,
    so the points of that are among its own.
    """
    recorded = {}

    def record(player, route, rail, **changes):
        archive = changes.get("archive", "folder")
        key = (type(player), route, rail, archive)
        if key not in recorded:
            if not any((kind, place) == (type(player), archive) for kind, _, _, place in recorded):
                play(player, Schedule(f"first-{archive}-{route}-{rail}", route, rail, **changes))
            story = play(player, Schedule(f"clean-{archive}-{route}-{rail}", route, rail, **changes))
            assert judge(player, story) == []
            recorded[key] = story
        return recorded[key]

    return record


@pytest.fixture
def play_all(record_property):
    """Plays schedules until the time is up, tells how many, and fails with every violation."""
    played = 0

    def run(player, schedules):
        nonlocal played
        schedules = list(schedules)
        began, wrong, stories = time.monotonic(), [], []
        for schedule in schedules:
            if time.time() > END:
                break
            story = play(player, schedule)
            stories.append(story)
            wrong += [f"{found}\n  {story}" for found in judge(player, story)]
        seconds = time.monotonic() - began
        kills = sum(len(story.killed_at()) for story in stories)
        surplus = sum(story.surplus for story in stories)
        played += len(stories)
        if schedules and not played:
            pytest.skip("the time is up")
        record_property("crash", (len(stories), len(schedules), kills, len(wrong), surplus, seconds))
        assert not wrong, f"seed {SEED}: {len(wrong)} violations\n" + "\n".join(wrong)
        return stories

    return run


def pytest_runtest_logreport(report):
    """A run of an hour says at once what it finds."""
    if (
        report.failed
        and "crash/test_crash_long" in report.nodeid
        and not os.environ.get("PYTEST_XDIST_WORKER")
    ):
        sys.stderr.write(f"\n{report.nodeid}\n{report.longreprtext[-4000:]}\n")


def pytest_terminal_summary(terminalreporter):
    """One line for each kind of crash test; xdist brings the properties from its workers."""
    kinds = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == "crash" and getattr(report, "when", "") == "call":
                    kinds.setdefault(report.nodeid.partition("[")[0], []).append(value)
    if kinds:
        terminalreporter.section(f"crash tests, seed {SEED}")
    for kind, values in sorted(kinds.items()):
        played, asked, kills, violations, surplus, seconds = map(sum, zip(*values, strict=True))
        terminalreporter.write_line(
            f"{kind}: {played} of {asked} schedules, {kills} kills, {violations} violations, {surplus} surplus "
            f"experiments, {seconds:.0f} s"
        )
