"""Verdicts and coverage on the stress sets, as the tables of docs/kinetics.md: `make kinetics-tables`.

Thresholds were chosen with the seed 5 and real curves; the tables have another one, and each row its own sets.
"""

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from prefect_assay.analysis.kinetics.analysis import ServiceValues
from prefect_assay.analysis.kinetics.melting import analyze_melt
from prefect_assay.analysis.kinetics.replicate import analyze_replicate
from prefect_assay.analysis.kinetics.schedule import Schedule as Start
from prefect_assay.analysis.kinetics.schedule import find_schedule
from support.kinetics.melts import KINDS, melt_set
from support.kinetics.simulate import Schedule
from support.kinetics.stress import (
    INSTRUMENT,
    MECHANISMS,
    MILD,
    ORDINARY,
    SPR,
    Disturbance,
    mechanism_set,
    one_to_one_set,
)

SEED = 20_261_126
SCHEDULES_S = (60, 90, 120, 180, 240, 300, 420, 600)
ROWS = {
    **{f"1:1, {name}": lambda rng, d=d: one_to_one_set(rng, d) for name, d in ORDINARY.items()},
    "1:1, K_D 1 to 100 nM, half as strong": lambda rng: one_to_one_set(rng, MILD, (1.0, 100.0)),
    "1:1, K_D 20 to 300 pM, wander of 4 pm": lambda rng: one_to_one_set(
        rng, Disturbance(wander=0.004), (0.02, 0.3)
    ),
    **{name: lambda rng, d=d: one_to_one_set(rng, d) for name, d in INSTRUMENT.items()},
    **{name: lambda rng, d=d: one_to_one_set(rng, d) for name, d in SPR.items()},
    **{name: lambda rng, name=name: mechanism_set(rng, name) for name in MECHANISMS},
}


@dataclass
class Row:
    """What became of the sets of one kind."""

    verdicts: Counter = field(default_factory=Counter)
    sensors: list = field(default_factory=list)
    uncertainty: list = field(default_factory=list)
    unflagged: list = field(default_factory=list)
    folds: list = field(default_factory=list)
    off: list = field(default_factory=list)


def holds(estimate, value):
    return (estimate.low or 0.0) <= value <= (estimate.high or np.inf)


def is_flagged(kinetics):
    """Whether the curves themselves, and not a comparison with the service, give a reason."""
    return kinetics.verdict == "not_1_to_1" or any(
        word in reason
        for reason in kinetics.reasons
        for word in ("misfit", "R_max", "concentration", "bulk", "plateaus", "do not bound", "second")
    )


def judged(stress):
    service = ServiceValues(
        binding="true", kon_per_M_s=stress.kon, koff_per_s=stress.koff, kd_M=stress.kd_nominal
    )
    start = Start(stress.association_s)
    return analyze_replicate("design", 1, stress.unit, stress.curves, service, start).kinetics


def row(name, sets, seed=SEED):
    outcome, rng = Row(), np.random.default_rng([seed, [*ROWS].index(name)])
    for _ in range(sets):
        stress = ROWS[name](rng)
        kinetics = judged(stress)
        outcome.verdicts[kinetics.verdict] += 1
        if kinetics.fit is None:
            continue
        fit = kinetics.fit
        outcome.sensors.append(holds(fit.kd_M, stress.kd_nominal))
        outcome.uncertainty.append(holds(fit.kd_uncertainty_M, stress.kd))
        if kinetics.verdict == "agrees" or not is_flagged(kinetics):
            outcome.unflagged.append(outcome.uncertainty[-1])
        if fit.kd_uncertainty_M.value is not None:
            low, high = fit.kd_uncertainty_M.low, fit.kd_uncertainty_M.high
            outcome.folds.append(high / low)
            outcome.off.append(max(1.0, low / stress.kd, stress.kd / high))
    return outcome


