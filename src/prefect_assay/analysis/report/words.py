"""The words of a report: outcomes, verdicts, failures with their reasons, values with units. Pure."""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from prefect_assay.analysis.kinetics.analysis import Estimate, Verdict
from prefect_assay.analysis.report.contents import CampaignContents
from prefect_assay.analysis.results.design import DesignSummary, is_made_up
from prefect_assay.analysis.results.formats import (
    EMPTY,
    OUTCOME_WORDS,
    VERDICT_WORDS,
    format_celsius_estimate,
)
from prefect_assay.analysis.results.measurements import EXTRAPOLATED, measures_affinity
from prefect_assay.analysis.results.row import Outcome
from prefect_assay.service.assays import ASSAY_TYPES
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.vocabulary import ExperimentType, Method
from prefect_assay.service.words import many

VERDICT_MEANINGS: Final = {
    VERDICT_WORDS[Verdict.AGREES]: "The fit describes the curves, and agrees with the laboratory's values.",
    EXTRAPOLATED: "K_D is above the highest concentration, so the curves cannot show that it is right.",
    VERDICT_WORDS[Verdict.REVIEW]: "Look at the curves before you use the number: the reasons are listed.",
    VERDICT_WORDS[
        Verdict.NOT_1_TO_1
    ]: "The curves deviate from 1:1 binding so far that its constants are only the nearest ones.",
    VERDICT_WORDS[
        Verdict.NO_BINDING
    ]: "No response above the noise, so there is no number to agree with: it is what the curves show, not the laboratory's call.",
}
METHODS: Final = {Method.BLI: "bio-layer interferometry", Method.SPR: "surface plasmon resonance"}

_REASONS: Final = {
    Outcome.NO_EXPRESSION: "The design did not express, so nothing else was measured.",
    Outcome.NO_BINDING: "The design expressed, and the laboratory reports no binding.",
    Outcome.BINDING: "The design binds, and the laboratory gives no affinity for any replicate.",
    Outcome.UNKNOWN: "The laboratory reports neither a value nor a call that can be read, whatever the curves show.",
    Outcome.PENDING: "The results are preliminary: this design is still being measured.",
    Outcome.MISSING: "The design was ordered, and is absent although the results are complete.",
}
_FAILURES: Final = {
    outcome: ("No affinity" if outcome is Outcome.BINDING else OUTCOME_WORDS[outcome].capitalize(), reason)
    for outcome, reason in _REASONS.items()
}
_REPLACED: Final = "\ufffd"
_MARKS: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


class Failure(Model):
    """Designs without the value that was ordered, and the reason in words."""

    title: str
    reason: str
    designs: tuple[DesignSummary, ...]


def group_failures(summaries: Iterable[DesignSummary]) -> Iterator[Failure]:
    """One group per reason; a screen that reports binding has not failed."""
    listed = tuple(summaries)
    for outcome, (title, reason) in _FAILURES.items():
        designs = tuple(
            summary
            for summary in listed
            if summary.outcome is outcome
            and (outcome is not Outcome.BINDING or measures_affinity(summary.result_type))
        )
        if designs:
            yield Failure(title=title, reason=reason, designs=designs)


def assay_line(contents: CampaignContents) -> str:
    """`Binding affinity by bio-layer interferometry against Human EGFR`, of each assay of the campaign."""
    lines: dict[str, None] = {}
    for experiment in contents.experiments:
        if experiment.spec is not None:
            lines[_name_assay(experiment.spec.experiment_type, experiment.spec.method, experiment.target)] = (
                None
            )
    if not lines and contents.plan:
        assay = contents.plan.assay
        lines[_name_assay(assay.experiment_type, assay.effective_method, contents.plan.target_name)] = None
    return "; ".join(lines)


def _name_assay(kind: ExperimentType, method: Method | None, target: str | None) -> str:
    words = ASSAY_TYPES[kind].title
    by = f" by {METHODS[method]}" if method else ""
    return f"{words}{by}{f' against {target}' if target else ''}"


def simulated_line(designs: Sequence[DesignSummary]) -> str:
    """What is simulated, and how many values a lab made up; empty without any."""
    marked = sum(design.simulated for design in designs)
    if not marked:
        return ""
    which = "" if marked == len(designs) else f" to {marked} of {many(len(designs), 'design')}"
    made_up = sum(map(is_made_up, designs))
    means = (
        f" It made up the values of {many(made_up, 'design')}: they say nothing about real proteins."
        if made_up
        else ""
    )
    return f"A local lab has answered{which} in place of the service.{means}"


def format_melting(value: Estimate | None) -> str:
    """A fitted melting temperature with its interval; a dash for None."""
    return EMPTY if value is None else format_celsius_estimate(value)


def format_day(moment: datetime | None) -> str:
    """`2026-03-02`, in UTC; a dash for None."""
    return f"{moment.astimezone(UTC):%Y-%m-%d}" if moment else EMPTY


def clean_text(text: object) -> str:
    """Text of others in one line: control characters and marks that change the direction of text become visible."""
    flat = " ".join(str(text).split())
    return "".join(
        _REPLACED if unicodedata.category(character) in _MARKS else character for character in flat
    )
