"""The policy `gp` on a complete landscape: 96 random designs and four rounds of 96, for ten seeds, without laboratory or flows.

Random choice and ridge regression on one-hot sites play the same seeds for comparison.

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

import numpy as np
from sklearn.linear_model import Ridge
from sklearn.preprocessing import OneHotEncoder

from prefect_assay.analysis.results import DesignSummary, Outcome
from prefect_assay.analysis.selection import make_history, select_designs
from prefect_assay.designs.read import read_pool
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
    chance, fitness_by_name = random.Random(seed), dict(zip(pool.names, fitness, strict=True))
    bought: list[DesignSummary] = []
    best, highest, most = [], 0.0, max(fitness)
    for number in range(1 + ROUNDS):
        settings = SelectionSettings(
            policy="gp" if number else "random", aim="best" if number else None, seed=seed
        )
        for choice in select_designs(pool, make_history(bought), BATCH, settings).choices:
            name, residues = choice.candidate.name, choice.candidate.sequence
            highest = max(highest, fitness_by_name[name])
            bought.append(measured(name, residues, fitness_by_name[name], chance))
        best.append(highest / most)
    return best


def play_baseline(pool: Pool, fitness: Sequence[float], seed: int, *, is_ridge: bool) -> list[float]:
    """The same with ridge regression of log K_D on one-hot sites, a failure counting as the worst value; or at random."""
    order = np.random.default_rng(seed).permutation(len(fitness))
    truth, noise = np.array(fitness), np.random.default_rng((seed, 1)).normal(0, NOISE, len(fitness))
    with np.errstate(divide="ignore"):
        values = np.log(truth) - noise
    sites = [[residues[site - 1] for site in SITES] for residues in pool.residues]
    features = OneHotEncoder().fit_transform(sites)
    bought, best = order[:BATCH], [float(truth[order[:BATCH]].max() / truth.max())]
    for _ in range(ROUNDS):
        if is_ridge:
            worst = values[bought][np.isfinite(values[bought])].min()
            model = Ridge().fit(features[bought], np.maximum(values[bought], worst))
            order = np.argsort(-model.predict(features), kind="stable")
        bought = np.concatenate([bought, order[~np.isin(order, bought)][:BATCH]])
        best.append(float(truth[bought].max() / truth.max()))
    return best


def describe(runs: Sequence[Sequence[float]]) -> str:
    """Mean and standard error after each round."""
    columns = list(zip(*runs, strict=True))
    return " ".join(
        f"{statistics.fmean(column):.2f} ± {statistics.stdev(column) / len(column) ** 0.5:.2f}"
        for column in columns
    )


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
    print(f"{len(pool):,} variants, {BATCH} random and {ROUNDS} rounds of {BATCH}, {SEEDS} seeds")
    print(f"  gp     {describe(runs)}")
    for name, is_ridge in (("ridge", True), ("random", False)):
        baseline = [play_baseline(pool, fitness, seed, is_ridge=is_ridge) for seed in range(SEEDS)]
        print(f"  {name:6} {describe(baseline)}")
    for method, best_found in PUBLISHED:
        print(f"  {method + ', published':24} {best_found}")


if __name__ == "__main__":
    main()
