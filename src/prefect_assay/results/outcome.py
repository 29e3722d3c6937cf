"""What a row says about its design, from the fields the service reports. A pure function.

"no expression", "no binding" and "unknown" are three outcomes: a design that did not express was never tested
for binding, and counting it as a non-binder would teach a designer something false.
"""

from collections.abc import Mapping
from typing import Any, Final

from prefect_assay.models.vocabulary import ExperimentType, snake_case
from prefect_assay.results.row import Outcome

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
