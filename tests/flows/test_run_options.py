"""The typed values of a run and the flat parameters of the flows agree."""

import inspect
from dataclasses import fields
from datetime import timedelta

import pytest

from prefect_assay.blocks import AssayCredentials, LocalArchive, SpendingPolicy
from prefect_assay.designs import Reading
from prefect_assay.flows import campaign, design_build_test, experiment
from prefect_assay.flows.run_options import CampaignRun, ExperimentRun, LoopRun, RunOptions
from prefect_assay.looping import Loop, RoundFixed, StopRules
from prefect_assay.looping.book import PoolFile
from prefect_assay.models.spec import Assay, ExperimentSpec
from prefect_assay.models.vocabulary import PaymentMethod

SPEC = ExperimentSpec.model_validate({"experiment_type": "expression", "sequences": {"a": "ACD"}})
OPTIONS = RunOptions(
    credentials=AssayCredentials(base_url="https://lab.example", token="t"),
    policy=SpendingPolicy(per_experiment_cents=100, per_campaign_cents=200),
    archive=LocalArchive(root="/archive"),
    payment_method=PaymentMethod.ASYNC_INVOICE,
    wallet=None,
    webhook=None,
    request_quote=True,
    deadline_days=7,
    poll_seconds=1.0,
)


def parameters_of(flow):
    return inspect.signature(flow.fn).parameters


@pytest.mark.parametrize("flow", [experiment, campaign, design_build_test], ids=lambda flow: flow.name)
def test_each_flow_has_all_options_with_the_same_defaults(flow):
    shared = {field.name for field in fields(RunOptions)}
    assert shared <= parameters_of(flow).keys()
    for name in shared:
        assert parameters_of(flow)[name].default == parameters_of(experiment)[name].default


def test_a_campaign_hands_an_experiment_all_that_it_sets():
    run = ExperimentRun(OPTIONS, spec=SPEC, campaign_id="c", batch_index=1, batch_count=2, limit_cents=50)
    given = run.parameters()
    # An operator may give the experiment's deployment a default for the campaign's cap.
    assert given.keys() == parameters_of(experiment).keys() - {"campaign_limit_cents", "planned"}
    assert (given["request_quote"], given["deadline_days"], given["limit_cents"]) == (True, 7, 50)
    assert given["credentials"] is OPTIONS.credentials


def test_sequences_beyond_what_prefect_stores_stay_in_the_plan(monkeypatch):
    run = ExperimentRun(OPTIONS, spec=SPEC, campaign_id="c", batch_index=0, batch_count=1, planned="k")
    assert run.parameters()["spec"] == SPEC
    assert "planned" not in run.parameters()
    monkeypatch.setattr("prefect_assay.flows.run_options.bytes_max", lambda: 10)
    given = run.parameters()
    assert (given["planned"], given["spec"]) == ("k", SPEC.model_copy(update={"sequences": {}}))


def test_prefects_time_outs_leave_a_server_a_year_to_be_off_and_each_level_outlasts_the_one_below():
    child = ExperimentRun(OPTIONS, spec=SPEC, campaign_id="c", batch_index=0, batch_count=1).timeout
    parent = CampaignRun(OPTIONS).timeout
    assert timedelta(days=7 + 365) <= child < parent < OPTIONS.round_timeout
    # A child suspends again until its own deadline; its parent counts from the beginning.
    assert parent - child > timedelta(days=90)


def test_a_limit_of_the_campaign_is_handed_on():
    run = ExperimentRun(
        OPTIONS, spec=SPEC, campaign_id="c", batch_index=0, batch_count=1, campaign_limit_cents=0
    )
    assert run.parameters()["campaign_limit_cents"] == 0


def test_a_loop_hands_a_campaign_all_its_parameters():
    assay = Assay(experiment_type="expression")
    loop = Loop(
        loop_id="l",
        source="/designs",
        designer=None,
        assay=assay,
        credentials=OPTIONS.credentials,
        archive=OPTIONS.archive,
        reading=Reading("Construct", "Chain", keep_native=True),
        designs_per_round=None,
        max_rounds=1,
        selection=None,
        per_experiment=4,
        settle_seconds=0,
        wait_days=0,
        poll=OPTIONS.poll,
        timeout=OPTIONS.round_timeout,
        scope=lambda: OPTIONS.scope,
        placed=OPTIONS.placed,
    )
    run = LoopRun(OPTIONS, loop, StopRules(objective=None, max_rounds=1, goals={}))
    pool = PoolFile(name="one.fasta", key="POOLS/0.fasta", sha256="0", size=1, designs=1)
    fixed = RoundFixed(
        loop_id="l", number=2, name="one", campaign_id="l-one", origin="", pool=pool, limit_cents=7
    )
    given = run.campaign_parameters(fixed)
    assert given.keys() == parameters_of(campaign).keys()
    assert (given["campaign_id"], given["sequences_per_experiment"]) == ("l-one", 4)
    assert (given["designs"], given["limit_cents"]) == ("loop:l/2", 7)
    assert (given["name_column"], given["sequence_column"], given["keep_native"]) == (
        "Construct",
        "Chain",
        True,
    )


@pytest.mark.parametrize(("limit", "cap"), [(None, 100), (50, 50), (150, 100)])
def test_a_limit_lowers_the_cap_of_the_policy_and_never_raises_it(limit, cap):
    run = ExperimentRun(OPTIONS, spec=SPEC, campaign_id="c", batch_index=0, batch_count=1, limit_cents=limit)
    assert run.cap_cents == cap


@pytest.mark.parametrize(("limit", "cap"), [(None, 200), (150, 150), (250, 200)])
def test_a_rounds_budget_lowers_the_cap_of_its_campaign_and_never_raises_it(limit, cap):
    assert CampaignRun(OPTIONS, limit).cap_cents == cap
