"""Each form of the contract stand-in's answers is as the description says, or is listed as one that is not."""

from datetime import UTC, datetime

import pytest

from support.contract.forms import FORMS, TARGET, UNDESCRIBED, no_price, page
from support.contract.service import Made
from support.description import find_problems, list_operations

# Where each part is the answer, or a row of it.
ANSWERS = {
    "detail": ("experiments.get", 200), "created": ("experiments.create", 201),
    "accepted": ("experiments.create", 200), "confirmed": ("experiments.confirm_quote", 200),
    "submitted": ("experiments.submit", 200), "rejected": ("quotes.reject", 200),
    "quote": ("experiments.get_quote", 200), "invoice": ("experiments.get_invoice", 200),
    "paid": ("invoices.pay", 200), "updates": ("updates.list", 200), "results": ("experiments.list_results", 200),
    "targets": ("targets.list", 200), "estimate": ("experiments.estimate", 200),
}  # fmt: skip
OPERATIONS = {operation.operation_id: operation for operation in list_operations()}


def made(rail, times="UTC", statuses="snake case"):
    """A measured experiment of three designs that is paid on a rail."""
    return Made(
        number=1,
        id="c0000000-0000-4000-8000-000000000001",
        name="camp",
        spec={
            "experiment_type": "affinity",
            "method": "bli",
            "target_id": TARGET["id"],
            "sequences": {"D0": "MKT", "c": "ACD"},
        },
        rail=rail,
        base_url="http://127.0.0.1:1",
        at=datetime(2026, 3, 2, 9, tzinfo=UTC),
        total=21_900,
        times=FORMS["times"][times],
        statuses=FORMS["statuses"][statuses],
        state="in_queue",
        invoice="inv_1",
        invoice_state="paid",
    )


def problems_of(part, answer):
    operation_id, status = ANSWERS[part]
    chosen, body = answer if isinstance(answer, tuple) else (status, answer)
    if chosen != status or isinstance(body, bytes):
        return ["another answer"]
    if isinstance(body, list):
        body = page(body)
    return find_problems(body, OPERATIONS[operation_id].answer_schema(status))


@pytest.mark.parametrize("rail", ["async_invoice", "x402-exact", "mpp-spt"])
@pytest.mark.parametrize(("part", "form"), [(part, form) for part in ANSWERS for form in FORMS[part]])
def test_a_form_is_as_described_unless_it_is_listed(part, form, rail):
    facts = {"targets": TARGET, "estimate": 21_900}.get(part, made(rail))
    answer = FORMS[part][form](facts)
    problems = problems_of(part, [answer] if part == "targets" else answer)
    assert bool(problems) == ((part, form) in UNDESCRIBED), problems


@pytest.mark.parametrize("times", FORMS["times"])
@pytest.mark.parametrize("statuses", FORMS["statuses"])
def test_times_and_statuses_are_as_described_unless_they_are_listed(times, statuses):
    problems = problems_of("detail", FORMS["detail"]["published"](made("async_invoice", times, statuses)))
    assert bool(problems) == (("statuses", statuses) in UNDESCRIBED), problems


def test_an_estimate_without_a_price_is_as_described():
    assert problems_of("estimate", no_price()) == []


def test_every_part_is_played():
    assert FORMS.keys() - ANSWERS.keys() == {"times", "statuses", "outside"}
    assert {(part, form) for part in FORMS for form in FORMS[part]} >= UNDESCRIBED
