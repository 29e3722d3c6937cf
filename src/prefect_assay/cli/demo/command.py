"""Sets up a stack for the demo, plays the story, and removes everything but the archive.

Ctrl-C, SIGTERM and a closed terminal raise exceptions that cannot get lost, so that nothing stays behind.
"""

import contextlib
import importlib
import importlib.util
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from threading import Thread
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from rich.console import Console

from prefect_assay.errors import ConfigurationError

if TYPE_CHECKING:
    from prefect_assay.localstack import LocalStack

_DESIGNS: Final = "egfr_round1_designs.fasta"
_FOLDER: Final = "assay-demo"
_WIDTH: Final = 118  # of output that is not a terminal, so that no table breaks
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_REPEAT_SECONDS: Final = 0.2
_EXIT_BASE: Final = 128
_IMPORTING: Final = "importlib._bootstrap"


def run_demo(folder: Path | None, *, keep: bool) -> None:
    """Run the demo; everything that it started has ended when this returns or raises."""
    if importlib.util.find_spec("eth_account") is None:
        raise ConfigurationError.missing_extra("demo", "the demo pays with a wallet and")
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH)
    place = _new_folder(folder)
    machinery = Path(tempfile.mkdtemp(prefix="assay-demo-"))
    with EndingSignals() as ending:
        try:
            _play(console, place, machinery, ending, keep=keep)
        except Exception:
            console.print(
                f"[red]The demo failed. All logs are kept in {machinery / 'logs'}[/red]", soft_wrap=True
            )
            raise
        except BaseException:
            shutil.rmtree(machinery, ignore_errors=True)
            raise
    shutil.rmtree(machinery, ignore_errors=True)


def _play(console: Console, place: Path, machinery: Path, ending: "EndingSignals", *, keep: bool) -> None:
    from prefect_assay.localstack import LocalStack

    began = time.monotonic()
    designs = place / "designs.fasta"
    designs.write_bytes((files("prefect_assay.lab") / "data" / _DESIGNS).read_bytes())
    stack, here = LocalStack(machinery), Path.cwd()
    try:
        with _prefect_of(stack):
            # Prefect takes seconds to import: meanwhile the processes start. Not a daemon thread, because one
            # that is in the middle of an import would hang the end of the process.
            warm_up = Thread(target=_import_all)
            warm_up.start()
            with console.status("Starting Prefect server, lab, webhook receiver and flows …"):
                stack.start()
                warm_up.join()
            from prefect_assay.cli.demo.story import Story

            story = Story(console, stack, designs=designs, archive=place / "archive", here=here)
            story.play(began)
            if keep:
                with contextlib.suppress(KeyboardInterrupt):
                    story.stay()
            else:
                story.say_goodbye(time.monotonic() - began)
    finally:
        ending.seen()  # a second Ctrl-C must not leave half of it running
        stack.discard()  # before any output, which may be closed by now
        console.print("[dim]Everything has stopped.[/dim]")


def _import_all() -> None:
    # A failing import is reported, readably, where the module is needed.
    with contextlib.suppress(ImportError):
        importlib.import_module("prefect_assay.cli.demo.story")
        importlib.import_module("prefect_assay.flows")


def _new_folder(folder: Path | None) -> Path:
    """Make the folder of this run; numbered when the user names none."""
    if folder is not None:
        place = folder.expanduser().absolute()
        if place.exists() and any(place.iterdir()):
            raise ConfigurationError(f"{folder} is not empty; name a folder that is new or empty")
        place.mkdir(parents=True, exist_ok=True)
        return place
    number = 1
    while True:
        place = Path(_FOLDER).absolute() / str(number)
        try:
            place.mkdir(parents=True)
        except FileExistsError:
            number += 1
            continue
        return place


@contextlib.contextmanager
def _prefect_of(stack: "LocalStack") -> Iterator[None]:
    """Let Prefect in this process use the stack, without the user's own settings."""
    before, folder = dict(os.environ), Path.cwd()
    os.environ.clear()
    os.environ.update(stack.env)
    os.chdir(stack.folder)  # Prefect reads settings files from the working directory
    try:
        yield
    finally:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(before)


class EndingSignals:
    """In its block each of the signals raises in the main thread, repeatedly until `seen` is called.

    Once is not enough: an exception of a signal handler is swallowed where it interrupts a callback of the import
    system or of the garbage collector. During an import of the main thread it is deferred to the import's end: raised
    inside the import system it could leave a lock taken, and every other thread would wait for it forever.
    Ctrl-C raises `KeyboardInterrupt`, the other signals `SystemExit`.
    """

    def __init__(self) -> None:
        self._number = 0
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in (*_SIGNALS, signal.SIGALRM):
            # Always set: a process that was started in the background inherits that it ignores Ctrl-C.
            self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def seen(self) -> None:
        """Stop raising, and ignore further signals, so that cleaning up is not interrupted."""
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number != signal.SIGALRM:
            self._number = number
            signal.setitimer(signal.ITIMER_REAL, _REPEAT_SECONDS, _REPEAT_SECONDS)
        if _importing(frame):
            return  # the timer calls again
        if self._number == signal.SIGINT:
            raise KeyboardInterrupt
        if self._number:
            raise SystemExit(_EXIT_BASE + self._number)


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__") == _IMPORTING:
            return True
        frame = frame.f_back
    return False
