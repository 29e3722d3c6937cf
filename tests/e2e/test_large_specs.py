"""Specifications larger than what Prefect stores with a run: the campaign's plan in the archive holds their sequences."""

import json
import random

import pytest
from prefect.client.orchestration import get_client
from typer.testing import CliRunner

from prefect_assay.blocks import AssayExperiment, SpendingPolicy
from prefect_assay.blocks.deployment_runs import deployment_of, start_run
from prefect_assay.cli.app import app
from prefect_assay.errors import InputError
from prefect_assay.service.models.spec import Assay
from support.accounts import AMOUNT_USD, make_account, save_account
from support.runs.world import EGFR

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
PREFECT_STORES = 524_288


def residues(number, length=1400):
    drawn = random.Random(1)
    return ["".join(drawn.choices(LETTERS, k=length)) for _ in range(number)]


def test_an_experiment_of_384_long_designs_is_ordered_woken_and_canceled_like_any_other(world):
    policy = SpendingPolicy(per_experiment_cents=10**9, per_campaign_cents=10**9, accept_quotes=True)
    policy.save("large", overwrite=True)
    designs = residues(384)
    given = {
        "campaign_id": "large",
        "assay": {"experiment_type": "screening", "target": EGFR},
        "designs_per_experiment": 384,
        "policy": policy,
        "spend_up_to_usd": 10**7,
        "payment_method": "async_invoice",
        "wallet": None,
    }
    run = world.campaign(world.designs("large", *designs), **given)
    world.asleep(run, seconds=200)
    (order,) = world.orders("large")
    assert len(world.service.experiments.get(order.id).experiment_spec["sequences"]) == 384
    assert len(json.dumps(world.run(run).parameters)) < PREFECT_STORES
    with get_client(sync_client=True) as client:  # woken without news, it reads its plan again
        client.resume_flow_run(run.id)
    world.asleep(run, seconds=120)
    assert len(world.orders("large")) == 1
    with get_client(sync_client=True) as client:
        states = client.read_flow_run_states(run.id)
    assert all(len(state.message or "") <= 2000 for state in states)
    stopped = CliRunner().invoke(app, ["cancel", "large", "--yes"])
    assert stopped.exit_code == 0, stopped.output
    world.until(run, "Cancelled", seconds=60)


def test_what_is_too_large_is_refused_before_anything_and_the_id_stays_usable(world):
    text = "".join(f">d{n}\n{line}\n" for n, line in enumerate(residues(384)))
    parts = {"credentials": world.credentials, "policy": world.policy, "archive": world.archive}
    parameters = {
        "campaign_id": "too-large",
        "assay": Assay(experiment_type="screening", target=EGFR),
        "account": save_account(make_account(**parts)),
        "spend_up_to_usd": AMOUNT_USD,
    }
    deployment = deployment_of("campaign")
    with pytest.raises(InputError, match=r"'designs'.*file") as refused:
        start_run(deployment, parameters | {"designs": text})
    assert len(str(refused.value)) < 1000
    design = ">a\nSESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE\n"
    run = start_run(deployment, parameters | {"designs": design})
    world.asleep(run)
    assert len(world.orders("too-large")) == 1
    assert world.run(run).state.name == "Suspended"


def test_a_job_of_384_long_designs_is_ordered_by_its_archived_plan(world):
    policy = SpendingPolicy(per_experiment_cents=10**9, per_campaign_cents=10**9, accept_quotes=True)
    policy.save("large-job", overwrite=True)
    path = world.designs("large-job", *residues(384))
    parts = {"credentials": world.credentials, "policy": policy, "archive": world.archive}
    account = save_account(make_account(**parts))

    def job(designs):
        made = AssayExperiment(
            designs=str(designs),
            assay=Assay(experiment_type="screening", target=EGFR),
            campaign_id="large-job",
            account=account,
            spend_up_to_usd=10**7,
        )
        made.save("large-job", overwrite=True)
        return AssayExperiment.load("large-job")

    with pytest.raises(ValueError, match="at most 500000"):
        job(path.read_text())
    started = job(path).trigger()
    run = world.api.read_flow_run(started.flow_run_id)
    assert len(json.dumps(run.parameters)) < PREFECT_STORES // 100
    world.asleep(run, seconds=200)
    (order,) = world.orders("large-job")
    assert len(world.service.experiments.get(order.id).experiment_spec["sequences"]) == 384
