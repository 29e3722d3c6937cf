"""What both soaks share: play, judge, tell."""

import pytest

from support.soak.judge import judge, lost_wakes
from support.soak.story import Soak
from support.soak.world import a_soak_world


@pytest.fixture
def soak(tmp_path, record_property, pytestconfig):
    """Plays a plan in a world of its own, and fails with every violation."""

    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    reporter = pytestconfig.pluginmanager.getplugin("terminalreporter")

    def tell(line):
        with capture.global_and_fixture_disabled():
            reporter.write_line(line)

    def run(plan, worker, *, aloud=False):
        with a_soak_world(tmp_path, worker) as world:
            story = Soak(world, plan, tell if aloud else lambda line: None)
            story.play()
            lost = lost_wakes(story)
            if lost:  # says whether the next sweep would have found them
                story.sweep_to_the_end()
                story.tell(f"{len(lost)} wakes lost, {len(lost_wakes(story))} after another sweep")
            found = judge(story, lost)
        record_property("soak", found.figures)
        some = "\n".join(found.violations[:50])
        assert not found.violations, f"seed {plan.seed}: {len(found.violations)} violations\n{some}"
        return found

    return run


def pytest_terminal_summary(terminalreporter):
    """The figures; xdist brings the properties from its workers."""
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == "soak" and getattr(report, "when", "") == "call":
                    terminalreporter.section(report.nodeid)
                    for label, figure in value.items():
                        terminalreporter.write_line(f"{label}: {figure}")
