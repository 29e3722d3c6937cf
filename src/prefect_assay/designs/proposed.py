"""Candidates in memory as a pool, and choices as a file: both with the checks and columns of design files."""

import csv
import io
import json
from collections.abc import Iterable
from typing import Any, Final

from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.readers.columns import rename_clashing_title
from prefect_assay.designs.readers.records import Rows, SourceErrors, check_rows
from prefect_assay.designs.selection import REASON_COLUMN, Choice
from prefect_assay.service.models.sequences import Pool

PROPOSED: Final = "proposed designs"
_LIMIT: Final = 1_000_000
_DECIDED: Final = ("selection_rank", "selection_score", "selection_price_cents", REASON_COLUMN)
_FRAMEWORK: Final = "framework_regions"


def pool_of(candidates: Iterable[Candidate], source: str = PROPOSED) -> Pool:
    """Check candidates as the designs of a file are; errors name a candidate by its place, as a line from 1.

    Raises:
        InvalidSequences: every error with its place.
    """
    rows, errors = Rows(limit=_LIMIT, unpack=json.loads), SourceErrors(source)
    for index, candidate in enumerate(candidates):
        rows.lines.append(index + 1)
        rows.names.append(candidate.name.strip())
        rows.residues.append(candidate.sequence)
        attributes = candidate.attributes()
        rows.extras.append(json.dumps(attributes) if attributes else "")
        if candidate.control:
            rows.controls.add(index)
        if candidate.metadata:
            rows.metadata[index] = dict(candidate.metadata)
    if not rows.names:
        errors.add("no sequences; propose at least one design")
    pool = check_rows(rows, source, errors)
    errors.check()
    return pool


def choices_csv(choices: Iterable[Choice]) -> bytes:
    """Choices as a table that `read_sequences` reads: the designs with all their columns, then what was decided.

    A column of the designer that would be read as the name, the sequence or the like gets another title: a table with
    the columns `sequence` (of a complex) and `binder_sequence` (chosen) has both.
    Cells are exact, because they are ordered: open the file with a spreadsheet program only if its names are trusted.
    """
    lines = [_make_line(choice) for choice in choices]
    header = dict.fromkeys(title for line in lines for title in line if title not in _DECIDED)
    buffer = io.StringIO(newline="")
    writer = csv.DictWriter(buffer, [*(header or ("name", "sequence")), *_DECIDED], restval="")
    writer.writeheader()
    writer.writerows(lines)
    return buffer.getvalue().encode()


def _make_line(choice: Choice) -> dict[str, Any]:
    design = choice.design()
    metadata = dict(design.metadata)
    return {
        "name": design.name,
        "sequence": design.aa_string,
        "control": "true" if design.control else "false",
        **metadata.pop(_FRAMEWORK, {}),
        **metadata,
        **{rename_clashing_title(title): cell for title, cell in design.attributes.items()},
        "selection_rank": choice.rank,
        "selection_score": "" if choice.score is None else f"{choice.score:.6g}",
        "selection_price_cents": "" if choice.price_cents is None else choice.price_cents,
    }
