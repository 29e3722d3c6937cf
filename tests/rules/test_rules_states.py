"""The states of contract 3 over HTTP: every transition, who makes it, and how the client reads it."""

import pytest

from prefect_assay.service.models.vocabulary import ExperimentStatus, QuoteStatus, ResultsStatus
from support.lab.organisations import refused

ORDER = [
    ("waiting_for_materials", "none"),
    ("in_queue", "none"),
    ("in_production", "none"),
    ("data_analysis", "none"),
    ("in_review", "partial"),
    ("done", "all"),
]


def seen(org, experiment_id):
    raw = org.http.get(f"/experiments/{experiment_id}").json()
    read = org.client.experiments.get(experiment_id)
    assert (read.status, read.results_status) == (
        ExperimentStatus(raw["status"]),
        ResultsStatus(raw["results_status"]),
    )
    return raw["status"], raw["results_status"]


def test_the_whole_way_of_a_draft(org):
    experiment_id = org.made()["experiment_id"]
    assert seen(org, experiment_id) == ("draft", "none")
    org.client.experiments.submit(experiment_id)
    assert seen(org, experiment_id) == ("waiting_for_confirmation", "none")
    org.advance(until="next")
    assert seen(org, experiment_id) == ("quote_sent", "none")
    assert org.client.experiments.get_quote(experiment_id).status == QuoteStatus.OPEN
    assert org.client.quotes.list().items[0].status == QuoteStatus.PENDING
    org.client.experiments.confirm_quote(experiment_id)
    passed = [seen(org, experiment_id)]
    while passed[-1][0] != "done":
        org.advance(until="next")
        if (now := seen(org, experiment_id)) != passed[-1]:
            passed.append(now)
    assert passed == ORDER
    assert org.client.experiments.get_quote(experiment_id).status == QuoteStatus.ACCEPTED


def test_skipping_the_draft(org):
    assert seen(org, org.made(skip_draft=True)["experiment_id"])[0] == "waiting_for_confirmation"
    assert seen(org, org.made(auto_accept_quote=True)["experiment_id"])[0] == "waiting_for_confirmation"


@pytest.mark.parametrize("status", ["draft", "waiting_for_confirmation"])
def test_canceled_from_where_nothing_is_paid(org, status):
    experiment_id = org.made(skip_draft=status != "draft")["experiment_id"]
    org.lab.event("force_status", experiment_id, status="canceled")
    assert seen(org, experiment_id)[0] == "canceled"
    org.advance(days=1)
    assert seen(org, experiment_id)[0] == "canceled"
    refused(org.http.post(f"/experiments/{experiment_id}/submit"), 409)


def test_an_expired_quote_and_a_rejected_one_make_a_draft(org):
    expired, rejected = org.quoted(), org.quoted()
    org.lab.event("expire_quote", expired)
    assert seen(org, expired)[0] == "draft"
    assert org.client.experiments.get_quote(expired).status == QuoteStatus.STALE
    quote = next(row for row in org.client.quotes.list().items if row.status == QuoteStatus.PENDING)
    org.client.quotes.reject(quote.id, "timeline")
    assert seen(org, rejected)[0] == "draft"
    assert org.client.experiments.get_quote(rejected).status == QuoteStatus.CANCELED
    assert {row.status for row in org.client.quotes.list().items} == {
        QuoteStatus.EXPIRED,
        QuoteStatus.REJECTED,
    }
