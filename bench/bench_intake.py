"""Reading designs beside Biopython: seconds as ratios, and memory per design.

Biopython parses and checks nothing: `SeqIO.parse` makes a `SeqRecord` of each record, `SimpleFastaParser` a pair of strings.
`read_sequences` and `read_pool` check letters, names and duplicates as well. The calls take turns in one process and CPU
time is measured, so that a busy machine slows all of them alike. `BENCH_DESIGNS` sets the size (default 100,000, and
ten times that for the pool).
"""

import os
import random
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from Bio import SeqIO
from Bio.SeqIO.FastaIO import SimpleFastaParser

from prefect_assay.designs import read_pool, read_sequences

DESIGNS = int(os.environ.get("BENCH_DESIGNS", "100000"))
RESIDUES = 200
WIDTH = 60
ROUNDS = 5
LETTERS = "ACDEFGHIKLMNPQRSTVWY"


def write(path: Path, designs: int, describe: str) -> None:
    chance = random.Random(7)
    with path.open("w") as file:
        for number in range(designs):
            residues = "".join(chance.choices(LETTERS, k=RESIDUES))
            file.write(f">design_{number}{describe}\n")
            file.writelines(residues[at : at + WIDTH] + "\n" for at in range(0, RESIDUES, WIDTH))


def seq_io(path: Path) -> int:
    return sum(1 for _ in SeqIO.parse(path, "fasta"))


def simple(path: Path) -> int:
    with path.open() as file:
        return sum(1 for _ in SimpleFastaParser(file))


def compare(path: Path, rounds: int = ROUNDS) -> None:
    calls: dict[str, Callable[[Path], object]] = {
        "Biopython SeqIO.parse": seq_io,
        "Biopython SimpleFastaParser": simple,
        "read_pool": lambda file: read_pool(str(file)),
    }
    if path.stat().st_size < 60_000_000:
        calls["read_sequences"] = lambda file: read_sequences(str(file))
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            call(path)
            taken[name].append(time.process_time() - start)
    unit = statistics.median(taken["Biopython SeqIO.parse"])
    for name, values in taken.items():
        seconds = statistics.median(values)
        print(f"  {name:28} {seconds:7.3f} s   {seconds / unit:5.2f} x SeqIO.parse")


def memory(path: Path) -> None:
    tracemalloc.start()
    pool = read_pool(str(path))
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(
        f"  memory of {len(pool):,} designs: {kept / len(pool):.0f} B each, {peak / len(pool):.0f} B at the peak"
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "designs.fasta"
        for what, describe in (("names", ""), ("names and scores", " ipTM=0.87 plddt=91.2 round=3")):
            write(path, DESIGNS, describe)
            print(f"{DESIGNS:,} designs of {RESIDUES} residues, {what}")
            compare(path)
        write(path, 10 * DESIGNS, "")
        print(f"{10 * DESIGNS:,} designs, a pool")
        compare(path, rounds=3)
        memory(path)


if __name__ == "__main__":
    main()
