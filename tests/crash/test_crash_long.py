"""`make crash`: ordering and paying with every fault of the pay path, every lost answer, and random kills and faults."""

import re

import pytest

from support.crash.limits import SCHEDULES, SEED
from support.crash.story import (
    PAYMENT_FAULTS,
    RAILS,
    ROUTES,
    End,
    Fault,
    Schedule,
    judge,
    play,
    random_schedule,
)

pytestmark = [pytest.mark.crash, pytest.mark.timeout(7200)]

PARTS = 8  # so that two processes share the work

REFUSED = {
    "wrong_amount": "the challenge asks for",
    "wrong_payee": "is not in .* block",
    "wrong_asset": "is not in .* block|currency|not usd",
    "wrong_network": "is not in .* block|not known here|method",
    "wrong_resource": "not for|names|is for|another|resource|externalId",
    "expired_challenge": "it expired",
    "ten_year_window": "the policy allows",
    "missing_header": "Payment-Authorization|PAYMENT-REQUIRED",
}


@pytest.mark.parametrize("part", range(PARTS))
def test_random_schedules(core, play_all, part):
    play_all(core, [random_schedule(SEED, n, "core", points=36) for n in range(part, SCHEDULES, PARTS)])


@pytest.mark.parametrize("rail", RAILS)
@pytest.mark.parametrize("action", PAYMENT_FAULTS)
def test_every_fault_of_the_pay_path(core, action, rail):
    """With the fault there it ends as docs/ordering.md says."""
    route = ROUTES[PAYMENT_FAULTS.index(action) % 2]
    fault = Fault(action, {"rail": rail}, payment=True)
    lost = Fault("lose_answer", {"method": "POST", "path": "/invoices/*/pay", "after": 1})
    faults = (fault, lost) if action == "replay_403" else (fault,)
    story = play(core, Schedule(f"fault-{rail}-{action}".replace("_", "-"), route, rail, faults=faults))
    assert judge(core, story, faults_gone=False) == []
    paid = [s for s in core.lab.settlements() if s["experiment_id"] in story.known]
    if action in {"no_receipt", "replay_403"}:
        assert story.end is End.DONE
        return
    assert paid == []
    assert story.end is End.FAILED
    if action == "always_402":
        assert story.errors[-1] == "PaymentOutcomeUnknown"
        assert len(story.credentials) == 1
    elif action == "insufficient_funds":
        assert story.errors[-1] == "PaymentFailed"
        assert "insufficient" in story.messages[-1]
    else:
        assert story.errors[-1] == "PaymentRefused"
        assert not story.credentials
        assert re.search(REFUSED[action], story.messages[-1]), story.messages[-1]


@pytest.mark.parametrize("action", ["lose_answer", "error_after", "truncate", "reset", "status"])
@pytest.mark.parametrize("call", ["/experiments", "/experiments/*/quote/confirm", "/invoices/*/pay"])
@pytest.mark.parametrize("rail", RAILS)
def test_every_lost_answer(core, play_all, action, call, rail):
    """At the create, at the confirmation and at the payment itself; what did not happen is asked for again."""
    route = "quoted" if "quote" in call else "self-service"
    fault = Fault(action, {"method": "POST", "path": call, "after": int("pay" in call)})
    name = f"lost-{rail}-{action}-{call.rpartition('/')[2]}".replace("_", "-")
    play_all(core, [Schedule(name, route, rail, faults=(fault,), faulty_executions=1)])


@pytest.mark.parametrize("action", ["partial_create", "post_invoice_failure"])
@pytest.mark.parametrize("rail", RAILS)
def test_every_half_order(core, play_all, action, rail):
    fault = Fault(action, {"method": "POST", "path": "/experiments"})
    name = f"half-{rail}-{action}".replace("_", "-")
    stories = play_all(core, [Schedule(name, "self-service", rail, faults=(fault,), faulty_executions=1)])
    assert [story.end for story in stories] == [End.DONE]
