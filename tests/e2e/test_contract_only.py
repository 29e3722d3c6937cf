"""A script against a service that has the contract's calls and nothing more is killed, and completes when it is started again."""

import json

import pytest

from support.contract.campaign import SEQUENCES
from support.contract.service import NETWORK, RECEIVER, TARGET, TOKEN, USDC, ContractService, running
from support.runs import here
from support.runs.world import eventually
from support.x402 import CANARY_KEY

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]

FORM = {"results": "published", "quote": "published", "detail": "the list fields alone"}
X402 = {"private_key": CANARY_KEY, "networks": [NETWORK], "assets": [USDC], "pay_to": [RECEIVER]}


@pytest.mark.parametrize(
    ("route", "call"),
    [
        ("hosted", "experiments.create"),
        ("x402", "experiments.get"),
        ("quoted", "experiments.get"),
        ("hosted", "experiments.list_results"),
    ],
)
def test_a_script_that_is_killed_completes_when_it_is_started_again(tmp_path, route, call):
    empty = here.template(tmp_path / "empty")
    with running(ContractService(form=FORM)) as service:
        job = {
            "base_url": service.base_url,
            "token": TOKEN,
            "archive": str(tmp_path / "archive"),
            "wallet": X402 if route == "x402" else None,
            "designs": "".join(f">{name}\n{residues}\n" for name, residues in SEQUENCES.items()),
            "assay": {"experiment_type": "affinity", "method": "bli", "target": TARGET["name"]},
            "campaign_id": "contract",
            "request_quote": route == "quoted",
        }
        first = here.start(tmp_path / "first", empty, **job)
        eventually(lambda: service.calls[call] or None, seconds=200, what=f"the call {call}")
        here.kill(first)
        second = here.read_answer(here.start(tmp_path / "second", empty, **job), seconds=250)
        assert second.get("rows") or (
            route == "x402" and second["error"] in {"PayByHand", "OrderOutcomeUnknown"}
        ), json.dumps(second)[-2000:]
        assert service.creates <= (2 if route == "quoted" else 1)
        assert len(service.billed) <= 1
        assert len(service.settled) <= 1
