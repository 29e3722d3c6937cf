"""Results (contract 2.10, 4.2 and 4.5), files, and every answer about one experiment byte for byte.

A PDF is a download, because an invoice is usually stored by the payment provider and the call redirects there.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Unpack

from prefect_assay.errors import NotFound, NotReady, UnexpectedAnswer
from prefect_assay.service.client.answers import about_record, experiments_of, require_answer_about
from prefect_assay.service.client.decoding import (
    get,
    next_page,
    rows_and_total,
    unwrapped,
)
from prefect_assay.service.client.http.address import API_PREFIX
from prefect_assay.service.client.http.exchange import ANSWER_BYTES_MAX, Download
from prefect_assay.service.client.http.failures import (
    CLIENT_ERRORS,
    NO_VERDICT,
    problem_of,
    undecided,
)
from prefect_assay.service.client.http.pagination import Pager
from prefect_assay.service.client.http.request import (
    JSON_TYPE,
    Answer,
    Operation,
    Parameters,
    Request,
    query,
    segment,
    succeeded,
)
from prefect_assay.service.client.lists import Listing, PageOptions, WalkOptions
from prefect_assay.service.models.answer_json import open_links, read_json
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.experiment import Experiment
from prefect_assay.service.models.result import Result, ResultSummary
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX

_SUMMARIES: Final = Listing("/results", ResultSummary)
_PDF_MAGIC: Final = b"%PDF-"
_PDF_JUNK: Final = 1024  # readers accept a file whose header starts a little later


def results(experiment_id: str) -> Pager[Result]:
    """GET /experiments/{id}/results: all of one experiment; empty before the lab has released any."""
    path = f"/experiments/{segment(experiment_id)}/results"
    return Listing(path, Result, experiment_id=experiment_id).rows({})


def result(result_id: str) -> Operation[Result]:
    """GET /results/{id}."""
    return about_record(get(f"/results/{segment(result_id)}", Result), result_id)


def result_summaries(**options: Unpack[PageOptions]) -> Operation[Page[ResultSummary]]:
    """GET /results: one page of the organization's results."""
    return _SUMMARIES.page(options)


def iter_result_summaries(**options: Unpack[WalkOptions]) -> Pager[ResultSummary]:
    """All matching results of the organization."""
    return _SUMMARIES.rows(options)


