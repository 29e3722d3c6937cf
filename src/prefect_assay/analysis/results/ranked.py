"""The ranked table of designs. Artifact, terminal and report show the same columns and words.

What all designs share is in the title. The columns fit 80 characters; names are shortened, values never.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prefect_assay.analysis.kinetics.analysis import ReplicateKinetics, ReplicateMelting, Verdict
from prefect_assay.analysis.results.controls import list_controls
from prefect_assay.analysis.results.design import MADE_UP, DesignSummary, find_main_quantity, is_made_up
from prefect_assay.analysis.results.formats import (
    CONSTANT,
    EMPTY,
    OUTCOME_WORDS,
    VERDICT_WORDS,
    format_fold,
    format_molar,
    format_molar_range,
    format_quantity,
    make_markdown_cell,
    make_one_line,
)
from prefect_assay.analysis.results.hits import count_hits
from prefect_assay.analysis.results.measurements import EXTRAPOLATED
from prefect_assay.analysis.results.row import HAS_RESULT, Outcome
from prefect_assay.foreign_text import clean_text
from prefect_assay.service.assays import CONCENTRATION, QuantityKind, find_assay_type
from prefect_assay.service.bounds import cut
from prefect_assay.service.models.base import Model
from prefect_assay.service.words import listed

GROUPS: Final = "designs with the same letter are as good as the first of them, as far as their 95 % intervals tell; neighboring letters may overlap"
_WIDTH: Final = 80
_GAP: Final = 2
_NAME_MIN: Final = 15
_NAME_MAX: Final = 30
_TARGET_MAX: Final = 24
_STAR: Final = " *"
_CONTROL: Final = "ctl"
_GIVES_WAY: Final = ("Target", "Fold", "Laboratory")  # in this order, where a name has no room
_FOLD_MAX: Final = 1000
_SEVERAL: Final = "Result"  # over values of several quantities


class RankedDesign(Model):
    """One line. `place` counts designs with a result from 1; controls and failures have none."""

    place: int | None
    design: DesignSummary
    cells: tuple[str, ...]


class RankedTable(Model):
    """Titles and cells agree in number; the name of a design is cell 1. Columns that say nothing are left out."""

    title: str
    titles: tuple[str, ...]
    lines: tuple[RankedDesign, ...]
    left_out: int = 0
    notes: tuple[str, ...] = ()


def make_ranked_table(
    designs: Sequence[DesignSummary],
    *,
    limit: int | None = None,
    width: int | None = _WIDTH,
) -> RankedTable:
    """The table of designs in their order.

    Args:
        designs: as `summarize` ranks them.
        limit: how many to show; the others are counted.
        width: characters that all columns fit in; None: a page that scrolls.
    """
    shown = designs[:limit]
    several = len({design.campaign_id for design in shown}) > 1
    value_title, format_cell = _choose_value_column(shown)
    formatters: list[tuple[str, Callable[[DesignSummary], str]]] = [
        (value_title, format_cell),
        ("95 % interval", format_interval),
        ("Laboratory", format_laboratory_value if _has_differing_laboratory(shown) else lambda _: ""),
        ("Fold", format_design_fold),
        ("Verdict", format_verdict_and_doubt),
        ("Campaign", lambda design: design.campaign_id),
        ("Target", lambda design: _shorten_name(design.target or "", _TARGET_MAX)),
        ("Source", lambda design: make_one_line(design.data_source or "")),
    ]
    left = {"Campaign"} if not several else set()
    left |= {"Target"} if len({design.target for design in shown}) < 2 else set()  # noqa: PLR2004  one is a constant
    left |= {"Source"} if len({design.data_source for design in shown}) < 2 else set()  # noqa: PLR2004  likewise
    columns = {
        title: [cell(design) for design in shown]
        for title, cell in formatters
        if title not in left and (title == value_title or any(cell(design) for design in shown))
    }
    places = _list_places(designs)[: len(shown)]
    ranks = [_format_rank(place, design) for place, design in zip(places, shown, strict=True)]
    room = _NAME_MAX
    if width is not None:
        for title in _GIVES_WAY:
            if _measure_room(columns, ranks, width) < _NAME_MIN:
                columns.pop(title, None)
        room = min(_NAME_MAX, max(_NAME_MIN, _measure_room(columns, ranks, width)))
    names = _shorten_names(shown, room)
    lines = zip(*([text or EMPTY for text in texts] for texts in columns.values()), strict=True)
    return RankedTable(
        title=_make_title(shown),
        titles=("#", "Design", *columns),
        lines=tuple(
            RankedDesign(place=place, design=design, cells=(rank, name, *line))
            for place, design, rank, name, line in zip(places, shown, ranks, names, lines, strict=True)
        ),
        left_out=len(designs) - len(shown),
        notes=tuple(_list_notes(shown, columns)),
    )


def _measure_room(columns: Mapping[str, Sequence[str]], ranks: Sequence[str], width: int) -> int:
    """The characters that the other columns leave for a name."""
    used = [max(map(len, (title, *texts))) for title, texts in columns.items()]
    return width - sum(used) - max(map(len, ("#", *ranks))) - _GAP * (len(used) + 1)


def make_markdown_table(designs: Sequence[DesignSummary], *, limit: int | None = None) -> str:
    """The table as Markdown for an artifact, with its title."""
    table = make_ranked_table(designs, limit=limit)
    if not table.lines:
        return "No results.\n"
    lines = [f"**{make_markdown_cell(table.title)}**", ""] if table.title else []
    lines += [f"| {' | '.join(map(_typeset_constants, table.titles))} |", "|" + " --- |" * len(table.titles)]
    lines += [f"| {' | '.join(map(make_markdown_cell, line.cells))} |" for line in table.lines]
    notes = [f"… and {table.left_out} more"] if table.left_out else []
    notes += [_typeset_constants(make_markdown_cell(note)) for note in table.notes]
    return "\n".join([*lines, *(line for note in notes for line in ("", note))]) + "\n"


def _typeset_constants(text: str) -> str:
    """Constants such as K_D with their index."""
    return CONSTANT.sub(r"\1<sub>\2</sub>", text)


def make_rich_table(designs: Sequence[DesignSummary], *, limit: int | None = None) -> RenderableType:
    """The same table for a terminal of 80 columns, its title above and its notes below."""
    shown = make_ranked_table(designs, limit=limit)
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for title in shown.titles:
        table.add_column(
            title, no_wrap=title != "Target", overflow="fold" if title == "Target" else "ellipsis"
        )
    for line in shown.lines:
        table.add_row(*(Text(clean_text(cell)) for cell in line.cells))  # Text: names are not markup
    notes = [*([f"… and {shown.left_out} more"] if shown.left_out else []), *shown.notes]
    above = [Text(shown.title, style="italic")] if shown.title else []
    return Group(*above, table, *(Text(note, style="dim") for note in notes))


def format_value(design: DesignSummary) -> str:
    """The value that the assay ranks by, or the outcome in its place: `21.6 nM`, `< 1.91 nM`, `61.4 °C`, `no binding`."""
    if design.outcome is Outcome.BINDING:
        return (
            f"binds, {design.binding_strength}" if design.binding_strength else OUTCOME_WORDS[design.outcome]
        )
    if design.outcome is not Outcome.MEASURED:
        return OUTCOME_WORDS[design.outcome]
    quantity = _find_measured_quantity(design)
    if quantity is None:
        return design.expression or OUTCOME_WORDS[design.outcome]
    return format_quantity(getattr(design, quantity.column), quantity, design.qualifier)


def has_number(design: DesignSummary) -> bool:
    """Whether the value that the assay ranks by was measured."""
    return _find_measured_quantity(design) is not None


def _find_measured_quantity(design: DesignSummary) -> QuantityKind | None:
    """The quantity that the assay ranks by, if it was measured: the concentration of a binder is not its affinity."""
    quantity = find_main_quantity(design) if design.outcome is Outcome.MEASURED else None
    assay = find_assay_type(design.result_type)
    is_beside = quantity is CONCENTRATION and (
        not design.result_type
        or (assay is not None and assay.main is not CONCENTRATION and CONCENTRATION in assay.columns)
    )
    return None if is_beside else quantity


def format_interval(design: DesignSummary) -> str:
    """The 95 % interval of the value, with a dash between its ends; empty without one."""
    if design.kd_M is not None:
        return _join_with_dash(format_molar_range(design.kd_low_M, design.kd_high_M))
    if design.tm_C is None or (design.tm_low_C, design.tm_high_C) == (None, None):
        return ""
    low, high = ("open" if end is None else f"{end:.1f}" for end in (design.tm_low_C, design.tm_high_C))
    return _join_with_dash(f"{low} to {high} °C")


def _join_with_dash(interval: str) -> str:
    return interval if "open" in interval else interval.replace(" to ", EMPTY)


def format_laboratory_value(design: DesignSummary) -> str:
    """The laboratory's own value and of how many replicates it is: `34.8 nM (1/3)`; or its class, without a mean."""
    if design.kd_M is None:
        return ""
    if design.reported_kd_M is None:
        return f"no value ({design.binding_strength})" if design.binding_strength else "no value"
    value = format_molar(design.reported_kd_M, design.reported_qualifier)
    if not design.replicates:
        return value
    return f"{value} ({design.replicates_reported or '?'}/{design.replicates})"


