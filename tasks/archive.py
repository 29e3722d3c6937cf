"""Archive one experiment: every response body, the tidy table, the data packages, specification and receipt."""

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from prefect import task
from prefect.logging import get_run_logger

from prefect_assay.analysis.results import (
    ResultRow,
    make_table,
    read_results,
    to_csv,
)
from prefect_assay.analysis.results.reading import has_result_rows, is_same_result
from prefect_assay.analysis.results.row import ArchivedResults
from prefect_assay.analysis.tables.files import write_newest_table
from prefect_assay.analysis.tables.reread import (
    describe_measurement,
    make_mapping_document,
    read_archived_mapping,
)
from prefect_assay.archive import ArchivedVersion, Document, archive_version, read_latest, ro_crate
from prefect_assay.archive.layout import TABLE_PATH, safe_path
from prefect_assay.archive.local import is_full, out_of_space
from prefect_assay.archive.store import Digest, json_bytes, save_chunks
from prefect_assay.blocks import Archive, AssayCredentials
from prefect_assay.errors import (
    AccessError,
    ArchiveError,
    AssayError,
    ConfigurationError,
    ServiceUnavailable,
    TransientError,
    UnexpectedAnswer,
)
from prefect_assay.orders.job import Order, Payment
from prefect_assay.service.client import AssayClient, RawDocument
from prefect_assay.service.client.answers import require_answer_about
from prefect_assay.service.client.http.failures import CLIENT_ERRORS
from prefect_assay.service.models.experiment import Experiment
from prefect_assay.service.models.result import Result
from prefect_assay.service.models.spec import ExperimentSpec
from prefect_assay.service.models.vocabulary import ResultsStatus
from prefect_assay.service.words import many
from prefect_assay.tasks.current_run import can_suspend
from prefect_assay.tasks.retry_policies import READ

_JSON: Final = "application/json"
_PAGE_BYTES: Final = 512  # of a file, in which a page says that it is one


class ResultsGone(TransientError):
    """The service does not show partial results any more that it has shown."""


def check_archive(archive: Archive) -> None:
    """Raise ArchiveError, before an order, if the archive is not writable, overwrites, or would be deleted."""
    if can_suspend():
        archive.require_lasting()
    archive.get_store().probe(archive.prefix)


@dataclass(frozen=True)
class RetrievedResults:
    """Every answer that the service has on an experiment, byte for byte; `notes` say what is missing."""

    experiment_id: str
    documents: tuple[RawDocument, ...] = field(repr=False)
    notes: tuple[str, ...] = ()


@task(name="retrieve-results", task_run_name="retrieve-results-{experiment_id}", **READ)
def retrieve_results(credentials: AssayCredentials, experiment_id: str) -> RetrievedResults:
    """Download every response that the service has on an experiment, before any of it is read.

    Example:
        ```python
        received = retrieve_results(credentials, order.experiment_id)
        archive_experiment(credentials, archive, experiment, received=received, campaign_id="c", order=order,
                           payment=None, spec=spec)
        ```
    """
    notes: list[str] = []
    with credentials.get_client() as client:
        documents = tuple(_receive_answers(client, experiment_id, notes))
    return RetrievedResults(experiment_id, documents, tuple(notes))


