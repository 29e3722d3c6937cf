"""What the crash tests share: one lab, and one process that forks for ordering and paying."""

import time

import pytest

from assay_lab.testing import LocalLab
from support.crash.core_player import a_core_player
from support.crash.limits import END, SEED
from support.crash.story import Schedule, judge, play


@pytest.fixture(scope="session")
def core(tmp_path_factory):
    """Ordering and paying alone."""
    with LocalLab() as lab, a_core_player(lab, tmp_path_factory.mktemp("core")) as player:
        yield player


@pytest.fixture(scope="session")
def clean(core):
    """Executions without kills, recorded once for each way: they say which points there are."""
    recorded = {}

    def record(route, rail):
        if (route, rail) not in recorded:
            story = play(core, Schedule(f"clean-{route}-{rail}", route, rail))
            assert judge(core, story) == []
            recorded[route, rail] = story.executions
        return recorded[route, rail]

    return record


@pytest.fixture
def play_all(record_property):
    """Plays schedules until the time is up, tells how many, and fails with every violation."""

    def run(player, schedules):
        schedules = list(schedules)
        began, wrong, stories = time.monotonic(), [], []
        for schedule in schedules:
            if time.time() > END:
                break
            story = play(player, schedule)
            stories.append(story)
            wrong += [f"{violation}\n  {story}" for violation in judge(player, story)]
        if schedules and not stories:
            pytest.skip("the time is up")
        kills = sum(len(story.killed_at()) for story in stories)
        surplus = sum(story.surplus for story in stories)
        seconds = time.monotonic() - began
        record_property("crash", (len(stories), len(schedules), kills, len(wrong), surplus, seconds))
        assert not wrong, f"seed {SEED}: {len(wrong)} violations\n" + "\n".join(wrong)
        return stories

    return run


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
