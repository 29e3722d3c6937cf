"""Selection from a pool of a million candidates: seconds and memory of reading, and of selecting by each policy.

Families of related sequences of 100 residues with method, score and parent, as a CSV file; clusters at 90 % identity, at
most one design of each, at most four of one parent, and a history of 480. Each policy runs in a process of its own, because
the peak of memory is a process's. CPU time is given next to the wall time: a busy machine stretches only the latter.
The default policy is compared with what a user would do without it: read the CSV file with the standard library and
take the best scores, without looking at similarity, parents or what is known.
`--designs` sets the size of the pool (default 1,000,000).
"""

import argparse
import csv
import heapq
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import Growth, Ratio, report

from prefect_assay.analysis.results import DesignSummary, Outcome
from prefect_assay.analysis.selection import History, make_history, select_designs
from prefect_assay.designs.read import read_pool
from prefect_assay.designs.selection import SelectionPolicy, SelectionSettings

RESIDUES, FAMILY, HISTORY, BOUGHT = 100, 200, 480, 96
LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def write(path: Path, designs: int) -> None:
    chance = random.Random(7)
    with path.open("w") as file:
        file.write("name,sequence,method,ipTM,parent\n")
        base = ""
        for number in range(designs):
            if number % FAMILY == 0:
                base = "".join(chance.choices(LETTERS, k=RESIDUES - chance.randrange(10)))
            changed = list(base)
            for _ in range(chance.randrange(1, 25)):
                changed[chance.randrange(len(changed))] = chance.choice(LETTERS)
            row = (
                f"d{number}",
                "".join(changed),
                f"m{number % 7}",
                f"{chance.random():.3f}",
                f"p{number // FAMILY}",
            )
            file.write(",".join(row) + "\n")


def history() -> History:
    chance = random.Random(8)
    return make_history(
        DesignSummary(
            name=f"h{number}",
            experiment_code="",
            outcome=Outcome.MEASURED if number % 3 else Outcome.NO_BINDING,
            kd_M=10 ** chance.uniform(-9, -6) if number % 3 else None,
            aa_string="".join(chance.choices(LETTERS, k=RESIDUES)),
            attributes={"method": f"m{number % 7}", "ipTM": f"{chance.random():.3f}"},
        )
        for number in range(HISTORY)
    )


def measure(path: str, policy: str) -> None:
    start, begun = time.perf_counter(), time.process_time()
    pool = read_pool(path)
    read, read_cpu = time.perf_counter() - start, time.process_time() - begun
    settings = SelectionSettings(policy=policy, score_column="ipTM", identity=0.9, max_per_parent=4)
    chosen = select_designs(pool, history(), BOUGHT, settings)
    selected, cpu = time.perf_counter() - start - read, time.process_time() - begun - read_cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(
        f"  {policy:16} read {read:5.1f} s ({read_cpu:.1f} s CPU), selected {len(chosen.choices)} in {selected:5.1f} s "
        f"({cpu:.1f} s CPU), {memory:.2f} GiB",
        flush=True,
    )
    print(read_cpu, cpu)


def plain(path: Path) -> float:
    """CPU seconds of reading the rows and taking the best scores."""
    start = time.process_time()
    with path.open(newline="") as file:
        heapq.nlargest(BOUGHT, csv.DictReader(file), key=lambda row: float(row["ipTM"]))
    return time.process_time() - start


def measured(path: Path, policy: str) -> tuple[float, float]:
    """CPU seconds of reading and of selecting, in a process of its own."""
    command = [sys.executable, __file__, "--measure", str(path), policy]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    print(*lines[:-1], sep="\n", flush=True)
    read, selected = map(float, lines[-1].split())
    return read, selected


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--designs", type=int, default=1_000_000)
    options.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.measure:
        measure(*chosen.measure)
        return
    taken = {}
    with tempfile.TemporaryDirectory() as folder:
        for size in (chosen.designs // 4, chosen.designs // 2, chosen.designs):
            path = Path(folder) / f"pool-{size}.csv"
            write(path, size)
            print(f"{size:,} candidates, {path.stat().st_size / 1024**2:.0f} MiB", flush=True)
            taken[size] = {
                policy: measured(path, policy)
                for policy in (SelectionPolicy if size == chosen.designs else [SelectionSettings().policy])
            }
        floor = plain(path)
    whole = sum(taken[chosen.designs][SelectionSettings().policy])
    report(
        Ratio(
            "selection",
            f"96 of {chosen.designs:,}, read and chosen, the default policy (CPU)",
            ours=whole,
            beside="csv and heapq: the best scores, unchecked, similar ones included",
            other=floor,
            unit="s",
            goal=10,
        )
    )
    points = tuple((float(size), sum(of[SelectionSettings().policy])) for size, of in taken.items())
    report(Growth("selection", "the default policy", "candidates", "s of CPU", points, goal=1.1))


if __name__ == "__main__":
    main()
