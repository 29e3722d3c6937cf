"""The figure of the example: the best design after each round, and how the designs of each round are distributed."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

NO_BINDING = 1e-4
"""Where designs without binding, and weaker ones, are drawn on the logarithmic axis."""
PUBLISHED = {"random": 0.47, "Gaussian process": 0.82, "deep kernel": 0.86, "ensemble": 0.90}


def draw(loops: Sequence[tuple[list[float], list[list[float]]]], folder: Path) -> None:
    """Write `rounds.svg` and `rounds.png`; a loop is its best so far and its designs, by round, as parts of the maximum."""
    rounds = range(1, len(loops[0][0]) + 1)
    with mpl.rc_context({"svg.hashsalt": "gb1", "font.size": 9}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
        for best, _ in loops:
            left.plot(rounds, best, color="0.75", linewidth=1)
        means = [fmean(best[index] for best, _ in loops) for index in range(len(rounds))]
        left.plot(
            rounds,
            means,
            color="#0072B2",
            marker="o",
            label=f"mean of {len(loops)}" if len(loops) > 1 else None,
        )
        for name, value in PUBLISHED.items():
            left.axhline(value, color="0.4", linewidth=0.6, linestyle=":")
            left.annotate(f"{name} {value:.2f}", (1, value), fontsize=7, color="0.3", va="bottom")
        left.set(xlabel="round", ylabel="best fitness so far / maximum", ylim=(0, 1.05), xticks=list(rounds))
        left.set_title("Best design; dotted: published, 480 measurements", fontsize=9)
        by_round = [
            [max(value, NO_BINDING) for _, designs in loops for value in designs[index]]
            for index in range(len(rounds))
        ]
        right.boxplot(by_round, positions=list(rounds), whis=(5, 95), widths=0.6, showfliers=False)
        for number, values in zip(rounds, by_round, strict=True):
            offsets = [number + 0.5 * (index / max(1, len(values) - 1) - 0.5) for index in range(len(values))]
            right.plot(offsets, values, ".", color="#D55E00", markersize=2, alpha=0.4)
        right.set(xlabel="round", ylabel="fitness / maximum", yscale="log", xticks=list(rounds))
        right.set_title(f"Designs of each round; {NO_BINDING:g}: that or less", fontsize=9)
        figure.savefig(folder / "rounds.svg", metadata={"Date": None})
        figure.savefig(folder / "rounds.png", dpi=150, metadata={"Software": None})
        plt.close(figure)
