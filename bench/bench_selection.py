"""Selection from a pool of a million candidates: seconds and memory of reading, and of selecting by each policy.

Families of related sequences of 100 residues with method, score and parent, as a CSV file; clusters at 90 % identity, at
most one design of each, at most four of one parent, and a history of 480. Each policy runs in a process of its own, because
the peak of memory is a process's. CPU time is given beside the wall time: a busy machine stretches only the latter.
`BENCH_DESIGNS` sets the size of the pool (default 1,000,000).
"""

import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from prefect_assay.designs import read_pool
from prefect_assay.models.selection import SelectionPolicy, SelectionSettings
from prefect_assay.results import DesignSummary, Outcome
from prefect_assay.selection import History, history_of, select

DESIGNS = int(os.environ.get("BENCH_DESIGNS", "1000000"))
RESIDUES, FAMILY, HISTORY, BOUGHT = 100, 200, 480, 96
LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def write(path: Path) -> None:
    chance = random.Random(7)
    with path.open("w") as file:
        file.write("name,sequence,method,ipTM,parent\n")
        base = ""
        for number in range(DESIGNS):
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
    return history_of(
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
    start = time.perf_counter()
    pool = read_pool(path)
    read, read_cpu = time.perf_counter() - start, time.process_time()
    settings = SelectionSettings(policy=policy, score_column="ipTM", identity=0.9, max_per_parent=4)
    chosen = select(pool, history(), BOUGHT, settings)
    selected, cpu = time.perf_counter() - start - read, time.process_time() - read_cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(
        f"  {policy:16} read {read:5.1f} s ({read_cpu:.1f} s CPU), selected {len(chosen.choices)} in {selected:5.1f} s "
        f"({cpu:.1f} s CPU), {memory:.2f} GiB",
        flush=True,
    )


def main() -> None:
    if len(sys.argv) > 1:
        measure(*sys.argv[1:])
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pool.csv"
        write(path)
        print(f"{DESIGNS:,} candidates, {path.stat().st_size / 1024**2:.0f} MiB")
        for policy in SelectionPolicy:
            subprocess.run([sys.executable, __file__, str(path), policy], check=True)


if __name__ == "__main__":
    main()
