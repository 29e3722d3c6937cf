"""Policies on simulated campaigns: hits per design bought, with 95 % intervals over the repeats; the table of docs/selection.md.

A campaign has six methods and a pool of 1,200 candidates. Whether a candidate binds is drawn from its method's rate. Its score
is a normal deviate plus the method's offset, which says nothing about the rate, plus `signal` for a binder. 96 candidates were
measured before, drawn at random, and each policy buys 96 of the others. `rounds` starts without a history and buys three times
32. `BENCH_REPEATS` sets the number of campaigns (default 500); one and the same seed gives the same table.
"""

import math
import os
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from prefect_assay.models.selection import SelectionSettings
from prefect_assay.models.sequences import Pool
from prefect_assay.results import DesignSummary, Outcome
from prefect_assay.selection import history_of, select

REPEATS = int(os.environ.get("BENCH_REPEATS", "500"))
POOL, BOUGHT = 1200, 96
POLICIES = ("random", "top_score", "method_history")
LETTERS = "ACDEFGHIKLMNPQRSTVWY"
DIFFERENT = (0.02, 0.04, 0.08, 0.12, 0.20, 0.35)
ALIKE = (0.135,) * 6


@dataclass(frozen=True)
class Scenario:
    name: str
    rates: tuple[float, ...]
    signal: float  # how much higher binders score, in standard deviations within a method
    offset: float  # standard deviation of the methods' offsets
    rounds: bool = False


SCENARIOS = (
    Scenario("methods differ, score weak", DIFFERENT, 0.5, 1.0),
    Scenario("methods differ, score says nothing", DIFFERENT, 0.0, 1.0),
    Scenario("methods differ, score good", DIFFERENT, 1.0, 0.5),
    Scenario("methods differ, three rounds of 32 from nothing", DIFFERENT, 0.5, 1.0, rounds=True),
    Scenario("methods alike, score weak", ALIKE, 0.5, 1.0),
    Scenario("methods alike, score says nothing", ALIKE, 0.0, 1.0),
    Scenario("methods alike, three rounds of 32 from nothing", ALIKE, 0.0, 1.0, rounds=True),
)


@dataclass(frozen=True)
class Campaign:
    """Candidates as `name: (residues, columns, binds)`."""

    candidates: dict[str, tuple[str, dict[str, str], bool]]

    def pool(self) -> Pool:
        names, rows = tuple(self.candidates), self.candidates.values()
        columns = [row[1] for row in rows]
        return Pool(
            "simulated",
            names,
            tuple(row[0] for row in rows),
            tuple(str(at) for at in range(len(names))),
            lambda at: columns[int(at)],
            frozenset(),
            {},
        )

    def measured(self, name: str) -> DesignSummary:
        residues, columns, binds = self.candidates[name]
        return DesignSummary(
            name=name,
            experiment_code="",
            outcome=Outcome.BINDING if binds else Outcome.NO_BINDING,
            aa_string=residues,
            attributes=columns,
        )


def simulated(scenario: Scenario, chance: random.Random) -> Campaign:
    offsets = [chance.gauss(0, scenario.offset) for _ in scenario.rates]
    rates = chance.sample(scenario.rates, len(scenario.rates))
    found = {}
    for number in range(POOL):
        method = number % len(rates)
        binds = chance.random() < rates[method]
        score = chance.gauss(offsets[method] + scenario.signal * binds, 1)
        residues = "".join(LETTERS[number // 20**at % 20] for at in range(3))
        found[f"d{number}"] = (residues, {"method": f"m{method}", "score": f"{score:.4f}"}, binds)
    return Campaign(found)


def hits(scenario: Scenario, campaign: Campaign, policy: str, seed: int) -> float:
    """The share of hits among what the policy bought."""
    chance = random.Random(seed)
    pool = campaign.pool()
    settings = SelectionSettings(policy=policy, seed=seed, score_column="score")
    first = [] if scenario.rounds else chance.sample(list(campaign.candidates), BOUGHT)
    history = [campaign.measured(name) for name in first]
    rounds = 3 if scenario.rounds else 1
    for _ in range(rounds):
        chosen = select(pool, history_of(history), BOUGHT // rounds, settings).choices
        history += [campaign.measured(choice.candidate.name) for choice in chosen]
    return statistics.fmean(design.outcome is Outcome.BINDING for design in history[len(first) :])


def interval(values: list[float], shown: Callable[[float], str]) -> str:
    mean, half = statistics.fmean(values), 1.96 * statistics.stdev(values) / math.sqrt(len(values))
    return f"{shown(mean)} ({shown(mean - half)} to {shown(mean + half)})"


def percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")


def signed(share: float) -> str:
    return f"{share:+.1%}".replace("%", " %")


def main() -> None:
    print(f"| campaign | {' | '.join(POLICIES)} | method_history over random | over top_score |")
    print("|---|" + "---:|" * (len(POLICIES) + 2))
    for scenario in SCENARIOS:
        found: dict[str, list[float]] = {policy: [] for policy in POLICIES}
        for repeat in range(REPEATS):
            campaign = simulated(scenario, random.Random(f"{scenario.name} {repeat}"))
            for policy in POLICIES:
                found[policy].append(hits(scenario, campaign, policy, repeat))
        cells = [interval(found[policy], percent) for policy in POLICIES]
        for other in ("random", "top_score"):
            mean = statistics.fmean(found[other])
            pairs = zip(found["method_history"], found[other], strict=True)
            cells.append(interval([(own - beside) / mean for own, beside in pairs], signed))
        print(f"| {scenario.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
