"""A service with the contract's calls and nothing more: however it answers what the contract does not show, nothing is ordered
or paid twice, and a campaign ends as `outcomes.json` says."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from prefect_assay.blocks import AssayCredentials
from prefect_assay.campaigns import play
from prefect_assay.cli.services.init import token_owner
from prefect_assay.errors import DecisionNeeded, Unauthorized
from prefect_assay.orders.identity import order_key, search_token
from prefect_assay.orders.stages import Stage
from prefect_assay.orders.wait_decision import PARTIAL_WAIT
from support.contract.campaign import (
    CAMPAIGN,
    SEQUENCES,
    StillWaiting,
    a_plan,
    a_setup,
    begin,
    complete,
    without_prefect,
)
from support.contract.forms import FORMS
from support.contract.service import TOKEN, TOTAL, ContractService, Made, running
from support.contract.table import OUTCOMES, READABLE, VARIANTS, ended, is_described

EXPECTED = json.loads(OUTCOMES.read_text(encoding="utf-8"))


def test_the_table_has_every_variant():
    assert {name: tuple(ends) for name, ends in EXPECTED.items()} == {
        name: routes for name, (_, _, routes) in VARIANTS.items()
    }


# A quoted create commits nothing, so another one may follow where the service shows no experiment.
SENT_AGAIN = {"the answer to the create is lost, and the list is late"}
# The service has billed on a rail that the campaign may not use: the run looks again, until a person pays the page.
PAID_BY_HAND = {"the token's policy has pinned x402-exact"}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_campaign_ends_as_expected(variant, tmp_path):
    for route in VARIANTS[variant][2]:
        words, service = ended(variant, route, tmp_path / route)
        assert words == EXPECTED[variant][route], route
        again = variant in SENT_AGAIN and route == "quoted"
        assert service.creates <= (2 if again else 1)
        assert len(service.billed) <= 1
        assert len(service.settled) <= 1
        assert words != "waits" or variant in PAID_BY_HAND
        assert not service.problems or not is_described(variant), service.problems


@pytest.mark.parametrize("form", FORMS["outside"])
def test_init_and_check_ask_for_no_call_that_the_contract_does_not_have(form):
    with running(ContractService(form={"outside": form})) as service:
        with AssayCredentials(base_url=service.base_url, token=TOKEN).get_client() as client:
            assert token_owner(client) is None
        other = AssayCredentials(base_url=service.base_url, token="another")
        with other.get_client() as client, pytest.raises(Unauthorized):
            token_owner(client)


def carrying_the_key(service, number, spec):
    """An experiment that carries the order key of the campaign and shows nothing else of its order."""
    made = Made(
        number=number,
        id=f"c0000000-0000-4000-8000-00000000000{number}",
        name=f"by hand {search_token(order_key('camp', 0, spec))}",
        spec=spec.wire(),
        rail="async_invoice",
        base_url=service.base_url,
        at=datetime.now(UTC) - timedelta(hours=number),
        total=TOTAL,
        times=service.of("times"),
        statuses=service.of("statuses"),
        quote="accepted",
        invoice=f"inv_{number}",
        invoice_state="paid",
        state="waiting_for_materials",
        stage=0,
    )
    service.made[made.id] = made
    return made


@pytest.mark.parametrize("number", [1, 2])
def test_the_experiment_that_a_person_names_is_the_order_and_nothing_is_ordered(tmp_path, number):
    with running(ContractService(form={**READABLE, "detail": "the list fields alone"})) as service:
        setup = a_setup(service, tmp_path, "hosted")
        plan = a_plan(setup)
        spec = plan.experiments[0].spec
        first, second = (carrying_the_key(service, one, spec) for one in (1, 2))
        with pytest.raises(DecisionNeeded):
            complete(setup, plan)
        log = setup.log(CAMPAIGN)
        (asked,) = log.read().open_questions.values()
        assert {first.id, second.id} <= set(asked.question.decisions)
        log.answer(
            asked.question_id,
            asked.revision,
            (first, second)[number - 1].id,
            amount_cents=None,
            answerer="Ada",
            how="test",
            now=datetime.now(UTC),
        )
        for _ in range(2):
            complete(setup, plan)
            ordered = setup.ledgers.open_order(CAMPAIGN, plan.experiments[0].order_key).read().ordered
            assert ordered.experiment_id == (first, second)[number - 1].id
        assert (service.creates, service.billed, service.settled) == (0, [], [])


@pytest.mark.parametrize("days", [0, 1])
def test_done_with_partial_results_ends_after_the_stated_time_with_what_there_is(monkeypatch, tmp_path, days):
    times = [datetime.now(UTC)]

    def read_service_clock(_client):
        times.append(times[-1] + timedelta(days=days))
        return times[-1]

    monkeypatch.setattr(play, "time_at", read_service_clock)
    with running(ContractService(form=READABLE, ends_partial=True)) as service, without_prefect() as played:
        setup = a_setup(service, tmp_path, "hosted")
        campaign = begin(setup, a_plan(setup))
        play.approve_price(campaign)
        if not days:
            with pytest.raises(StillWaiting):
                play.play_orders(campaign)
        else:
            play.play_orders(campaign)
            assert played.stage is Stage.INCOMPLETE
            (ledger,) = setup.ledgers.list_orders()
            assert times[-1] - ledger.read().partial.seen == PARTIAL_WAIT
    names = {row.name for row in played.kept[-1].rows if row.level == "summary" and row.result_id}
    assert names == set(SEQUENCES)


def test_a_service_that_refuses_the_filter_is_searched_by_the_names(tmp_path):
    with running(ContractService(form=READABLE, refuses_filter=True)) as service:
        setup = a_setup(service, tmp_path, "x402")
        assert complete(setup, a_plan(setup)).stage is Stage.MEASURED
        assert (service.creates, len(service.settled)) == (1, 1)


def test_such_a_service_is_live(tmp_path):
    with running(ContractService()) as service:
        setup = a_setup(service, tmp_path, "hosted")
        assert not setup.terms().simulated
