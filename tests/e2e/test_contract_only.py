"""Deployed runs, killed on their way, against a service that has the contract's calls and nothing more."""

import json

import pytest
from prefect.client.orchestration import get_client

from prefect_assay.blocks import (
    AssayCredentials,
    LocalArchive,
    SharedPaymentTokens,
    SpendingPolicy,
    X402Wallet,
)
from support.accounts import AMOUNT_USD
from support.contract.campaign import SEQUENCES
from support.contract.service import (
    NETWORK,
    NETWORK_ID,
    RECEIVER,
    TARGET,
    TOKEN,
    USDC,
    ContractService,
    running,
)
from support.runs import here
from support.runs.world import eventually
from support.services.issuer import ISSUER_KEY, issuer_server
from support.x402 import CANARY_KEY

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]

READABLE = {"results": "published", "quote": "published"}
METHODS = {"hosted": "async_invoice", "x402": "x402-exact", "mpp": "mpp-spt", "quoted": "async_invoice"}
DESIGNS = "".join(f">{name}\n{residues}\n" for name, residues in SEQUENCES.items())
ASSAY = {"experiment_type": "affinity", "method": "bli", "target": TARGET["name"]}
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
            ),
            "archive": LocalArchive(root=str(tmp_path / "archive")),
        }
        if route == "x402":
            blocks["wallet"] = X402Wallet(**X402)
        if route == "mpp":
            blocks["wallet"] = SharedPaymentTokens(
                issuer_url=issuer.url, issuer_key=ISSUER_KEY, network_ids=[NETWORK_ID]
            )
        for name, block in blocks.items():
            block.save(f"contract-{route}-{name}", overwrite=True)
        return world.start(
            "campaign",
            **blocks,
            designs=DESIGNS,
            assay=ASSAY,
            campaign_id=f"contract-{route}",
            spend_up_to_usd=AMOUNT_USD,
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


@pytest.mark.parametrize("route", ["hosted", "x402", "quoted"])
@pytest.mark.parametrize("at", ["experiments.create", "experiments.get", "experiments.list_results"])
def test_a_script_that_is_killed_completes_when_it_is_started_again(tmp_path, route, at):
    empty = here.template(tmp_path / "empty")
    form = {**READABLE, "detail": "the list fields alone"}
    with running(ContractService(form=form)) as service:
        job = {
            "base_url": service.base_url,
            "token": TOKEN,
            "archive": str(tmp_path / "archive"),
            "wallet": X402 if route == "x402" else None,
            "designs": DESIGNS,
            "assay": ASSAY,
            "campaign_id": "contract",
            "request_quote": route == "quoted",
        }
        first = here.start(tmp_path / "first", empty, **job)
        eventually(lambda: service.calls[at] or None, seconds=200, what=f"the call {at}")
        here.kill(first)
        second = here.said(here.start(tmp_path / "second", empty, **job), seconds=250)
        assert second.get("rows") or (
            route == "x402" and second["error"] in {"PayByHand", "OrderOutcomeUnknown"}
        ), json.dumps(second)[-2000:]
        assert service.creates <= (2 if route == "quoted" else 1)
        assert len(service.billed) <= 1
        assert len(service.settled) <= 1
