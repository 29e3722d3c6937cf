"""Play breaks: change a promise in a copy of the tree, run the tests that ought to notice, and record which did.

`python tests/breaks/play.py --help` and README.md beside this file describe the use.
"""

import argparse
import ast
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RESULT = HERE / "result.toml"
LIMIT_SECONDS = 180  # for the tests of one break, on a machine with nothing else to do
UNBROKEN_SECONDS = 3600  # for all tests without a break
KEPT_TESTS = 8
SHOWN_TESTS = 3  # in the result
CHUNK = 12  # breaks between two looks at whether their tests fail without them
TIME_LIMIT = "the time limit"
PACKAGES_AT_THE_TOP = ("blocks", "deployments", "flows", "tasks")
CODE = ("src", "lab/src", *PACKAGES_AT_THE_TOP)
# Imported once: each break is played in a fork.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    [
        *(
            "boto3",
            "eth_account",
            "fastapi",
            "hypothesis",
            "moto.server",
            "numpy",
            "pyarrow",
            "pytest",
            "uvicorn",
        ),
        *("prefect.blocks.core", "prefect.client.orchestration", "prefect.flows"),
    ]
)


@dataclass(frozen=True)
class Break:
    """One way to break a promise: `old` becomes `new` in `file`, and `tests` ought to notice."""

    id: str
    promise: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def area(self) -> str:
        return self.id.partition(".")[0]

    def is_stale(self, root: Path) -> bool:
        path = root / self.file
        return not path.is_file() or path.read_text(encoding="utf-8").count(self.old) != 1

    def apply(self, root: Path) -> str:
        """The text of the file with the break in it; SyntaxError if that is not Python."""
        text = (root / self.file).read_text(encoding="utf-8").replace(self.old, self.new)
        if self.file.endswith(".py"):
            ast.parse(text)
        return text


@dataclass(frozen=True)
class Outcome:
    """What the tests made of a break: seen, unseen, stale, or invalid when the tests cannot even be imported."""

    id: str
    result: str
    failing: int = 0
    tests: tuple[str, ...] = ()

    @property
    def area(self) -> str:
        return self.id.partition(".")[0]

    def line(self) -> str:
        values = {"result": self.result, "failing": self.failing, "tests": list(self.tests[:SHOWN_TESTS])}
        shown = ", ".join(
            f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items() if value
        )
        return f"{json.dumps(self.id)} = {{ {shown} }}"


def read_breaks(folder: Path = HERE) -> list[Break]:
    """All breaks, from `<area>.toml`; the id of each begins with its area."""
    breaks = []
    for path in sorted(folder.glob("*.toml")):
        if path.name != RESULT.name:
            for slug, entry in tomllib.loads(path.read_text(encoding="utf-8")).items():
                breaks.append(
                    Break(id=f"{path.stem}.{slug}", **{**entry, "tests": tuple(entry["tests"])}),
                )
    return breaks


def choose_breaks(breaks: Sequence[Break], only: Sequence[str]) -> list[Break]:
    """Those of the named areas and ids; all without a name."""
    unknown = set(only) - {name for one in breaks for name in (one.id, one.area)}
    if unknown:
        raise SystemExit(f"--only: {', '.join(sorted(unknown))} is neither an area nor the id of a break")
    return [one for one in breaks if not only or one.id in only or one.area in only]


@dataclass
class Copy:
    """A copy of the tree, whose tests import the copy's own code."""

    root: Path
    limit_seconds: int = LIMIT_SECONDS
    played: int = 0
    _seconds: float = field(default_factory=time.time)

    @classmethod
    def make(cls, tree: Path, root: Path, limit_seconds: int = LIMIT_SECONDS) -> "Copy":
        for name in list_files(tree):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(tree / name, root / name, follow_symlinks=False)
        package = root / "build" / "package" / "prefect_assay"
        package.mkdir(parents=True)
        for path in [
            *(root / "src" / "prefect_assay").iterdir(),
            *(root / package_name for package_name in PACKAGES_AT_THE_TOP),
        ]:
            (package / path.name).symlink_to(path)
        (package.parent / "assay_lab").symlink_to(root / "lab" / "src" / "assay_lab")
        return cls(root, limit_seconds)

    def run(
        self,
        tests: Iterable[str],
        *,
        only: frozenset[str] | None = None,
        ignored: frozenset[str] | None = None,
    ) -> "Played":
        """Run pytest; see `Watch` for `only` and `ignored`."""
        output, answer = self.root / "build" / "output.txt", self.root / "build" / "failed.json"
        answer.unlink(missing_ok=True)
        pytest = FORKS.Process(target=run_pytest, args=(str(self.root), tuple(tests), only, ignored))
        pytest.start()
        pytest.join(self.limit_seconds if ignored is not None else UNBROKEN_SECONDS)
        status = -1 if pytest.exitcode is None else pytest.exitcode
        with suppress(ProcessLookupError):  # also what its tests have left behind
            os.killpg(pytest.pid or 0, signal.SIGKILL)
        pytest.join()
        failed = json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else ()
        text = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
        return Played(status, tuple(failed), text)

    def play(self, one: Break, ignored: frozenset[str]) -> Outcome:
        """Apply a break, run its tests, and take it back; tests that are `ignored` do not count."""
        if one.is_stale(self.root):
            return Outcome(one.id, "stale")
        path = self.root / one.file
        before, times = path.read_bytes(), path.stat()
        try:
            path.write_text(one.apply(self.root), encoding="utf-8")
            self.played += 1
            # Compiled code is taken again for a file of the same size and second.
            changed = self._seconds + 10 * self.played
            os.utime(path, (changed, changed))
            played = self.run(one.tests, ignored=ignored)
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        return played.judge(one.id, ignored)


