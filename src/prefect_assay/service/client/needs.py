"""The calls that a campaign needs of the service, in one table for `init`, `check`, `drift` and docs/service.md.

Only calls of the contract are needed. A campaign completes without any other call.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Need(StrEnum):
    """What a call is to a campaign."""

    NEEDED = "a campaign needs this"
    IMPROVES = "improves"
    UNUSED = "unused"


@dataclass(frozen=True, slots=True)
class NeededCall:
    """One call: on which routes and rails a campaign uses it, the fields that decide, and what happens without it."""

    operation: str
    need: Need
    routes: str
    fields: str
    without: str


_N, _I = Need.NEEDED, Need.IMPROVES
_ALL: Final = "all"

NEEDS: Final = (
    NeededCall(
        "GET /targets", _N, "assays with a target", "`items[].id`, a name or number", "nothing is ordered"
    ),
    NeededCall(
        "POST /experiments/cost-estimate",
        _N,
        "self-service",
        "`breakdown.total_cents`",
        "nothing is ordered",
    ),
    NeededCall(
        "POST /experiments",
        _N,
        _ALL,
        "`experiment_id`; on a machine rail `invoice_id` or `payment.pay_url`",
        "nothing is ordered",
    ),
    NeededCall(
        "GET /experiments",
        _N,
        _ALL,
        "`items[].id`, `name`, `status`, `results_status`, `created_at`; `search`",
        "nothing is ordered: an order could not be found again",
    ),
    NeededCall("GET /experiments/{}", _N, _ALL, "none: the list's row decides", "results are not archived"),
    NeededCall(
        "GET /experiments/{}/invoice",
        _N,
        _ALL,
        "404 before the acceptance; `status`, `provider_invoice_url`",
        "the run waits for the invoice",
    ),
    NeededCall(
        "GET /experiments/{}/quote",
        _N,
        "quoted",
        "404 before it exists; a total, `status`",
        "the run waits for the quote",
    ),
    NeededCall(
        "POST /experiments/{}/quote/confirm",
        _N,
        "quoted",
        "on a machine rail as the create",
        "the quote is not accepted",
    ),
    NeededCall(
        "POST /invoices/{}/pay",
        _N,
        "x402-exact, mpp-spt",
        "the challenge of the 402",
        "a person pays the hosted page",
    ),
    NeededCall("GET /experiments/{}/results", _N, _ALL, "any JSON", "the run waits for the results"),
    NeededCall(
        "GET /updates",
        _I,
        _ALL,
        "`items[].experiment_id`, `timestamp`",
        "runs wake at their next look, not at the news",
    ),
    NeededCall(
        "GET /whoami",
        _I,
        _ALL,
        "`active_organization_id`",
        "the log of orders belongs to the service's address; no alert before the token expires",
    ),
    NeededCall("GET /targets/{}", _I, "assays with a target", "`id`", "the catalog is listed"),
    NeededCall(
        "GET /invoices",
        _I,
        _ALL,
        "`items[].experiment_id`, `amount`",
        "after a lost acceptance a machine cannot pay: a person pays the hosted page; no amount of a hosted invoice",
    ),
    NeededCall(
        "GET /invoices/{}",
        _I,
        "x402-exact, mpp-spt",
        "`status`, `amount`",
        "the amount is that of the challenge; more is a question",
    ),
    NeededCall(
        "POST /quotes/{}/reject", _I, "quoted", "", "open quotes of surplus and canceled orders stay open"
    ),
    NeededCall(
        "GET /experiments/{}/sequences",
        _I,
        _ALL,
        "`items[].id`, `name`",
        "results that name only sequence ids are unmatched",
    ),
    NeededCall("GET /experiments/{}/updates", _I, _ALL, "", "no dates of progress in the artifact"),
    NeededCall(
        "GET /results/{}",
        _I,
        _ALL,
        "`data_package_url`",
        "a package whose address has expired is noted as absent",
    ),
)
_BY_OPERATION: Final = {call.operation: call for call in NEEDS}


def need_of(operation: str) -> Need:
    """What an operation, such as `GET /experiments/{}`, is to a campaign."""
    found = _BY_OPERATION.get(operation)
    return found.need if found else Need.UNUSED
