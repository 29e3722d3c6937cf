"""`make browser`: what both of Prefect's user interfaces show of an experiment while it waits and when it has ended.

With ASSAY_BROWSER_PICTURES=docs/images the pictures of docs/waiting.md and docs/results.md are made again.
"""

import pytest

from support.browser.steps import in_production, picture

BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"  # measured: K_D 9e-8 M

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def run(world):
    """An experiment that the laboratory works on, and whose flow sleeps."""
    made = world.experiment("egfr-round-1", BINDER)
    world.asleep(made)
    in_production(world, made, seconds=30)
    return made


def newest(world, run, prefix):
    return max(world.artifacts(run, prefix), key=lambda artifact: artifact.created)


def test_a_suspended_run_shows_where_its_experiment_is(world, run, person):
    with person._tab() as page:
        page.goto(f"{person.interface.root}/runs/flow-run/{run.id}", wait_until="commit")
        page.get_by_text("Suspended").first.wait_for()
        if person.name == "v2":  # its log begins with the oldest line
            page.get_by_role("tab", name="Details").click()
        page.get_by_text("1 in the laboratory").first.wait_for()
    with person._tab() as page:
        artifact = newest(world, run, "assay-progress-")
        page.goto(f"{person.interface.root}/artifacts/artifact/{artifact.id}", wait_until="commit")
        page.get_by_text("in the laboratory: in production").first.wait_for()
        picture(page, "progress", person)
        rows = page.locator("tr").all_inner_texts()
    updates = [row.split("\t")[-1].strip() for row in rows]  # newest first
    stages = [update for update in updates if update.startswith("in the laboratory")]
    assert stages[0] == "in the laboratory: in production"
    assert len(stages) > 1


def test_the_results_show_their_plots(world, run, person):
    if world.run(run).state.name != "Completed":
        world.advance(days=16)
        world.until(run, "Completed", seconds=120)
    with person._tab() as page:
        artifact = newest(world, run, "assay-results-")
        page.goto(f"{person.interface.root}/artifacts/artifact/{artifact.id}", wait_until="commit")
        plots = page.locator("img[src^='data:image/svg+xml,']")
        plots.nth(1).wait_for()
        assert all(plots.nth(number).evaluate("plot => plot.naturalWidth") for number in range(plots.count()))
        picture(page, "results", person, below=page.locator("table").first)  # not the archive's address
