"""The tidy row, one measurement of one design or the summary of its replicates; and tables of rows, put together.

Column names carry their units: K_D in M, k_on in 1/(M s), k_off in 1/s, melting temperature in degrees Celsius,
concentration in nM. An empty value means "not reported", never zero.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, create_model

from prefect_assay.archive.archived import ArchiveRecord
from prefect_assay.service.assays import FURTHER_QUANTITIES
from prefect_assay.service.models.base import Model

T = TypeVar("T", bound=BaseModel)


class Outcome(StrEnum):
    """The outcome of a row. A design that did not express was never tested for binding: it does not count as a non-binder."""

    MEASURED = "measured"  # a number of the result's own kind is there
    BINDING = "binding"  # it binds, and no affinity is given: a screening call, or a fit that failed
    NO_BINDING = "no_binding"
    NO_EXPRESSION = "no_expression"
    UNKNOWN = "unknown"  # the laboratory reports no usable outcome
    PENDING = "pending"  # ordered, not yet reported
    MISSING = "missing"  # ordered, and absent although the results are complete


HAS_RESULT: Final = frozenset({Outcome.MEASURED, Outcome.BINDING})
OPEN: Final = frozenset({Outcome.UNKNOWN, Outcome.PENDING, Outcome.MISSING})  # no evidence of a result


MEAN_OF: Final = (
    "mean_of"  # in `extra`, what the values of a row are computed from that the laboratory has not reported
)


class Level(StrEnum):
    """One replicate, or the summary over all of them."""

    SUMMARY = "summary"
    REPLICATE = "replicate"


def _none_for_empty(value: Any) -> Any:
    return None if value == "" else value


Text = Annotated[str | None, BeforeValidator(_none_for_empty)]
Number = Annotated[float | None, Field(allow_inf_nan=False), BeforeValidator(_none_for_empty)]
Whole = Annotated[int | None, BeforeValidator(_none_for_empty)]
Flag = Annotated[bool | None, BeforeValidator(_none_for_empty)]


def add_quantity_columns(model: type[T]) -> type[T]:
    """Give a table a column of each quantity that an assay type declares and that the table does not name itself."""
    columns: dict[str, Any] = {kind.column: (Number, None) for kind in FURTHER_QUANTITIES}
    if not columns:
        return model
    return create_model(
        model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, **columns
    )


@add_quantity_columns
class ResultRow(Model):
    """One row of the tidy table. The fields are the columns, in a stable order.

    `qualifier` is `<` or `>` when the row's main value is a limit and not a measurement. `doubt` says
    what is odd about its numbers. `extra` is a JSON object with everything else that the service sent for this row.
    """

    experiment_code: str = ""
    result_id: str = ""
    result_type: str = ""
    level: Level
    name: str
    replicate: Whole = None
    control: Flag = None
    outcome: Outcome
    qualifier: Text = None
    kd_M: Number = None  # noqa: N815  units are spelled as scientists spell them
    log10_kd: Number = None
    kd_log_std: Number = None
    kon_per_M_s: Number = None  # noqa: N815
    koff_per_s: Number = None
    tm_C: Number = None  # noqa: N815
    concentration_nM: Number = None  # noqa: N815
    binding: Text = None
    binding_strength: Text = None
    expression: Text = None
    fit_quality: Text = None
    doubt: Text = None
    aa_string: Text = None
    extra: Text = None


COLUMNS = tuple(ResultRow.model_fields)


def read_row(values: Mapping[str, Any]) -> ResultRow:
    """A row of a stored table: columns that another version added are left out, and columns that it lacks are empty.

    Raises:
        ValidationError: a value does not fit its column, or level, name or outcome is missing.
    """
    filled = {name: value for name in COLUMNS if (value := values.get(name)) is not None}
    return ResultRow.model_validate(filled, strict=False)


class ArchivedResults(Model):
    """An archived version, the rows of its table, and a note on each part that is missing or unreadable.

    `unread` names the raw files of complete results without one row that can be read; `deferred` the results whose data
    package may be fetched later.
    """

    record: ArchiveRecord
    rows: tuple[ResultRow, ...]
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    deferred: tuple[str, ...] = ()


class CampaignTable(Model):
    """All rows of a campaign."""

    location: str | None
    rows: tuple[ResultRow, ...]


def collate_rows(tables: Iterable[Iterable[ResultRow]]) -> tuple[ResultRow, ...]:
    """One table of many. The later of two equal rows (experiment, result, design, level, replicate) replaces the first.

    An open row (`pending`, `missing`) is dropped once its design has a result.
    """
    merged: dict[tuple[Any, ...], ResultRow] = {}
    counts: dict[tuple[Any, ...], int] = {}
    for table in tables:
        counts.clear()
        for row in table:
            identity = (
                row.experiment_code,
                row.result_id,
                row.result_type,
                row.name,
                row.level,
                row.replicate,
            )
            counts[identity] = counts.get(identity, 0) + 1  # replicates may come without a number
            merged[*identity, counts[identity]] = row
    answered = {(row.experiment_code, row.name) for row in merged.values() if row.result_id}
    return tuple(
        row for row in merged.values() if row.result_id or (row.experiment_code, row.name) not in answered
    )