def format_design_fold(design: DesignSummary) -> str:
    """How many times tighter than the reference: `12`, `> 12` for a limit."""
    if design.fold is None:
        return ""
    if design.fold > _FOLD_MAX:
        return f"> {_FOLD_MAX}"
    return format_fold(design.fold, ">" if design.qualifier == "<" else None)


def format_best(design: DesignSummary) -> str:
    """The value for a sentence: `21.6 nM`, `6.24 µM, extrapolated`."""
    return f"{format_value(design)}, {EXTRAPOLATED}" if design.extrapolated else format_value(design)


def list_verdict_parts(design: DesignSummary) -> tuple[str, ...]:
    """What the raw curves of a design say, and whether its K_D is extrapolated."""
    return _list_judgement(design.verdict, is_extrapolated=design.extrapolated)


def list_replicate_parts(replicate: ReplicateKinetics | ReplicateMelting) -> tuple[str, ...]:
    """What the raw curves of one replicate say, and whether the K_D of its fit is above their highest concentration."""
    is_extrapolated = False
    if isinstance(replicate, ReplicateKinetics) and (fit := replicate.fit) is not None:
        kd_molar, highest_nanomolar = (
            fit.kd_uncertainty_M.value,
            max(replicate.concentrations_nM, default=0.0),
        )
        is_extrapolated = kd_molar is not None and 0 < highest_nanomolar < kd_molar * 1e9
    return _list_judgement(replicate.verdict, is_extrapolated=is_extrapolated)


