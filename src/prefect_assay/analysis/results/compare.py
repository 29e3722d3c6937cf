"""Compares campaigns: the designs that they have in common, each value against the first campaign's, and the hit rates. Pure.

Designs are the same by their residues, or by their names where one of them has no residues. Values of different targets or
assay types are not compared.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from prefect_assay.analysis.results.design import DesignSummary
from prefect_assay.analysis.results.formats import EMPTY, format_fold
from prefect_assay.analysis.results.hits import Tally, count_hits
from prefect_assay.analysis.results.ranked import format_interval, format_value
from prefect_assay.analysis.results.repeats import get_residues, normalize_target
from prefect_assay.analysis.results.row import HAS_RESULT
from prefect_assay.analysis.results.tables import format_cell, write_people_csv
from prefect_assay.service.models.base import Model
from prefect_assay.service.models.vocabulary import snake_case

_OPPOSITE: Final = {"<": ">", ">": "<"}
_COLUMNS: Final = (
    *("name", "aa_string", "campaign_id", "experiment_code", "target", "outcome", "qualifier"),
    *("kd_M", "kd_low_M", "kd_high_M", "tm_C", "tm_low_C", "tm_high_C", "extrapolated", "simulated"),
)
_CHANGES: Final = ("kd_ratio", "kd_ratio_qualifier", "difference_C", "intervals_overlap")


class Change(Model):
    """One design in a later campaign, against the first one.

    `kd_ratio` is its K_D over the first campaign's: above 1 it binds more weakly. `qualifier` is `<` or `>` where a limit allows no
    more than that. `difference_C` is that of melting temperatures. `intervals_overlap` is None where an interval is not known.
    """

    design: DesignSummary
    kd_ratio: float | None = None
    qualifier: str | None = None
    difference_C: float | None = None  # noqa: N815  units as scientists spell them
    intervals_overlap: bool | None = None

    @property
    def words(self) -> str:
        """`2.4`, `> 12`, `+1.2 °C`; a dash where nothing can be compared."""
        if self.kd_ratio is not None:
            return format_fold(self.kd_ratio, self.qualifier)
        return EMPTY if self.difference_C is None else f"{self.difference_C:+.1f} °C"

    @property
    def overlap_words(self) -> str:
        """Whether the intervals overlap: `yes`, `no`, or a dash where one is not known."""
        return {True: "yes", False: "no", None: EMPTY}[self.intervals_overlap]


class ComparedDesign(Model):
    """A design that at least two campaigns have: its row in the first one that has it, and its changes in the others."""

    first: DesignSummary
    changes: tuple[Change, ...]


class Comparison(Model):
    """Campaigns in the order given, with how their designs did; `common` designs in the order of the first campaign's table."""

    campaigns: tuple[str, ...]
    tallies: tuple[Tally, ...]
    common: tuple[ComparedDesign, ...]


def compare_campaigns(tables: Mapping[str, Sequence[DesignSummary]]) -> Comparison:
    """Compare the summary tables of campaigns, by campaign id.

    Example:
        >>> from prefect_assay.analysis.results.compare import compare_campaigns
        >>> compare_campaigns({"round-1": (), "round-2": ()}).common
        ()
    """
    matched: list[dict[str, DesignSummary]] = []
    for campaign_id, designs in tables.items():
        for design in designs:
            same = next((row for row in matched if _is_same(design, row, campaign_id)), None)
            if same is None:
                matched.append({campaign_id: design})
            else:
                same[campaign_id] = design
    common = []
    for row in matched:
        first, *others = row.values()
        if others:
            common.append(
                ComparedDesign(first=first, changes=tuple(_compute_change(first, other) for other in others))
            )
    return Comparison(
        campaigns=tuple(tables), tallies=tuple(map(count_hits, tables.values())), common=tuple(common)
    )


def write_comparison_csv(comparison: Comparison) -> bytes:
    """One line per design in common and campaign, for a spreadsheet program."""
    return write_people_csv((*_COLUMNS, *_CHANGES), _list_lines(comparison.common))


def _list_lines(common: Iterable[ComparedDesign]) -> Iterable[list[str | float]]:
    for compared in common:
        yield [*(format_cell(getattr(compared.first, column)) for column in _COLUMNS), *[""] * len(_CHANGES)]
        for change in compared.changes:
            values = (change.kd_ratio, change.qualifier, change.difference_C, change.intervals_overlap)
            yield [
                *(format_cell(getattr(change.design, column)) for column in _COLUMNS),
                *map(format_cell, values),
            ]


def _is_same(design: DesignSummary, row: Mapping[str, DesignSummary], campaign_id: str) -> bool:
    if campaign_id in row:
        return False
    residues = get_residues(design)
    return _is_same_measurement(design, row.values()) and any(
        residues == known if residues and (known := get_residues(other)) else design.name == other.name
        for other in row.values()
    )


def _is_same_measurement(design: DesignSummary, others: Iterable[DesignSummary]) -> bool:
    """Whether a design and all others have one target and one assay type, as far as they name them."""
    compared = (design, *others)
    targets = {normalize_target(one.target) for one in compared} - {""}
    kinds = {snake_case(one.result_type) for one in compared} - {""}
    return len(targets) <= 1 and len(kinds) <= 1


def _compute_change(first: DesignSummary, other: DesignSummary) -> Change:
    if not {first.outcome, other.outcome} <= HAS_RESULT:
        return Change(design=other)
    if first.kd_M and other.kd_M:
        signs = {_OPPOSITE.get(first.qualifier or ""), other.qualifier} - {None}
        return Change(
            design=other,
            kd_ratio=other.kd_M / first.kd_M if len(signs) < 2 else None,  # noqa: PLR2004  limits that leave it open
            qualifier=next(iter(signs)) if len(signs) == 1 else None,
            intervals_overlap=_do_overlap(_get_kd_interval(first), _get_kd_interval(other)),
        )
    if first.tm_C is not None and other.tm_C is not None:
        return Change(
            design=other,
            difference_C=other.tm_C - first.tm_C,
            intervals_overlap=_do_overlap(
                (first.tm_low_C, first.tm_high_C), (other.tm_low_C, other.tm_high_C)
            ),
        )
    return Change(design=other)


_Ends = tuple[float | None, float | None]


def _get_kd_interval(design: DesignSummary) -> _Ends:
    """The ends of the interval in M; a limit is open on one side."""
    if design.qualifier == "<":
        return 0.0, design.kd_M
    if design.qualifier == ">":
        return design.kd_M, float("inf")
    return design.kd_low_M, design.kd_high_M


def _do_overlap(first: _Ends, other: _Ends) -> bool | None:
    """Whether two intervals overlap; None if a missing end could decide it."""
    for (_, high), (low, _) in ((first, other), (other, first)):
        if high is not None and low is not None and high < low:
            return False
    return None if None in {*first, *other} else True


def format_value_with_interval(design: DesignSummary) -> str:
    """The value with its interval: `6.24 µM` and both ends of the interval."""
    interval = format_interval(design)
    return f"{format_value(design)} ({interval})" if interval else format_value(design)
