"""Deployed runs, killed on their way, against a service that has the contract's calls and nothing more."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from prefect.client.orchestration import get_client

from prefect_assay.blocks import (
    AssayCredentials,
    LocalArchive,
    SharedPaymentTokens,
    SpendingPolicy,
    X402Wallet,
)
from prefect_assay.models.spec import ExperimentSpec
from prefect_assay.ordering import order_key, search_token
from prefect_assay.runs.tags import EXPERIMENT_TAG, PARTIAL_LABEL, set_labels
from prefect_assay.waiting import PARTIAL_WAIT
from support.contract.campaign import SEQUENCES
from support.contract.service import (
    NETWORK,
    NETWORK_ID,
    RECEIVER,
    TARGET,
    TOKEN,
    TOTAL,
    USDC,
    ContractService,
    Made,
    running,
)
from support.runs import here
from support.runs.world import eventually
from support.services.issuer import ISSUER_KEY, issuer_server
from support.services.pay_server import CANARY_KEY

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]

READABLE = {"results": "names", "quote": "amount_total"}
METHODS = {"hosted": "async_invoice", "x402": "x402-exact", "mpp": "mpp-spt", "quoted": "async_invoice"}
SPEC = {
    "experiment_type": "affinity",
    "method": "bli",
    "target_id": TARGET["id"],
    "sequences": {name: {"aa_string": residues} for name, residues in SEQUENCES.items()},
}
X402 = {"private_key": CANARY_KEY, "networks": [NETWORK], "assets": [USDC], "pay_to": [RECEIVER]}


@pytest.fixture
def started(world, tmp_path):
    """Starts a deployed experiment against a service; the blocks are saved under the test's own names."""

    def start(service, route, issuer):
        blocks = {
            "credentials": AssayCredentials(base_url=service.base_url, token=TOKEN),
            "policy": SpendingPolicy(
                per_experiment_cents=100_000,
                per_campaign_cents=500_000,
                rolling_cents=10**9,
                machine_payments=True,
                accept_quotes=True,
                network_ids=[NETWORK_ID],
            ),
            "archive": LocalArchive(root=str(tmp_path / "archive")),
        }
        if route == "x402":
            blocks["wallet"] = X402Wallet(**X402)
        if route == "mpp":
            blocks["wallet"] = SharedPaymentTokens(issuer_url=issuer.url, issuer_key=ISSUER_KEY)
        for name, block in blocks.items():
            block.save(f"contract-{route}-{name}", overwrite=True)
        return world.start(
            "experiment",
            **blocks,
            spec=SPEC,
            campaign_id=f"contract-{route}",
            payment_method=METHODS[route],
            request_quote=route == "quoted",
        )

    return start


def woken(world, run):
    if world.run(run).state.name == "Suspended":
        with get_client(sync_client=True) as client:
            client.resume_flow_run(run.id)


def completed(world, run):
    """The run at its end; it is woken until then."""

    def over():
        woken(world, run)
        found = world.run(run)
        return found if found.state.is_final() else None

    return eventually(over, seconds=300, what="the end of the run")


@pytest.mark.parametrize("route", METHODS)
def test_a_deployed_run_completes_on_every_route(world, started, route):
    with running(ContractService(form=READABLE)) as service, issuer_server() as issuer:
        ended = completed(world, started(service, route, issuer))
        assert ended.state.is_completed(), ended.state.message
        assert (service.creates, len(service.billed)) == (1, 1)
        assert len(service.settled) == (1 if route in {"x402", "mpp"} else 0)


def carrying_the_key(service, number):
    """An experiment that carries the order key of the campaign `contract-hosted` and shows nothing else of its order."""
    key = order_key("contract-hosted", 0, ExperimentSpec.model_validate(SPEC))
    made = Made(
        number=number,
        id=f"c0000000-0000-4000-8000-00000000000{number}",
        name=f"ordered by hand {search_token(key)}",
        spec=SPEC,
        rail="async_invoice",
        base_url=service.base_url,
        at=datetime.now(UTC) - timedelta(hours=number),
        total=TOTAL,
        times=service.of("times"),
        statuses=service.of("statuses"),
        state="waiting_for_materials",
        quote="accepted",
        invoice=f"inv_{number}",
        invoice_state="paid",
        stage=0,
    )
    service.made[made.id] = made
    return made


def test_a_person_says_which_of_two_experiments_is_the_order_and_nothing_is_ordered(world, started):
    with running(ContractService(form={**READABLE, "detail": "the list fields alone"})) as service:
        _, chosen = (carrying_the_key(service, number) for number in (1, 2))
        run = started(service, "hosted", None)
        world.until(run, "Suspended", seconds=120)
        assert not any(tag.startswith(EXPERIMENT_TAG) for tag in world.run(run).tags)
        with get_client(sync_client=True) as client:
            client.resume_flow_run(run.id, run_input={"decision": chosen.id})
        ended = completed(world, run)
        assert ended.state.is_completed(), ended.state.message
        assert EXPERIMENT_TAG + chosen.id in ended.tags
        assert (service.creates, service.billed, service.settled) == (0, [], [])


def test_partial_results_end_a_deployed_run_after_the_stated_time(world, started):
    with running(ContractService(form=READABLE, ends_partial=True)) as service:
        run = started(service, "hosted", None)

        def labelled():
            woken(world, run)
            return world.run(run).labels.get(PARTIAL_LABEL)

        since = datetime.fromisoformat(eventually(labelled, seconds=200, what="the label of partial results"))
        world.until(run, "Suspended", seconds=120)
        set_labels(run.id, {PARTIAL_LABEL: (since - PARTIAL_WAIT).isoformat()})
        ended = completed(world, run)
        assert ended.state.is_completed(), ended.state.message
        assert service.creates == 1


@pytest.mark.parametrize("route", ["hosted", "x402", "quoted"])
@pytest.mark.parametrize("at", ["create", "detail", "results"])
def test_a_script_that_is_killed_completes_when_it_is_started_again(tmp_path, route, at):
    empty = here.template(tmp_path / "empty")
    form = {**READABLE, "detail": "the list fields alone"}
    with running(ContractService(form=form)) as service:
        job = {
            "base_url": service.base_url,
            "token": TOKEN,
            "archive": str(tmp_path / "archive"),
            "wallet": X402 if route == "x402" else None,
            "spec": SPEC,
            "campaign_id": "contract",
            "request_quote": route == "quoted",
        }
        first = here.start(tmp_path / "first", empty, **job)
        eventually(lambda: service.calls[at] or None, seconds=200, what=f"the call {at}")
        here.kill(first)
        second = here.said(here.start(tmp_path / "second", empty, **job), seconds=250)
        assert second.get("kind") == "done" or (
            route == "x402" and second["error"] in {"PayByHand", "OrderOutcomeUnknown"}
        ), json.dumps(second)[-2000:]
        assert service.creates <= (2 if route == "quoted" else 1)
        assert len(service.billed) <= 1
        assert len(service.settled) <= 1
