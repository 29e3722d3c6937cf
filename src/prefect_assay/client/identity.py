"""Operations on who the token speaks for."""

from prefect_assay.client.read import model
from prefect_assay.client.request import Operation, Request
from prefect_assay.models.identity import Identity


def whoami() -> Operation[Identity]:
    """GET /whoami: the user, the organizations and the permissions behind the token.

    Raises:
        Unauthorized: the token is missing, unknown, expired or revoked.
    """
    return Operation(request=Request(method="GET", path="/whoami", repeatable=True), read=model(Identity))
