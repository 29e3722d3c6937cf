"""The top of a report: what bound and how sure that is, the controls, what is under way, the next step. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from prefect_assay.analysis.kinetics.analysis import Verdict
from prefect_assay.analysis.report.contents import CampaignContents
from prefect_assay.analysis.results.controls import Control, list_controls
from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.interval import Scatter
from prefect_assay.analysis.results.ranked import (
    describe_outcomes,
    format_best,
    format_interval,
    format_verdict_and_doubt,
    has_number,
    list_verdict_parts,
)
from prefect_assay.analysis.results.row import HAS_RESULT, Outcome
from prefect_assay.analysis.results.summary import Scatters
from prefect_assay.service.models.base import Model
from prefect_assay.service.words import in_words, listed, many

_NAMED: Final = 6
_LOOK: Final = frozenset({Verdict.REVIEW, Verdict.NOT_1_TO_1})


class Decision(Model):
    """Lines for a person who decides: each has a title. `failed` are the controls that did what they should not."""

    lines: tuple[tuple[str, str], ...]
    failed: tuple[Control, ...] = ()


def summarize_decision(
    contents: CampaignContents, designs: Sequence[DesignSummary], scatters: Scatters
) -> Decision:
    """The summary of a campaign, from what the page shows below it."""
    candidates = [design for design in designs if not design.control]
    controls = list_controls(designs)
    failed = tuple(design for design in controls if design.as_expected is False)
    lines = [
        *(("Under way", line) for line in _under_way(contents, candidates)),
        *(("Result", line) for line in _describe_result(candidates)),
        *(("How sure", line) for line in _how_sure(candidates, scatters)),
        *(("Controls", line) for line in _describe_controls(candidates, controls)),
        *(("Next", line) for line in _list_next_steps(contents, candidates, failed)),
    ]
    return Decision(lines=tuple(lines), failed=failed)


def _under_way(contents: CampaignContents, designs: Sequence[DesignSummary]) -> Iterator[str]:
    if contents.missing:
        states = Counter(
            in_words(entry.order.status) if entry.order else "not ordered" for entry in contents.missing
        )
        counts = "; ".join(f"{count} {state}" for state, count in states.items())
        yield f"{many(sum(e.designs for e in contents.missing), 'design')} in {many(len(contents.missing), 'experiment')} without results: {counts}."
    if contents.preliminary:
        waiting = sum(entry.outcome is Outcome.PENDING for entry in designs)
        yield f"The results of {', '.join(contents.preliminary)} are preliminary: {many(waiting, 'design')} still to come."


def _describe_result(designs: Sequence[DesignSummary]) -> Iterator[str]:
    if not designs:
        return
    yield f"{describe_outcomes(designs)}."
    best = designs[0]
    if not has_number(best):
        return
    detail = [part for part in (format_interval(best), format_verdict_and_doubt(best)) if part]
    is_of_laboratory = (best.reported_qualifier, best.reported_kd_M) == ("<", best.kd_M)
    if best.qualifier == "<" and best.kd_M is not None and best.verdict and not is_of_laboratory:
        detail.append("its curves do not bound the value from below, so it is a limit")
    if detail:
        yield f"{best.name}: {format_best(best)} ({'; '.join(detail)})."
    rivals = [design.name for design in designs[1:] if best.group and design.group == best.group]
    if rivals:
        yield f"Not to be told apart from it: {_join_names(rivals)}."


def _how_sure(designs: Sequence[DesignSummary], scatters: Scatters) -> Iterator[str]:
    judged = [design for design in designs if design.outcome in HAS_RESULT and design.verdict]
    if judged:
        verdicts = Counter(" and ".join(list_verdict_parts(design)) for design in judged)
        words = ", ".join(f"{words} ({count})" for words, count in verdicts.most_common())
        yield f"Raw curves of the designs with a value: {words}."
    has_kd = any(design.kd_M is not None and design.qualifier is None for design in designs)
    if has_kd and scatters.log_kd is not None:
        yield (
            f"Replicates of one design differ by a factor of {10**scatters.log_kd.deviation:.2f} "
            f"(standard deviation of {scatters.log_kd.deviation:.3f} decades, {_describe_basis(scatters.log_kd)})."
        )
    elif has_kd:
        yield "No design has two replicates with a K_D, so their scatter is not known."
    if scatters.tm_C is not None and any(design.tm_C is not None for design in designs):
        yield f"Replicates of one design differ by {scatters.tm_C.deviation:.2f} °C (standard deviation, {_describe_basis(scatters.tm_C)})."


def _describe_basis(scatter: Scatter) -> str:
    earlier = f", {scatter.earlier} of them of earlier campaigns" if scatter.earlier else ""
    return f"pooled over {many(scatter.designs, 'design')}{earlier}"


def _describe_controls(designs: Sequence[DesignSummary], controls: Sequence[Control]) -> Iterator[str]:
    judged = [control for control in controls if control.as_expected is not None]
    if not controls:
        if designs:
            yield "None were measured, so nothing shows that the assay worked."
        return
    fine = [control for control in judged if control.as_expected]
    tally = f"{len(fine)} of {many(len(judged), 'control')} as expected" if judged else "Not measured yet"
    named = "; ".join(f"{control.name} {control.words}" for control in controls[:_NAMED])
    yield f"{tally}: {named}."


def _list_next_steps(
    contents: CampaignContents, designs: Sequence[DesignSummary], failed: Sequence[Control]
) -> Iterator[str]:
    if failed:
        doubted = sum(bool(design.doubts) for design in designs)
        yield f"Ask the laboratory about {_join_names(design.name for design in failed)} before you rely on the {many(doubted, 'call')} in doubt."
    looks = [design.name for design in designs if design.outcome in HAS_RESULT and design.verdict in _LOOK]
    if looks:
        yield f"Look at the curves of {_join_names(looks)} before you use their numbers."
    beyond = [design.name for design in designs if design.extrapolated]
    if beyond:
        yield (
            f"{_join_names(beyond)}: K_D is extrapolated, above the highest concentration; "
            f"measure {'it' if len(beyond) == 1 else 'them'} again with higher concentrations."
        )
    limits = [design.name for design in designs if design.kd_M is not None and design.qualifier]
    if limits:
        yield f"{_join_names(limits)}: only a limit is known; a value needs other concentrations, or a longer dissociation."
    first = [design.name for design in designs if design.group == "A"]
    if len(first) > 1:
        yield f"Choose among {_join_names(first)} by other properties, or measure them with more replicates."
    if designs and not any(
        design.outcome in HAS_RESULT or design.outcome is Outcome.PENDING for design in designs
    ):
        what = "binds" if any(design.binding for design in designs) else "has a value"
        yield f"No design {what}. See the reasons below before you order more of them."
    if contents.money.line:
        simulated = ", simulated" if contents.is_simulated else ""
        yield f"Open money{simulated}, without VAT: {contents.money.line}. `prefect-assay status` has the links."


def _join_names(names: Iterable[str]) -> str:
    return listed([*names], _NAMED)
