"""The tidy row: one measurement of one design, or the summary of its replicates.

Units stand in the column names: K_D in M, k_on in 1/(M s), k_off in 1/s, melting temperature in degrees
Celsius, concentration in nM. An empty value means "not reported", never zero.
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from prefect_assay.models.base import Model


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
