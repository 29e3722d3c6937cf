"""The id of a Prefect home: one Prefect server with its database. Only its own sweep restarts its campaigns."""

from typing import Final
from uuid import uuid4

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import VariableCreate
from prefect.exceptions import ObjectAlreadyExists

HOME_VARIABLE: Final = "assay_home"


def home_id(client: SyncPrefectClient) -> str:
    """The id of this server's home, made at its first use."""
    known = client.read_variable_by_name(HOME_VARIABLE)
    if known is None:
        try:
            known = client.create_variable(VariableCreate(name=HOME_VARIABLE, value=uuid4().hex))
        except ObjectAlreadyExists:  # another run was first
            known = client.read_variable_by_name(HOME_VARIABLE)
    if known is None:
        raise LookupError(f"the variable {HOME_VARIABLE} was deleted while it was read")
    return str(known.value)