def schedules(sets, designs, disturbance, seed=SEED):
    """How many schedules were found, refused and silently wrong."""
    counts, rng = Counter(), np.random.default_rng(seed)
    for _ in range(sets):
        true = float(rng.choice(SCHEDULES_S))
        times = Schedule(association_s=true, end_s=true + 300.0, step_s=1.0)
        curves = [one_to_one_set(rng, disturbance, schedule=times).curves for _ in range(designs)]
        start = find_schedule(curves)
        near = abs(start.association_s - true) <= 3
        counts["refused" if start.doubt else "found" if near else "wrong"] += 1
    return counts


def melting(sets, kind, seed=SEED):
    """Per curve whether it is flagged, near a true T_m, and whether the interval of one that is not flagged holds one.

    The service's T_m is the midpoint of all that unfolds, up to 0.5 °C off. Its T_m are the midpoint and those of the domains.
    """
    flagged, near, held = [], [], []
    rng = np.random.default_rng([seed, [*KINDS].index(kind)])
    for _ in range(sets):
        celsius, signal, midpoint, tms = melt_set(rng, kind)
        service = ServiceValues(tm_C=midpoint + rng.uniform(-0.5, 0.5))
        analysis = analyze_melt("design", 1, celsius, signal, service).melting
        flagged.append(analysis.verdict != "agrees")
        tm = analysis.tm_C
        near.append(tm is not None and min(abs(tm.value - true) for true in (midpoint, *tms)) <= 1)
        if not flagged[-1]:
            held.append(any(tm.low <= true <= tm.high for true in (midpoint, *tms)))
    return flagged, near, held


def share(values):
    """A share in percent with its standard error, that of Agresti and Coull, which is not zero at 0 or 100 %."""
    if not len(values):
        return "–"  # noqa: RUF001  no value
    part = (np.sum(values) + 2) / (len(values) + 4)
    return f"{100 * np.mean(values):.0f}±{100 * np.sqrt(part * (1 - part) / (len(values) + 4)):.0f}"


def text(sets):
    lines = [
        f"{sets} sets a row, seed {SEED}; in %, ± standard error (Agresti and Coull).",
        "*Holds*: the uncertainty of K_D holds the true one.",
        "",
        "| curves | not_1_to_1 | flagged | holds | holds, not flagged (n) |",
        "|---|---|---|---|---|",
    ]
    for name in ROWS:
        outcome = row(name, sets)
        sys.stderr.write(f"{name}: {dict(outcome.verdicts)}\n")
        wrong = outcome.verdicts["not_1_to_1"]
        cells = [
            share([True] * wrong + [False] * (sets - wrong)),
            share([True] * (sets - len(outcome.unflagged)) + [False] * len(outcome.unflagged)),
            share(outcome.uncertainty),
            f"{share(outcome.unflagged)} ({len(outcome.unflagged)})",
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += ["", "Schedules of 60 to 600 s, from the curves of one and of three designs:", ""]
    lines += ["| curves | designs | found | refused | wrong |", "|---|---|---|---|---|"]
    for name in ("white noise", "all of them"):
        for designs in (1, 3):
            outcome = schedules(sets, designs, ORDINARY[name])
            cells = [str(outcome[key]) for key in ("found", "refused", "wrong")]
            lines.append(f"| {name} | {designs} | {' | '.join(cells)} |")
    melts = 4 * sets
    lines += [
        "",
        f"Melting curves, {melts} a row, ± standard error; with two domains, the midpoint and either domain's T_m count as true:",
        "",
    ]
    lines += ["| curves | flagged | within 1 °C | interval holds, not flagged (n) |", "|---|---|---|---|"]
    for name in KINDS:
        flagged, near, held = melting(melts, name)
        lines.append(f"| {name} | {share(flagged)} | {share(near)} | {share(held)} ({len(held)}) |")
    return "\n".join(lines)


def main():
    sets, page = int(sys.argv[1]), Path(sys.argv[2])
    start, end = "<!-- kinetics-tables -->\n", "\n<!-- end -->"
    head, rest = page.read_text(encoding="utf-8").split(start)
    page.write_text(f"{head}{start}{text(sets)}{end}{rest.partition(end)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
