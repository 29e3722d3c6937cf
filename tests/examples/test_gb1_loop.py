"""The example `examples/gb1_loop`: its designer learns and repeats itself by seed, and its run ends with table and figure."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay_lab.measure import gb1
from prefect_assay.analysis.results import DesignSummary, Outcome

EXAMPLE = Path(__file__).parents[2] / "examples" / "gb1_loop"
ALPHABET = "ADFGLVWY"


@pytest.fixture
def designer(monkeypatch):
    """The designer with a library of eight residues per site, so that a round takes a moment."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.delitem(sys.modules, "gb1_designer", raising=False)
    import gb1_designer

    few = {four: value for four, value in gb1.load_fitness().items() if set(four) <= set(ALPHABET)}
    monkeypatch.setattr(gb1_designer.gb1, "load_fitness", lambda: few)
    monkeypatch.setenv(gb1_designer.SEED, "1")
    yield gb1_designer
    gb1_designer.library.cache_clear()


def as_measured(candidate):
    """What a lab without noise reports."""
    fitness = gb1.load_fitness()[candidate.name]
    return DesignSummary(
        name=candidate.name,
        experiment_code="",
        outcome=Outcome.MEASURED if fitness else Outcome.NO_BINDING,
        kd_M=gb1.WILD_TYPE_KD_M / fitness if fitness else None,
        aa_string=candidate.sequence,
    )


def loop(designer, rounds):
    history, proposed = [], []
    for number in range(1, rounds + 1):
        candidates = designer.propose(history, 24, None, number)
        proposed.append([candidate.name for candidate in candidates])
        history += [as_measured(candidate) for candidate in candidates]
    return proposed


def test_the_designer_learns_and_one_seed_gives_the_same_designs(designer, monkeypatch):
    first = loop(designer, 3)
    assert loop(designer, 3) == first
    names = [name for batch in first for name in batch]
    assert len(set(names)) == 72
    means = [sum(gb1.load_fitness()[name] for name in batch) / 24 for batch in first]
    assert means[2] > 2 * means[0]
    monkeypatch.setenv(designer.SEED, "2")
    assert loop(designer, 1) != first[:1]


def test_the_figure_is_the_same_for_the_same_loops(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    from figure import draw

    loops = [([0.2, 0.9], [[0.2, 0.0, 0.01], [0.9, 0.5, 0.3]]), ([0.4, 0.4], [[0.4], [0.1]])]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        draw(loops, tmp_path / name)
    for file in ("rounds.svg", "rounds.png"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_example_runs_two_rounds(tmp_path):
    command = [
        sys.executable,
        str(EXAMPLE / "run.py"),
        "--rounds",
        "2",
        "--designs",
        "12",
        "--out",
        str(tmp_path),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=290, env=dict(os.environ), check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "ensemble  0.90" in done.stdout
    with (tmp_path / "designs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [sum(row["round"] == number for row in rows) for number in "12"] == [12, 12]
    best = max(gb1.load_fitness().values())
    for row in rows:
        assert float(row["fitness_over_maximum"]) == pytest.approx(
            gb1.load_fitness()[row["variant"]] / best, abs=1e-4
        )
    assert (tmp_path / "rounds.svg").stat().st_size > 10_000