@task(name="archive-experiment", task_run_name="archive-experiment-{experiment.id}", **READ)
def archive_experiment(
    credentials: AssayCredentials,
    archive: Archive,
    experiment: Experiment,
    *,
    campaign_id: str,
    order: Order,
    payment: Payment | None,
    spec: ExperimentSpec,
    received: RetrievedResults | None = None,
) -> ArchivedResults:
    """Archive everything that the service has on an experiment as a version; without `received` it is retrieved first.

    An unchanged experiment writes nothing; a changed result becomes a new version next to the old one. The version is
    sealed as the `experiment` reports its results, as it was last read.

    Raises:
        ArchiveError: the archive refuses, or is damaged.
        TransientError: the service is unavailable, or does not show results that it has released.
        ResultsGone: it does not show partial results that are archived.
    """
    notes: list[str] = []
    retriable_result_ids: list[str] = []
    with credentials.get_client() as client, tempfile.TemporaryDirectory(prefix="assay-") as folder:
        documents = received.documents if received else tuple(_receive_answers(client, experiment.id, notes))
        notes += received.notes if received else ()
        complete = experiment.reported == ResultsStatus.ALL
        raw = [document for document in documents if document.name.startswith("results-")]
        before = read_latest(archive.get_store(), archive.prefix, campaign_id, experiment.code)
        has_rows = any(has_result_rows(document.body) for document in raw)
        if complete and not raw:
            raise TransientError(
                f"the results of experiment {experiment.id} are released, and cannot be read yet"
            )
        if not complete and not has_rows and _holds_results(before):
            raise ResultsGone(
                f"the service shows no results of experiment {experiment.id} any more; those of before stay archived"
            )
        results, unread = read_results({document.name: document.body for document in raw})
        for result in results:  # also where they are not JSON that the client reads, such as a row per line
            require_answer_about(experiment.id, [result.experiment_id], f"result {result.id} of experiment")
        notes += unread
        mapping = read_archived_mapping(before) if before else None
        table, unread_lines = make_table(
            results,
            spec,
            experiment_code=experiment.code,
            sequences=[document.body for document in documents if document.name.startswith("sequences-")],
            complete=complete,
            has_unread_answers=bool(unread),
            mapping=mapping,
        )
        notes += unread_lines
        record = archive_version(
            archive.get_store(),
            archive.prefix,
            campaign_id=campaign_id,
            experiment_id=experiment.id,
            experiment_code=experiment.code,
            results_status=str(experiment.reported),
            documents=[
                *(_make_document(document) for document in documents),
                *_receive_packages(
                    client, experiment.id, results, Path(folder), notes, retriable_result_ids, before
                ),
                *_make_derived_documents(spec, order, payment, table),
                *([make_mapping_document(mapping)] if mapping else []),
            ],
            now=datetime.now(UTC),
            crate=partial(ro_crate, about=describe_measurement(spec)),
        )
    get_run_logger().info(
        "%s %s (%s, %s)",
        "Unchanged in" if record.unchanged else "Archived in",
        record.location,
        many(record.files, "file"),
        many(record.total_bytes, "byte"),
    )
    if problem := _write_to_tables(archive, campaign_id, record.experiment_code):
        notes.append(problem)
    for line in notes:
        get_run_logger().error("%s", line)
    return ArchivedResults(
        record=record,
        rows=table,
        notes=tuple(notes),
        unread=tuple(f"{record.location}/raw/{document.name}" for document in raw)
        if complete and not any(result.summary for result in results)
        else (),
        deferred=tuple(retriable_result_ids),
    )


def _write_to_tables(archive: Archive, campaign_id: str, experiment_code: str) -> str | None:
    """Write the experiment's newest version to the tables; returns a note if that fails: the version is safe without it."""
    try:
        write_newest_table(archive.get_store(), archive.prefix, campaign_id, experiment_code)
    except ConfigurationError as error:
        get_run_logger().info("Not in the tables: %s", error)
    except Exception as error:  # noqa: BLE001  nothing that can be made again may end the run
        return (
            f"{experiment_code} is not in the tables: {error}. `prefect-assay archive tables` adds it later"
        )
    return None


def _holds_results(version: ArchivedVersion | None) -> bool:
    return version is not None and any(
        path.startswith("raw/results-") and has_result_rows(version.read(path)) for path in version.files
    )


def kept_location(archive: Archive, campaign_id: str, experiment_code: str) -> str | None:
    """The address of the newest complete version of an experiment, or None."""
    version = read_latest(archive.get_store(), archive.prefix, campaign_id, experiment_code)
    return version.location if version else None


def _receive_answers(client: AssayClient, experiment_id: str, notes: list[str]) -> Iterator[RawDocument]:
    """Every response body as received, byte for byte, before any of it is read."""
    for document in client.documents.iterate(experiment_id):
        if document.absent:
            notes.append(
                f"raw/{document.name} takes the place of an answer that the service does not seem to have: it refused, or a page "
                "that is not its own came. If it has the answer, run the experiment again to archive it"
            )
        yield document


def _make_document(received: RawDocument) -> Document:
    return Document(
        path=f"raw/{received.name}",
        content_type=received.content_type,
        body=received.body,
        links=received.links,
    )