@dataclass(frozen=True)
class Played:
    """What a run of pytest has left: its exit status (-1 when the time was over), the tests that failed, its output."""

    status: int
    failed: tuple[str, ...]
    output: str

    def judge(self, break_id: str, ignored: frozenset[str]) -> Outcome:
        """What the run says about a break."""
        new = [name for name in self.failed if name not in ignored]
        if self.status == -1:
            return Outcome(break_id, "seen", len(new) + 1, (*new[: KEPT_TESTS - 1], TIME_LIMIT))
        is_run = self.status == (1 if self.failed else 0)
        if not is_run or any("::" not in name for name in new):
            return Outcome(break_id, "invalid", len(new), tuple(new[:KEPT_TESTS]) or (self.output[-200:],))
        return Outcome(break_id, "seen" if new else "unseen", len(new), tuple(new[:KEPT_TESTS]))


class Watch:
    """A plugin of pytest that notes what fails.

    Args:
        only: the tests to run; None is all.
        ignored: failures that do not count; after a file with another one the session ends. None: it goes on.
    """

    def __init__(self, only: frozenset[str] | None, ignored: frozenset[str] | None) -> None:
        self.failed: dict[str, None] = {}
        self._only = only
        self._ignored = ignored

    def pytest_collection_modifyitems(self, items) -> None:
        if self._only is not None:
            items[:] = [item for item in items if item.nodeid in self._only]

    def pytest_collectreport(self, report) -> None:
        if report.failed:
            self.failed[report.nodeid] = None

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed:
            self.failed[report.nodeid] = None

    def pytest_runtest_teardown(self, item, nextitem) -> None:
        is_last_of_file = nextitem is not None and nextitem.path != item.path
        if is_last_of_file and self._ignored is not None and self.failed.keys() - self._ignored:
            item.session.shouldfail = "noticed"


def run_pytest(
    root: str, tests: tuple[str, ...], only: frozenset[str] | None, ignored: frozenset[str] | None
) -> None:
    """Run pytest in this process, a fork that has the libraries imported, on a copy of the tree."""
    os.setsid()
    build = Path(root, "build")
    with (build / "output.txt").open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(root)
    package = str(build / "package")
    os.environ |= {
        "PYTHONPATH": package,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
    }
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each run would compile the package again
    sys.dont_write_bytecode = False
    # The editable install maps the package to the original tree; the copy's comes before it.
    sys.path[:] = [package, *(place for place in sys.path if Path(place) != HERE)]
    # A process has one fork server, and tests of commands let it import the original.
    for name in [name for name in sys.modules if name.partition(".")[0] in {"prefect_assay", "assay_lab"}]:
        del sys.modules[name]
    import pytest

    watch = Watch(only, ignored)
    options = ("-q", "--tb=line", "--show-capture=no", "-p", "no:cacheprovider", "-p", "no:xdist")
    status = pytest.main([*options, *tests], [watch])
    (build / "failed.json").write_text(json.dumps([*watch.failed]), encoding="utf-8")
    sys.stdout.flush()
    os._exit(status)


