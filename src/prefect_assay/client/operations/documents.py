"""Every answer about one experiment as it was received, byte for byte, for the archive.

Lists are taken page by page with plain offsets: these lists belong to one experiment and grow at their end or
not at all, so nothing is missed; a result that appears in between may be on two pages, which loses nothing. As in
`walking`, a short page is the last one only if `total` does not say that there are more.
"""

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from pydantic_core import from_json

from prefect_assay.client.decoding import rows_and_total
from prefect_assay.client.http.request import JSON_TYPE, Answer, Operation, Request, query, segment, succeeded
from prefect_assay.models.open_links import open_links
from prefect_assay.models.vocabulary import PAGE_LIMIT_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class RawDocument:
    """One answer. `name` is unique within its experiment, such as `results-0001.json`.

    `links` names the fields that hold a link which works without a token, in the service's own spelling.
    """

    name: str
    content_type: str
    body: bytes = field(repr=False)
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Series:
    """A resource to keep: its name, the end of its path, and whether it comes in pages."""

    name: str
    path: str
    paged: bool = False
    required: bool = False


_SERIES: Final = (
    _Series(name="experiment", path="", required=True),
    _Series(name="sequences", path="/sequences", paged=True),
    _Series(name="quote", path="/quote"),
    _Series(name="invoice", path="/invoice"),
    _Series(name="updates", path="/updates", paged=True),
    _Series(name="results", path="/results", paged=True),
)


class DocumentWalk:
    """A walk over all answers about one experiment. What does not exist (404) is left out, except itself."""

    def __init__(self, experiment_id: str) -> None:
        self._path = f"/experiments/{segment(experiment_id)}"
        self._waiting = list(_SERIES)
        self._page = 1
        self._offset = 0
        self._last: list[object] = []

    def operation(self) -> Operation[Answer | None] | None:
        """The next answer to fetch; its value is None when it does not exist."""
        if not self._waiting:
            return None
        series = self._waiting[0]
        params = query(limit=PAGE_LIMIT_MAX, offset=self._offset) if series.paged else ()

        def read(answer: Answer) -> Answer | None:
            if not succeeded(answer.status):
                return None
            answer.json()  # a page of a proxy must not end up in the archive as a result
            return answer

        def accepts(status: int) -> bool:
            return succeeded(status) or (status == HTTPStatus.NOT_FOUND and not series.required)

        return Operation(
            request=Request(method="GET", path=self._path + series.path, params=params, repeatable=True),
            read=read,
            accepts=accepts,
        )

    def feed(self, answer: Answer | None) -> tuple[RawDocument, ...]:
        """The answer as a document."""
        series = self._waiting[0]
        if answer is None:
            self._next_series()
            return ()
        document = RawDocument(
            name=f"{series.name}-{self._page:04d}.json" if series.paged else f"{series.name}.json",
            content_type=answer.content_type or JSON_TYPE,
            body=answer.content,
            links=open_links(from_json(answer.content)),
        )
        rows, total = rows_and_total(answer) if series.paged else ([], 0)
        # Empty after the last row; the same again from a service that does not heed the offset.
        if self._page > 1 and rows in ([], self._last):
            self._next_series()
            return ()
        self._offset += len(rows)
        if not rows or (len(rows) < PAGE_LIMIT_MAX and self._offset >= total):
            self._next_series()
        else:
            self._page += 1
            self._last = rows
        return (document,)

    def _next_series(self) -> None:
        self._waiting.pop(0)
        self._page, self._offset, self._last = 1, 0, []


def documents(experiment_id: str) -> DocumentWalk:
    """Every answer about one experiment: record, sequences, quote, invoice, updates and results.

    Raises:
        NotFound: the experiment does not exist, or this token may not see it.
    """
    return DocumentWalk(experiment_id)
