"""The table of the kinds of problems. Events, metrics, automations and docs/operating.md follow it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

CAMPAIGN_WITHOUT_RUN: Final = "campaign-without-run"
QUESTION_OPEN: Final = "question-open"
ORDER_OVERDUE: Final = "order-overdue"
RESULTS_UNREAD: Final = "results-unread"
INVOICE_UNPAID: Final = "invoice-unpaid"
QUOTE_EXPIRING: Final = "quote-expiring"
MONEY_OPEN: Final = "money-open"
TOKEN_EXPIRING: Final = "token-expiring"  # noqa: S105 - a word, not a token
ARCHIVE_UNREACHABLE: Final = "archive-unreachable"
HOME_SILENT: Final = "home-silent"
SERVICE_UNREACHABLE: Final = "service-unreachable"
WEBHOOKS_SILENT: Final = "webhooks-silent"
SWEEP_SILENT: Final = "sweep-silent"
CANNOT_START: Final = "cannot-start"
# Judged by `status --problems` when it is asked, and not saved.
RECEIVER_UNREACHABLE: Final = "receiver-unreachable"


@dataclass(frozen=True)
class AlertKind:
    """What a kind means, and what an operator does about it where the problem has no better advice."""

    meaning: str
    next_step: str


ALERTS: Final[Mapping[str, AlertKind]] = {
    CAMPAIGN_WITHOUT_RUN: AlertKind(
        "an open campaign or loop has no live run, or had to be started again and again",
        "Look into the log of its last run. The sweep starts another one, after growing pauses; nothing is ordered or paid twice. "
        "To give the campaign up: prefect-assay cancel",
    ),
    QUESTION_OPEN: AlertKind(
        "a person is asked",
        "Answer it with prefect-assay approve or reject, or with the form of the deployment decide",
    ),
    ORDER_OVERDUE: AlertKind(
        "an experiment has no complete results after its deadline",
        "Ask the laboratory. The order is read daily until its results come, or a person cancels its campaign",
    ),
    RESULTS_UNREAD: AlertKind(
        "results are at the laboratory, and nothing has collected them",
        "Start its campaign again with the same id: nothing is ordered or paid twice",
    ),
    INVOICE_UNPAID: AlertKind(
        "an invoice is open longer than the limit",
        "Pay it by its link in prefect-assay status, or ask the laboratory whether it can stop",
    ),
    QUOTE_EXPIRING: AlertKind(
        "an unanswered quote expires soon",
        "Answer its question with prefect-assay approve or reject; an expired quote cannot be accepted",
    ),
    MONEY_OPEN: AlertKind(
        "money is to be refunded, must not be paid, or its outcome is unknown",
        "Look at prefect-assay status, which lists it with links",
    ),
    TOKEN_EXPIRING: AlertKind(
        "a token of the service expires soon, or is refused",
        "Make a token in the service's portal and save it in the block under the same name; waiting runs use it",
    ),
    ARCHIVE_UNREACHABLE: AlertKind(
        "an archive cannot be read or written, so its campaigns are not looked after",
        "Restore it, or mount its folder; its campaigns then continue",
    ),
    HOME_SILENT: AlertKind(
        "campaigns belong to a Prefect home whose sweep has not run for a day",
        "Start that home's server and worker. If its database is lost, take its campaigns over: prefect-assay adopt",
    ),
    SERVICE_UNREACHABLE: AlertKind(
        "the service does not answer, or not as it should",
        "Nothing, if it is maintenance: runs wait and look again. Else ask the service, with the request's id",
    ),
    WEBHOOKS_SILENT: AlertKind(
        "updates are in the service's feed that no webhook has delivered",
        "Run prefect-assay check, and look at the receiver's log; until then the sweep wakes these runs, minutes later",
    ),
    SWEEP_SILENT: AlertKind(
        "no sweep has completed for a while",
        "Look at the deployment sweep/assay-sweep. If all its runs are canceled, free its slot with prefect gcl update "
        "deployment:ID --active-slots 0 (prefect deployment inspect has the id). Else: is it paused, has it a schedule, is a worker "
        "online?",
    ),
    CANNOT_START: AlertKind(
        "runs of a deployment cannot start: it is paused, has no slot, no worker or no schedule",
        "Look at its page in the Prefect UI",
    ),
    RECEIVER_UNREACHABLE: AlertKind(
        "the webhook receiver does not answer",
        "Start prefect-assay receiver, or prefect-assay up; until then the sweep wakes runs, minutes later",
    ),
}
