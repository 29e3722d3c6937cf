"""The log of a campaign in an archive, started or not. Each call is another process."""

from datetime import UTC, datetime

from prefect_assay.orders.ledger.campaign_log import CampaignLog, Started, StartedKind, Terms
from prefect_assay.service.models.vocabulary import PaymentMethod

PREFIX = "lab"
NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def some_terms(**changes) -> Terms:
    values = {
        "service": "https://lab.example",
        "organisation": "org-1",
        "simulated": True,
        "archive_id": "a",
        "payment_method": PaymentMethod.ASYNC_INVOICE,
        "per_experiment_cents": 500_000,
        "per_campaign_cents": 2_000_000,
        "accept_quotes": False,
        "deadline_days": 30,
    }
    return Terms(**{**values, **changes})


def started(name="c", what=StartedKind.CAMPAIGN, home="home1", **changes) -> Started:
    """The record of a start, with these changes of the terms."""
    return Started(
        what=what, name=name, terms=some_terms(**changes), home=home, deployment="campaign/campaign"
    )


def a_log(store, name="c", what=StartedKind.CAMPAIGN) -> CampaignLog:
    return CampaignLog(store, PREFIX, name, what)
