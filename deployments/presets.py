"""Makes the saved account the default of the deployed forms. A person then fills in only what to measure."""

from typing import Any, Final
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import DeploymentUpdate
from prefect.exceptions import ObjectNotFound

from prefect_assay.blocks import AssayAccount
from prefect_assay.blocks.block_references import make_references
from prefect_assay.blocks.deployment_runs import deployment_of, find_deployment

NAME: Final = "main"  # of the account that `prefect-assay init` saves
# The flows that people start; `decide` takes the account that the campaign's log names.
_FORMS: Final = (deployment_of("campaign"), deployment_of("design-build-test"))
_ACCOUNT: Final = "account"


def fill_account_into_forms(
    client: SyncPrefectClient, name: str = NAME, *, dry_run: bool = False
) -> tuple[str, ...]:
    """Fill the account of this name into the forms; the deployments where it was filled in.

    What somebody has chosen stays, unless that account was deleted.
    """
    try:
        slug = AssayAccount.get_block_type_slug()
        account = client.read_block_document_by_name(name, slug, include_secrets=False)
    except ObjectNotFound:
        return ()
    filled = []
    for deployment in _FORMS:
        present = find_deployment(client, deployment)
        if present is None:
            continue
        chosen = present.parameters or {}
        if _has_chosen_account(client, chosen):
            continue
        if not dry_run:
            reference = {"$ref": {"block_document_id": str(account.id)}}
            update = DeploymentUpdate(parameters={**chosen, _ACCOUNT: reference})
            client.update_deployment(present.id, update)
        filled.append(deployment)
    return tuple(filled)


def _has_chosen_account(client: SyncPrefectClient, chosen: dict[str, Any]) -> bool:
    """Whether somebody has chosen an account that is there."""
    if _ACCOUNT not in chosen:
        return False
    reference = make_references(chosen).get(_ACCOUNT)
    if reference is None:
        return True
    document_id = reference["block_document_id"] if isinstance(reference, dict) else reference
    try:
        client.read_block_document(UUID(str(document_id)), include_secrets=False)
    except ObjectNotFound:
        return False
    return True
