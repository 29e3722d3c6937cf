"""Sets up a stack for the demo, plays the story, and removes everything but the archive.

Ctrl-C, SIGTERM and a closed terminal raise exceptions that cannot get lost, so that nothing stays behind.
"""

import contextlib
import importlib
import importlib.util
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final

from rich.console import Console

from prefect_assay.archive.sources import local_path
from prefect_assay.cli.ending_signals import EndingSignals
from prefect_assay.cli.output import TerminalConsole
from prefect_assay.errors import ConfigurationError, InputError

if TYPE_CHECKING:
    from prefect_assay.local.stack import LocalStack

_DESIGNS: Final = "egfr_round1_designs.fasta"
_FOLDER: Final = "assay-demo"
_START_SECONDS: Final = 600.0  # for a part to answer, on a loaded machine; one that ends is noticed at once
_WIDTH: Final = 118  # of output that is not a terminal, so that no table breaks


def run_demo(folder: Path | None, *, keep: bool) -> None:
    """Run the demo; everything that it started has ended when this returns or raises."""
    if importlib.util.find_spec("eth_account") is None:
        raise ConfigurationError.missing_extra("demo", "the demo pays with a wallet and")
    if importlib.util.find_spec("assay_lab") is None:
        raise ConfigurationError.missing_lab("the demo")
    console = TerminalConsole(highlight=False, markup=True)
    if not console.is_terminal:
        console = TerminalConsole(highlight=False, markup=True, width=_WIDTH)
    place = _new_folder(folder)
    machinery = Path(tempfile.mkdtemp(prefix="assay-demo-"))
    with EndingSignals() as ending:
        try:
            _play_demo(console, place, machinery, ending, keep=keep)
        except Exception:
            console.print(
                f"[red]The demo failed. All logs are kept in {machinery / 'logs'}[/red]", soft_wrap=True
            )
            raise
        except BaseException:
            shutil.rmtree(machinery, ignore_errors=True)
            raise
    shutil.rmtree(machinery, ignore_errors=True)


def _play_demo(console: Console, place: Path, machinery: Path, ending: EndingSignals, *, keep: bool) -> None:
    from prefect_assay.local.stack import LocalStack

    began = time.monotonic()
    designs = place / "designs.fasta"
    designs.write_bytes((files("assay_lab") / "data" / _DESIGNS).read_bytes())
    stack, here = LocalStack(machinery, start_seconds=_START_SECONDS), Path.cwd()
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
        place = local_path(folder).absolute()
        try:
            place.mkdir(parents=True, exist_ok=True)
            used = any(place.iterdir())
        except OSError as error:
            raise InputError(
                f"{folder} cannot be used as a folder ({error.strerror}); name one that is new or empty"
            ) from None
        if used:
            raise ConfigurationError(f"{folder} is not empty; name a folder that is new or empty")
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