def _receive_packages(
    client: AssayClient,
    experiment_id: str,
    results: Iterable[Result],
    folder: Path,
    notes: list[str],
    retriable_result_ids: list[str],
    before: ArchivedVersion | None = None,
) -> Iterator[Document]:
    """The data packages, each received once into a file: its digest must be known before its upload begins.

    The package of the version `before`, or else a note, replaces one that cannot be fetched: the other packages and the
    measurements are archived anyway. `retriable_result_ids` gets the results whose package may be fetched later.
    """
    for index, result in enumerate(results):
        if not result.data_package_url:
            continue
        path, name = folder / f"{index}.zip", f"packages/{result.id}.zip"
        try:
            digest = _receive_package(client, experiment_id, result.id, result.data_package_url, path)
        except ArchiveError:
            raise
        except AssayError as error:
            retriable_result_ids += [result.id] if error.retriable else []
            copied = _copy_package(before, result, name, path)
            state = "is the one archived before" if copied else "is not in the archive"
            notes.append(
                f"The data package of result {result.id} {state}: {error}. Run the experiment again to "
                "fetch it once the cause is fixed"
            )
            if copied is None:
                # Without the message: the request id in it would cause a new version each time.
                note = {"error": type(error).__name__, "status_code": error.status_code}
                yield Document(
                    path=f"packages/{result.id}.absent.json", content_type=_JSON, body=json_bytes(note)
                )
                continue
            digest = copied
        yield Document(path=name, content_type="application/zip", body=path, digest=digest)


def _copy_package(before: ArchivedVersion | None, result: Result, name: str, path: Path) -> Digest | None:
    """Copy the package of an earlier version into a file: its address may have expired since.

    None if it has none, or if the result has changed: its curves would be those of another measurement.
    """
    if before is None or safe_path(name) not in before.files:
        return None
    raw = {
        one.removeprefix("raw/"): before.read(one) for one in before.files if one.startswith("raw/results-")
    }
    if not any(one.id == result.id and is_same_result(one, result) for one in read_results(raw)[0]):
        return None
    return _save_file(before.stream(name), path)


def _receive_package(client: AssayClient, experiment_id: str, result_id: str, url: str, path: Path) -> Digest:
    """Receive a package into a file. An address that is signed for a time may have expired: then it is read again, once."""
    try:
        return _received_file(client, url, path)
    except AssayError as error:
        # Storages refuse what has expired with 400 (S3, Google), 403 or 404, or send to a page for people.
        refused = isinstance(error, AccessError) or error.status_code in CLIENT_ERRORS
        if error.retriable or not refused:
            raise
        again = _read_package_url(client, experiment_id, result_id)
        if not again or again == url:
            raise
    return _received_file(client, again, path)


def _read_package_url(client: AssayClient, experiment_id: str, result_id: str) -> str | None:
    """Read the result again for a new address of its package; None if the service refuses."""
    try:
        result = client.results.get(result_id)
        require_answer_about(experiment_id, [result.experiment_id], "experiment")
    except TransientError:
        raise
    except UnexpectedAnswer as error:
        # Of a gateway, perhaps; the version would be complete without its package.
        raise ServiceUnavailable(error.message, status_code=error.status_code) from None
    except AssayError:
        return None  # why the package was refused says more
    return result.data_package_url


def _received_file(client: AssayClient, url: str, path: Path) -> Digest:
    digest = _save_file(client.documents.download(url), path)
    _refuse_page(path)
    return digest


def _save_file(chunks: Iterable[bytes], path: Path) -> Digest:
    try:
        return save_chunks(chunks, path)
    except OSError as error:
        if is_full(error):
            raise out_of_space(path) from error
        raise


def _refuse_page(path: Path) -> None:
    """A storage or a proxy in trouble may answer with a page and status 200: archived, it would pass for the package."""
    with path.open("rb") as file:
        head = file.read(_PAGE_BYTES).lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html")):
        raise UnexpectedAnswer("its address answers with a page")


def _make_derived_documents(
    spec: ExperimentSpec, order: Order, payment: Payment | None, table: tuple[ResultRow, ...]
) -> Iterator[Document]:
    """Make the documents that are derived from the answers: the table, the specification, and the receipt without secrets."""
    yield Document(path=TABLE_PATH, content_type="text/csv", body=to_csv(table))
    yield Document(path="spec.json", content_type=_JSON, body=json_bytes(spec.wire()))
    if payment is not None:
        # already_paid differs between two runs; the hosted page works without a token.
        kept = payment.model_dump(mode="json", exclude={"already_paid", "hosted_invoice_url"})
        yield Document(
            path="receipt.json", content_type=_JSON, body=json_bytes({"order_key": order.order_key, **kept})
        )
