"""`prefect-assay up`: Prefect server, worker and receiver of one machine as one process tree with one log.

The parts are the commands that can also be run one by one. Campaigns live in the Prefect home and the archive. So `up`
goes on after Ctrl-C, a restart of the machine, or the end of a part. It must not know what a part does.
"""

import contextlib
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from rich.console import Console
from rich.text import Text

from prefect_assay.cli.ending_signals import EndingSignals
from prefect_assay.cli.failures import refuse_ignored
from prefect_assay.cli.output import make_plain_console
from prefect_assay.cli.prefect_api import (
    check_api_address,
    check_client_variables,
    hide_credentials,
    refuse_unusable_auth,
)
from prefect_assay.cli.services.password import protect_api
from prefect_assay.cli.services.receiver import (
    PREFIX_VARIABLE,
    WORD_VARIABLE,
    WORDS_VARIABLE,
    receiver_word,
)
from prefect_assay.cli.services.receiver_address import local_address, record_address, refuse_taken_port
from prefect_assay.cli.services.signing_keys import signing_keys
from prefect_assay.errors import ConfigurationError
from prefect_assay.service.models.service import NEUTRAL_SERVICE
from prefect_assay.service.web_origin import OPTION, own_names

try:
    from prefect_assay.local.processes import StackProcesses
except ImportError:
    raise ConfigurationError.missing_extra(
        "server", "`prefect-assay up` ends every process below its own and"
    ) from None

from prefect_assay.local.loopback import is_answering

_POLL_SECONDS: Final = 0.3
_START_SECONDS: Final = 600.0  # on a loaded machine; a part that ends is noticed at once
# A part that ends is started again. One that ended this often within this time will not run.
_ENDS_MAX: Final = 4
_ENDS_SECONDS: Final = 300.0
_LOG_BYTES_MAX: Final = 20_000_000
_COLORS: Final = {
    "server": "cyan",
    "deploy": "magenta",
    "worker": "green",
    "sweeper": "blue",
    "receiver": "yellow",
}
_OWN: Final = ("-m", "prefect_assay.cli")
_HOST: Final = "127.0.0.1"
_PORT: Final = 4200


def run_up(
    *,
    port: int | None,
    receiver_host: str,
    receiver_port: int,
    worker_limit: int | None,
    allow_hosts: Sequence[str] = (),
    ask_password: bool = False,
) -> None:
    """Run everything until Ctrl-C or SIGTERM, which ends all of it.

    Args:
        port: of the Prefect server, where no Prefect API is configured; None for 4200.
        receiver_host: address that the receiver listens on.
        receiver_port: port that it listens on.
        worker_limit: flow runs at once, besides the sweep; None for what memory and cores allow.
        allow_hosts: names of server and receiver in addition to those of the loopback.
        ask_password: whether the server, where it is a part, gets a password.

    Raises:
        InputError: an option is wrong, or an API with another port is configured; nothing was started.
        ConfigurationError: a part does not start or keeps ending, with the end of its log; or `up` runs already.
    """
    from prefect.settings import get_current_settings

    from prefect_assay.cli.services.server import keep_home_private
    from prefect_assay.deployments.settings_files import RUNNER, read_shipped_settings, set_defaults
    from prefect_assay.deployments.work_pool import (
        FLOW_QUEUE,
        SWEEP_LIMIT,
        SWEEP_QUEUE,
        default_limit,
        worker_command,
    )

    check_client_variables()
    own_names("", allow_hosts)
    names = [word for name in allow_hosts for word in (OPTION, name)]
    keep_home_private()
    home = get_current_settings().home / "assay-up"
    home.mkdir(parents=True, exist_ok=True)
    address = local_address(
        receiver_host, receiver_port, os.environ.get(PREFIX_VARIABLE, "/assay").rstrip("/")
    )
    receiver = ["receiver", "--host", receiver_host, "--port", str(receiver_port)]
    receiver += ["--keys-file", str(signing_keys(home.parent).file), *names]
    set_defaults(read_shipped_settings(RUNNER))  # for the workers
    parts = {
        "worker": worker_command(FLOW_QUEUE, worker_limit or default_limit()),
        "sweeper": worker_command(SWEEP_QUEUE, SWEEP_LIMIT),
        "receiver": [*_OWN, *receiver],
    }
    with _only_one(home), EndingSignals() as ending:
        refuse_taken_port(receiver_host, receiver_port, ("--receiver-host", "--receiver-port"))
        api, own_server, noted = _find_api(port)
        if not own_server:
            refuse_ignored(
                {"--password": ask_password}, f"the server at {hide_credentials(api)} is not started here"
            )
        elif ask_password:
            protect_api()
        if own_server:
            server = [*_OWN, "server", "--host", _HOST, "--port", str(urlsplit(api).port or _PORT), *names]
            parts = {"server": server, **parts}
        installation = _Installation(home, api, parts, address)
        installation.say(*noted)
        try:
            installation.start()
            installation.say(
                f"Prefect's user interface: {hide_credentials(api).removesuffix('/api')}",
                f"The receiver answers at {address}; the service needs an https address that leads there.",
                "Next, in another terminal, once: `prefect-assay init`. Then `prefect-assay run`. Ctrl-C stops everything.",
            )
            installation.watch()
        except KeyboardInterrupt:
            pass
        finally:
            ending.seen()  # a second Ctrl-C must not leave half of it running
            installation.stop()


