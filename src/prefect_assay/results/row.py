"""The tidy row: one measurement of one design, or the summary of its replicates.

Units stand in the column names: K_D in M, k_on in 1/(M s), k_off in 1/s, melting temperature in degrees
Celsius, concentration in nM. An empty value means "not reported", never zero.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

from prefect_assay.models.archived import ArchiveRecord
from prefect_assay.models.base import Model
from prefect_assay.models.vocabulary import ExperimentType, snake_case


class Outcome(StrEnum):
    """What a row says about its design. A failure to express says nothing about binding, and stays apart."""

    MEASURED = "measured"  # a number of the result's own kind is there
    BINDING = "binding"  # it binds, and no affinity is given: a screening call, or a fit that failed
    NO_BINDING = "no_binding"
    NO_EXPRESSION = "no_expression"
    UNKNOWN = "unknown"  # the laboratory reports no usable outcome
    PENDING = "pending"  # ordered, not yet reported
    MISSING = "missing"  # ordered, and absent although the results are complete


class Level(StrEnum):
    """Whether a row is one replicate or the summary over all of them."""

    SUMMARY = "summary"
    REPLICATE = "replicate"


def _none_for_empty(value: Any) -> Any:
    return None if value == "" else value


Text = Annotated[str | None, BeforeValidator(_none_for_empty)]
Number = Annotated[float | None, Field(allow_inf_nan=False), BeforeValidator(_none_for_empty)]
Whole = Annotated[int | None, BeforeValidator(_none_for_empty)]
Flag = Annotated[bool | None, BeforeValidator(_none_for_empty)]


class ResultRow(Model):
    """One row of the tidy table. The order of the fields is the order of the columns, and it is stable.

    `qualifier` is `<` or `>` when the row's main value is a limit and not a measurement. `extra` is a JSON
    object with everything else that the service sent for this row, so that nothing is lost.
    """

    experiment_code: str
    result_id: str
    result_type: str
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
    aa_string: Text = None
    extra: Text = None


COLUMNS = tuple(ResultRow.model_fields)


class ArchivedResults(Model):
    """One archived version, with the rows of its table, and a line for whatever it lacks or could not be read."""

    record: ArchiveRecord
    rows: tuple[ResultRow, ...]
    notes: tuple[str, ...] = ()


class CampaignTable(Model):
    """All rows of a campaign. `best_kd_M` is the lowest mean K_D of its designs, in M."""

    location: str | None
    rows: tuple[ResultRow, ...]
    best_kd_M: float | None  # noqa: N815 - M is the unit


_NO_EXPRESSION: Final = frozenset({"none", "no", "false", "no_expression", "not_expressed", "failed"})
_BINDS: Final = frozenset({"strong", "medium", "weak"})
# Their numbers have columns: a screening without a call, or a melting curve without a Tm, measured nothing.
_OWN_COLUMN: Final = frozenset(
    {ExperimentType.AFFINITY, ExperimentType.SCREENING, ExperimentType.THERMOSTABILITY}
)
_NOT_MEASURED: Final = frozenset({"sequence", "target", "place", "metadata"})


def outcome_of(result_type: str, values: Mapping[str, Any], extra: Mapping[str, Any]) -> Outcome:
    """The outcome of one row.

    A negative binding call stands above a number, and a number above everything else: where all replicates
    were called, a fitted K_D of a non-binder is an artefact of the fit.

    Args:
        result_type: the row's type; types with columns of their own are judged by them, the others by any number.
        values: the row's columns (`kd_M`, `tm_C`, `concentration_nM`, `binding`, `binding_strength`, `expression`).
        extra: what has no column.
    """
    verdict = _call(values)
    if verdict in {Outcome.NO_EXPRESSION, Outcome.NO_BINDING, Outcome.PENDING}:
        return verdict
    kind = snake_case(result_type)
    if values.get("kd_M") is not None or values.get("tm_C") is not None:
        return Outcome.MEASURED
    if verdict is Outcome.UNKNOWN and kind not in _OWN_COLUMN and _reports_something(kind, values, extra):
        return Outcome.MEASURED
    return verdict


def _call(values: Mapping[str, Any]) -> Outcome:
    """What the laboratory's own words say, without any number."""
    binding, strength = _word(values.get("binding")), _word(values.get("binding_strength"))
    if _word(values.get("expression")) in _NO_EXPRESSION:
        return Outcome.NO_EXPRESSION
    if binding == "in_progress":
        return Outcome.PENDING
    if binding == "false" or (strength == "none" and binding != "true"):
        return Outcome.NO_BINDING
    return Outcome.BINDING if binding == "true" or strength in _BINDS else Outcome.UNKNOWN


def _reports_something(kind: str, values: Mapping[str, Any], extra: Mapping[str, Any]) -> bool:
    """Whether a type without columns of its own reports a number, or an expression level in words."""
    if values.get("concentration_nM") is not None:
        return True
    if kind == ExperimentType.EXPRESSION and _word(values.get("expression")) not in {"", "unknown"}:
        return True
    return _holds_number({key: value for key, value in extra.items() if key not in _NOT_MEASURED})


def _word(value: Any) -> str:
    return str(snake_case(value)).strip() if isinstance(value, str) else ""


def _holds_number(value: Any) -> bool:
    """Whether an unknown variant reports any number, at any depth."""
    if isinstance(value, Mapping):
        return any(_holds_number(item) for item in value.values())
    if isinstance(value, list):
        return any(_holds_number(item) for item in value)
    return isinstance(value, int | float) and not isinstance(value, bool)
