"""Files, and every answer about one experiment byte for byte (contract 4.2).

A PDF is a download, because an invoice is usually stored by the payment provider and the call redirects there.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from prefect_assay.errors import NotFound, UnexpectedAnswer
from prefect_assay.service.client.answers import find_experiment_ids, require_answer_about
from prefect_assay.service.client.decoding import read_raw_rows
from prefect_assay.service.client.http.address import API_PREFIX
from prefect_assay.service.client.http.exchange import ANSWER_BYTES_MAX, Download
from prefect_assay.service.client.http.failures import (
    CLIENT_ERRORS,
    NO_VERDICT,
    problem_of,
    undecided,
)
from prefect_assay.service.client.http.request import (
    JSON_TYPE,
    Answer,
    Operation,
    Parameters,
    Request,
    encode_query,
    quote_segment,
    succeeded,
)
from prefect_assay.service.client.resources.resource import Resource, Sender
from prefect_assay.service.models.answer_json import open_links, read_json
from prefect_assay.service.models.vocabulary import PAGE_LIMIT_MAX

_PDF_MAGIC: Final = b"%PDF-"
_PDF_JUNK: Final = 1024  # readers accept a file whose header starts a little later


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


class Documents(Resource):
    """Files, and every answer about one experiment byte for byte."""

    def iterate(self, experiment_id: str) -> Iterator[RawDocument]:
        """Yield every answer about one experiment: record, sequences, quote, invoice, updates and results (contract 4.2).

        What the service says does not exist is left out, but for the record. A 404 of a gateway in place of the record or
        the results, or in the middle of a list, is an error: an archive without these answers would look complete. In
        place of all others a refusal or a page may be all there is, and results must not wait for it: a note takes their
        place. JSON of another shape than expected is kept as it is, and so are results that are not JSON.

        Raises:
            NotFound: the experiment does not exist, or this token may not see it.

        Example:
            ```python
            for document in client.documents.iterate(experiment_id):
                Path(document.name).write_bytes(document.body)
            ```
        """
        for series in _SERIES:
            yield from _Reading(self._sender, experiment_id, series).iterate()

    def download(
        self,
        url: str,
        *,
        chunk_size: int = 1 << 16,
        absent: type[NotFound] = NotFound,
        max_bytes: int | None = None,
    ) -> Iterator[bytes]:
        """Yield a file in pieces of at most `chunk_size` bytes, such as the data package of a result (contract 4.5).

        The address is absolute, or relative to the service's. The token is sent to the service's own origin only, and
        never along a redirect. `absent` is what a 404 means, `max_bytes` replaces the client's `max_download`.

        Raises:
            UnexpectedAnswer: the file is larger than that; the pieces so far are not the file.
            ServiceUnavailable: the file broke off; start again.
            AccessError: the client does not fetch from this address.

        Example:
            ```python
            with Path("package.zip").open("wb") as file:
                file.writelines(client.documents.download(result.data_package_url))
            ```
        """
        return self._sender.stream(
            Download(url=url, chunk_size=chunk_size, absent=absent, max_bytes=max_bytes)
        )


def download_pdf(sender: Sender, path: str, absent: type[NotFound] = NotFound) -> bytes:
    """A whole PDF, which is held in memory; UnexpectedAnswer if it is not a PDF, such as the page of a proxy."""
    url = f"{API_PREFIX[1:]}{path}"
    content = b"".join(sender.stream(Download(url=url, absent=absent, max_bytes=ANSWER_BYTES_MAX)))
    if _PDF_MAGIC not in content[:_PDF_JUNK]:
        raise UnexpectedAnswer(f"GET {url}: {len(content)} bytes that are not a PDF")
    return content


@dataclass(frozen=True, slots=True, kw_only=True)
class _Series:
    name: str
    path: str
    is_paged: bool = False
    is_required: bool = False  # a 404 that the service did not write, or a refusal, is not an answer


_RECORD: Final = _Series(name="experiment", path="", is_required=True)
_RESULTS: Final = _Series(name="results", path="/results", is_paged=True, is_required=True)
_SERIES: Final = (
    _RECORD,
    _Series(name="sequences", path="/sequences", is_paged=True),
    _Series(name="quote", path="/quote"),
    _Series(name="invoice", path="/invoice"),
    _Series(name="updates", path="/updates", is_paged=True),
    _RESULTS,
)

# Of these a later try may get an answer; every other refusal may be all there is, and results do not wait for it.
_PASSES: Final = NO_VERDICT | {HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS}
_REFUSALS: Final = (CLIENT_ERRORS - _PASSES) | {HTTPStatus.NOT_IMPLEMENTED, *range(300, 400)}
_NOT_YET: Final = frozenset({HTTPStatus.ACCEPTED, HTTPStatus.NO_CONTENT})


class _Reading:
    """Reads one series of documents: a record, or the pages of a list.

    Lists of one experiment grow at their end or not at all, so plain offsets miss nothing; a result that appears in
    between may be on two pages. As in `http.pagination`, a short page is the last one only if `total` agrees and there is
    no cursor.
    """

    def __init__(self, sender: Sender, experiment_id: str, series: _Series) -> None:
        self._sender = sender
        self._experiment_id = experiment_id
        self._series = series
        self._page = 1

    def iterate(self) -> Iterator[RawDocument]:
        """Yield the answers of the series."""
        series = self._series
        offset, cursor = 0, None
        last: list[object] = []
        while True:
            answer = self._sender.run(
                self._build_read(encode_query(cursor=cursor) if cursor else encode_query(offset=offset))
            )
            if answer is None:
                return
            is_json = answer.is_json
            if not (succeeded(answer.status) and (is_json or series is _RESULTS)):
                yield _make_note(series, answer.status)
                return
            try:
                rows, total, cursor = read_raw_rows(answer) if series.is_paged else ([], 0, None)
            except UnexpectedAnswer:  # another shape: archived as it is
                rows, total, cursor = [], 0, None
            # Empty after the last row; repeated by a service that ignores the offset.
            if self._page > 1 and rows in ([], last):
                return
            page = f"-{self._page:04d}" if series.is_paged else ""
            yield RawDocument(
                name=f"{series.name}{page}.{'json' if is_json else 'txt'}",
                content_type=answer.content_type or JSON_TYPE,
                body=answer.content,
                links=open_links(read_json(answer.content)) if is_json else (),
            )
            offset += len(rows)
            if not rows or not (cursor or len(rows) >= PAGE_LIMIT_MAX or offset < total):
                return
            self._page += 1
            last = rows

    def _build_read(self, page_parameters: Parameters) -> Operation[Answer | None]:
        """GET one page of the series; the value is None for a 404, and for results that are not there yet."""
        params = {**dict(encode_query(limit=PAGE_LIMIT_MAX)), **dict(page_parameters)}
        return Operation(
            request=Request(
                method="GET",
                path=f"/experiments/{quote_segment(self._experiment_id)}{self._series.path}",
                params=tuple(params.items()) if self._series.is_paged else (),
                repeatable=True,
            ),
            read=self._read,
            accepts=self._accepts,
        )

    def _accepts(self, status: int) -> bool:
        may_be_empty = not self._series.is_required or self._series is _RESULTS
        if succeeded(status) or (status == HTTPStatus.NOT_FOUND and may_be_empty):
            return True
        return not self._series.is_required and status in _REFUSALS

    def _read(self, answer: Answer) -> Answer | None:
        series = self._series
        if not succeeded(answer.status):
            is_genuine = answer.status == HTTPStatus.NOT_FOUND and problem_of(answer).genuine
            if self._page > 1 or (series.is_required and not is_genuine):
                raise undecided(answer)
            return None if is_genuine else answer
        if series is _RESULTS and (answer.status in _NOT_YET or not answer.content.strip()):
            return None
        if (series.is_required or self._page > 1) and (series is not _RESULTS or _is_page(answer)):
            answer.json()  # refuse the page of a proxy, which must not be archived as a result
        if answer.is_json:
            self._require_experiment(answer.json())
        return answer

    def _require_experiment(self, body: object) -> None:
        """Refuse what names another experiment (contract 2.8 to 2.10): it is archived under no order."""
        if self._series is _RECORD:
            names = (body.get(name) for name in ("id", "experiment_id")) if isinstance(body, dict) else ()
            require_answer_about(self._experiment_id, names, "experiment")
        else:
            require_answer_about(self._experiment_id, find_experiment_ids(body), "experiment")


def _is_page(answer: Answer) -> bool:
    return answer.content_type == "text/html" or answer.content.lstrip().startswith(b"<")


def _make_note(series: _Series, status: int) -> RawDocument:
    """Without the body: what changes in it, such as a request id, would make it another document each time."""
    body = f'{{"status_code": {status}}}\n'.encode()
    return RawDocument(name=f"{series.name}.absent.json", content_type=JSON_TYPE, body=body, absent=True)
