"""Specifications larger than what Prefect stores with a run: the campaign's plan in the archive holds their sequences."""

import json
import random

import pytest

from prefect_assay.blocks import AssayExperiment, SpendingPolicy
from prefect_assay.blocks.deployment_runs import deployment_of, start_run
from prefect_assay.errors import InputError
from prefect_assay.service.models.spec import Assay
from support.accounts import make_account, save_account
from support.runs.world import EGFR

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(400)]

PREFECT_STORES = 524_288


def test_a_job_of_384_long_designs_is_ordered_by_its_archived_plan_and_woken(world):
    drawn = random.Random(1)
    designs = ["".join(drawn.choices("ACDEFGHIKLMNPQRSTVWY", k=1400)) for _ in range(384)]
    text = "".join(f">d{number}\n{residues}\n" for number, residues in enumerate(designs))
    policy = SpendingPolicy(per_experiment_usd=10**7, per_campaign_usd=10**7, accept_quotes=True)
    policy.save("large", overwrite=True)
    parts = {"credentials": world.credentials, "policy": policy, "archive": world.archive}
    parameters = {
        "assay": Assay(experiment_type="screening", target=EGFR),
        "campaign_id": "large",
        "account": save_account(make_account(**parts)),
        "spend_up_to_usd": 10**7,
    }

    with pytest.raises(InputError, match=r"'designs'.*file") as refused:
        start_run(deployment_of("campaign"), parameters | {"designs": text})
    assert len(str(refused.value)) < 1000
    with pytest.raises(ValueError, match="at most 500000"):
        AssayExperiment(designs=text, **parameters)

    AssayExperiment(designs=str(world.designs("large", *designs)), **parameters).save("large", overwrite=True)
    run = world.api.read_flow_run(AssayExperiment.load("large").trigger().flow_run_id)
    assert len(json.dumps(run.parameters)) < PREFECT_STORES // 100
    world.asleep(run, seconds=200)
    (order,) = world.orders("large")
    assert len(world.service.experiments.get(order.id).experiment_spec["sequences"]) == 384

    world.api.resume_flow_run(run.id)  # woken without news, it reads its plan again
    world.asleep(run, seconds=120)
    assert len(world.orders("large")) == 1
    assert all(len(state.message or "") <= 2000 for state in world.api.read_flow_run_states(run.id))
