"""What a benchmark has measured: ratios to something else, growth curves, and the lines that carry them to `run.py`.

Every benchmark prints its figures through `report`, and works alone. Where the variable `BENCH_FIGURES` names a file, each
figure is also appended to it as one line of JSON. This module knows no benchmark.
"""

import json
import math
import os
import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

FIGURES_VARIABLE = "BENCH_FIGURES"


@dataclass(frozen=True)
class Ratio:
    """A cost here (seconds, megabytes, ...) compared with the cost of another way, measured in the same run.

    `as_speed` says how the ratio is read: the other's cost divided by ours, of which much is good, or ours divided by the
    other's, of which little is good. `miss` explains a missed goal by what a profile has shown; without a profile it stays empty.
    """

    area: str
    what: str
    ours: float
    beside: str
    other: float
    unit: str
    goal: float
    as_speed: bool = False
    miss: str = ""

    @property
    def ratio(self) -> float:
        return self.other / self.ours if self.as_speed else self.ours / self.other

    @property
    def met(self) -> bool:
        return self.ratio >= self.goal if self.as_speed else self.ratio <= self.goal

    @property
    def goal_text(self) -> str:
        return f"{'at least' if self.as_speed else 'at most'} {self.goal:g}"

    def __str__(self) -> str:
        return (
            f"{self.area}: {self.what}: {number(self.ours)} {self.unit}, {self.beside} {number(self.other)} {self.unit}, "
            f"ratio {self.ratio:.2f} ({'meets' if self.met else 'MISSES'} {self.goal_text})"
        )


@dataclass(frozen=True)
class Growth:
    """Costs at several sizes, and the exponent of the power law through them: 1 is linear, 2 quadratic."""

    area: str
    what: str
    by: str
    unit: str
    points: tuple[tuple[float, float], ...]
    goal: float
    miss: str = ""

    @property
    def exponent(self) -> float:
        sizes, costs = zip(*((math.log(size), math.log(cost)) for size, cost in self.points), strict=True)
        return statistics.linear_regression(sizes, costs).slope

    @property
    def met(self) -> bool:
        return self.exponent <= self.goal

    @property
    def goal_text(self) -> str:
        return f"at most {self.goal:g}"

    @property
    def curve(self) -> str:
        return ", ".join(f"{size:,.0f}: {number(cost)}" for size, cost in self.points)

    def __str__(self) -> str:
        return (
            f"{self.area}: {self.what}, {self.unit} by {self.by}: {self.curve}; "
            f"exponent {self.exponent:.2f} ({'meets' if self.met else 'MISSES'} {self.goal_text})"
        )


Figure = Ratio | Growth


def number(value: float) -> str:
    """Three digits, as a person writes them."""
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{min(digits, 5)}f}"


def report(figure: Figure) -> None:
    """Print a figure, and hand it to the one who collects."""
    print(figure, flush=True)
    if path := os.environ.get(FIGURES_VARIABLE):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"kind": type(figure).__name__, **asdict(figure)}) + "\n")


def collected(path: Path) -> list[Figure]:
    """The figures of a file that `report` has written, in their order."""
    kinds: dict[str, Callable[..., Figure]] = {"Ratio": Ratio, "Growth": Growth}
    figures = []
    for line in path.read_text(encoding="utf-8").splitlines():
        fields = json.loads(line)
        kind = kinds[fields.pop("kind")]
        if "points" in fields:
            fields["points"] = tuple((size, cost) for size, cost in fields["points"])
        figures.append(kind(**fields))
    return figures
