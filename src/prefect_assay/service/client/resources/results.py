"""Results of the organization (contract 2.10 and 4.5)."""

from collections.abc import Iterator, Sequence
from typing import Final

from prefect_assay.service.client.answers import require_record
from prefect_assay.service.client.decoding import build_read
from prefect_assay.service.client.filters import Condition, Sorting
from prefect_assay.service.client.http.request import quote_segment
from prefect_assay.service.client.parameters import FieldTest
from prefect_assay.service.client.resources.resource import ListQuery, Resource
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.result import Result, ResultSummary
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX

_RESULTS: Final = ListQuery(path="/results", row=ResultSummary)


class Results(Resource):
    """What was measured (contract 4.5). Those of one experiment: `experiments.iterate_results`."""

    def list(
        self,
        *,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        limit: int | None = None,
        offset: int | None = None,
    ) -> Page[ResultSummary]:
        """List one page of the organization's results: GET /results (contract 2.10 and 4.5).

        The parameters are those of `experiments.list`; `where` takes tests of `created_at`.

        Example:
            ```python
            page = client.results.list(where=[p.geq("created_at", since)], sort="-created_at")
            print([row.title for row in page.items])
            ```
        """
        query = _RESULTS.select(filter, search, sort, where)
        return self._sender.run(query.build_page(limit, offset))

    def iterate(
        self,
        *,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        page_size: int = PAGE_LIMIT_MAX,
    ) -> Iterator[ResultSummary]:
        """Yield all matching results of the organization, page by page; parameters as in `list` (contract 4.5).

        Example:
            ```python
            for row in client.results.iterate(where=[p.lss("created_at", until)]):
                print(row.experiment_id, row.result_type)
            ```
        """
        query = _RESULTS.select(filter, search, sort, where)
        return query.iterate(self._sender, page_size)

    def get(self, result_id: str) -> Result:
        """Read one result with its measurements: GET /results/{id} (published with contract 2.10).

        Example:
            ```python
            print(client.results.get(result_id).data_package_url)
            ```
        """
        operation = build_read(f"/results/{quote_segment(result_id)}", Result)
        return self._sender.run(require_record(operation, result_id))
