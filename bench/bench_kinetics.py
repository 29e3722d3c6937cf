"""Fits of a data package's raw curves, compared with `pykingenie`, an independent program that fits one model without intervals.

The published curves of two replicates are fitted in turns in one process, and CPU time is measured. Ours reads the package,
subtracts the reference, fits 1:1 with a model error and both extremes of R_max, finds profile intervals and judges; theirs is given every fifth point of the prepared curves.
"""

import statistics
import sys
import time
from pathlib import Path

from figures import Ratio, report

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from analysis.kinetics.test_oracle import oracle
from prefect_assay.analysis.kinetics.package import analyze
from support.kinetics.packages import published_files, zipped

ROUNDS = 5
GOAL = 5  # a fit with intervals, two more for R_max, plateaus and a verdict, for one fit


def main():
    package = zipped(published_files())
    replicates = [replicate for replicate in analyze(package).replicates if replicate.kinetics.fit]
    curves = [[curve.curve for curve in replicate.curves] for replicate in replicates]
    sides = {
        "ours": lambda: analyze(package),
        "pykingenie": lambda: [oracle(of_one) for of_one in curves],
    }
    taken = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            start = time.process_time()
            side()
            taken[name].append(time.process_time() - start)
    medians = {name: statistics.median(values) for name, values in taken.items()}
    report(
        Ratio(
            "kinetics",
            f"a package with {len(curves)} replicates (CPU)",
            ours=medians["ours"],
            beside="pykingenie, one model without intervals, a fifth of the points",
            other=medians["pykingenie"],
            unit="s",
            goal=GOAL,
        )
    )


if __name__ == "__main__":
    main()
