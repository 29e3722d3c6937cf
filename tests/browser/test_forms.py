"""`make browser`: the form of a campaign, in both of Prefect's user interfaces."""

import pytest
from prefect.client.schemas.actions import DeploymentUpdate

from prefect_assay.blocks.block_references import as_parameter
from support.accounts import flow_parameters, save_account
from support.runs.world import EGFR

DESIGN = ">design\nSESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE\n"

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def form(world):
    """The deployed `campaign` with everything filled in but the assay."""
    parameters = world.shared() | {"designs": DESIGN}
    served = world.api.read_deployment_by_name("campaign/assay-campaign")
    parameters = flow_parameters(parameters)
    parameters["account"] = save_account(parameters["account"])
    filled = {name: as_parameter(value) for name, value in parameters.items()}
    world.api.update_deployment(served.id, DeploymentUpdate(parameters=filled))
    return f"/deployments/deployment/{served.id}/run"


def test_a_binding_assay_needs_its_target(world, form, person):
    person.expected = ["409", "'target'"]  # both say it in a notice
    with person._tab() as page:
        sent = []
        page.on("response", lambda answer: sent.append(answer) if "create_flow_run" in answer.url else None)
        page.goto(f"{person.interface.root}{form}", wait_until="commit")
        target = person.interface.field(page, "Target")
        target.wait_for()
        page.wait_for_load_state("networkidle")
        page.get_by_role("button", name="Submit").click()
        error = person.interface.error(page, "Target")
        error.wait_for()
        page.wait_for_load_state("networkidle")
        error.scroll_into_view_if_needed()
        target.fill(EGFR)
        target.press("Tab")
        # After a refusal the first click of V2 may only check the form again.
        assert submitted(page, sent) or (person.name == "v2" and submitted(page, sent))
        (made,) = with_target(sent)
        assert made.status == 201
        assert made.json()["parameters"]["assay"]["target"] == EGFR
        # Both may ask the server without a target, and have its answer late.
        assert {answer.status for answer in sent if answer is not made} <= {409}


def submitted(page, sent):
    page.get_by_role("button", name="Submit").click()
    for _ in range(120):  # half a minute, for a busy machine
        if with_target(sent):
            return True
        page.wait_for_timeout(250)
    return False


def with_target(sent):
    return [answer for answer in sent if EGFR in (answer.request.post_data or "")]
