"""The processes of a `LocalStack`, by name: a signal at any moment loses none of them.

It knows names, arguments and logs, and must not know what the parts are or when one is ready.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Thread
from typing import Final

from prefect_assay.errors import ConfigurationError
from prefect_assay.localstack.processes import Child

_LAUNCH_SECONDS: Final = 5.0  # making a process takes some milliseconds
_TURN_SECONDS: Final = 0.01


class StackParts:
    """Processes of this interpreter with a name and a log each.

    Each works in the given folder, because Prefect reads settings files from the working directory.
    """

    def __init__(self, folder: Path) -> None:
        """Prepare the folder for the logs; nothing is started."""
        self._folder = folder
        self._logs_folder = folder / "logs"
        self._logs_folder.mkdir(parents=True, exist_ok=True)
        self._children: dict[str, Child] = {}
        self._launches: list[list[BaseException | None]] = []  # each gets its end

    def __getitem__(self, name: str) -> Child:
        """A part that was started."""
        return self._children[name]

    @property
    def logs(self) -> dict[str, Path]:
        """Log file of each part that has been started, by name."""
        return {path.stem: path for path in sorted(self._logs_folder.glob("*.log"))}

    def log(self, name: str) -> Path:
        """Where the log of this part lies, or will."""
        return self._logs_folder / f"{name}.log"

    def running(self, name: str) -> bool:
        """Whether this part was started and is alive."""
        return name in self._children and self._children[name].running

    def check(self) -> None:
        """Raise when a part that was started has ended by itself.

        Raises:
            ConfigurationError: with the end of its log.
        """
        for child in self._children.values():
            if not child.running:
                raise child.failure("has ended")

    def launch(
        self, name: str, arguments: Sequence[str], env: Mapping[str, str], *, errors_only: bool = False
    ) -> None:
        """Start one part; `errors_only` keeps its standard output out of its log.

        Raises:
            ConfigurationError: it runs already.
        """
        if self.running(name):
            raise ConfigurationError(f"the {name} of this stack runs already; stop it first")
        # On a thread of its own, which no signal interrupts: a process is never started without being noted. No lock
        # outlives the launch, because an exception of a signal handler may leave one taken.
        ended: list[BaseException | None] = []

        def start() -> None:
            try:
                self._start(name, arguments, env, errors_only=errors_only)
            except BaseException as error:  # noqa: BLE001 - raised below
                ended.append(error)
            else:
                ended.append(None)

        self._launches.append(ended)
        thread = Thread(target=start, name="stack-launcher")
        thread.start()
        thread.join()
        if ended[0] is not None:
            raise ended[0]

    def stop(self, name: str) -> None:
        """Stop one part, if it was started. Safe to repeat, also after an interruption."""
        self._wait_for_launches()
        child = self._children.get(name)
        if child is not None:
            child.stop()
            del self._children[name]  # only now: an interrupted stop can be repeated

    def kill(self, name: str) -> None:
        """SIGKILL one part and everything below it."""
        self._children.pop(name).kill()

    def _start(
        self, name: str, arguments: Sequence[str], env: Mapping[str, str], *, errors_only: bool
    ) -> None:
        self._children[name] = Child(
            name,
            [sys.executable, *arguments],
            env=env,
            cwd=self._folder,
            log=self.log(name),
            errors_only=errors_only,
        )

    def _wait_for_launches(self) -> None:
        """Until what was being started has been noted; an interruption may have kept one from beginning at all."""
        deadline = time.monotonic() + _LAUNCH_SECONDS
        while not all(self._launches) and time.monotonic() < deadline:
            time.sleep(_TURN_SECONDS)
        self._launches.clear()
