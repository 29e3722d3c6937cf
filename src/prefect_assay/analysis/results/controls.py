"""Controls: which were expected to bind, and which did. Pure.

A control binds unless the laboratory (`positive_control` of its result) or the designer says otherwise. The designer says it
in a column `control type` or `expected`, with a word such as `negative`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from prefect_assay.analysis.results.calls import Call, read_call
from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.row import HAS_RESULT, Outcome
from prefect_assay.designs.tables.table import key_of
from prefect_assay.service.assays import find_assay_type
from prefect_assay.service.models.base import Model

_COLUMNS: Final = frozenset(map(key_of, ("control type", "expected")))
_NEGATIVE: Final = frozenset({"negative control", "none"})  # besides the words for a call that is negative
_WORDS: Final = {
    Outcome.NO_BINDING: "did not bind",
    Outcome.NO_EXPRESSION: "did not express",
    Outcome.UNKNOWN: "has an unknown outcome",
    Outcome.MISSING: "was not reported",
    Outcome.PENDING: "is pending",
}


class Control(Model):
    """One control of one experiment. `as_expected` is None while it says nothing; `words` are what it did."""

    name: str
    experiment_code: str
    expects_binding: bool
    as_expected: bool | None
    positive: str  # what it does when it binds, or in another assay
    words: str

    @property
    def sentence(self) -> str:
        """What was expected, and what it did."""
        verb = "bind" if self.positive == "bound" else "give a value"
        return f"{self.name} was expected {'' if self.expects_binding else 'not '}to {verb}, and {self.words}"


def expects_binding(
    control: bool | None,  # noqa: FBT001  as the row has it
    extra: Mapping[str, Any],
    attributes: Mapping[str, str],
) -> bool | None:
    """Whether a control has to bind (or to give a value); None for a design."""
    if not control:
        return None
    expected = [value for title, value in attributes.items() if key_of(title) in _COLUMNS]
    if any(
        value.strip().casefold() in _NEGATIVE or read_call(value).call is Call.DOES_NOT_BIND
        for value in expected
    ):
        return False
    return extra.get("positive_control") is not False


def list_controls(designs: Iterable[DesignSummary]) -> tuple[Control, ...]:
    """The controls of all experiments, those that failed first."""
    controls = [_judge_control(design) for design in designs if design.control]
    return tuple(
        sorted(
            controls,
            key=lambda control: (control.as_expected is not False, control.name, control.experiment_code),
        )
    )


def compare_with_controls(designs: Sequence[DesignSummary]) -> tuple[DesignSummary, ...]:
    """The designs, compared with the tightest control of their experiment, and doubted where it failed."""
    controls = [design for design in designs if design.control]
    if not controls:
        return tuple(designs)
    failed = [control for control in list_controls(controls) if control.as_expected is False]
    return tuple(_compare_with_reference(design, controls, failed) for design in designs)


def _judge_control(design: DesignSummary) -> Control:
    expected, outcome = design.expects_binding is not False, design.outcome
    bound = outcome in HAS_RESULT
    if outcome is Outcome.PENDING or (not expected and outcome is not Outcome.NO_BINDING and not bound):
        as_expected = None
    else:
        as_expected = bound is expected
    kind = find_assay_type(design.result_type)
    is_about_binding = design.kd_M is not None or (kind is not None and kind.takes_target)
    verb = "bound" if is_about_binding else "gave a value"
    return Control(
        name=design.name,
        experiment_code=design.experiment_code,
        expects_binding=expected,
        as_expected=as_expected,
        positive=verb,
        words=verb if bound else _WORDS[outcome],
    )


def _compare_with_reference(
    design: DesignSummary, controls: Sequence[DesignSummary], failed: Sequence[Control]
) -> DesignSummary:
    changed: dict[str, Any] = {}
    doubts = [
        f"control {control.sentence}"
        for control in failed
        if control.experiment_code == design.experiment_code
        and not design.control
        and _is_doubted_by(design, control)
    ]
    if doubts:
        changed["doubts"] = (*design.doubts, *doubts)
    references = [
        control
        for control in controls
        if control.experiment_code == design.experiment_code
        and control.expects_binding
        and control.kd_M
        and control.qualifier is None
    ]
    if references and not design.control and design.kd_M and design.qualifier != ">":
        tightest = min(references, key=lambda control: control.kd_M or 0.0)
        changed |= {"reference": tightest.name, "fold": (tightest.kd_M or 0.0) / design.kd_M}
    return design.model_copy(update=changed) if changed else design


def _is_doubted_by(design: DesignSummary, control: Control) -> bool:
    """Whether a call is worth less because of a failed control: negative calls if it should have bound, else positive ones."""
    return (design.outcome in HAS_RESULT) is not control.expects_binding and design.outcome not in {
        Outcome.PENDING,
        Outcome.MISSING,
    }
