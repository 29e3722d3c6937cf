"""The spending ledger in Prefect variables: it outlives every process and every worker sees the same one.

One variable per invoice, `assay_payment_<key>`, created once by the server. No credential stands in it.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Final

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import VariableCreate, VariableUpdate
from prefect.client.schemas.filters import VariableFilter, VariableFilterName, VariableFilterTags
from prefect.exceptions import ObjectAlreadyExists

from prefect_assay.payments import KeyValueLedger
from prefect_assay.tasks.locks import held

PAYMENT_LIMIT: Final = "assay-payment"
_PREFIX: Final = "assay_payment_"
_TAG: Final = "assay-payment"  # of all variables that are written under the limit
_PAGE: Final = 200


class PrefectLedger(KeyValueLedger):
    """`Ledger` on the Prefect API that this process uses."""

    def __init__(self) -> None:
        super().__init__(VariableStore(_PREFIX))


class VariableStore:
    """`KeyValueStore` on Prefect variables with a prefix. Their values are JSON text, kept as text."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def create(self, key: str, value: str) -> bool:
        """The server refuses a second variable of the same name, whoever asks."""
        with get_client(sync_client=True) as client:
            try:
                client.create_variable(VariableCreate(name=self._prefix + key, value=value, tags=[_TAG]))
            except ObjectAlreadyExists:
                return False
        return True

    def read(self, key: str) -> str | None:
        """The value, or None."""
        with get_client(sync_client=True) as client:
            variable = client.read_variable_by_name(self._prefix + key)
        return None if variable is None else str(variable.value)

    def replace(self, key: str, value: str) -> None:
        """Write the value of an existing key."""
        with get_client(sync_client=True) as client:
            client.update_variable(VariableUpdate(name=self._prefix + key, value=value))

    def values(self) -> Iterator[str]:
        """All values."""
        with get_client(sync_client=True) as client:
            yield from _all_values(client, self._prefix)

    def locked(self) -> AbstractContextManager[object]:
        """One writer at a time over all workers. The limit is created by `prefect-assay deploy`.

        Its lease ends by itself when a process dies. Without the limit the server's refusal of a second
        variable still keeps payments apart, and the sum is taken after the entry is written.
        """
        return held(PAYMENT_LIMIT, trace=last_written)


def last_written() -> str | None:
    """When somebody last wrote under the limit."""
    chosen = VariableFilter(tags=VariableFilterTags(all_=[_TAG])).model_dump(mode="json")
    body = {"variables": chosen, "sort": "UPDATED_DESC", "limit": 1}
    with get_client(sync_client=True) as client:
        rows = client.request("POST", "/variables/filter", json=body).json()
    return str(rows[0]["updated"]) if rows else None


def _all_values(client: SyncPrefectClient, prefix: str) -> Iterator[str]:
    chosen = VariableFilter(name=VariableFilterName(like_=prefix)).model_dump(mode="json")
    offset = 0
    while True:
        # The client's own listing takes neither a filter nor an offset.
        page = client.request(
            "POST", "/variables/filter", json={"variables": chosen, "limit": _PAGE, "offset": offset}
        ).json()
        yield from (str(row["value"]) for row in page if row["name"].startswith(prefix))
        if len(page) < _PAGE:
            return
        offset += len(page)
