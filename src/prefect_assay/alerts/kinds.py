"""The table of the kinds of problems. Events, metrics, automations and docs/alerts.md follow it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

WEBHOOKS_SILENT: Final = "webhooks-silent"
SWEEP_SILENT: Final = "sweep-silent"
INVOICE_UNPAID: Final = "invoice-unpaid"
QUOTE_EXPIRING: Final = "quote-expiring"
MONEY_OPEN: Final = "money-open"
WALLET_LOW: Final = "wallet-low"
TOKEN_EXPIRING: Final = "token-expiring"  # noqa: S105 - a word, not a token
CAP_REACHED: Final = "cap-reached"
RUN_STUCK: Final = "run-stuck"
ORDER_OPEN: Final = "order-open"
RUN_DELETED: Final = "run-deleted"
DEADLINE_NEAR: Final = "deadline-near"
ARCHIVE_REFUSING: Final = "archive-refusing"
SERVICE_AWAY: Final = "service-away"
# Judged by `status --problems` when it is asked, and not saved: what would save them may be what cannot start.
CANNOT_START: Final = "cannot-start"
RECEIVER_AWAY: Final = "receiver-away"


@dataclass(frozen=True)
class AlertKind:
    """What a kind means, and what an operator does about it where the problem has no better advice."""

    meaning: str
    next_step: str


ALERTS: Final[Mapping[str, AlertKind]] = {
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
    INVOICE_UNPAID: AlertKind(
        "an invoice is open longer than the limit",
        "Pay it by the link in the run's artifact assay-invoice, or cancel the experiment",
    ),
    QUOTE_EXPIRING: AlertKind(
        "an unanswered quote expires soon",
        "Answer the form of its run, with prefect-assay approve or in the Prefect UI; an expired quote cannot be accepted",
    ),
    MONEY_OPEN: AlertKind(
        "money is open that no run takes care of",
        "Look at prefect-assay status, which lists it with links",
    ),
    WALLET_LOW: AlertKind(
        "a wallet holds less than the limit, or cannot be read",
        "Send it more of the asset that it pays with",
    ),
    TOKEN_EXPIRING: AlertKind(
        "a token of the service expires soon, or is refused",
        "Make a token in the service's portal and save it in the block under the same name; waiting runs use it",
    ),
    CAP_REACHED: AlertKind(
        "a run asks a person because a cap would be exceeded",
        "Answer its form, with prefect-assay approve or in the Prefect UI",
    ),
    RUN_STUCK: AlertKind(
        "a run has crashed, hangs, is late or cannot go on",
        "Look into its log",
    ),
    ORDER_OPEN: AlertKind(
        "a run has failed, and no other one waits for what it has ordered",
        "Start it again with the same campaign id, or press Retry on its run in the Prefect UI: it finds its order, and orders "
        "and pays nothing twice",
    ),
    RUN_DELETED: AlertKind(
        "a run was deleted while it worked on an order, and nothing waits for what it has ordered",
        "Start its campaign again with the same campaign id: a new run finds the order, and orders and pays nothing twice. To give "
        "the order up, cancel that new run",
    ),
    DEADLINE_NEAR: AlertKind(
        "an experiment has no complete results shortly before its deadline",
        "Ask the laboratory; a run that ends as Overdue goes on waiting when it is run again",
    ),
    ARCHIVE_REFUSING: AlertKind(
        "an archive that results will be written to cannot be written",
        "Mend it before the results come: nothing is lost, but no run can end",
    ),
    SERVICE_AWAY: AlertKind(
        "the service does not answer, or not as it should",
        "Nothing, if it is maintenance: runs wait and retry. Else ask the service, with the request's id",
    ),
}
