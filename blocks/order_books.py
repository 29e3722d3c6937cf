"""Open the books of a run: the log of its service account in its archive."""

from prefect_assay.blocks import Archive, AssayCredentials
from prefect_assay.books import Books
from prefect_assay.client import AssayClient
from prefect_assay.errors import NotFound, ServiceUnavailable
from prefect_assay.payments.interfaces import address


def open_books(credentials: AssayCredentials, archive: Archive) -> Books:
    """The books of the organisation behind the token, in this archive.

    Raises:
        AccessError: the token may not say whose it is.
        ServiceUnavailable: the answer is not the service's; try again later.
        ArchiveError: the archive cannot be used.
    """
    with credentials.get_client() as client:
        account = _account(client)
    return Books(archive.get_store(), archive.prefix, account)


def _account(client: AssayClient) -> str:
    """The organisation's id, which does not depend on the service's address; else the address.

    An answer that is not the service's decides nothing: in other books, an order that was sent or paid is unknown.
    """
    try:
        identity = client.whoami()
    except NotFound as absent:  # contract: not shown, so a service need not have it
        if not absent.genuine:
            raise ServiceUnavailable(
                f"{absent.message} The order's log is that of the token's organisation, so this waits for an answer of the "
                "service",
                status_code=absent.status_code,
            ) from None
        return address(client.base_url)
    active = [o.id for o in identity.organizations if o.active] or [o.id for o in identity.organizations]
    account = identity.active_organization_id or next(iter(active), None)
    if account is None and identity.user_id is None:
        raise ServiceUnavailable(
            "GET /whoami: the answer names neither a user nor an organisation, so it is not the service's"
        )
    return account or address(client.base_url)
