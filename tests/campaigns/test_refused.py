"""A campaign whose parameters are refused: its run has the campaign's name, and one clear error instead of a traceback."""

import logging

import pytest
from prefect.client.orchestration import get_client
from prefect.flow_engine import run_flow
from prefect.states import AwaitingRetry

from prefect_assay.campaigns.runs.tags import CAMPAIGN_TAG, add_tags
from prefect_assay.errors import InputError
from prefect_assay.flows import campaign
from prefect_assay.service.models.spec import Assay
from support.accounts import make_account

DESIGNS = ">one\nMKVLAAGTSEELKQQRLIEEAKRLNPDEAAGG\n"


def test_a_wrong_target_names_the_campaign_and_logs_one_error(lab, prefect, tmp_path, caplog):
    account = make_account(base_url=lab.base_url, token=lab.token, archive=tmp_path)
    parameters = {"assay": Assay(target="EGFR"), "account": account, "campaign_id": "egf-refused"}
    with caplog.at_level(logging.ERROR):
        state = campaign(DESIGNS, **parameters, return_state=True)
    assert state.is_failed()
    assert "did you mean" in state.message
    errors = [record for record in caplog.records if record.name.startswith("prefect.flow_runs")]
    assert not [record for record in errors if record.exc_info]
    assert any("did you mean" in record.getMessage() for record in errors)
    with get_client(sync_client=True) as client:
        assert client.read_flow_run(state.state_details.flow_run_id).name == "egf-refused"
    with pytest.raises(InputError, match="did you mean"):
        campaign(DESIGNS, **parameters)
    unnamed = {name: value for name, value in parameters.items() if name != "campaign_id"}
    state = campaign(DESIGNS, **unnamed, return_state=True)
    with get_client(sync_client=True) as client:
        assert client.read_flow_run(state.state_details.flow_run_id).name == "designs of pasted text"


def test_a_retry_of_a_failed_run_asks_for_the_price_again(lab, prefect, tmp_path):
    """Its campaign is over, with nothing ordered: a person's retry is a new start of it."""
    account = make_account(base_url=lab.base_url, token=lab.token, archive=tmp_path)
    assay = Assay(target="Human EGFR, extracellular domain")
    parameters = {"designs": DESIGNS, "assay": assay, "account": account, "campaign_id": "egf-retried"}
    path = "/api/v1/experiments/cost-estimate"
    fault = lab.fault("status", method="POST", path=path, status=403, count=100)
    failed = campaign(**parameters, return_state=True)
    fault.remove()
    with get_client(sync_client=True) as client:
        run_id = failed.state_details.flow_run_id
        add_tags(run_id, [f"{CAMPAIGN_TAG}egf-retried"])
        client.set_flow_run_state(run_id, AwaitingRetry(), force=True)
        run = client.read_flow_run(run_id)
    retried = run_flow(campaign, flow_run=run, parameters=parameters, return_type="state")
    assert "403" in failed.message or "Forbidden" in failed.message
    assert retried.name == "Failed", "this run cannot suspend, so it names the price"
    assert "may be spent without asking" in retried.message
