"""The states of many experiments, from their rows in the list (contract 2.1): one request for some forty of them.

A row shows `status` and `results_status`, which the contract does not show in the detail record. So the row decides.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from http import HTTPStatus
from operator import itemgetter
from typing import Final, cast
from urllib.parse import quote

from prefect_assay.service.client.decoding import parsed, rows_and_total
from prefect_assay.service.client.filters import in_
from prefect_assay.service.client.http.pagination import Pager
from prefect_assay.service.client.http.request import Answer, Operation, succeeded
from prefect_assay.service.client.lists import Listing, ListOptions
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.experiment import ExperimentRow, ExperimentSummary
from prefect_assay.service.models.identifiers import normalize_id
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX

# Of the encoded condition. With address and paging an URL stays below 2,000 characters, which every proxy takes.
CONDITION_MAX: Final = 1_700
_EXPERIMENTS: Final = Listing("/experiments", ExperimentRow)
# The contract has the filter language and no list of the fields that it takes (4.1, 4.2).
_REFUSED: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})

# The id of a listed experiment and its row; None for an experiment that was not asked for.
_Row = tuple[str, ExperimentSummary | None]


def list_states(ids: Iterable[str], *, search: str | None = None) -> "StatesWalk":
    """GET /experiments with `filter=in(id,...)`: the row of each experiment, by the id as given.

    An experiment without a row is left out: it is not visible yet, or not to this token. `search` is a text that the
    names of all of them contain, such as the campaign's id: what the filter does not show is searched for by it.

    Raises:
        RequestRefused: the service refuses the filter, and there is no `search`.
        UnexpectedAnswer: the row of one of the experiments has no status, or no results status.
    """
    return StatesWalk(tuple(ids), search)


class StatesWalk:
    """Reads the rows of experiments: by id, in requests of limited length, and then by a search for the others."""

    def __init__(self, ids: Sequence[str], search: str | None) -> None:
        self._missing: dict[str, str] = {}  # the ids as given, by their normal form
        for one in ids:
            self._missing.setdefault(normalize_id(one), one)
        self._search = search or None
        self._chunks = _chunks(list(self._missing))
        self._pager: Pager[_Row] | None = None
        self._expected: frozenset[str] = frozenset()  # what the present pager is to show
        self._is_refused = False
        self._searches = False

    def operation(self) -> Operation[Page[_Row] | None] | None:
        """The next page, or None when every row is read or looked for."""
        while self._missing:
            if self._pager is not None and self._expected & self._missing.keys():
                operation = self._pager.operation()
                if operation is not None:
                    return operation
            if not self._start_next():
                return None
        return None

    def _start_next(self) -> bool:
        """Start with the next request that can show a missing row; False after the last."""
        chunk = None if self._is_refused else next(self._chunks, None)
        if chunk is not None:
            self._expected = frozenset(chunk)
            self._pager = self._pages({"filter": in_("id", chunk)}, may_be_refused=self._search is not None)
        elif self._search is not None and not self._searches:
            self._searches = True
            self._expected = frozenset(self._missing)
            self._pager = self._pages({"search": self._search}, may_be_refused=False)
        else:
            return False
        return True

    def feed(self, answer: Page[_Row] | None) -> Sequence[tuple[str, ExperimentSummary]]:
        """The rows that were asked for; None is the refusal of the filter."""
        if answer is None or self._pager is None:
            self._is_refused, self._pager = True, None
            return ()
        read = []
        for experiment_id, row in self._pager.feed(answer):
            if row is not None and experiment_id in self._missing:
                read.append((self._missing.pop(experiment_id), row))
        return read

    def _pages(self, options: ListOptions, *, may_be_refused: bool) -> "Pager[_Row]":
        def fetch(limit: int, offset: int) -> Operation[Page[_Row] | None]:
            page = _EXPERIMENTS.page({**options, "limit": limit, "offset": offset})

            def accepts(status: int) -> bool:
                return succeeded(status) or (may_be_refused and status in _REFUSED)

            return Operation(request=page.request, read=self._read, accepts=accepts)

        return Pager(cast("Callable[[int, int], Operation[Page[_Row]]]", fetch), key=itemgetter(0))

    def _read(self, answer: Answer) -> Page[_Row] | None:
        """The rows of a page; only those of experiments that were asked for are checked."""
        if not succeeded(answer.status):
            return None
        rows, total = rows_and_total(answer)
        items = tuple(self._read_row(row, answer) for row in rows)
        return Page[_Row].model_construct(
            items=items, total=total, count=len(items), offset=0, next_cursor=None
        )

    def _read_row(self, row: object, answer: Answer) -> _Row:
        shown = row.get("id") if isinstance(row, dict) else None
        experiment_id = normalize_id(shown) if isinstance(shown, str) else ""
        if experiment_id not in self._missing:
            return experiment_id, None
        return experiment_id, parsed(ExperimentRow, row, answer)


def _chunks(ids: list[str]) -> Iterator[list[str]]:
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
