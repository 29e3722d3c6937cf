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
    own = [each for each in designs if not each.control]
    controls = list_controls(designs)
    failed = tuple(each for each in controls if each.as_expected is False)
    lines = [
        *(("Under way", line) for line in _under_way(contents, own)),
        *(("Result", line) for line in _describe_result(own)),
        *(("How sure", line) for line in _how_sure(own, scatters)),
        *(("Controls", line) for line in _describe_controls(own, controls)),
        *(("Next", line) for line in _list_next_steps(contents, own, failed)),
    ]
    return Decision(lines=tuple(lines), failed=failed)


def _under_way(contents: CampaignContents, own: Sequence[DesignSummary]) -> Iterator[str]:
    if contents.missing:
        states = Counter(
            in_words(each.order.status) if each.order else "not ordered" for each in contents.missing
        )
        said = "; ".join(f"{count} {state}" for state, count in states.items())
        yield f"{many(sum(e.designs for e in contents.missing), 'design')} in {many(len(contents.missing), 'experiment')} without results: {said}."
    if contents.preliminary:
        waiting = sum(each.outcome is Outcome.PENDING for each in own)
        yield f"The results of {', '.join(contents.preliminary)} are preliminary: {many(waiting, 'design')} still to come."


def _describe_result(own: Sequence[DesignSummary]) -> Iterator[str]:
    if not own:
        return
    yield f"{describe_outcomes(own)}."
    best = own[0]
    if not has_number(best):
        return
    detail = [part for part in (format_interval(best), format_verdict_and_doubt(best)) if part]
    if best.qualifier == "<" and best.kd_M is not None:
        detail.append("its curves do not bound the value from below, so it is a limit")
    if detail:
        yield f"{best.name}: {format_best(best)} ({'; '.join(detail)})."
    rivals = [each.name for each in own[1:] if best.group and each.group == best.group]
    if rivals:
        yield f"Not to be told apart from it: {_join_names(rivals)}."


def _how_sure(own: Sequence[DesignSummary], scatters: Scatters) -> Iterator[str]:
    judged = [each for each in own if each.outcome in HAS_RESULT and each.verdict]
    if judged:
        verdicts = Counter(" and ".join(list_verdict_parts(each)) for each in judged)
        words = ", ".join(f"{words} ({count})" for words, count in verdicts.most_common())
        yield f"Raw curves of the designs with a value: {words}."
    has_kd = any(each.kd_M is not None and each.qualifier is None for each in own)
    if has_kd and scatters.log_kd is not None:
        yield (
            f"Replicates of one design differ by a factor of {10**scatters.log_kd.deviation:.2f} "
            f"(standard deviation of {scatters.log_kd.deviation:.3f} decades, {_describe_basis(scatters.log_kd)})."
        )
    elif has_kd:
        yield "No design has two replicates with a K_D, so their scatter is not known."
    if scatters.tm_C is not None and any(each.tm_C is not None for each in own):
        yield f"Replicates of one design differ by {scatters.tm_C.deviation:.2f} °C (standard deviation, {_describe_basis(scatters.tm_C)})."


def _describe_basis(scatter: Scatter) -> str:
    earlier = f", {scatter.earlier} of them of earlier campaigns" if scatter.earlier else ""
    return f"pooled over {many(scatter.designs, 'design')}{earlier}"


def _describe_controls(own: Sequence[DesignSummary], controls: Sequence[Control]) -> Iterator[str]:
    judged = [each for each in controls if each.as_expected is not None]
    if not controls:
        if own:
            yield "None were measured, so nothing shows that the assay worked."
        return
    fine = [each for each in judged if each.as_expected]
    said = f"{len(fine)} of {many(len(judged), 'control')} as expected" if judged else "Not measured yet"
    named = "; ".join(f"{each.name} {each.words}" for each in controls[:_NAMED])
    yield f"{said}: {named}."


def _list_next_steps(
    contents: CampaignContents, own: Sequence[DesignSummary], failed: Sequence[Control]
) -> Iterator[str]:
    if failed:
        doubted = sum(bool(each.doubts) for each in own)
        yield f"Ask the laboratory about {_join_names(each.name for each in failed)} before you rely on the {many(doubted, 'call')} in doubt."
    looks = [each.name for each in own if each.outcome in HAS_RESULT and each.verdict in _LOOK]
    if looks:
        yield f"Look at the curves of {_join_names(looks)} before you use their numbers."
    beyond = [each.name for each in own if each.extrapolated]
    if beyond:
        yield (
            f"{_join_names(beyond)}: K_D is extrapolated, above the highest concentration; "
            f"measure {'it' if len(beyond) == 1 else 'them'} again with higher concentrations."
        )
    limits = [each.name for each in own if each.kd_M is not None and each.qualifier]
    if limits:
        yield f"{_join_names(limits)}: only a limit is known; a value needs other concentrations, or a longer dissociation."
    first = [each.name for each in own if each.group == "A"]
    if len(first) > 1:
        yield f"Choose among {_join_names(first)} by other properties, or measure them with more replicates."
    if own and not any(each.outcome in HAS_RESULT or each.outcome is Outcome.PENDING for each in own):
        what = "binds" if any(each.binding for each in own) else "has a value"
        yield f"No design {what}. See the reasons below before you order more of them."
    if contents.money.line:
        simulated = ", simulated" if contents.is_simulated else ""
        yield f"Open money{simulated}, without VAT: {contents.money.line}. `prefect-assay status` has the links."


def _join_names(names: Iterable[str]) -> str:
    return listed([*names], _NAMED)
