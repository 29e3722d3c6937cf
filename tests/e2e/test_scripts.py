"""Flows that are called without a deployment: what is refused before anything is ordered, and what a failure tells.

`tests/stories/test_script.py` plays whole campaigns of scripts, `test_page_examples.py` those of the pages.
"""

import json
import pickle
import re

import pytest
from prefect.serializers import JSONSerializer

from prefect_assay.blocks import AssayCredentials, SpendingPolicy
from prefect_assay.cli.campaigns.run import _run_here
from prefect_assay.errors import (
    CampaignFailed,
    DecisionNeeded,
    InvalidSequences,
    InvalidSpec,
    PaymentsDisabled,
    ServiceUnavailable,
    Unauthorized,
)
from prefect_assay.flows import campaign
from support.accounts import flow_parameters
from support.runs.world import EGFR

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

AFFINITY = {"experiment_type": "affinity", "method": "bli", "target": EGFR}
BY_INVOICE = {"payment_method": "async_invoice", "wallet": None, "webhook": None}
WRONG_TOKEN = "assay_wrongtoken"


def parameters_of(world, **changes):
    designs = ">a\nSESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE\n"
    return flow_parameters(world.shared() | {"designs": designs, "assay": AFFINITY} | changes)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"payment_method": "mpp-spt"}, PaymentsDisabled, "mpp-spt pays with a wallet of its kind"),
        ({"wallet": None}, PaymentsDisabled, "x402-exact pays with a wallet of its kind"),
        ({"assay": AFFINITY | {"target": "no such antigen"}}, InvalidSpec, "is not in the service's catalog"),
        ({"designs": "/nowhere/designs.fasta"}, InvalidSequences, "/nowhere/designs.fasta"),
        ({"designs": ">a\nACDJ\n"}, InvalidSequences, "'J'"),
        ({"credentials": ("http://127.0.0.1:9", "t")}, ServiceUnavailable, ":9"),
        ({"credentials": (None, WRONG_TOKEN)}, Unauthorized, None),
        (
            {"policy": SpendingPolicy(per_experiment_usd=0.01, per_campaign_usd=10**5), **BY_INVOICE},
            DecisionNeeded,
            "its deployment",
        ),
    ],
)
def test_what_cannot_work_fails_before_anything_is_ordered(world, changes, error, message):
    before = world.creates()
    if "credentials" in changes:
        base_url, token = changes["credentials"]
        block = AssayCredentials(base_url=base_url or world.stack.lab.base_url, token=token)
        changes = {"credentials": block}
    with pytest.raises(error, match=message and re.escape(message)) as raised:
        campaign(**parameters_of(world, **changes))
    assert WRONG_TOKEN not in str(raised.value)
    assert world.creates() == before


def test_a_script_without_results_raises_with_the_report(world, capsys):
    world.fault("status", status=422, method="POST", path="/api/v1/experiments", count=2)
    parameters = parameters_of(world, campaign_id="none", **BY_INVOICE)
    with pytest.raises(CampaignFailed, match=r"1 not ordered; .* answered 422") as caught:
        campaign(**parameters)
    (line,) = caught.value.report.experiments
    assert (line.location, line.problem in str(caught.value)) == (None, True)
    assert pickle.loads(pickle.dumps(caught.value)).report == caught.value.report
    kept = JSONSerializer()
    assert str(kept.loads(kept.dumps(caught.value))) == str(caught.value)
    with pytest.raises(SystemExit):  # `prefect-assay run --here --json`
        _run_here(parameters, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert (shown["state"], shown["rows"]) == ("Failed", 0)
    problem, request, _ = line.problem.partition("(request ")
    assert request
    assert shown["experiments"][0]["problem"].startswith(problem)
    assert world.orders("none") == []
