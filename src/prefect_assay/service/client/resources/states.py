"""The states of many experiments, from their rows in the list (contract 2.1): one request for some forty of them."""

from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from operator import itemgetter
from typing import Final, cast
from urllib.parse import quote

from prefect_assay.service.client.decoding import parse_model, read_raw_rows
from prefect_assay.service.client.filters import in_
from prefect_assay.service.client.http.pagination import paginate
from prefect_assay.service.client.http.request import Answer, Operation, succeeded
from prefect_assay.service.client.resources.resource import ListQuery, Sender
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.experiment import ExperimentRow, ExperimentSummary
from prefect_assay.service.models.identifiers import normalize_id
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX

# Of the encoded condition. With address and paging an URL stays below 2,000 characters, which every proxy takes.
CONDITION_MAX: Final = 1_700
# The contract has the filter language and no list of the fields that it takes (4.1, 4.2).
_REFUSED: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})

# The id of a listed experiment and its row; None for an experiment that was not asked for.
_Row = tuple[str, ExperimentSummary | None]


class _FilterRefused(Exception):
    """The service takes no filter by id."""


def read_states(sender: Sender, ids: Iterable[str], search: str | None) -> dict[str, ExperimentSummary]:
    """The rows of experiments, by the ids as they were passed in; see `Experiments.list_states`."""
    missing: dict[str, str] = {}  # the ids as they were passed in, by their normal form
    for one in ids:
        missing.setdefault(normalize_id(one), one)
    rows: dict[str, ExperimentSummary] = {}

    def collect(query: ListQuery[ExperimentRow], expected: Iterable[str], *, may_be_refused: bool) -> None:
        """Read the pages of a query until every expected row has shown."""
        waiting = missing.keys() & set(expected)
        if not waiting:
            return
        for experiment_id, row in _iterate_rows(sender, query, missing, may_be_refused=may_be_refused):
            if row is not None and experiment_id in missing:
                rows[missing.pop(experiment_id)] = row
                waiting.discard(experiment_id)
            if not waiting:
                return

    try:
        for chunk in _split_ids([*missing]):
            query = ListQuery(path="/experiments", row=ExperimentRow, filter=in_("id", chunk))
            collect(query, chunk, may_be_refused=bool(search))
    except _FilterRefused:
        pass
    if search:
        query = ListQuery(path="/experiments", row=ExperimentRow, search=search)
        collect(query, [*missing], may_be_refused=False)
    return rows


def _iterate_rows(
    sender: Sender, query: ListQuery[ExperimentRow], missing: dict[str, str], *, may_be_refused: bool
) -> Iterator[_Row]:
    """Only rows of experiments that are missing are checked."""

    def accepts(status: int) -> bool:
        return succeeded(status) or (may_be_refused and status in _REFUSED)

    def read_page_of_states(answer: Answer) -> Page[_Row]:
        if not succeeded(answer.status):
            raise _FilterRefused
        listed, total, _ = read_raw_rows(answer)
        items = tuple(_read_row(row, missing, answer) for row in listed)
        return Page[_Row].model_construct(
            items=items, total=total, count=len(items), offset=0, next_cursor=None
        )

    def fetch(limit: int, offset: int) -> Page[_Row]:
        request = query.build_page(limit, offset).request
        return sender.run(Operation(request=request, read=read_page_of_states, accepts=accepts))

    return paginate(f"GET {query.path}", fetch, cast("Callable[[_Row], str]", itemgetter(0)))


def _read_row(row: object, missing: dict[str, str], answer: Answer) -> _Row:
    shown = row.get("id") if isinstance(row, dict) else None
    experiment_id = normalize_id(shown) if isinstance(shown, str) else ""
    if experiment_id not in missing:
        return experiment_id, None
    return experiment_id, parse_model(ExperimentRow, row, answer)


def _split_ids(ids: list[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    for one in ids:
        if chunk and (
            len(chunk) == PAGE_LIMIT_MAX or len(quote(str(in_("id", [*chunk, one])))) > CONDITION_MAX
        ):
            yield chunk
            chunk = []
        chunk.append(one)
    if chunk:
        yield chunk
