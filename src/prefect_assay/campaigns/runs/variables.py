"""Prefect variables: the id of this home, and as JSON the sweep's state and open problems.

Several processes may write one; the later one wins. Anything unreadable counts as absent.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, TypeVar
from uuid import uuid4

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import VariableCreate, VariableUpdate
from prefect.client.schemas.filters import VariableFilter, VariableFilterName
from prefect.exceptions import ObjectAlreadyExists, ObjectNotFound
from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound=BaseModel)

LENGTH_MAX: Final = 5_000  # characters of a value, Prefect's limit
HOME_VARIABLE: Final = "assay_home"  # whose value is the id of a Prefect home: one server with its database
_PAGE: Final = 200  # the server's limit


def variable_name(prefix: str, key: str) -> str:
    """Return the name of the variable for a key that is not a name itself."""
    return prefix + hashlib.sha256(key.encode()).hexdigest()[:20]


def read_variables(client: SyncPrefectClient, prefix: str) -> Iterator[tuple[str, str]]:
    """Read the names and values of all variables whose names begin with a prefix, the values as JSON text."""
    chosen = VariableFilter(name=VariableFilterName(like_=prefix)).model_dump(mode="json")
    offset = 0
    while True:
        # The client's own listing takes neither a filter nor an offset.
        page = client.request(
            "POST", "/variables/filter", json={"variables": chosen, "limit": _PAGE, "offset": offset}
        ).json()
        yield from (
            (row["name"], _format_text(row["value"])) for row in page if row["name"].startswith(prefix)
        )
        if len(page) < _PAGE:
            return
        offset += len(page)


def write_variable(client: SyncPrefectClient, name: str, text: str, *, known: bool) -> None:
    """Write a variable; `known` ones have been read, which saves a request."""
    if not known:
        with suppress(ObjectAlreadyExists):  # written meanwhile
            client.create_variable(VariableCreate(name=name, value=text))
            return
    client.update_variable(VariableUpdate(name=name, value=text))


def delete_variable(client: SyncPrefectClient, name: str) -> None:
    """Delete a variable, if it is there."""
    with suppress(ObjectNotFound):
        client.delete_variable_by_name(name)


def parse_variable(kind: type[M], text: str | None) -> M | None:
    """Return the model in a variable's text; None without one, or where another version wrote it."""
    try:
        return None if text is None else kind.model_validate_json(text)
    except ValidationError:
        return None


def _format_text(value: Any) -> str:
    """Return a value as JSON text: a person may have edited it into an object."""
    return value if isinstance(value, str) else json.dumps(value)


def home_id(client: SyncPrefectClient) -> str:
    """Read the id of this server's home, made at its first use; only its own sweep restarts its campaigns."""
    variable = client.read_variable_by_name(HOME_VARIABLE)
    if variable is None:
        try:
            variable = client.create_variable(VariableCreate(name=HOME_VARIABLE, value=uuid4().hex))
        except ObjectAlreadyExists:  # another run was first
            variable = client.read_variable_by_name(HOME_VARIABLE)
    if variable is None:
        raise LookupError(f"the variable {HOME_VARIABLE} was deleted while it was read")
    return str(variable.value)
