"""`prefect-assay demo`: one campaign on this machine, told as it happens.

This module sets the stage and clears it; `demo_story.py` tells, `demo_watch.py` reads what really happens.
"""

import contextlib
import importlib.util
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from threading import Thread
from typing import Final

from rich.console import Console

from prefect_assay.cli.services.signals import Ending
from prefect_assay.errors import ConfigurationError
from prefect_assay.localstack.stack import LocalStack

_DESIGNS: Final = "egfr_round1_designs.fasta"
_FOLDER: Final = "assay-demo"
_WIDTH: Final = 118  # of output that is not a terminal, so that no table breaks


def run_demo(folder: Path | None, *, keep: bool) -> None:
    """Run the demo; everything it started has ended when this returns or raises.

    Args:
        folder: where archive and designs go; a new `assay-demo/<number>` when None.
        keep: leave everything running after the story, until Ctrl-C.

    Raises:
        ConfigurationError: an extra is missing, a part did not start, or a run failed; with the end of a log.
    """
    if importlib.util.find_spec("eth_account") is None:
        raise ConfigurationError.missing_extra("demo", "the demo pays with a wallet and")
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_WIDTH)
    place = _new_folder(folder)
    machinery = Path(tempfile.mkdtemp(prefix="assay-demo-"))
    with Ending() as ending:
        try:
            _play(console, place, machinery, ending, keep=keep)
        except BaseException as error:
            if not isinstance(error, KeyboardInterrupt | SystemExit):
                console.print(
                    f"[red]The demo failed. All logs are kept in {machinery / 'logs'}[/red]", soft_wrap=True
                )
                raise
            shutil.rmtree(machinery, ignore_errors=True)
            raise
    shutil.rmtree(machinery, ignore_errors=True)


def _play(console: Console, place: Path, machinery: Path, ending: Ending, *, keep: bool) -> None:
    began = time.monotonic()
    designs = place / "designs.fasta"
    designs.write_bytes((files("prefect_assay.lab") / "data" / _DESIGNS).read_bytes())
    stack, here = LocalStack(machinery), Path.cwd()
    try:
        with _prefect_of(stack):
            # Prefect takes seconds to import: meanwhile the processes start. No daemon: one that is
            # in the middle of an import would hang the end of the process.
            warm_up = Thread(target=_import_all)
            warm_up.start()
            with console.status("Starting Prefect server, lab, webhook receiver and flows …"):
                stack.start()
                warm_up.join()
            from prefect_assay.cli.demo.story import Story

            story = Story(console, stack, designs=designs, archive=place / "archive", here=here)
            story.tell(began)
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
    # A failure to import shows itself again, and readably, where it is needed.
    with contextlib.suppress(ImportError):
        import prefect_assay.cli.demo.story
        import prefect_assay.flows  # noqa: F401 - loaded for later


def _new_folder(folder: Path | None) -> Path:
    """The folder of this run, made; numbered when the user names none."""
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
def _prefect_of(stack: LocalStack) -> Iterator[None]:
    """Let Prefect in this process talk to the stack, and see nothing of the user's own settings."""
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