def download(
    url: str,
    *,
    chunk_size: int = 1 << 16,
    absent: type[NotFound] = NotFound,
    max_bytes: int | None = None,
) -> Download:
    """Stream a file from an address, absolute or relative to the service's, in pieces of at most `chunk_size` bytes.

    The token is sent to the service's own origin only, and never along a redirect. `absent` is what a 404 means,
    `max_bytes` replaces the client's `max_download`.

    Raises:
        UnexpectedAnswer: the file is larger than that; the pieces so far are not the file.
        ServiceUnavailable: the file broke off; start again.
        AccessError: the client does not fetch from this address.
    """
    return Download(url=url, chunk_size=chunk_size, absent=absent, max_bytes=max_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pdf(Download):
    """A PDF, which is held in memory."""

    max_bytes: int | None = ANSWER_BYTES_MAX

    def whole(self, pieces: Iterable[bytes]) -> bytes:
        """The file in one piece; UnexpectedAnswer if it is no PDF, such as the page of a proxy."""
        content = b"".join(pieces)
        if _PDF_MAGIC not in content[:_PDF_JUNK]:
            raise UnexpectedAnswer(f"GET {self.url}: {len(content)} bytes that are no PDF")
        return content


def quote_pdf(experiment_id: str) -> Pdf:
    """GET /experiments/{id}/quote/pdf; `NotReady` until the quote exists, UnexpectedAnswer if it is no PDF."""
    return Pdf(url=f"{API_PREFIX[1:]}/experiments/{segment(experiment_id)}/quote/pdf", absent=NotReady)


def invoice_pdf(invoice_id: str) -> Pdf:
    """GET /invoices/{id}/pdf, by its own id or the provider's; UnexpectedAnswer if it is no PDF."""
    return Pdf(url=f"{API_PREFIX[1:]}/invoices/{segment(invoice_id)}/pdf")


@dataclass(frozen=True, slots=True, kw_only=True)
class RawDocument:
    """One answer. `name` is unique within its experiment, such as `results-0001.json`.

    `links` names the fields, in the service's own spelling, whose link works without a token. With `absent`, it is a note in
    place of an answer that the service may not have, such as `updates.absent.json`.
    """

    name: str
    content_type: str
    body: bytes = field(repr=False)
    links: tuple[str, ...] = ()
    absent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Series:
    name: str
    path: str
    paged: bool = False
    required: bool = False  # a 404 that the service did not write, or a refusal, is no answer


_SERIES: Final = (
    _Series(name="experiment", path="", required=True),
    _Series(name="sequences", path="/sequences", paged=True),
    _Series(name="quote", path="/quote"),
    _Series(name="invoice", path="/invoice"),
    _Series(name="updates", path="/updates", paged=True),
    _Series(name="results", path="/results", paged=True, required=True),
)
_RECORD: Final = _SERIES[0]
_RESULTS: Final = _SERIES[-1]

# Of these a later try may get an answer; every other refusal may be all there is, and results do not wait for it.
_PASSES: Final = NO_VERDICT | {HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS}
_REFUSALS: Final = (CLIENT_ERRORS - _PASSES) | {HTTPStatus.NOT_IMPLEMENTED, *range(300, 400)}
_NOT_YET: Final = frozenset({HTTPStatus.ACCEPTED, HTTPStatus.NO_CONTENT})


class DocumentWalk:
    """A walk over all answers about one experiment. Those that the service says do not exist are left out, but for its record.

    A 404 of a gateway in place of the record or the results, or in the middle of a list, is an error: an archive without these
    answers would look complete. In place of all others a refusal or a page may be all there is, and results must not wait for
    it: a note takes their place. JSON of another shape than expected is kept as it is, and so are results that are no JSON.

    Lists of one experiment grow at their end or not at all, so plain offsets miss nothing; a result that appears in
    between may be on two pages. As in `http.pagination`, a short page is the last one only if `total` agrees, and nothing
    in it leads to a next one.
    """

    def __init__(self, experiment_id: str) -> None:
        self._experiment_id = experiment_id
        self._path = f"/experiments/{segment(experiment_id)}"
        self._waiting = list(_SERIES)
        self._page, self._offset = 1, 0
        self._last: list[object] = []
        self._following: Parameters = ()

    def operation(self) -> Operation[Answer | None] | None:
        """The next answer to fetch; its value is None for a 404 of the service, and for results that are not there yet."""
        if not self._waiting:
            return None
        series = self._waiting[0]
        place = {**dict(query(limit=PAGE_LIMIT_MAX)), **dict(self._following or query(offset=self._offset))}
        params = tuple(place.items()) if series.paged else ()
        return Operation(
            request=Request(method="GET", path=self._path + series.path, params=params, repeatable=True),
            read=self._read,
            accepts=self._accepts,
        )

    def _accepts(self, status: int) -> bool:
        if succeeded(status) or (status == HTTPStatus.NOT_FOUND and self._path_may_be_empty()):
            return True
        return not self._waiting[0].required and status in _REFUSALS

    def _path_may_be_empty(self) -> bool:
        return not self._waiting[0].required or self._waiting[0] is _RESULTS

    def _read(self, answer: Answer) -> Answer | None:
        series = self._waiting[0]
        if not succeeded(answer.status):
            genuine = answer.status == HTTPStatus.NOT_FOUND and problem_of(answer).genuine
            if self._page > 1 or (series.required and not genuine):
                raise undecided(answer)
            return None if genuine else answer
        if series is _RESULTS and (answer.status in _NOT_YET or not answer.content.strip()):
            return None
        if (series.required or self._page > 1) and (series is not _RESULTS or _is_page(answer)):
            answer.json()  # refuse the page of a proxy, which must not be archived as a result
        if answer.is_json:
            self._require_own(answer.json(), series)
        return answer

    def _require_own(self, body: object, series: _Series) -> None:
        """Refuse what names another experiment (contract 2.8 to 2.10): it is archived under no order."""
        if series is _RECORD:
            record = unwrapped(body, Experiment)
            names = (record.get(name) for name in ("id", "experiment_id")) if isinstance(record, dict) else ()
            require_answer_about(self._experiment_id, names, "experiment")
        else:
            require_answer_about(self._experiment_id, experiments_of(body), "experiment")

    def feed(self, answer: Answer | None) -> tuple[RawDocument, ...]:
        """The answer as a document."""
        series = self._waiting[0]
        if answer is None:
            self._next_series()
            return ()
        is_json = answer.is_json
        if not (succeeded(answer.status) and (is_json or series is _RESULTS)):
            self._next_series()
            return (_absent(series, answer.status),)
        page = f"-{self._page:04d}" if series.paged else ""
        document = RawDocument(
            name=f"{series.name}{page}.{'json' if is_json else 'txt'}",
            content_type=answer.content_type or JSON_TYPE,
            body=answer.content,
            links=open_links(read_json(answer.content)) if is_json else (),
        )
        try:
            rows, total = rows_and_total(answer) if series.paged else ([], 0)
        except UnexpectedAnswer:  # another shape: archived as it is
            rows, total = [], 0
        # Empty after the last row; repeated by a service that ignores the offset.
        if self._page > 1 and rows in ([], self._last):
            self._next_series()
            return ()
        self._offset += len(rows)
        self._following, more = next_page(answer)
        if not rows or not (more or len(rows) >= PAGE_LIMIT_MAX or self._offset < total):
            self._next_series()
        else:
            self._page += 1
            self._last = rows
        return (document,)

    def _next_series(self) -> None:
        self._waiting.pop(0)
        self._page, self._offset, self._last, self._following = 1, 0, [], ()


def _is_page(answer: Answer) -> bool:
    return answer.content_type == "text/html" or answer.content.lstrip().startswith(b"<")


def _absent(series: _Series, status: int) -> RawDocument:
    """Without the body: what changes in it, such as a request id, would make it another document each time."""
    body = f'{{"status_code": {status}}}\n'.encode()
    return RawDocument(name=f"{series.name}.absent.json", content_type=JSON_TYPE, body=body, absent=True)


def documents(experiment_id: str) -> DocumentWalk:
    """Every answer about one experiment: record, sequences, quote, invoice, updates and results.

    Raises:
        NotFound: the experiment does not exist, or this token may not see it.
    """
    return DocumentWalk(experiment_id)
