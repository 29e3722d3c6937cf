"""Run commands in turns and compare their medians: the machine's mood hits all of them alike."""

import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence


def seconds(command: Sequence[str]) -> float:
    """Wall time of one run."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def compare(commands: Mapping[str, Sequence[str]], rounds: int = 9) -> dict[str, float]:
    """Median seconds of each command, in turns, after one unmeasured round."""
    for command in commands.values():
        seconds(command)
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            taken[name].append(seconds(command))
    return {name: statistics.median(values) for name, values in taken.items()}


def python(code: str) -> list[str]:
    """A command that runs a line of Python in this environment."""
    return [sys.executable, "-c", code]
