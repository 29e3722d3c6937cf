"""`docs/performance.md`, made of the figures of one run of `run.py`. It measures nothing."""

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

import psutil
from figures import Figure, Growth, Ratio, number

HEAD = """# Performance

Each row compares this package with what you would use instead, with the least that the work can cost, or with a limit. Both costs of
a ratio are measured in the same run. With a goal of "at least", the ratio is the other cost divided by this one; with "at most", this
one divided by the other. Missed goals are explained below.

`make bench` (`bench/run.py`) writes this page, so don't edit it. `python bench/run.py --long` also measures what takes hours: 10,000 waiting runs,
and a pool of a million designs.
"""


@dataclass(frozen=True)
class Machine:
    """Where and when it was measured."""

    day: date
    cores: int
    processor: str
    memory_gib: float
    python: str
    prefect: str
    load_before: float
    load_after: float

    @classmethod
    def of_this(cls, load_before: float, day: date) -> "Machine":
        return cls(
            day=day,
            cores=os.cpu_count() or 1,
            processor=_processor(),
            memory_gib=psutil.virtual_memory().total / 1024**3,
            python=platform.python_version(),
            prefect=version("prefect"),
            load_before=load_before,
            load_after=os.getloadavg()[0],
        )

    def __str__(self) -> str:
        busy = (
            " The machine was busy with other work: the figures are provisional."
            if self.load_before > self.cores
            else ""
        )
        return (
            f"{self.day}: {self.cores} cores ({self.processor}), {self.memory_gib:.0f} GiB, Python {self.python}, "
            f"Prefect {self.prefect}; load {self.load_before:.1f} before and {self.load_after:.1f} after.{busy}"
        )


def page(
    figures: Sequence[Figure], machine: Machine, seconds: Mapping[str, float], left_out: Sequence[str] = ()
) -> str:
    """The whole page as Markdown; it names the benchmarks that were left out."""
    ratios = [figure for figure in figures if isinstance(figure, Ratio)]
    growths = [figure for figure in figures if isinstance(figure, Growth)]
    missed = [figure for figure in figures if not figure.met]
    parts = [HEAD, f"{machine}\n"]
    if left_out:
        parts.append(f"**Incomplete**: not measured in this run were {', '.join(left_out)}.\n")
    parts += ["## Ratios\n", _ratios(ratios)]
    if growths:
        parts += [
            "## Growth\n",
            "The exponent of a power law through the points: 1 is linear.\n",
            _growths(growths),
        ]
    parts += ["## Missed goals\n", _missed(missed)]
    took = ", ".join(f"{name} {spent:.0f}" for name, spent in seconds.items())
    parts += ["## Time\n", f"{sum(seconds.values()):.0f} s in all. Seconds of each benchmark: {took}.\n"]
    return "\n".join(parts)


def _ratios(ratios: Sequence[Ratio]) -> str:
    rows = [
        (
            r.area,
            r.what,
            f"{number(r.ours)} {r.unit}",
            f"{number(r.other)} {r.unit}",
            r.beside,
            *_judged(r, r.ratio),
        )
        for r in ratios
    ]
    return _table(("", "what", "here", "compared with", "which is", "ratio", "goal"), rows)


def _growths(growths: Sequence[Growth]) -> str:
    rows = [(g.area, g.what, f"{g.unit} by {g.by}: {g.curve}", *_judged(g, g.exponent)) for g in growths]
    return _table(("", "what", "measured", "exponent", "goal"), rows)


def _judged(figure: Figure, value: float) -> tuple[str, str]:
    return f"{value:.2f}", figure.goal_text + ("" if figure.met else ", **missed**")


def _missed(missed: Sequence[Figure]) -> str:
    if not missed:
        return "None.\n"
    lines = [f"- **{f.area}: {f.what}.** {f.miss or 'No profile yet.'}" for f in missed]
    return "\n".join(lines) + "\n"


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _processor() -> str:
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()
