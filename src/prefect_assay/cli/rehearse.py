"""`prefect-assay rehearse`: everything up to the order against the service, without spending, and a bundle about it."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from prefect_assay.campaigns.approval.terms import describe_account
from prefect_assay.campaigns.rehearsal import Rehearsal, fields_as_json, make_bundle, rehearse_account
from prefect_assay.cli.designs.check import check_locally, read_file
from prefect_assay.cli.failures import FAILED
from prefect_assay.cli.output import TerminalConsole, make_plain_console, plain_table, print_json
from prefect_assay.cli.prefect_api import saved_account
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.errors import InputError
from prefect_assay.service.description import get_call_facts
from prefect_assay.service.drift.document import above
from prefect_assay.service.drift.fields import FieldState, SeenField
from prefect_assay.service.models.spec import Assay
from prefect_assay.service.words import many

_READ = (FieldState.READ, FieldState.INSIDE)
_QUIET = (*_READ, FieldState.ABSENT)
_LABELS = {FieldState.UNREAD: "unread, because no campaign needs them; archived as they came"}


def run_rehearsal(
    account: str, designs: str, assay: Assay, reading: ReadingOptions, bundle: Path | None, *, as_json: bool
) -> None:
    """Rehearse with a saved account, print the steps, and write the bundle.

    Raises:
        InputError: the designs can't be ordered, or the bundle's file exists.
        ConfigurationError: the account isn't saved.
        SystemExit: with 1, if a step has a problem.
    """
    path = bundle or Path(f"rehearsal-{datetime.now():%Y%m%d-%H%M%S}.zip")  # noqa: DTZ005 - the user's clock
    if path.exists():
        raise InputError(f"{path} exists; name another file with --bundle")
    sequences = read_file(designs, reading)
    check_locally(sequences, assay, reading.designs_per_experiment)
    block = saved_account(account)
    rehearsal = rehearse_account(block, sequences, assay, reading)
    try:
        path.write_bytes(make_bundle(rehearsal, block, sequences))
    except OSError as error:
        raise InputError(
            f"{path} can't be written ({error.strerror}); name another file with --bundle"
        ) from None
    if as_json:
        print_json(
            {
                "account": asdict(rehearsal.account),
                "ready": rehearsal.is_ready,
                "steps": [asdict(step) for step in rehearsal.steps],
                "fields": fields_as_json(rehearsal),
                "bundle": str(path),
            }
        )
    else:
        _show_rehearsal(rehearsal, path)
    if not rehearsal.is_ready:
        raise SystemExit(FAILED)


def _show_rehearsal(rehearsal: Rehearsal, path: Path) -> None:
    line = make_plain_console().print
    line(describe_account(rehearsal.account))
    table = plain_table()
    table.add_column("Step")
    table.add_column("")
    table.add_column("", overflow="fold")
    for step in rehearsal.steps:
        text = f"{step.text}\nnext step: {step.next_step}" if step.next_step else step.text
        table.add_row(step.name, "ok" if step.ok else "PROBLEM", text, style=None if step.ok else "red")
    TerminalConsole(highlight=False).print(table)
    _show_fields(rehearsal.fields)
    problems = sum(not step.ok for step in rehearsal.steps)
    line(
        f"Not ready: {many(problems, 'step')} with a problem; each says what to do."
        if problems
        else "Ready: a campaign can order here."
    )
    line("Nothing was ordered: only reads and cost estimates were sent.")
    line(
        f"{path}: for the maintainers of prefect-assay; without token, keys, designs, texts and numbers. "
        "Look through it before you send it."
    )


def _show_fields(fields: Sequence[SeenField]) -> None:
    """One line per call: how many fields are read, and the names of all others."""
    line = make_plain_console().print
    line("\nFields of the service's answers:")
    for operation in dict.fromkeys(one.operation for one in fields):
        of_call = [one for one in fields if one.operation == operation]
        section = get_call_facts(operation).section
        where = f"contract {section}" if section else "not in the contract"
        line(f"{operation} ({where}): {many(sum(one.state in _READ for one in of_call), 'field')} read")
        for state in FieldState:
            places = {one.place for one in of_call if one.state is state}
            names = [one for one in sorted(places) if above(one) not in places]
            if names and state not in _QUIET:
                line(f"  {_LABELS.get(state, state)}: {', '.join(names)}")
    line("")