def _list_judgement(verdict: Verdict | None, *, is_extrapolated: bool) -> tuple[str, ...]:
    """The one source of these words for tables, figures and counts, of designs and of replicates.

    Curves that end below K_D cannot show that it is right.
    """
    words = (VERDICT_WORDS[verdict],) if verdict else ()
    if is_extrapolated:
        return (*(words if verdict != Verdict.AGREES else ()), EXTRAPOLATED)
    return words


def format_verdict(design: DesignSummary) -> str:
    """The parts as one text: `agrees`, `extrapolated`, `to review, extrapolated`."""
    return ", ".join(list_verdict_parts(design))


def format_verdict_and_doubt(design: DesignSummary) -> str:
    """The words of the verdict, and a `!` if a doubt rests on the value: `agrees`, `to review !`."""
    return " ".join(filter(None, [format_verdict(design), "!" if design.doubts else ""]))


def describe_outcomes(designs: Sequence[DesignSummary]) -> str:
    """The result in one line: `18 of 35 bind, 3 did not express, 5 unknown; best 21.6 nM (design-3)`; empty without a design.

    Controls do not count, and failed ones are named. The rate is that of `count_hits`.
    """
    candidates = [design for design in designs if not design.control]
    if not candidates:
        return ""
    best = candidates[0]
    parts = [count_hits(candidates).words]
    parts += [f"best {format_best(best)} ({make_one_line(best.name)})"] if has_number(best) else []
    parts += ["simulated"] if all(design.simulated for design in candidates) else []
    failed = [design for design in list_controls(designs) if design.as_expected is False]
    if len(failed) > 1:
        parts.append(
            f"{len(failed)} controls failed: {listed([make_one_line(design.name) for design in failed], 3)}"
        )
    elif failed:
        parts.append(f"a control failed: {make_one_line(failed[0].sentence)}")
    return "; ".join(parts)


