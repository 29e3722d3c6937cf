"""Five rounds of 96 designs of GB1, measured by the local lab: `python examples/gb1_loop/run.py --seed 1`.

The flow is `design_build_test` with a Python designer, on a Prefect server and a lab that live as long as this process.
Designs are scored by the landscape's own fitness, which the designer never sees: it sees what the lab has reported.
"""

import argparse
import csv
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

HERE = Path(__file__).resolve().parent
PUBLISHED = (
    ("random", "0.47"),
    ("boosting", "0.80 to 0.82"),
    ("Gaussian process", "0.82"),
    ("deep kernel", "0.86"),
    ("ensemble", "0.90"),
)
"""Best fitness over maximum after 480 measurements, as published by others: one-hot features, fitness without noise."""
CAP_CENTS = 100_000_000


@dataclass(frozen=True)
class Played:
    """One loop: the fitness of the designs of each round, over the maximum of the landscape."""

    seed: int
    rounds: list[dict[str, float]]
    seconds: float

    @property
    def best(self) -> list[float]:
        """The best of all designs up to each round."""
        return [
            max(max(scores.values()) for scores in self.rounds[: index + 1])
            for index in range(len(self.rounds))
        ]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="decides first designs, ties and the lab's noise")
    parser.add_argument("--seeds", type=int, default=1, help="so many loops, with seeds from --seed on")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of a loop, the random one included")
    parser.add_argument("--designs", type=int, default=96, help="designs of a round")
    parser.add_argument("--kd-noise", type=float, default=0.1, help="decades of K_D between measurements")
    parser.add_argument(
        "--out", type=Path, default=Path("gb1-loop"), help="folder for archives, tables, figure"
    )
    return parser.parse_args()


def prepare(folder: Path) -> None:
    """A Prefect of this folder's own; before Prefect is imported."""
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        del os.environ[name]
    os.environ |= {
        "PREFECT_HOME": str(folder / "prefect"),
        "PREFECT_LOGGING_LEVEL": "ERROR",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
    }
    sys.path.insert(0, str(HERE))  # the flow imports gb1_designer:propose


def play(chosen: argparse.Namespace, seed: int, folder: Path) -> Played:
    """Run one loop and score what it bought."""
    from assay_lab.testing import LocalLab
    from prefect_assay import Assay
    from prefect_assay.blocks import AssayAccount, AssayCredentials, LocalArchive, SpendingPolicy
    from prefect_assay.designs.options import CampaignOptions, LoopOptions, WaitingOptions
    from prefect_assay.flows import design_build_test

    began = time.monotonic()
    os.environ["GB1_SEED"] = str(seed)
    noise = ("--seed", f"gb1-{seed}", "--landscape-kd-noise", str(chosen.kd_noise))
    with LocalLab(landscape="gb1", clock="auto", options=noise) as lab:
        report = design_build_test(
            loop_id=f"gb1-{seed}",
            designer="gb1_designer:propose",
            assay=Assay(
                experiment_type="affinity",
                method="bli",
                target="Human IgG-Fc",
                n_replicates=1,
                antigen_concentrations=[1000.0, 100.0, 0.0],  # fewer curves to fit and to draw
            ),
            account=AssayAccount(
                credentials=AssayCredentials(base_url=lab.base_url, token=lab.token),
                policy=SpendingPolicy(per_experiment_usd=CAP_CENTS / 100, per_campaign_usd=CAP_CENTS / 100),
                archive=LocalArchive(root=str(folder / "archive")),
            ),
            budget_usd=CAP_CENTS / 100,
            rounds=LoopOptions(designs_per_round=chosen.designs, max_rounds=chosen.rounds),
            options=CampaignOptions(waiting=WaitingOptions(poll_seconds=0.5)),
        )
    problems = [f"round {line.name}: {line.problem}" for line in report.rounds if line.problem]
    if problems or len(report.rounds) != chosen.rounds:
        raise SystemExit(f"seed {seed}: {'; '.join(problems) or report.stop_message}")
    return Played(seed, [scored(line.table) for line in report.rounds], time.monotonic() - began)


def scored(table: str) -> dict[str, float]:
    """The designs of an archived table of results, with their true fitness over the landscape's maximum."""
    from assay_lab.measure import gb1
    from prefect_assay.analysis.results import from_csv

    fitness = gb1.load_fitness()
    best = max(fitness.values())
    variants = {gb1.read_variant(row.aa_string or "") for row in from_csv(Path(table))}
    return {four: fitness[four] / best for four in sorted(variants - {None})}


def write(played: list[Played], folder: Path) -> None:
    """The designs of every round with their fitness, as a table."""
    with (folder / "designs.csv").open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(("seed", "round", "variant", "fitness_over_maximum"))
        for loop in played:
            for number, scores in enumerate(loop.rounds, 1):
                out.writerows((loop.seed, number, four, f"{value:.4f}") for four, value in scores.items())


def show(played: list[Played]) -> None:
    """The table, with the published figures beside it."""
    measured = [
        sum(len(scores) for scores in played[0].rounds[: index + 1]) for index in range(len(played[0].rounds))
    ]
    print("\nbest fitness over maximum, by measurements")
    print(f"{'seed':>18}" + "".join(f"{count:>7}" for count in measured) + f"{'seconds':>9}")
    for loop in played:
        print(f"{loop.seed:>18}" + "".join(f"{best:>7.2f}" for best in loop.best) + f"{loop.seconds:>9.0f}")
    if len(played) > 1:
        means = [fmean(loop.best[index] for loop in played) for index in range(len(measured))]
        print(f"{f'mean of {len(played)}':>18}" + "".join(f"{best:>7.2f}" for best in means))
    print("\npublished by others, after 480 measurements, with one-hot features and no noise")
    for name, best in PUBLISHED:
        print(f"{name:>18}  {best}")


def main() -> None:
    chosen = options()
    folder = chosen.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    prepare(folder)
    from figure import draw

    played = []
    for seed in range(chosen.seed, chosen.seed + chosen.seeds):
        played.append(play(chosen, seed, folder / f"seed-{seed}"))
        write(played, folder)
        draw([(loop.best, [list(scores.values()) for scores in loop.rounds]) for loop in played], folder)
    show(played)
    print(f"\n{folder / 'designs.csv'}\n{folder / 'rounds.svg'}")


if __name__ == "__main__":
    main()
