"""Reading designs, compared with Biopython: seconds as ratios, and memory per design.

Biopython parses and checks nothing: `SeqIO.parse` makes a `SeqRecord` of each record, `SimpleFastaParser` a pair of strings.
`read_sequences` and `read_pool` check letters, names and duplicates as well. The calls take turns in one process and CPU
time is measured, so that a busy machine slows all of them alike. `--designs` sets the size (default 100,000, and ten times
that for the pool).
"""

import argparse
import random
import statistics
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from Bio import SeqIO
from Bio.SeqIO.FastaIO import SimpleFastaParser
from figures import Growth, Ratio, report

from prefect_assay.designs.read import read_pool, read_sequences

RESIDUES = 200
WIDTH = 60
ROUNDS = 5
LETTERS = "ACDEFGHIKLMNPQRSTVWY"
SEQ_IO = "Biopython SeqIO.parse"
# Measured with and without the collector, 2026-11-25: 2.09, 2.40, 2.41 and 2.06, 2.35, 2.59 µs a design
GROWTH_MISS = (
    "A design takes 2.1 µs in a file of 30,000 and 2.4 to 2.6 µs in larger ones, with or without Python's garbage "
    "collector; presumably the index of repeated designs outgrows the processor's caches. The exponent varies between "
    "1.06 and 1.13."
)
MISS = (
    "`read_sequences` makes a validated object with a table of attributes for each design; a pool keeps columns of text, and "
    "is what large files are for."
)


def write(path: Path, designs: int, describe: str) -> None:
    chance = random.Random(7)
    with path.open("w") as file:
        for number in range(designs):
            residues = "".join(chance.choices(LETTERS, k=RESIDUES))
            file.write(f">design_{number}{describe}\n")
            file.writelines(residues[start : start + WIDTH] + "\n" for start in range(0, RESIDUES, WIDTH))


def seq_io(path: Path) -> int:
    return sum(1 for _ in SeqIO.parse(path, "fasta"))


def simple(path: Path) -> int:
    with path.open() as file:
        return sum(1 for _ in SimpleFastaParser(file))


def compare(path: Path, rounds: int = ROUNDS) -> dict[str, float]:
    """Median seconds of CPU of each."""
    calls: dict[str, Callable[[Path], object]] = {
        SEQ_IO: seq_io,
        "Biopython SimpleFastaParser": simple,
        "read_pool": lambda file: read_pool(str(file)),
    }
    if path.stat().st_size < 30_000_000:
        calls["read_sequences"] = lambda file: read_sequences(str(file))
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.process_time()
            call(path)
            taken[name].append(time.process_time() - start)
    medians = {name: statistics.median(values) for name, values in taken.items()}
    for name, seconds in medians.items():
        print(f"  {name:28} {seconds:7.3f} s   {seconds / medians[SEQ_IO]:5.2f} x SeqIO.parse", flush=True)
    return medians


def beside(medians: dict[str, float], what: str, name: str, goal: float) -> None:
    report(
        Ratio(
            "intake",
            f"{what}: {name} (CPU)",
            ours=medians[name],
            beside="Biopython's SeqIO.parse, which checks nothing",
            other=medians[SEQ_IO],
            unit="s",
            goal=goal,
            miss=MISS if name == "read_sequences" else "",
        )
    )


def memory(path: Path) -> None:
    tracemalloc.start()
    pool = read_pool(str(path))
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(
        f"  memory of {len(pool):,} designs: {kept / len(pool):.0f} B each, {peak / len(pool):.0f} B at the peak"
    )


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--designs", type=int, default=100_000)
    designs = options.parse_args().designs
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "designs.fasta"
        for what, describe in (("names", ""), ("names and scores", " ipTM=0.87 plddt=91.2 round=3")):
            write(path, designs, describe)
            print(f"{designs:,} designs of {RESIDUES} residues, {what}")
            medians = compare(path)
            beside(medians, f"{designs:,} designs with {what}", "read_pool", 3)
            beside(medians, f"{designs:,} designs with {what}", "read_sequences", 5)
        points = []
        for size in (designs, 3 * designs, 10 * designs):
            write(path, size, "")
            print(f"{size:,} designs, a pool")
            medians = compare(path, rounds=3)
            points.append((float(size), medians["read_pool"]))
        beside(medians, f"a pool of {size:,}", "read_pool", 3)
        memory(path)
        growth = Growth(
            "intake", "read_pool", "designs", "s of CPU", tuple(points), goal=1.1, miss=GROWTH_MISS
        )
        report(growth)


if __name__ == "__main__":
    main()
