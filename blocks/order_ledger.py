"""Open the ledgers of a run: those of its service account in its archive."""

from prefect_assay.blocks import Archive, AssayCredentials
from prefect_assay.errors import (
    AssayError,
    Forbidden,
    NotFound,
    ServiceUnavailable,
    TransientError,
    UnexpectedAnswer,
    is_absent,
)
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.payments.interfaces import normalize_address
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.tokens import Identity, Organization

_UNANSWERED = (TransientError, UnexpectedAnswer, NotFound, Forbidden)


def open_ledgers(credentials: AssayCredentials, archive: Archive) -> Ledgers:
    """The ledgers of the organization behind the token, in this archive.

    What the first use of the service's address has recorded holds, also when the service does not answer.

    Raises:
        OtherOrganization: the archive's log is another organization's.
        AccessError: the token is not valid.
        ServiceUnavailable: at the first use, the answer is not the service's; try again later.
        ArchiveError: the archive cannot be used.
    """
    with credentials.get_client() as client:
        return _open_ledgers(client, archive)


def _open_ledgers(client: AssayClient, archive: Archive) -> Ledgers:
    store = archive.get_store()
    service = normalize_address(client.base_url)
    is_simulated = None
    try:
        organisation = read_organisation(client)
        is_simulated = client.is_simulated
    except AssayError as error:
        if not (isinstance(error, _UNANSWERED) or is_absent(error)):
            raise
        recorded = Ledgers.find_recorded(store, archive.prefix, service)
        if recorded is not None:
            return recorded
        if (isinstance(error, TransientError) and not is_absent(error)) or not _is_answering(client):
            raise _first_use(error) from error
        organisation = None  # named later, it is noted in the same log
    organisation_id = organisation.id if organisation else None
    ledgers = Ledgers.open(
        store, archive.prefix, service, organisation_id, organisation.name if organisation else None
    )
    ledgers.is_simulated = is_simulated
    return ledgers


def read_organisation(client: AssayClient) -> Organization | None:
    """Read the organization that the token orders for; None if the service does not name one."""
    try:
        identity = client.tokens.whoami()
    except NotFound as absent:  # contract: not shown, so a service need not have it
        if absent.genuine:
            return None
        raise
    organisation = organisation_of(identity)
    if organisation is None and identity.user_id is None:
        raise UnexpectedAnswer(
            "GET /whoami: the answer names neither a user nor an organization, so it is not the service's"
        )
    return organisation


def organisation_of(identity: Identity) -> Organization | None:
    """The organization that a token orders for; with its id alone where the service does not list it."""
    active_id, listed = identity.active_organization_id, identity.organizations
    if active_id is not None:
        return next((one for one in listed if one.id == active_id), Organization(id=active_id))
    return next((one for one in listed if one.active), listed[0] if len(listed) == 1 else None)


def _is_answering(client: AssayClient) -> bool:
    """Whether the service answers a call of the contract (4.4): then it is there, and does not have `GET /whoami`."""
    try:
        client.targets.list(limit=1)
    except (UnexpectedAnswer, NotFound, TransientError):
        return False
    return True


def _first_use(error: AssayError) -> AssayError:
    if isinstance(error, TransientError | Forbidden):
        return error
    return ServiceUnavailable(
        f"{error.message} The archive records at its first use whose log it is, so this waits for an answer of the service",
        status_code=error.status_code,
    )
