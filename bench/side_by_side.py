"""Run commands in turns and compare their medians: the machine's mood hits all of them alike."""

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence


def seconds(command: Sequence[str]) -> float:
    """Wall time of one run."""
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - start


def cpu_seconds(command: Sequence[str]) -> float:
    """Processor time of one run, which other work on the machine changes little."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(
    commands: Mapping[str, Sequence[str]],
    rounds: int = 9,
    measure: Callable[[Sequence[str]], float] = seconds,
) -> dict[str, float]:
    """Median seconds of each command, in turns, after one unmeasured round."""
    for command in commands.values():
        measure(command)
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            taken[name].append(measure(command))
    return {name: statistics.median(values) for name, values in taken.items()}


def python(code: str) -> list[str]:
    """A command that runs a line of Python in this environment."""
    return [sys.executable, "-c", code]