def _find_api(port: int | None) -> tuple[str, bool, tuple[str, ...]]:
    """The address of the Prefect API, whether its server is one of the parts, and what there is to say of it."""
    from prefect.settings import PREFECT_API_URL, get_current_settings, update_current_profile

    configured = get_current_settings().api.url
    here = not configured or urlsplit(configured).hostname in {"127.0.0.1", "localhost", "::1"}
    if here and not (configured and is_answering(f"{configured}/health")):
        _check_api_path(configured)
    if not configured:
        # A server of somebody else that listens there would get the deployments of this installation.
        refuse_taken_port(_HOST, port or _PORT)
        address = f"http://{_HOST}:{port or _PORT}/api"
        profile = update_current_profile({PREFECT_API_URL: address})
        return address, True, (f"PREFECT_API_URL of the Prefect profile {profile.name!r} is now {address}",)
    if port not in {None, urlsplit(configured).port}:
        refuse_ignored(
            {"--port": port},
            f"PREFECT_API_URL is {hide_credentials(configured)} already; change it, or leave --port out",
        )
    if here and not is_answering(f"{configured}/health"):
        return configured, True, ()
    check_api_address()
    return (
        configured,
        False,
        (f"the Prefect server at {hide_credentials(configured)} is used; none is started",),
    )


def _check_api_path(configured: str | None) -> None:
    """Raise ConfigurationError where the server that `up` starts would not answer at the address that others ask."""
    from prefect.settings import get_current_settings

    api = get_current_settings().server.api
    refuse_unusable_auth("PREFECT_SERVER_API_AUTH_STRING", api.auth_string)
    if api.base_path not in {None, "", "/api"}:
        raise ConfigurationError(
            f"PREFECT_SERVER_API_BASE_PATH is {api.base_path}, and `up` starts a server whose API is at /api; unset it, or start "
            "the server with `prefect-assay server` and set PREFECT_API_URL to it"
        )
    if configured and urlsplit(configured).path.rstrip("/") != "/api":
        shown = hide_credentials(configured)
        address = f"{urlsplit(shown).scheme}://{urlsplit(shown).netloc}/api"
        raise ConfigurationError(
            f"PREFECT_API_URL is {shown}, and the server that `up` starts there has its API at {address}; set it with "
            f"`prefect config set PREFECT_API_URL={address}`"
        )


