"""Lines about what was read, for a person who decides about an order: everything that could change it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from prefect_assay.service.models.sequences import Pool, ReadingReport, Sequences
from prefect_assay.service.models.spec_rules import quoted
from prefect_assay.service.models.vocabulary import CHAIN_SEPARATOR
from prefect_assay.service.words import listed, many

_SHOWN: Final = 3
_LETTERS: Final = 8
_TITLES_SHOWN: Final = 8


def order_lines(designs: Sequences | Pool) -> tuple[str, ...]:
    """One line each: number and lengths, chains, first letters, columns, dropped records, changed names, notes, doubts."""
    if isinstance(designs, Sequences):
        names: Sequence[str] = [item.name for item in designs.items]
        residues: Sequence[str] = [item.aa_string for item in designs.items]
        controls = sum(item.control for item in designs.items)
        duplicates = [(duplicate.name, duplicate.same_as) for duplicate in designs.duplicates]
    else:
        names, residues, controls = designs.names, designs.residues, len(designs.controls)
        duplicates = list(designs.duplicates)
    if not residues:
        return ()
    return (
        *_describe_sizes(residues, controls),
        f"first letters: {', '.join(map(_format_first, names[:_SHOWN], residues[:_SHOWN]))}",
        *_describe_columns(designs.report),
        *(_describe_kept(designs) if isinstance(designs, Sequences) else ()),
        *_describe_dropped(designs.report, duplicates),
        *designs.notes,
        *designs.report.doubts,
    )


def _describe_sizes(residues: Sequence[str], controls: int) -> Iterator[str]:
    lengths = [len(text) - text.count(CHAIN_SEPARATOR) for text in residues]
    chains = Counter(text.count(CHAIN_SEPARATOR) + 1 for text in residues)
    chain_counts = "; ".join(
        f"{count:,} with {many(number, 'chain')}" for number, count in sorted(chains.items())
    )
    of_them = f", of them {many(controls, 'control')}" if controls else ""
    alike = f"{many(max(chains), 'chain')} each" if len(chains) == 1 else chain_counts
    yield (f"{many(len(residues), 'design')}{of_them}: {_format_span(lengths)}; {alike}")
    if max(chains) > 1:
        several = [text.split(CHAIN_SEPARATOR) for text in residues if CHAIN_SEPARATOR in text]
        for index in range(max(chains)):
            chain_lengths = [len(parts[index]) for parts in several if index < len(parts)]
            yield f"chain {index + 1}: {min(chain_lengths)} to {max(chain_lengths)} residues; all chains are ordered"


def _format_span(lengths: Sequence[int]) -> str:
    if min(lengths) == max(lengths):
        return f"{min(lengths)} residues"
    return f"{min(lengths)} to {max(lengths)} residues, median {median(lengths):g}"


def _format_first(name: str, residues: str) -> str:
    return f"{quoted(name)} {CHAIN_SEPARATOR.join(chain[:_LETTERS] for chain in residues.split(CHAIN_SEPARATOR))}..."


def _describe_columns(report: ReadingReport) -> Iterator[str]:
    by = f" of {report.producer}" if report.producer else ""
    if report.columns:
        roles = ", ".join(f"{role} from {title}" for role, title in report.columns.items())
        yield f"read as {report.format}{by}: {roles}"
    elif report.format:
        yield f"read as {report.format}{by}"
    if report.other_sequences:
        yield f"columns that also hold sequences, and were not taken: {', '.join(report.other_sequences)}"


def _describe_kept(designs: Sequences) -> Iterator[str]:
    """The designer's own columns: what becomes of each."""
    roles = set(designs.report.columns.values())
    kept = {title: None for item in designs.items for title in item.attributes if title not in roles}
    if kept:
        yield f"columns that are not ordered, and kept with the results: {listed([*kept], _TITLES_SHOWN)}"
    empty = [title for title in designs.report.others if title not in kept and title not in roles]
    if empty:
        yield f"columns that are empty, and left out: {listed(empty, _TITLES_SHOWN)}"


def _describe_dropped(report: ReadingReport, duplicates: Sequence[tuple[str, str]]) -> Iterator[str]:
    if duplicates:
        listed = ", ".join(f"{quoted(name)} (same as {quoted(kept)})" for name, kept in duplicates[:_SHOWN])
        yield f"{many(len(duplicates), 'duplicate is', 'duplicates are')} left out: {listed}{_format_more(len(duplicates))}"
    if report.left_out_count:
        listed = ", ".join(f"{quoted(record.name)} ({record.reason})" for record in report.left_out[:_SHOWN])
        yield f"{many(report.left_out_count, 'record is', 'records are')} left out: {listed}{_format_more(report.left_out_count)}"
    if report.renamed_count:
        listed = ", ".join(
            f"{quoted(written)} is {quoted(name)}" for written, name in report.renamed[:_SHOWN]
        )
        yield f"{many(report.renamed_count, 'name was', 'names were')} changed: {listed}{_format_more(report.renamed_count)}"


def _format_more(count: int) -> str:
    return f" and {count - _SHOWN:,} more" if count > _SHOWN else ""
