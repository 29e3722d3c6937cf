"""A question in the forms and artifacts of Prefect's user interfaces: the decision first, and no answer by accident."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from pydantic import ValidationError

from prefect_assay.campaigns.approval.price import PriceApproval
from prefect_assay.campaigns.approval.questions import form_markdown, question_markdown
from prefect_assay.orders.ledger.campaign_log import Asked
from prefect_assay.orders.next_action import spending_question
from prefect_assay.orders.purchase import EarlierPurchase, PurchaseSummary
from prefect_assay.orders.question import Question, QuestionKind

ACCOUNT = "account main (simulated), http://127.0.0.1:8100"
NOTHING_BEFORE = PurchaseSummary.model_construct(designs=40, earlier=())
NOW = datetime(2026, 3, 2, tzinfo=UTC)


def price(name="c-1"):
    return spending_question(f"Campaign {name}", 856_000, 0, "cap", [], {"designs": "40, 66 residues"})


def asked(question, order_key=None):
    return Asked(
        question_id="ab12",
        revision=2,
        question=question,
        order_key=order_key,
        asked_at=NOW,
        expires_at=NOW + timedelta(days=3),
    )


def test_an_empty_answer_is_refused_by_the_form():
    with pytest.raises(ValidationError, match="decision"):
        PriceApproval.model_validate({})
    assert PriceApproval.model_json_schema()["required"] == ["decision"]  # what Prefect's server goes by
    assert PriceApproval(decision="reject").decided_by == ""


def test_the_form_begins_with_price_and_account_and_links_the_rest():
    text = form_markdown(price(), ACCOUNT, UUID(int=7), NOTHING_BEFORE)
    assert text.startswith(
        "**Campaign c-1 costs 8,560.00 USD without VAT.** Account main (simulated), http://127.0.0.1:8100."
    )
    assert "Nothing is ordered before you approve." in text
    assert f"(../../artifacts/artifact/{UUID(int=7)})" in text
    assert "40, 66 residues" not in text


def test_the_form_says_what_was_ordered_before():
    again = NOTHING_BEFORE.model_copy(
        update={"earlier": (EarlierPurchase(campaign_id="c-0", designs=("a", "b")),)}
    )
    text = form_markdown(price(), ACCOUNT, UUID(int=7), again)
    assert "**2 of the 40 designs were ordered before**, in c-0." in text


def test_a_name_in_the_form_makes_no_link():
    assert "[x](" not in form_markdown(
        price("[x](http://evil.example)"), ACCOUNT, UUID(int=7), NOTHING_BEFORE
    )


def test_the_decision_and_how_to_answer_come_before_the_facts():
    text = question_markdown("c-1", asked(price()), ACCOUNT)
    places = [
        text.index(part)
        for part in (
            "(simulated)",
            "- `approve`:",
            "- `reject`:",
            "*Resume* the run",
            "prefect-assay approve c-1 --question ab12 --revision 2 --usd 8560.00",
            "prefect-assay reject c-1 --question ab12 --revision 2\n",
            "- designs: 40, 66 residues",
        )
    ]
    assert places == sorted(places)


def test_a_question_without_a_form_of_its_own_names_what_decide_asks_for():
    text = question_markdown("c-1", asked(price(), order_key="k"), ACCOUNT)
    assert "`assay-decide` (question ab12, revision 2, amount 856000 cents)" in text
    assert "The other orders of the campaign go on meanwhile." in text
    terms = Question.of(
        QuestionKind.TERMS, subject="Another account.", reason="Why.", choices={"approve": "a", "reject": "b"}
    )
    assert "`assay-decide` (question ab12, revision 2)" in question_markdown("c-1", asked(terms), ACCOUNT)
