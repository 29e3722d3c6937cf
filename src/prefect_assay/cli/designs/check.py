"""`prefect-assay designs check`: checks a design file as a campaign would, without a service."""

from statistics import median
from typing import Any

from rich.table import Table

from prefect_assay.archive.sources import local_path
from prefect_assay.cli.failures import FAILED, describe_error
from prefect_assay.cli.output import TerminalConsole, make_plain_console, print_json
from prefect_assay.designs.campaign import split_into_batches
from prefect_assay.designs.liabilities import design_warnings
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.read import PASTED, is_pasted, read_sequences
from prefect_assay.designs.report import order_lines
from prefect_assay.errors import InputError, InvalidSequences, InvalidSpec
from prefect_assay.service.assays import ASSAY_TYPES
from prefect_assay.service.models.sequences import Sequences
from prefect_assay.service.models.spec import Assay, ExperimentSpec
from prefect_assay.service.models.spec_rules import check_spec
from prefect_assay.service.models.vocabulary import ExperimentType
from prefect_assay.service.words import in_words, many

# A placeholder: only the service knows whether a target exists; everything else can be checked without it.
_ANY_TARGET = "00000000-0000-0000-0000-000000000000"
_DUPLICATES_SHOWN = 20


def check_designs(
    file: str, experiment_type: ExperimentType, reading: ReadingOptions, *, as_json: bool
) -> None:
    """Print a summary of the designs, or every finding and exit with 1."""
    assay = Assay(experiment_type=experiment_type)
    try:
        sequences = read_file(file, reading)
        experiments = check_locally(sequences, assay, reading.designs_per_experiment)
    except InputError as error:
        text = _describe_problems(file, error)
        if as_json:
            print_json({"error": {**describe_error(error), "message": text, "exit_code": FAILED}})
        else:
            TerminalConsole(stderr=True).print(text, markup=False, highlight=False)
        raise SystemExit(FAILED) from None
    summary = _summarize_sequences(sequences, assay, experiments)
    if as_json:
        print_json(summary)
    else:
        _show_sequences(sequences, summary)


def _describe_problems(file: str, error: InputError) -> str:
    """Every finding under a headline of this command, which orders nothing in any case."""
    if not isinstance(error, InvalidSequences | InvalidSpec):
        return str(error)
    source = PASTED if is_pasted(file) else file
    return "\n".join(
        [f"{many(len(error.findings), 'problem')} with {source}:", *(f"  - {one}" for one in error.findings)]
    )


def check_locally(sequences: Sequences, assay: Assay, per_experiment: int) -> int:
    """Return the number of experiments; `InvalidSpec` has every finding of each."""
    target = _ANY_TARGET if ASSAY_TYPES[assay.experiment_type].takes_target else None
    batches = split_into_batches(sequences, assay, per_experiment)
    findings = [
        f"experiment {batch.index + 1} of {batch.count}: {finding}"
        for batch in batches
        for finding in check_spec(ExperimentSpec.of(assay, batch, target))
    ]
    InvalidSpec.check(findings)
    return len(batches)


def read_file(file: str, reading: ReadingOptions) -> Sequences:
    """Read the designs of a file, an address or pasted text."""
    return read_sequences(str(local_path(file)) if file.startswith("~") else file, reading=reading)


def warnings_of(sequences: Sequences) -> tuple[str, ...]:
    """How the designs were read, and what is worth a second look."""
    return (*order_lines(sequences), *design_warnings((s.name, s.aa_string) for s in sequences.items))


def _summarize_sequences(sequences: Sequences, assay: Assay, experiments: int) -> dict[str, Any]:
    lengths = [item.residues for item in sequences.items]
    return {
        "source": sequences.source,
        "designs": len(sequences),
        "controls": sum(item.control for item in sequences.items),
        "multi_chain": sum(":" in item.aa_string for item in sequences.items),
        "residues": {"shortest": min(lengths), "median": median(lengths), "longest": max(lengths)},
        "duplicates": [{"name": d.name, "same_as": d.same_as} for d in sequences.duplicates],
        "columns": sorted({title for item in sequences.items for title in item.attributes}),
        "notes": list(sequences.notes),
        "reading": list(order_lines(sequences)),
        "report": sequences.report.model_dump(mode="json"),
        "warnings": list(design_warnings((s.name, s.aa_string) for s in sequences.items)),
        "experiment_type": str(assay.experiment_type),
        "experiments": experiments,
    }


def _show_sequences(sequences: Sequences, summary: dict[str, Any]) -> None:
    lengths = [item.residues for item in sequences.items]
    table = Table(show_header=False, box=None)
    table.add_row("designs", f"{len(sequences)} ({many(summary['controls'], 'control')})")
    table.add_row("residues", f"{min(lengths)} to {max(lengths)}, median {median(lengths):g}")
    table.add_row("duplicates left out", str(len(sequences.duplicates)))
    table.add_row("experiments", f"{summary['experiments']} of type {in_words(summary['experiment_type'])}")
    console = make_plain_console()
    console.print(f"{sequences.source}: can be ordered", style="green")
    TerminalConsole().print(table)
    for line in warnings_of(sequences):
        console.print(f"  {line}", style="yellow")
    for duplicate in sequences.duplicates[:_DUPLICATES_SHOWN]:
        console.print(f"  {duplicate.name} is the same as {duplicate.same_as}")
    if len(sequences.duplicates) > _DUPLICATES_SHOWN:
        console.print(f"  … and {len(sequences.duplicates) - _DUPLICATES_SHOWN} more")
