"""The policy `gp` on a complete landscape: 96 random designs and four rounds of 96, for ten seeds, without laboratory or flows.

Selection sees only K_D = 10 nM / fitness times log-normal noise of 15 %, and no binding where the fitness is 0. Designs are
judged by the landscape's true fitness: the best one bought so far over the best of all. `BENCH_SEEDS` sets the number of seeds.
"""

import csv
import gzip
import math
import os
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from prefect_assay.analysis.results import DesignSummary, Outcome
from prefect_assay.analysis.selection import history_of, select
from prefect_assay.designs import read_pool
from prefect_assay.designs.selection import SelectionSettings
from prefect_assay.service.models.sequences import Pool

LANDSCAPE = Path(__file__).parents[1] / "lab/src/assay_lab/data/gb1/gb1_four_sites.csv.gz"
SEEDS = int(os.environ.get("BENCH_SEEDS", "10"))
ROUNDS, BATCH = 4, 96
NOISE = 0.15
WILD_TYPE = "MQYKLILNGKTLKGETTTEAVDAATAEKVFKQYANDNGVDGEWTYDDATKTFTVTE"
SITES = (39, 40, 41, 54)
WILD_TYPE_NM = 10
# One-hot, best fitness over maximum at 480 measurements, as published by others for the same task.
PUBLISHED = (
    ("random", "0.47"),
    ("boosting", "0.80 to 0.82"),
    ("GP", "0.82"),
    ("deep kernel", "0.86"),
    ("ensemble", "0.90"),
)


def landscape() -> tuple[Pool, list[float]]:
    with gzip.open(LANDSCAPE, "rt") as file:
        rows = list(csv.DictReader(file))
    table = "name,sequence\n" + "".join(f"v{row['variant']},{whole(row['variant'])}\n" for row in rows)
    return read_pool("landscape", text=table), [float(row["fitness"]) for row in rows]


def whole(variant: str) -> str:
    """The domain with these residues at the four sites."""
    letters = list(WILD_TYPE)
    for site, letter in zip(SITES, variant, strict=True):
        letters[site - 1] = letter
    return "".join(letters)


def measured(name: str, residues: str, fitness: float, chance: random.Random) -> DesignSummary:
    noise = math.exp(chance.gauss(0, NOISE))
    return DesignSummary(
        name=name,
        experiment_code="",
        outcome=Outcome.MEASURED if fitness else Outcome.NO_BINDING,
        kd_M=WILD_TYPE_NM * 1e-9 / fitness * noise if fitness else None,
        aa_string=residues,
    )


def campaign(pool: Pool, fitness: Sequence[float], seed: int) -> list[float]:
    """The best fitness over the maximum after each round."""
    chance, found = random.Random(seed), dict(zip(pool.names, fitness, strict=True))
    bought: list[DesignSummary] = []
    best, highest, most = [], 0.0, max(fitness)
    for number in range(1 + ROUNDS):
        settings = SelectionSettings(
            policy="gp" if number else "random", aim="best" if number else None, seed=seed
        )
        for choice in select(pool, history_of(bought), BATCH, settings).choices:
            name, residues = choice.candidate.name, choice.candidate.sequence
            highest = max(highest, found[name])
            bought.append(measured(name, residues, found[name], chance))
        best.append(highest / most)
    return best


def main() -> None:
    pool, fitness = landscape()
    runs = []
    for seed in range(SEEDS):
        start = time.process_time()
        runs.append(campaign(pool, fitness, seed))
        print(
            f"  seed {seed}: {' '.join(f'{best:.2f}' for best in runs[-1])}   {time.process_time() - start:.0f} s CPU",
            flush=True,
        )
    mean = [statistics.fmean(column) for column in zip(*runs, strict=True)]
    print(f"{len(pool):,} variants, {BATCH} random and {ROUNDS} rounds of {BATCH}, {SEEDS} seeds")
    print(f"  mean after each round: {' '.join(f'{best:.2f}' for best in mean)}")
    for method, best_found in PUBLISHED:
        print(f"  {method + ', published':24} {best_found}")


if __name__ == "__main__":
    main()
