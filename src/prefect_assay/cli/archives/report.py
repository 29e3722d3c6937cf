"""`prefect-assay report`: the report of a campaign, made again from its archive alone. Writes nothing to the archive."""

import hashlib
import json
import webbrowser
from pathlib import Path

from prefect_assay.analysis.report.documents import make_report
from prefect_assay.analysis.results import make_rich_table
from prefect_assay.archive.layout import safe_name
from prefect_assay.archive.sources import local_path
from prefect_assay.cli.archives.archive import open_archive
from prefect_assay.cli.output import TerminalConsole, make_plain_console
from prefect_assay.errors import ConfigurationError

_SHOWN = 50


def write_report(
    campaign_id: str,
    path: Path | None,
    archive: str | None,
    account: str | None = None,
    *,
    output: Path | None,
    browse: bool,
    as_json: bool,
) -> None:
    """Write the page to a file and print its path; with `browse` open it."""
    store, prefix = open_archive(path, archive, account)
    with TerminalConsole(stderr=True).status(f"Making the report of {campaign_id} …"):
        made = make_report(store, prefix, campaign_id)
    for note in made.notes:
        make_plain_console(stderr=True).print(note)
    if made.page is None:
        raise ConfigurationError.missing_extra("report", "the HTML report")
    file = local_path(output or f"{safe_name(campaign_id)}-report.html")
    try:
        file.write_bytes(made.page)
    except OSError as error:
        raise ConfigurationError(
            f"{file} cannot be written ({error.strerror}); choose another file with --output"
        ) from None
    if as_json:
        digest = hashlib.sha256(made.page).hexdigest()
        print(
            json.dumps({"report": str(file), "bytes": len(made.page), "sha256": digest, "notes": made.notes})
        )
    else:
        if made.summaries:
            TerminalConsole().print(make_rich_table(made.summaries, limit=_SHOWN))
        for title, line in made.decision:
            make_plain_console().print(f"{title}: {line}")
        print(file)
    if browse:
        webbrowser.open(file.resolve().as_uri())
