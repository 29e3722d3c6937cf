"""A question in the forms and artifacts of Prefect's user interfaces: the decision first, and no answer by accident."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import UUID

import pytest
from pydantic import ValidationError

from prefect_assay.blocks import LocalArchive
from prefect_assay.campaigns.approval.price import PriceApproval
from prefect_assay.campaigns.approval.questions import estimate_of_order, form_markdown, question_markdown
from prefect_assay.orders.ledger.campaign_log import Asked, Offered
from prefect_assay.orders.next_action import CAMPAIGN_ENDS, spending_question
from prefect_assay.orders.purchase import (
    EarlierPurchase,
    PriceLine,
    PurchasedExperiment,
    PurchaseState,
    PurchaseSummary,
)
from prefect_assay.orders.question import Question, QuestionKind
from support.campaign_logs import WrittenCampaign

ACCOUNT = "account main (simulated), http://127.0.0.1:8100"
NOTHING_BEFORE = PurchaseSummary.model_construct(designs=40, earlier=(), experiments=())
NOW = datetime(2026, 3, 2, tzinfo=UTC)


def price(name="c-1"):
    return spending_question(
        f"Campaign {name}",
        856_000,
        0,
        "cap",
        [],
        {"designs": "40, 66 residues"},
        rejected=CAMPAIGN_ENDS,
    )


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
    assert "**2 of the 40 designs were ordered before**, in c-0, and would be bought again." in text


def test_the_price_lines_are_where_a_person_says_yes():
    lines = (PriceLine(name="assay", cents=119_000), PriceLine(name="replicates", cents=60_000))
    one = PurchasedExperiment(
        number=1, designs=2, controls=0, state=PurchaseState.NEW, cents=179_000, lines=lines
    )
    priced = NOTHING_BEFORE.model_copy(update={"experiments": (one,)})
    items = "assay 1,190.00 + replicates 600.00, for 1 experiment"
    assert items in form_markdown(price(), ACCOUNT, UUID(int=7), priced)
    estimated = question_markdown("c-1", asked(price(), order_key="k"), ACCOUNT, estimate=items)
    assert f"- estimate: {items}" in estimated


def test_the_price_lines_of_an_order_are_those_that_were_offered(tmp_path):
    archive = LocalArchive(root=str(tmp_path))
    written = WrittenCampaign(archive.get_store(), archive.prefix, "c-1")
    first, second = (one.order_key for one in written.plan.experiments)
    assert estimate_of_order(written.log, first) is None, "nothing was offered yet"
    line = PriceLine(name="assay", cents=119_000)
    fields = {"designs": 1, "controls": 0, "state": PurchaseState.NEW, "cents": 119_000}
    experiments = [
        PurchasedExperiment(number=number, lines=lines, **fields) for number, lines in ((1, (line,)), (2, ()))
    ]
    # The first one is ordered then: a later summary does not itemise it.
    placed = [PurchasedExperiment(number=number, lines=(), **fields) for number in (1, 2)]
    offers = [
        Offered.model_construct(purchase=SimpleNamespace(experiments=one)) for one in (experiments, placed)
    ]
    log = SimpleNamespace(
        state=SimpleNamespace(offered=offers[-1]),
        records=lambda: offers,
        store=written.store,
        prefix=written.prefix,
        name="c-1",
    )
    assert estimate_of_order(log, first) == "assay 1,190.00, for 1 experiment"
    assert estimate_of_order(log, second) is None
    assert estimate_of_order(log, None) is None


def test_a_rejected_price_of_a_campaign_ends_the_campaign():
    text = question_markdown("c-1", asked(price()), ACCOUNT)
    assert "- `reject`: nothing is ordered, and the campaign ends" in text
    order = spending_question("Order 1", 1, 0, "cap", [], {})
    assert order.choices[-1].effect == "it is not spent, and the order ends"


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
            "prefect-assay approve c-1 \\\n  --question ab12 --revision 2 \\\n  --usd 8560.00\n",
            "prefect-assay reject c-1 \\\n  --question ab12 --revision 2\n",
            "- designs: 40, 66 residues",
        )
    ]
    assert places == sorted(places)
    commands = text.split("```")[1].splitlines()
    assert max(map(len, commands)) < 45, "a telephone shows them without scrolling"


def test_a_question_without_a_form_of_its_own_names_what_decide_asks_for():
    text = question_markdown("c-1", asked(price(), order_key="k"), ACCOUNT)
    assert "`assay-decide` (question ab12, revision 2, amount 8,560.00 USD)" in text
    assert "The other orders of the campaign go on meanwhile." in text
    terms = Question.of(
        QuestionKind.TERMS, subject="Another account.", reason="Why.", choices={"approve": "a", "reject": "b"}
    )
    assert "`assay-decide` (question ab12, revision 2)" in question_markdown("c-1", asked(terms), ACCOUNT)
