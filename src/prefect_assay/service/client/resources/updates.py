"""The updates feed (contract 2.9 and 4.5), and its earlier variant (9.4).

An answer with `updates` and a cursor in place of `items` and totals shows the earlier variant. It would ignore
filters other than the parameters `experiment_id` and `type`: they are sent in that form, or refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from prefect_assay.service.client.answers import require_experiment
from prefect_assay.service.client.decoding import make_shape_error, read_page
from prefect_assay.service.client.filters import Condition, Sorting
from prefect_assay.service.client.http.pagination import paginate
from prefect_assay.service.client.http.request import (
    Answer,
    Operation,
    Request,
    encode_query,
    succeeded,
)
from prefect_assay.service.client.parameters import FieldTest
from prefect_assay.service.client.resources.resource import ListQuery, Resource, join_conditions
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.update import Update
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX, snake_case

_UPDATES: Final = ListQuery(path="/updates", row=Update)


class Updates(Resource):
    """The feed of news (contract 4.5). Those of one experiment: `experiments.iterate_updates`."""

    def list(
        self,
        *,
        experiment_id: str | None = None,
        type: str | None = None,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        limit: int | None = None,
        offset: int | None = None,
    ) -> Page[Update]:
        """List one page, newest first: GET /updates (contract 2.9 and 4.5).

        `experiment_id` and `type` (such as `status_change`) join the filter; the other parameters are those of
        `experiments.list`.

        Raises:
            UnexpectedAnswer: the service speaks the earlier variant and would ignore a parameter.

        Example:
            ```python
            for update in client.updates.list(type="status_change", limit=10).items:
                print(update.experiment_code, update.name)
            ```
        """
        query = _UPDATES.select(filter, search, sort, where, experiment_id=experiment_id)
        return self._sender.run(_build_page(query, type, limit, offset))

    def iterate(
        self,
        *,
        experiment_id: str | None = None,
        type: str | None = None,
        filter: Condition | None = None,
        search: str | None = None,
        sort: Sorting | None = None,
        where: Sequence[FieldTest] = (),
        page_size: int = PAGE_LIMIT_MAX,
    ) -> Iterator[Update]:
        """Yield all matching updates: stop reading where those begin that you know. Parameters and errors as in `list`.

        Example:
            ```python
            for update in client.updates.iterate(experiment_id=experiment_id):
                print(update.timestamp, update.name)
            ```
        """
        query = _UPDATES.select(filter, search, sort, where, experiment_id=experiment_id)
        return paginate(
            "GET /updates",
            lambda limit, offset: self._sender.run(_build_page(query, type, limit, offset)),
            query.key,
            page_size=page_size,
            fetch_after=lambda limit, cursor: self._sender.run(
                _build_earlier_page(experiment_id, type, limit, cursor)
            ),
        )


def _build_page(
    query: ListQuery[Update], kind: str | None, limit: int | None, offset: int | None
) -> Operation[Page[Update]]:
    """A page of the current feed. `experiment_id` and `type` join the filter; the earlier variant has them as parameters."""
    experiment_id = query.experiment_id
    condition = join_conditions(query.filter, experiment_id=experiment_id, type=snake_case(kind))
    current = replace(query, filter=condition).build_page(limit, offset)
    options = {name: getattr(query, name) for name in ("filter", "search", "sort", "where")}
    ignored = [name for name, value in {**options, "offset": offset}.items() if value]

    def read(answer: Answer) -> Page[Update]:
        if ignored and _is_earlier(answer):
            raise make_shape_error(
                answer,
                f"the service speaks the earlier interface, whose feed knows no {', '.join(ignored)}; "
                "use experiment_id and type, and iterate for further pages",
            )
        return current.read(answer)

    def instead(answer: Answer) -> Operation[Page[Update]] | None:
        is_narrowed = experiment_id is not None or kind is not None
        if not is_narrowed or ignored or not succeeded(answer.status) or not _is_earlier(answer):
            return None
        return _build_earlier_page(experiment_id, kind, limit)

    return Operation(request=current.request, read=read, instead=instead)


def _build_earlier_page(
    experiment_id: str | None, kind: str | None, limit: int | None, cursor: str | None = None
) -> Operation[Page[Update]]:
    params = encode_query(experiment_id=experiment_id, type=snake_case(kind), limit=limit, cursor=cursor)
    operation = Operation(
        request=Request(method="GET", path="/updates", params=params, repeatable=True), read=read_page(Update)
    )
    return operation if experiment_id is None else require_experiment(operation, experiment_id)


def _is_earlier(answer: Answer) -> bool:
    body = answer.fields()
    return "items" not in body and isinstance(body.get("updates"), list)
