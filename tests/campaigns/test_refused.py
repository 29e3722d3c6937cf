"""A campaign whose parameters are refused: its run has the campaign's name, and one clear error instead of a traceback."""

import logging

import pytest
from prefect.client.orchestration import get_client

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
