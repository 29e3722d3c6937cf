"""Requests for targets that the catalog lacks. They are published next to the contract (4.4)."""

from collections.abc import Iterator, Sequence
from typing import Final

from prefect_assay.errors import InvalidRequest
from prefect_assay.service.client import checks
from prefect_assay.service.client.answers import require_record
from prefect_assay.service.client.decoding import build_act, build_read
from prefect_assay.service.client.filters import Condition, Sorting
from prefect_assay.service.client.http.request import drop_none, quote_segment
from prefect_assay.service.client.parameters import FieldTest
from prefect_assay.service.client.resources.resource import ListQuery, Resource
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.spec import CustomTarget, CustomTargetStatus, SequenceValue
from prefect_assay.service.models.spec_rules import check_sequences
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX

_PATH: Final = "/targets/request-custom"
_REQUESTS: Final = ListQuery(path=_PATH, row=CustomTarget)


class CustomTargets(Resource):
    """Requests for antigens that the catalog lacks (published with contract 4.4)."""

    def list(
        self,
        *,
        status: CustomTargetStatus | str | None = None,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        limit: int | None = None,
        offset: int | None = None,
    ) -> Page[CustomTarget]:
        """List one page of the organization's requests: GET /targets/request-custom (published with contract 4.4).

        The other parameters are those of `experiments.list`.

        Example:
            ```python
            print(client.custom_targets.list(status="pending_review").total)
            ```
        """
        return self._sender.run(
            _REQUESTS.select(filter, search, sort, where, fields={"status": status}).build_page(limit, offset)
        )

    def iterate(
        self,
        *,
        status: CustomTargetStatus | str | None = None,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        page_size: int = PAGE_LIMIT_MAX,
    ) -> Iterator[CustomTarget]:
        """Yield all matching requests, page by page; parameters as in `list`.

        Example:
            ```python
            for request in client.custom_targets.iterate():
                print(request.id, request.status)
            ```
        """
        return _REQUESTS.select(filter, search, sort, where, fields={"status": status}).iterate(
            self._sender, page_size
        )

    def get(self, request_id: str) -> CustomTarget:
        """Read one request: GET /targets/request-custom/{id} (published with contract 4.4).

        Example:
            ```python
            print(client.custom_targets.get(request_id).status)
            ```
        """
        operation = build_read(f"{_PATH}/{quote_segment(request_id)}", CustomTarget)
        return self._sender.run(require_record(operation, request_id))

    def request(
        self, name: str, product_id: str, sequence: str | None = None, pdb_id: str | None = None
    ) -> CustomTarget:
        """Request an antigen by its residues or its structure, sent once: POST /targets/request-custom.

        Published with contract 4.4.

        Args:
            name: what it is called.
            product_id: your own unique number for it.
            sequence: its residues; a colon separates chains.
            pdb_id: an accession in the Protein Data Bank.

        Raises:
            InvalidRequest: with every finding; nothing was sent.
            Conflict: the product id is known already.
            OutcomeUnknown: the answer was lost: list the requests.

        Example:
            ```python
            request = client.custom_targets.request("My antigen", "ag-17", "MKTAYIAKQRQISFVK")
            print(request.id, request.status)
            ```
        """
        InvalidRequest.check([*_check_identity(name, product_id, sequence, pdb_id)])
        body = drop_none(name=name, product_id=product_id, sequence=sequence, pdb_id=pdb_id)
        after_loss = "List the requests for custom targets before anything else"
        return self._sender.run(build_act("POST", _PATH, CustomTarget, after_loss, body))


def _check_identity(name: str, product_id: str, sequence: str | None, pdb_id: str | None) -> Iterator[str]:
    yield from checks.text("name", name)
    yield from checks.text("product_id", product_id)
    if sequence is None and pdb_id is None:
        yield "sequence: needed, unless there is a pdb_id"
    if sequence is not None:
        yield from check_sequences([(name or "target", SequenceValue(aa_string=sequence))])
    if pdb_id is not None:
        yield from checks.text("pdb_id", pdb_id)