def _choose_value_column(
    designs: Sequence[DesignSummary],
) -> tuple[str, Callable[[DesignSummary], str]]:
    """The title and the cells of the values. Where designs have several quantities, a concentration says that it is one."""
    quantities = {quantity for design in designs if (quantity := _find_measured_quantity(design))}
    if len(quantities) > 1:
        return _SEVERAL, _format_one_of_several
    quantity = quantities.pop() if quantities else None
    if quantity is not None and quantity.title:
        return quantity.title, format_value
    kinds = {find_assay_type(design.result_type) for design in designs if design.result_type}
    kind = kinds.pop() if len(kinds) == 1 else None
    return kind.value_title if kind else _SEVERAL, format_value


def _format_one_of_several(design: DesignSummary) -> str:
    words = " expressed" if _find_measured_quantity(design) is CONCENTRATION else ""
    return f"{format_value(design)}{words}"


def _has_differing_laboratory(designs: Sequence[DesignSummary]) -> bool:
    """Whether the laboratory's value is another one than the mean over all replicates, for any design."""
    return any(
        design.kd_M is not None
        and design.replicates
        and (design.replicates_reported != design.replicates or design.qualifier != design.reported_qualifier)
        for design in designs
    )


def _list_places(designs: Iterable[DesignSummary]) -> list[int | None]:
    places: list[int | None] = []
    place = 0
    for design in designs:
        counts = design.outcome in HAS_RESULT and not design.control
        place += counts
        places.append(place if counts else None)
    return places


def _format_rank(place: int | None, design: DesignSummary) -> str:
    return " ".join(str(part) for part in (place, design.group) if part) or _CONTROL * bool(design.control)


def _shorten_names(designs: Sequence[DesignSummary], room: int) -> list[str]:
    """The names, shortened in the middle; two that would be alike end in a digest. A star marks simulated ones among others."""
    mixed = len({design.simulated for design in designs}) > 1
    room -= len(_STAR) if mixed else 0
    flat = [make_one_line(design.name) for design in designs]
    counts = Counter(_shorten_name(name, room) for name in {*flat})
    names = []
    for name, design in zip(flat, designs, strict=True):
        short = _shorten_name(name, room)
        names.append(cut(name, room) if counts[short] > 1 else short)
        names[-1] += _STAR if mixed and design.simulated else ""
    return names


def _shorten_name(text: str, longest: int) -> str:
    """Without its middle: names of one campaign differ at both ends."""
    flat = make_one_line(text)
    head = longest * 3 // 5
    return flat if len(flat) <= longest else f"{flat[:head]}…{flat[len(flat) - longest + head + 1 :]}"


def _make_title(designs: Sequence[DesignSummary]) -> str:
    def only(values: Iterable[str | None]) -> str:
        texts = {value for value in values if value}
        return texts.pop() if len(texts) == 1 else ""

    kind = only(design.result_type for design in designs)
    target = only(design.target for design in designs) if all(design.target for design in designs) else ""
    code, campaign = (
        only(design.experiment_code for design in designs),
        only(design.campaign_id for design in designs),
    )
    known = find_assay_type(kind)
    words = known.title if known else kind
    parts = [campaign, f"{words}{f' against {target}' if target else ''}", code]
    if designs and all(design.simulated for design in designs):
        parts.append("simulated")
    return ", ".join(make_one_line(part) for part in parts if part)


def _list_notes(designs: Sequence[DesignSummary], columns: Collection[str]) -> Iterator[str]:
    if any(design.replicates_averaged for design in designs):
        yield "K_D: geometric mean of all replicates, or a limit (<, >)."
    if "Laboratory" in columns:
        yield "Laboratory: its own mean (of how many of the replicates)."
    if any(design.group for design in designs):
        yield f"A, B: {GROUPS}."
    references = sorted({design.reference for design in designs if design.reference})
    if references and "Fold" in columns:
        yield f"Fold: tighter than {', '.join(_shorten_name(name, _NAME_MAX) for name in references)}."
    if any(design.control for design in designs):
        yield "ctl: control."
    if len({design.simulated for design in designs}) > 1:
        yield "*: simulated, from a local lab."
    if any(map(is_made_up, designs)):
        which = f"Source {' or '.join(sorted(MADE_UP))}: the" if "Source" in columns else "The"
        yield f"{which} lab made these values up, and they say nothing about real proteins."
    if any(design.extrapolated for design in designs):
        yield f"{EXTRAPOLATED}: K_D is above the highest concentration that was measured."
    doubts = dict.fromkeys(doubt for design in designs for doubt in design.doubts)
    if doubts:
        yield f"!: in doubt; {'; '.join(map(make_one_line, doubts))}."