def list_files(tree: Path) -> list[str]:
    """The files that belong to the tree, committed or new."""
    names = git(tree, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    return [name for name in names if name and (tree / name).exists()]


def name_commit(tree: Path) -> str:
    """The commit of the code that is played."""
    changed = git(tree, "status", "--porcelain", "--", *CODE).strip()
    return git(tree, "rev-parse", "HEAD").strip() + (" with local changes" if changed else "")


def git(tree: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", tree, *words], check=True, capture_output=True, text=True).stdout


def play_breaks(tree: Path, breaks: Sequence[Break], jobs: int, limit_seconds: int) -> Iterator[Outcome]:
    """The outcomes, a dozen at a time, from as many copies of the tree as there are jobs."""
    passing, ignored = set[str](), set[str]()  # tests, by what they do without a break
    with tempfile.TemporaryDirectory(prefix="breaks-") as folder, ThreadPoolExecutor(jobs) as pool:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(jobs):
            copies.put(Copy.make(tree, Path(folder) / str(number), limit_seconds))

        def play(one: Break) -> Outcome:
            copy = copies.get()
            try:
                return copy.play(one, frozenset(ignored))
            finally:
                copies.put(copy)

        def run_unbroken(tests: Sequence[str]) -> tuple[str, ...]:
            copy = copies.get()
            try:
                files = sorted({name.partition("::")[0] for name in tests})
                return copy.run(files, only=frozenset(tests)).failed
            finally:
                copies.put(copy)

        for start in range(0, len(breaks), CHUNK):
            chunk = breaks[start : start + CHUNK]
            outcomes = list(pool.map(play, chunk))
            failed = sorted({name for one in outcomes for name in one.tests if "::" in name} - passing)
            shares = [share for share in (failed[number::jobs] for number in range(jobs)) if share]
            unbroken_failures = {name for share in pool.map(run_unbroken, shares) for name in share}
            for name in sorted(unbroken_failures):
                report(f"fails without a break, and is ignored: {name}")
            passing |= {*failed} - unbroken_failures
            ignored |= unbroken_failures
            again = [
                one
                for one, outcome in zip(chunk, outcomes, strict=True)
                if unbroken_failures & {*outcome.tests}
            ]
            replayed = {outcome.id: outcome for outcome in pool.map(play, again)}
            yield from (replayed.get(outcome.id, outcome) for outcome in outcomes)


def read_result(commit: str) -> dict[str, Outcome]:
    """The recorded outcomes by the id of the break; empty if they are of another commit."""
    if not RESULT.exists():
        return {}
    earlier = tomllib.loads(RESULT.read_text(encoding="utf-8"))
    return {
        name: Outcome(name, entry["result"], entry.get("failing", 0), tuple(entry.get("tests", ())))
        for name, entry in earlier["breaks"].items()
        if earlier["commit"] == commit
    }


def write_result(commit: str, outcomes: Iterable[Outcome], breaks: Sequence[Break]) -> None:
    """Write the result; what was played at the same commit before stays."""
    known = read_result(commit)
    known |= {one.id: one for one in outcomes}
    rows = [known[one.id] for one in breaks if one.id in known]
    lines = [f"commit = {json.dumps(commit)}", "", "[totals]", f"all = {_counts(row.result for row in rows)}"]
    for area in dict.fromkeys(row.area for row in rows):
        lines += [f"{area} = {_counts(row.result for row in rows if row.area == area)}"]
    lines += ["", "[breaks]", *(row.line() for row in rows), ""]
    RESULT.write_text("\n".join(lines), encoding="utf-8")


def _counts(results: Iterable[str]) -> str:
    counts = Counter(results)
    return "{ " + ", ".join(f"{word} = {counts[word]}" for word in sorted(counts)) + " }"


def report(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Play, print a line per break, and with `--write` record the result."""
    parser = argparse.ArgumentParser(
        description="Break promises in a copy of the tree, and see which tests notice."
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="AREA_OR_ID", help="play only these")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree that are played at once")
    parser.add_argument(
        "--seconds", type=int, default=LIMIT_SECONDS, help="for each break; more on a busy machine"
    )
    parser.add_argument(
        "--tree", type=Path, default=ROOT, help="the clone whose code is played; this one otherwise"
    )
    parser.add_argument(
        "--missing", action="store_true", help="play only those that the result does not have"
    )
    parser.add_argument(
        "--write", action="store_true", help=f"record the result in {RESULT.relative_to(ROOT)}"
    )
    options = parser.parse_args()
    breaks = read_breaks()
    chosen = choose_breaks(breaks, options.only)
    tree, began = options.tree.resolve(), time.monotonic()
    commit, outcomes = name_commit(tree), list[Outcome]()
    if options.missing:
        chosen = [one for one in chosen if one.id not in read_result(commit)]
    for outcome in play_breaks(tree, chosen, options.jobs, options.seconds):
        outcomes.append(outcome)
        report(outcome.line())
        if options.write:
            write_result(commit, outcomes, breaks)
    report(f"{_counts(one.result for one in outcomes)} at {commit}, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