@contextlib.contextmanager
def _only_one(home: Path) -> Iterator[None]:
    """Lock the folder. The parts of an `up` that was killed keep the lock until they have ended."""
    with (home / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigurationError(
                f"`prefect-assay up` runs already for the Prefect home {home.parent}, or its parts are ending after a kill; "
                "stop it first, or set PREFECT_HOME"
            ) from None
        os.set_inheritable(lock.fileno(), True)  # by the helper of `leash`, which ends the parts after a kill
        yield


@dataclass
class _Log:
    """Follows the log of a part, and keeps it small."""

    path: Path
    at: int = 0

    def read_new_lines(self) -> list[str]:
        """Read the lines written since the last call; empties the file beyond `_LOG_BYTES_MAX`."""
        try:
            with self.path.open("r+b") as log:
                log.seek(self.at)
                whole, newline, _ = log.read().rpartition(b"\n")
                self.at += len(whole) + len(newline)
                if self.at > _LOG_BYTES_MAX:
                    log.truncate(0)  # the part appends, so it goes on at the beginning
                    self.at = 0
        except FileNotFoundError:
            return []
        return whole.decode(errors="replace").splitlines() if newline else []


@dataclass
class _Installation:
    home: Path
    api: str
    parts: Mapping[str, list[str]]
    receiver: str = ""  # its address on this machine
    _console: Console = field(default_factory=make_plain_console)
    _ends: dict[str, list[float]] = field(default_factory=dict)
    _word: str | None = None

    def __post_init__(self) -> None:
        self._processes = StackProcesses(self.home, work=Path.cwd())
        self._logs = {name: _Log(self._processes.log(name)) for name in ("deploy", *self.parts)}
        for log in self._logs.values():
            log.path.unlink(missing_ok=True)

    def start(self) -> None:
        """The server first: everything else talks to it."""
        if "server" in self.parts:
            self._launch("server")
        self._wait_for_server()
        self._deploy()
        self._read_word()
        for name in self.parts:
            if name != "server":
                self._launch(name)
        self._wait_for_receiver()

    def watch(self) -> None:
        """Show the logs, and start what has ended, until a signal ends this."""
        while True:
            self._show()
            for name in self.parts:
                if not self._processes.running(name):
                    self._start_again(name)
            time.sleep(_POLL_SECONDS)

    def stop(self) -> None:
        """End all parts, the server last."""
        for name in reversed(list(self.parts)):
            self._processes.stop(name)
        self._show()
        self.say("Everything has stopped. Waiting runs go on when prefect-assay up is started again.")

    def say(self, *lines: str) -> None:
        """Lines of this command itself, among those of the parts."""
        for line in lines:
            self._print("up", line, "bold")

    def _launch(self, name: str) -> None:
        env = {**os.environ, "PREFECT_API_URL": self.api, "PYTHONUNBUFFERED": "1"}
        if name == "server":
            del env["PREFECT_API_URL"]  # it would lead back to itself
        if name == "receiver" and self._word:
            env[WORD_VARIABLE] = self._word
        self._processes.launch(name, self.parts[name], env)

    def _start_again(self, name: str) -> None:
        now = time.monotonic()
        recent = [end for end in self._ends.get(name, []) if now - end < _ENDS_SECONDS]
        self._ends[name] = [*recent, now]
        if len(self._ends[name]) >= _ENDS_MAX:
            raise self._processes[name].failure(
                f"has ended {_ENDS_MAX} times within {_ENDS_SECONDS / 60:.0f} minutes"
            )
        self.say(f"{name} has ended; it is started again")
        self._processes.stop(name)  # what it has left behind
        self._launch(name)

    def _wait_for_server(self) -> None:
        def ready() -> bool:
            self._show()
            return is_answering(f"{self.api}/health")

        if "server" in self.parts:
            self._processes["server"].wait_until(ready, seconds=_START_SECONDS)

    def _wait_for_receiver(self) -> None:
        def is_ready() -> bool:
            self._show()
            return is_answering(f"{self.receiver}/health")

        self._processes["receiver"].wait_until(is_ready, seconds=_START_SECONDS)
        record_address(self.home.parent, self.receiver)

    def _deploy(self) -> None:
        """Block types, work pool, deployments and the automation on canceled runs."""
        from prefect_assay.deployments.work_pool import WORK_POOL

        # by its name: the workers of `up` serve no other pool
        options = ["--work-pool", WORK_POOL]
        command = [sys.executable, "-P", "-m", "prefect_assay.cli", "deploy", *options]
        log = self._logs["deploy"].path
        with log.open("ab") as output:
            done = subprocess.run(  # noqa: S603 - this interpreter, our own arguments
                command,
                env={**os.environ, "PREFECT_API_URL": self.api},
                stdout=output,
                stderr=output,
                check=False,
            )
        self._show()
        if done.returncode:
            raise ConfigurationError(
                f"the flows cannot be deployed to {hide_credentials(self.api)}; the reason is above, and in {log}"
            )

    def _read_word(self) -> None:
        """The service's word in header names, from the saved blocks where no setting gives it."""
        if {WORDS_VARIABLE, WORD_VARIABLE} & os.environ.keys():
            return
        if (word := receiver_word(self.api)) != NEUTRAL_SERVICE:
            self._word = word
            self.say(f"The receiver reads the headers X-{word}-..., as the saved blocks spell them.")

    def _show(self) -> None:
        for name, log in self._logs.items():
            for line in log.read_new_lines():
                # Its next step, with indented commands, is the workers, which are parts here.
                if line.strip() and not (name == "deploy" and line.startswith(("Next:", "  "))):
                    self._print(name, line, _COLORS[name])

    def _print(self, name: str, line: str, style: str) -> None:
        self._console.print(Text(f"{name:<8} | ", style=style) + Text.from_ansi(line))
