"""Compares the terms that a campaign was started under with the account as it is now, before anything is sent."""

from dataclasses import dataclass
from typing import Final

from prefect_assay.blocks import AssayAccount
from prefect_assay.orders.ledger.campaign_log import CampaignLog, Terms
from prefect_assay.orders.next_action import APPROVE
from prefect_assay.orders.question import REJECT, Question, QuestionKind
from prefect_assay.service.words import describe_mode, describe_organisation

LOOK_AGAIN: Final = "look_again"
# Another service, organization or archive has another, empty ledger: everything would be ordered anew.
_IDENTITY: Final = ("service", "organisation", "simulated", "archive_id")
_PAYMENT: Final = ("payment_method", "wallet", "payees")
_WORDS: Final = {
    "service": "service",
    "organisation": "organization",
    "simulated": "live or simulated",
    "archive_id": "archive",
    "payment_method": "payment method",
    "wallet": "wallet",
    "payees": "payees",
}


def find_differences(recorded: Terms, present: Terms) -> dict[str, str]:
    """What differs, in words: the recorded value and the present one. Caps and the deadline may differ."""
    changed = [name for name in (*_IDENTITY, *_PAYMENT) if getattr(recorded, name) != getattr(present, name)]
    return {
        _WORDS[name]: f"{_format_term(name, recorded)} at the start, {_format_term(name, present)} now"
        for name in changed
    }


def is_another_ledger(recorded: Terms, present: Terms) -> bool:
    """Return True if the difference leads to another ledger, so that no answer can accept it."""
    return any(getattr(recorded, name) != getattr(present, name) for name in _IDENTITY)


def terms_question(campaign_id: str, recorded: Terms, present: Terms) -> Question:
    """The question about an account that differs from the recorded terms; nothing is sent before it is answered."""
    facts = find_differences(recorded, present)
    named = ", ".join(facts)
    if is_another_ledger(recorded, present):
        reason = (
            "The campaign's orders are in the ledger of its own service, organization and archive. Put the account back as "
            "it was. To order there, start a campaign under another id."
        )
        choices = {
            LOOK_AGAIN: "the account is as it was, and the campaign looks again",
            REJECT: "nothing is sent; the campaign waits until the account is as it was",
        }
    else:
        reason = "Its remaining orders would be paid in another way than at its start."
        choices = {
            APPROVE: "the campaign goes on as the account is now",
            REJECT: "nothing is sent; the campaign waits until the account is as it was",
        }
    return Question.of(
        QuestionKind.TERMS,
        subject=f"The account of campaign {campaign_id} is another one than at its start: {named}.",
        reason=f"Nothing is ordered, confirmed or paid meanwhile. {reason}",
        facts=facts,
        choices=choices,
    )


@dataclass(frozen=True, kw_only=True)
class AccountIdentity:
    """Whose account it is, and at which service, before a campaign has terms."""

    service: str
    organisation: str | None
    simulated: bool
    organisation_name: str | None = None
    account_name: str | None = None
    owner: str | None = None
    purchase_order: str | None = None
    cost_centre: str | None = None


def identify_account(
    account: AssayAccount,
    service: str,
    organisation: str | None,
    organisation_name: str | None,
    *,
    is_simulated: bool,
) -> AccountIdentity:
    """The identity of an account, at the service and for the organization that its token has named, by its id."""
    return AccountIdentity(
        service=service,
        organisation=organisation,
        organisation_name=organisation_name,
        simulated=is_simulated,
        account_name=account.name,
        owner=account.owner,
        purchase_order=account.purchase_order,
        cost_centre=account.cost_center,
    )


def describe_account(account: Terms | AccountIdentity) -> str:
    """The account for people: its name, whether its service is live or simulated, and whose it is."""
    name = f"account {account.account_name}" if account.account_name else "account without a name"
    kind = describe_mode(is_simulated=account.simulated)
    owner = f", owner {account.owner}" if account.owner else ""
    organisation = describe_organisation(account.organisation, account.organisation_name)
    return f"{name} ({kind}), {account.service}, {organisation}{owner}"


def account_in(log: CampaignLog) -> str:
    """The account of a campaign or a loop, for people, by its log as last read."""
    terms = log.state.terms
    return describe_account(terms) if terms else "account unknown"


def _format_term(name: str, terms: Terms) -> str:
    value = getattr(terms, name)
    if name == "simulated":
        return "simulated" if value else "live"
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return str(value) if value is not None else "none"
