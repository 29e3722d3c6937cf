"""`prefect-assay results --reread`: makes the tables of archived experiments again from their raw answers."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from prefect_assay.analysis.results.formats import read_content
from prefect_assay.analysis.results.mapping import read_mapping
from prefect_assay.analysis.tables.reread import reread_experiments
from prefect_assay.cli.archives.archive import open_archive
from prefect_assay.cli.output import make_plain_console, print_json
from prefect_assay.errors import InputError


def reread_results(
    archive: str | None,
    account: str | None = None,
    *,
    campaigns: Sequence[str],
    experiment: str | None,
    mapping_file: Path | None,
    as_json: bool,
) -> None:
    """Read archived answers again, and print what became of each experiment."""
    if len(campaigns) > 1:
        raise InputError("one campaign is read again, or all: name one, or none")
    campaign = next(iter(campaigns), None)
    if mapping_file is not None and campaign is None:
        raise InputError("a mapping is declared for one campaign: name it, as in `results CAMPAIGN --reread`")
    mapping = None if mapping_file is None else read_mapping(read_content(mapping_file), str(mapping_file))
    store, prefix = open_archive(None, archive, account)
    made = reread_experiments(
        store,
        prefix,
        now=datetime.now(UTC),
        campaign_id=campaign,
        experiment_code=experiment,
        mapping=mapping,
    )
    if as_json:
        print_json({"experiments": [one.model_dump(mode="json") for one in made]})
        return
    say = make_plain_console().print
    for one in made:
        record = one.record
        if record is not None:
            what = "unchanged" if record.unchanged else "read again"
            say(f"{one.experiment_code}: {what}, version {record.version} in {record.location}")
        for note in one.notes:
            say(f"{one.experiment_code}: {note}")
    if any(one.record is not None and not one.record.unchanged for one in made):
        say("Run the campaign again for its table, or `prefect-assay report` for its page")
