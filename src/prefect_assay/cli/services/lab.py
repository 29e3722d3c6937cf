"""`prefect-assay lab`: the lab in the foreground; prints its address and tokens."""

import contextlib
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, Final

from rich.console import Console

from prefect_assay.errors import ConfigurationError

_STOP_SECONDS: Final = 10.0


def run_lab(
    *,
    host: str,
    port: int,
    database: Path | None,
    clock: str,
    seconds_per_day: float,
    landscape: str | None,
    allow_http_webhooks: bool,
    options: list[str],
) -> None:
    """Run the lab until Ctrl-C or SIGTERM; `options` are further ones of `python -m prefect_assay.lab`."""
    mode = f"scaled:{seconds_per_day:g}" if clock == "scaled" else clock
    command = [sys.executable, "-m", "prefect_assay.lab"]
    command += ["--host", host, "--port", str(port), "--clock", mode]
    command += ["--database", str(database)] if database else []
    command += ["--landscape", landscape] if landscape else []
    command += ["--allow-http-webhooks"] if allow_http_webhooks else []
    # A session of its own: Ctrl-C reaches this process only, which then ends the lab.
    process = subprocess.Popen(  # noqa: S603 - this interpreter, the user's own options
        [*command, "--until-input-ends", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for number in (signal.SIGINT, signal.SIGTERM):  # also where the parent ignores Ctrl-C
        signal.signal(number, signal.default_int_handler)
    try:
        _introduce(process.stdout)
        process.wait()
        raise ConfigurationError(f"the lab ended with code {process.returncode}; its output is above")
    except KeyboardInterrupt:
        Console().print("The lab has stopped.")
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
            process.communicate(timeout=_STOP_SECONDS)  # closing its input ends it
        process.kill()


def _introduce(output: IO[str] | None) -> None:
    line = output.readline() if output else ""
    if not line:
        return
    ready: dict[str, Any] = json.loads(line)
    console = Console(soft_wrap=True, highlight=False)
    console.print(f"The lab answers at [bold]{ready['base_url']}[/bold]")
    for name, key, purpose in (
        ("token", "token", "orders and reads; goes into an AssayCredentials block"),
        ("viewer token", "viewer_token", "only reads"),
        ("partner token", "partner_token", "also mints tokens for customers' users"),
        ("control token", "sim_token", f"moves the clock: POST {ready['base_url']}/_sim/clock/advance"),
    ):
        console.print(f"  {name:<14}{ready[key]}  [dim]{purpose}[/dim]")
    console.print(
        "Every experiment has a page with its progress and curves: its `experiment_url`. "
        "Quotes and hosted invoices have pages to accept and to pay.\nCtrl-C stops the lab."
    )
