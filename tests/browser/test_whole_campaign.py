"""`make browser`: a whole campaign in each of Prefect's user interfaces while the machine is busy.

A person fills in the form, approves the price, looks at the suspended run and its progress, and reads results and report.
The lab's records are the judge. With ASSAY_BROWSER_PICTURES=docs/images the pictures of docs/quickstart.md are made again.
"""

import os
from collections import Counter
from pathlib import Path
from uuid import UUID

import pytest
from prefect.client.schemas.actions import DeploymentUpdate

from prefect_assay.blocks.block_references import as_parameter
from support.accounts import flow_parameters, save_account
from support.browser import steps
from support.browser.load import loaded
from support.runs.world import EGFR, eventually

LOAD = int(os.environ.get("ASSAY_BROWSER_LOAD", "10"))
DESIGNS = {
    "known": "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR",  # measured: K_D 9e-8 M
    "made": "SESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE",
}
SECONDS = 600  # for a step on a machine that is ten times too busy

pytestmark = [pytest.mark.browser, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def busy(world):
    """A load of the machine and of the API, as long as somebody clicks."""
    answers = Counter()
    with loaded(world.stack.api_url, LOAD, answers):
        eventually(lambda: os.getloadavg()[0] >= 0.9 * LOAD, seconds=300, what=f"a load of {LOAD}")
        yield
    assert set(answers) == {"200"}


@pytest.fixture(scope="module")
def account(world):
    """The account of the form. Saved before a browser is there: within its loop Prefect would save nothing."""
    return save_account(flow_parameters(world.shared())["account"])


@pytest.fixture
def form(world, account, person):
    """The deployed `campaign` as its operator has filled it in: only the target is left to the person."""
    filled = {
        "designs": "".join(f">{name}\n{residues}\n" for name, residues in DESIGNS.items()),
        "assay": {"experiment_type": "affinity", "method": "bli"},
        "account": as_parameter(account),
        "campaign_id": f"egfr-{person.name}",
    }
    served = world.api.read_deployment_by_name("campaign/assay-campaign")
    world.api.update_deployment(served.id, DeploymentUpdate(parameters=filled))
    return f"/deployments/deployment/{served.id}/run"


def test_a_campaign_from_its_form_to_its_report(world, busy, form, person):
    campaign = f"egfr-{person.name}"
    run = submitted(person, form)
    eventually(
        lambda: steps.asks(world.api.read_flow_run(run)),
        seconds=SECONDS,
        what="the question whether the campaign may cost so much",
    )
    look(person, f"/runs/flow-run/{run}", "Suspended")
    assert person.approve(str(run))["status"] == "ACCEPT"

    waiting = eventually(
        lambda: (now := world.api.read_flow_run(run)) and steps.waits(now) and now,
        seconds=SECONDS,
        what="the campaign to wait for its experiment",
    )
    steps.in_production(world, waiting, seconds=SECONDS)
    look(person, f"/runs/flow-run/{run}", "Suspended", picture="ui-waiting")
    progress = max(world.artifacts(waiting, "assay-progress-"), key=lambda artifact: artifact.created)
    look(person, f"/artifacts/artifact/{progress.id}", "in production", picture="ui-progress")

    world.advance(days=16)
    ended = world.until(waiting, "Completed", seconds=SECONDS)
    look(person, f"/runs/flow-run/{run}", "Completed")
    (shown,) = world.artifacts(ended, "assay-campaign-report-")
    look(person, f"/artifacts/artifact/{shown.id}", "Results of 1 of 1 experiment")
    (report,) = Path(world.archive.root).glob(f"**/{campaign}/REPORT/v*/report.html")
    with person._tab() as page:
        page.goto(report.as_uri())
        page.get_by_role("heading", name=f"Campaign {campaign}").wait_for()
        assert set(DESIGNS) <= set(page.locator("#results").inner_text().split())
    assert (len(world.orders(campaign)), len(world.settlements(campaign))) == (1, 1)


def submitted(person, form):
    """Fill in and submit the form; the run's id."""
    with person._tab() as page:
        page.goto(f"{person.interface.root}{form}", wait_until="commit")
        target = person.interface.field(page, "Target")
        target.wait_for()
        page.wait_for_load_state("networkidle")
        target.fill(EGFR)
        target.press("Tab")
        with page.expect_response(lambda r: "create_flow_run" in r.url and r.status == 201) as made:
            page.get_by_role("button", name="Submit").click()
        return UUID(made.value.json()["id"])


def look(person, path, text, *, picture=None):
    """Open a page and wait for a text on it."""
    with person._tab() as page:
        page.goto(f"{person.interface.root}{path}", wait_until="commit")
        page.get_by_text(text).first.wait_for()
        plots = page.locator("img[src^='data:image/svg+xml,']")  # of an artifact: below the archive's address
        if picture:
            steps.picture(page, picture, person, below=plots.first if plots.count() else None)
