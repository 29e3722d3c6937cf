"""`prefect-assay archive`: `verify` compares an archive with what was archived, `tables` writes its Parquet files."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from prefect_assay.archive import LocalStore, Store, VerifyReport, verify_versions
from prefect_assay.archive.layout import (
    LEDGERS_FOLDER,
    LOOPS_FOLDER,
    candidates_folder,
    safe_prefix,
    tables_folder,
)
from prefect_assay.archive.sources import local_path
from prefect_assay.archive.store import join_key
from prefect_assay.archive.verify import Finding
from prefect_assay.cli.failures import FAILED, RETRY_LATER
from prefect_assay.cli.options import MAIN
from prefect_assay.cli.output import TerminalConsole, make_plain_console, print_json
from prefect_assay.errors import ArchiveError, ArchiveUnavailable, ConfigurationError
from prefect_assay.orders.ledger import check_campaigns, check_orders
from prefect_assay.service.words import many

_FINDINGS_SHOWN = 50


def verify_archive(
    path: Path | None, archive: str | None, account: str | None = None, *, as_json: bool
) -> None:
    """Verify a folder or the archive of a block, and print the findings.

    Exit with 1 on damage, else with 5 if something could not be read now.
    """
    store, root = open_archive(path, archive, account)
    prefix = root
    if isinstance(store, LocalStore) and not root:
        store, prefix = _in_its_archive(store.root)
    with TerminalConsole(stderr=True).status("Verifying …"):
        report = verify_versions(store, prefix)
        if prefix == root:  # the whole archive
            findings = (
                *report.findings,
                *_as_far_as_read(prefix, "the log of orders", check_orders(store, prefix)),
                *_as_far_as_read(prefix, "the logs of campaigns", check_campaigns(store, prefix)),
                *_as_far_as_read(prefix, "the logs of loops", _check_loops(store, prefix)),
                *_as_far_as_read(prefix, "the tables", _check_tables(store, prefix)),
            )
            report = report.model_copy(update={"findings": findings})
    if not report.versions and report.ok:
        raise ArchiveError(
            f"{report.location} holds no archived version; name the root of an archive, or a folder in it"
        )
    if as_json:
        print_json({"ok": report.ok, **report.model_dump(mode="json")})
    else:
        show_report(report)
    if not report.ok:
        raise SystemExit(FAILED if report.damaged else RETRY_LATER)


def _as_far_as_read(prefix: str, what: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    try:
        yield from findings
    except (ArchiveUnavailable, ConfigurationError) as error:
        detail = f"{what} could not be checked: {error.message}"
        yield Finding(kind="unavailable", key=prefix or ".", detail=detail)


def _check_loops(store: Store, prefix: str) -> Iterator[Finding]:
    """`check_loops`, and with it Prefect, only where there is a loop: most archives have none."""
    if not any(True for _ in store.keys(join_key(safe_prefix(prefix), LOOPS_FOLDER))):
        return
    from prefect_assay.campaigns.loops.check import check_loops

    yield from check_loops(store, prefix)


def _check_tables(store: Store, prefix: str) -> Iterator[Finding]:
    """`check_tables`, and with it pyarrow, only where there are tables."""
    if not any(True for _ in store.keys(tables_folder(prefix))):
        return
    from prefect_assay.analysis.tables.candidates import check_candidates
    from prefect_assay.analysis.tables.files import check_tables

    yield from check_tables(store, prefix)
    yield from check_candidates(store, prefix)


def write_tables(
    path: Path | None, archive: str | None, account: str | None = None, *, as_json: bool
) -> None:
    """Write the tables that do not agree with the archive; exit with 1 if a version cannot be read."""
    from prefect_assay.analysis.tables.files import update_tables
    from prefect_assay.campaigns.loops.candidates import update_candidates

    store, prefix = open_archive(path, archive, account)
    with TerminalConsole(stderr=True).status("Writing the tables …"):
        updated = update_tables(store, prefix)
        candidates = update_candidates(store, prefix)
    notes = (*updated.notes, *candidates.notes)
    folder = tables_folder(prefix)
    if not updated.files and not candidates.files and not notes:
        raise ArchiveError(f"{store.location(prefix)} holds no archived results; name the root of an archive")
    if as_json:
        answer = {
            "location": store.location(folder),
            **updated.model_dump(mode="json"),
            "candidates": candidates.model_dump(mode="json"),
        }
        print_json(answer)
    else:
        for note in notes:
            make_plain_console(stderr=True).print(note, style="red")
        for place, tables in ((folder, updated), (candidates_folder(prefix), candidates)):
            if tables.files:
                make_plain_console().print(
                    f"{store.location(place)}: {many(tables.files, 'file')}, {tables.written} written now"
                )
    if notes:
        raise SystemExit(FAILED)


def show_report(report: VerifyReport) -> None:
    """Print one line for each finding and one for the whole."""
    console = make_plain_console()
    for finding in report.findings[:_FINDINGS_SHOWN]:
        console.print(f"{finding.kind}: {finding.key}: {finding.detail}")
    if len(report.findings) > _FINDINGS_SHOWN:
        console.print(f"… and {many(len(report.findings) - _FINDINGS_SHOWN, 'more finding')}")
    damaged = sum(finding.is_damage for finding in report.findings)
    unread = sum(finding.kind == "unavailable" for finding in report.findings)
    newer = sum(finding.kind == "newer" for finding in report.findings)
    counts = [f"{damaged} damaged"] * bool(damaged) + [f"{unread} could not be read now"] * bool(unread)
    counts += [f"{newer} in a newer format"] * bool(newer)
    verdict = ", ".join(counts) or "intact"
    console.print(
        f"{report.location}: {verdict}; {many(report.checked, 'file')} in {many(report.versions, 'version')}, "
        f"{many(report.bytes, 'byte')} read and compared",
        style="green" if report.ok else "red",
    )


def names_folder(archive: str) -> bool:
    """Return True if an archive is named by its folder, which needs no Prefect server, and not by a block."""
    return archive.startswith((".", "/", "~"))


def open_archive(path: Path | None, archive: str | None, account: str | None = None) -> tuple[Store, str]:
    """The store and the prefix of a folder, of an archive block, or of an account's archive, by default main's; not of several."""
    if sum(choice is not None for choice in (path, archive, account)) > 1:
        raise ConfigurationError(
            "name one archive: a folder, a block with --archive, or an account with --account"
        )
    if archive is not None and names_folder(archive):
        path = Path(archive)
    if path is not None:
        folder = local_path(path)
        if not _is_folder(folder):
            raise ArchiveError(f"there is no folder {path}; name the root of an archive, or a folder in it")
        return LocalStore(folder), ""
    from prefect_assay.cli.prefect_api import api_errors, load_account, load_archive, require_api

    try:
        require_api()
        with api_errors():
            block = load_archive(archive) if archive is not None else load_account(account or MAIN).archive
    except ConfigurationError as error:
        if archive is not None or account is not None:
            raise
        raise ConfigurationError(
            f"name one archive: a folder, a block with --archive, or an account with --account ({error})"
        ) from None
    return block.get_store(), block.prefix


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError as error:  # a folder above it may not be entered, or the name is too long
        raise ArchiveError(
            f"{path} cannot be looked at: {error.strerror or error}; correct the path, or give this user access to it"
        ) from None


def _in_its_archive(folder: Path) -> tuple[LocalStore, str]:
    """A campaign's or experiment's folder as part of its archive, whose register lists its contents."""
    folder = Path(os.path.normpath(folder))
    for root in (folder, *folder.parents[:2]):
        if _is_folder(root / LEDGERS_FOLDER):
            return LocalStore(root), folder.relative_to(root).as_posix().removeprefix(".")
    return LocalStore(folder), ""
