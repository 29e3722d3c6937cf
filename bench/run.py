"""All benchmarks of the short list, one after the other: one table, and `docs/performance.md`.

    python bench/run.py [--only NAME ...] [--long] [--patience 3] [--write docs/performance.md] [--date YYYY-MM-DD]

Each benchmark is a process of its own with a bound in seconds. A goal that is missed is shown, and is not a failure; a
benchmark that fails or exceeds its bound is. `--long` takes the long list, for hours of a quiet machine. The page is
written only when asked for and when nothing has failed, and is dated by the commit that was measured.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from figures import FIGURES_VARIABLE, collected
from performance_page import Machine, page
from rich.console import Console
from rich.table import Table

BENCH = Path(__file__).parent


@dataclass(frozen=True)
class Part:
    """One benchmark: its file, its arguments and the seconds after which it is ended."""

    name: str
    arguments: tuple[str, ...] = ()
    bound: int = 120

    @property
    def command(self) -> list[str]:
        return [sys.executable, str(BENCH / f"bench_{self.name}.py"), *self.arguments]


SHORT = (
    Part("import", bound=90),
    Part("client", bound=60),
    Part("pipeline", bound=120),
    Part("wake", ("--wakes", "8", "--kind", "worker"), bound=300),
    Part("receiver", ("--seconds", "15"), bound=120),
    Part("intake", ("--designs", "30000"), bound=90),
    Part("kinetics", bound=90),
    Part("selection", ("--designs", "60000"), bound=90),
    Part("report", ("--rounds", "1"), bound=150),
    Part("lab", bound=90),
    Part("sweep", ("--finished", "400", "--growth", "--idle", "3"), bound=180),
    Part("campaign", bound=240),
)
LONG = (
    Part("waiting", bound=3 * 3600),
    Part("sweep", ("--finished", "5000", "--growth"), bound=3600),
    Part("wake", bound=900),
    Part("receiver", bound=600),
    Part("intake", bound=1800),
    Part("selection", bound=3600),
    Part("report", bound=1800),
    Part("lab", bound=1800),
)


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--only", action="append", choices=sorted({part.name for part in SHORT + LONG}))
    options.add_argument("--patience", type=float, default=1.0, help="multiplies every bound: a busy machine")
    options.add_argument("--long", action="store_true", help="the long list: hours")
    options.add_argument("--write", type=Path, help="write the page to this file")
    options.add_argument(
        "--date", type=date.fromisoformat, help="the page's date; default: that of the commit"
    )
    chosen = options.parse_args()
    parts = [part for part in (LONG if chosen.long else SHORT) if not chosen.only or part.name in chosen.only]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a runner that is ended ends its benchmark
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file = Path(folder) / "figures"
        file.touch()
        taken = {part.name: measured(part, file, part.bound * chosen.patience) for part in parts}
        figures = collected(file)
    machine = Machine.of_this(before, chosen.date or committed())
    show(figures)
    failed = [name for name, (_, why) in taken.items() if why]
    print(f"{sum(seconds for seconds, _ in taken.values()):.0f} s in all, load {before:.1f} before")
    for name in failed:
        print(f"bench_{name}.py failed: {taken[name][1]}")
    if chosen.write and not failed:
        left_out = [part.name for part in SHORT if part.name not in taken]
        seconds = {name: took for name, (took, _) in taken.items()}
        chosen.write.write_text(page(figures, machine, seconds, left_out), encoding="utf-8")
    elif chosen.write:
        print(f"{chosen.write} is left as it was")
    return 1 if failed else 0


def measured(part: Part, file: Path, bound: float) -> tuple[float, str]:
    """Run one benchmark; the seconds it took, and why it failed or nothing."""
    print(f"\n== bench_{part.name}.py {' '.join(part.arguments)}", flush=True)
    start = time.monotonic()
    with subprocess.Popen(
        part.command, env=os.environ | {FIGURES_VARIABLE: str(file)}, start_new_session=True
    ) as process:
        try:
            code = process.wait(bound)
            why = f"exit code {code}" if code else ""
        except subprocess.TimeoutExpired:
            end(process)
            why = f"not done after {bound:.0f} s"
        except KeyboardInterrupt:
            end(process)  # it is in a session of its own, so that Ctrl-C does not reach it
            raise
    return time.monotonic() - start, why


def end(process: "subprocess.Popen[bytes]") -> None:
    """Ctrl-C, so that it stops what it has started; after 20 s its whole group is killed."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def show(figures) -> None:
    """One table of all figures."""
    table = Table("area", "what", "ours", "beside", "ratio", "goal", "")
    for figure in figures:
        if hasattr(figure, "ratio"):
            # An escape would be read as markup: figures hold plain words.
            ours, beside = f"{figure.ours:.3g} {figure.unit}", f"{figure.other:.3g} {figure.beside}"
            value = f"{figure.ratio:.2f}"
        else:
            ours, beside, value = figure.curve, f"by {figure.by}", f"exponent {figure.exponent:.2f}"
        verdict = "" if figure.met else "MISSED"
        table.add_row(figure.area, figure.what, ours, beside, value, figure.goal_text, verdict)
    Console(width=None if sys.stdout.isatty() else 160).print(table)


def committed() -> date:
    """The day of the commit that is measured."""
    command = ["git", "-C", str(BENCH), "log", "-1", "--format=%cs"]
    return date.fromisoformat(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    )


if __name__ == "__main__":
    sys.exit(main())
