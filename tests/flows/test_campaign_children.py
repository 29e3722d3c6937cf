"""Child runs of campaigns at different services, organisations or archives share neither keys nor groups."""

import sys
from types import SimpleNamespace
from uuid import uuid4

import pytest

import prefect_assay.flows.campaign  # noqa: F401 - the package has the flow under this name
from prefect_assay.blocks import AssayCredentials, LocalArchive, SpendingPolicy
from prefect_assay.errors import OtherOrganisation
from prefect_assay.flows.run_options import CampaignRun, RunOptions
from prefect_assay.lab.testing import LocalLab
from prefect_assay.models.spec import Assay, ExperimentSpec, Plan, PlannedExperiment
from prefect_assay.models.vocabulary import PaymentMethod
from prefect_assay.runs.tags import CHILDREN_TAG, campaign_group

module = sys.modules["prefect_assay.flows.campaign"]
SPEC = ExperimentSpec.model_validate({"experiment_type": "expression", "sequences": {"a": "ACD"}})
PLAN = Plan(
    campaign_id="same",
    source="",
    assay=Assay(experiment_type="expression"),
    experiments=(PlannedExperiment(order_key="0" * 20, batch_index=0, spec=SPEC),),
)


@pytest.fixture(scope="module")
def labs():
    with LocalLab() as one, LocalLab() as other:
        yield one, other


@pytest.fixture
def started(monkeypatch):
    """What `start_child` and the wait are called with."""
    calls = []

    def start_child(_flow, key, _parameters, *, groups, **_options):
        calls.append({"key": key, "groups": set(groups)})
        return SimpleNamespace(id=uuid4())

    def wait_for_children(ids, *, group, timeout):
        calls[-1]["waits"] = group
        return []

    monkeypatch.setattr(module, "start_child", start_child)
    monkeypatch.setattr(module, "wait_for_children", wait_for_children)

    def run(base_url, token, archive, *, tags=None):
        options = RunOptions(
            credentials=AssayCredentials(base_url=base_url, token=token),
            policy=SpendingPolicy(per_experiment_cents=1, per_campaign_cents=1),
            archive=LocalArchive(root=str(archive)),
            payment_method=PaymentMethod.ASYNC_INVOICE,
            wallet=None,
            webhook=None,
            request_quote=False,
            deadline_days=45,
            poll_seconds=1.0,
        )
        # Prefect gives a run its tags at the start of an execution: in the first one there are none.
        own = CHILDREN_TAG + campaign_group("same", options.scope)
        first = len(calls)
        for now in (
            [[], [own], [own, "assay-waits:" + campaign_group("same", options.scope)]]
            if tags is None
            else [tags]
        ):
            monkeypatch.setattr(module, "own_tags", lambda now=now: now)
            module._run_deployed(CampaignRun(options), PLAN, {})
            assert calls[-1] == calls[first]
        return calls[-1]

    return run


def test_only_the_same_service_organisation_and_archive_share_children(labs, started, tmp_path):
    one, other = labs
    first = started(one.base_url, one.token, tmp_path / "a")
    assert started(one.base_url, one.token, tmp_path / "a") == first
    others = [
        started(other.base_url, other.token, tmp_path / "a"),
        started(one.base_url, one.token, tmp_path / "b"),
        started(one.base_url, one.seed("second").token, tmp_path / "c"),
    ]
    for found in others:
        assert found["key"] != first["key"]
        assert found["waits"] != first["waits"]
    with pytest.raises(OtherOrganisation):
        started(one.base_url, one.seed("third").token, tmp_path / "a")
    # People still find all of them by the campaign's id.
    assert all(campaign_group("same") in found["groups"] for found in (first, *others))
