"""A process that archives one experiment, and kills itself at a chosen step: `python archive_writer.py ...`.

Arguments: the folder, the step (0: run to the end), and a tag for the content. A step is a call of the operating system
that touches a file.
"""

import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

from prefect_assay.archive import Document, LocalStore, Store, archive_version

FILE_EVENTS = {"open", "os.mkdir", "os.link", "os.remove", "os.listdir", "os.scandir"}


def documents(tag: str, *, large: bool = True) -> list[Document]:
    """Five files, with `large` one of several megabytes."""
    sizes = {
        "experiment": 10,
        "quote": 0,
        "results-1": 70_000,
        "results-2": 70_000,
        "package": 1_200_000 if large else 2_000,
    }
    return [
        Document(
            path=f"raw/{name}.json", content_type="application/json", body=f"{tag}{name}".encode() * size
        )
        for name, size in sizes.items()
    ]


def archive(store: Store, tag: str, *, large: bool = True):
    """One archiving run, as a flow makes it."""
    return archive_version(
        store,
        "lab",
        campaign_id="c",
        experiment_id="e-1",
        experiment_code="E-1",
        results_status="all",
        documents=documents(tag, large=large),
        now=datetime.now(UTC),
    )


class DiesAt:
    """Counts steps, and ends this process for good at the chosen one."""

    def __init__(self, step: int) -> None:
        self.step, self.seen = step, 0

    def __call__(self, *_, **__) -> None:
        self.seen += 1
        if self.seen == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Archive, counting steps; prints the number of steps when it gets to the end."""
    root, step, tag = sys.argv[1:]
    dies = DiesAt(int(step))
    sys.addaudithook(lambda event, _: dies() if event in FILE_EVENTS else None)
    store = LocalStore(Path(root))
    archive(store, tag)
    sys.stdout.write(str(dies.seen))


if __name__ == "__main__":
    main()
