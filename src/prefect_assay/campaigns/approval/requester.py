"""Who asks for a purchase, and how that is known. Only Prefect's own user is proof; any other name is a statement."""

import getpass
import socket
from contextlib import suppress
from typing import Final, NamedTuple

from prefect.context import FlowRunContext

from prefect_assay.campaigns.runs.tags import APPROVED_TAG, tag_values
from prefect_assay.campaigns.setup import CampaignSetup
from prefect_assay.tasks.current_run import can_suspend

_USER: Final = "USER"  # how Prefect Cloud calls a person in `created_by`; a server without users names nobody


class Requester(NamedTuple):
    """Who asks for a purchase, and how the name is known; both None where nobody says it."""

    name: str | None = None
    known_by: str | None = None


def identify_requester(setup: CampaignSetup) -> Requester:
    """Who has started this run: Prefect's user, else the stated name, this machine's user, or the account's owner."""
    account, stated_name = setup.account, setup.options.spending.requester
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    creator = run.created_by if run else None
    if run and creator and creator.type == _USER and creator.display_value:
        return Requester(creator.display_value, f"Prefect's user who has created run {run.name}")
    if stated_name and stated_name.strip():
        return Requester(
            stated_name.strip(), f"the name given with run {run.name}" if run else "the name given"
        )
    if not can_suspend():
        with suppress(OSError, KeyError):  # a container's user may have no name
            return Requester(getpass.getuser(), f"the user of the process on {socket.gethostname()}")
    if account.owner:
        return Requester(account.owner, f"the owner of account {account.name or 'without a name'}")
    return Requester()


def describe_approval(loop_id: str | None = None) -> str:
    """How the amount was said that this run may spend without asking."""
    if loop_id is not None:
        return f"the budget of loop {loop_id}"
    context = FlowRunContext.get()
    run = context.flow_run if context else None
    if run is None or not can_suspend():
        return "the amount given with the call"
    commands = tag_values(run.tags, APPROVED_TAG)
    # No text that a spreadsheet would take for a formula.
    return f"with run {run.name}, by {commands[0] if commands else 'the amount given'}"
