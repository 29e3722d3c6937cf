"""The target catalog (contract 4.4)."""

from collections.abc import Iterator, Sequence
from typing import Final

from prefect_assay.service.client.answers import require_record
from prefect_assay.service.client.decoding import build_read
from prefect_assay.service.client.filters import Condition, Sorting
from prefect_assay.service.client.http.request import quote_segment
from prefect_assay.service.client.parameters import FieldTest
from prefect_assay.service.client.resources.resource import ListQuery, Resource
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.spec import Target
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX

_TARGETS: Final = ListQuery(path="/targets", row=Target)


class Targets(Resource):
    """The catalog of antigens (contract 4.4)."""

    def list(
        self,
        *,
        name: str | None = None,
        vendor_name: str | None = None,
        selfservice_only: bool | None = None,
        detailed: bool | None = None,
        show_conjugated: bool | None = None,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        limit: int | None = None,
        offset: int | None = None,
    ) -> Page[Target]:
        """List one page of the catalog: GET /targets (contract 2.11 and 4.4).

        Args:
            name: the whole name.
            vendor_name: the whole name of the vendor.
            selfservice_only: only targets with a calibrated price.
            detailed: adds `details` to the rows.
            show_conjugated: adds conjugated forms.
            filter: as in `experiments.list`; so are `sort`, `where`, `limit` and `offset`.
            search: a text in names and catalog numbers.
            sort: see `filter`.
            where: see `filter`.
            limit: see `filter`.
            offset: see `filter`.

        Example:
            ```python
            for target in client.targets.list(search="EGFR", selfservice_only=True).items:
                print(target.id, target.name)
            ```
        """
        fields = {
            "name": name,
            "vendor_name": vendor_name,
            "selfservice_only": selfservice_only,
            "detailed": detailed,
            "show_conjugated": show_conjugated,
        }
        query = _TARGETS.select(filter, search, sort, where, fields=fields)
        return self._sender.run(query.build_page(limit, offset))

    def iterate(
        self,
        *,
        name: str | None = None,
        vendor_name: str | None = None,
        selfservice_only: bool | None = None,
        detailed: bool | None = None,
        show_conjugated: bool | None = None,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        page_size: int = PAGE_LIMIT_MAX,
    ) -> Iterator[Target]:
        """Yield all matching targets, page by page; parameters as in `list` (contract 2.11 and 4.4).

        Example:
            ```python
            by_name = {target.name: target.id for target in client.targets.iterate()}
            ```
        """
        fields = {
            "name": name,
            "vendor_name": vendor_name,
            "selfservice_only": selfservice_only,
            "detailed": detailed,
            "show_conjugated": show_conjugated,
        }
        query = _TARGETS.select(filter, search, sort, where, fields=fields)
        return query.iterate(self._sender, page_size)

    def get(self, target_id: str) -> Target:
        """Read one target: GET /targets/{id} (published with contract 4.4).

        Example:
            ```python
            print(client.targets.get(target_id).name)
            ```
        """
        operation = build_read(f"/targets/{quote_segment(target_id)}", Target)
        return self._sender.run(require_record(operation, target_id))
