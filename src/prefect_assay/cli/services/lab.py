"""`prefect-assay lab`: the lab in the foreground; prints its address and tokens."""

import contextlib
import importlib.util
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from prefect_assay.cli.options import account_option
from prefect_assay.cli.output import TerminalConsole, make_plain_console
from prefect_assay.cli.prefect_api import api_errors, find_block, require_api
from prefect_assay.cli.services.receiver_address import DEFAULT_ADDRESS, read_address, refuse_taken_port
from prefect_assay.cli.services.saved_blocks import make_lab_account, new_lab_wallet, save_account
from prefect_assay.cli.services.signing_keys import signing_keys
from prefect_assay.errors import ConfigurationError, InputError
from prefect_assay.service.words import describe_mode

if TYPE_CHECKING:
    from prefect_assay.blocks import X402Wallet

_STOP_SECONDS: Final = 10.0
_NAME: Final = "lab"
_API_TOKENS: Final = frozenset({"token", "viewer_token", "partner_token"})
_CAP_CENTS: Final = 2_000_000


def run_lab(
    *,
    host: str,
    port: int,
    database: Path | None,
    clock: str,
    landscape: str | None,
    allow_http_webhooks: bool,
    save_blocks: bool,
    receiver: str | None,
    options: list[str],
) -> None:
    """Run the lab until Ctrl-C or SIGTERM; with `save_blocks`, its account is saved as `lab`.

    Without a `receiver` the webhook's block leads to that of `prefect-assay up`. `options` are further ones of
    `assay-lab`.

    Raises:
        InputError: the lab does not have this `clock`.
        ConfigurationError: the lab is not installed, or has ended.
    """
    if importlib.util.find_spec("assay_lab") is None:
        raise ConfigurationError.missing_lab("`prefect-assay lab`")
    from assay_lab.kernel.settings import read_clock

    try:
        read_clock(clock)
    except ValueError as error:
        raise InputError(str(error)) from None
    if save_blocks:
        require_api()
    refuse_taken_port(host, port)
    command = [sys.executable, "-P", "-m", "assay_lab"]
    command += ["--host", host, "--port", str(port), "--clock", clock]
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
        ready = _print_introduction(process.stdout, in_blocks=save_blocks)
        if ready and save_blocks:
            _save_lab_account(ready, receiver)
        process.wait()
        raise ConfigurationError(f"the lab ended with code {process.returncode}; its output is above")
    except KeyboardInterrupt:
        TerminalConsole().print("The lab has stopped.")
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
            process.communicate(timeout=_STOP_SECONDS)  # closing its input ends it
        process.kill()


def _print_introduction(output: IO[str] | None, *, in_blocks: bool) -> dict[str, Any]:
    """Print what the lab says when it is ready; tokens of the API only where no block takes them, as they are long."""
    line = output.readline() if output else ""
    if not line:
        return {}
    ready: dict[str, Any] = json.loads(line)
    console = TerminalConsole(soft_wrap=True, highlight=False, markup=True)
    console.print(f"The lab answers at [bold]{ready['base_url']}[/bold]")
    for name, key, purpose in (
        ("token", "token", "orders and reads; goes into an AssayCredentials block"),
        ("viewer token", "viewer_token", "only reads"),
        ("partner token", "partner_token", "also mints tokens for customers' users"),
        ("control token", "sim_token", f"moves the clock: POST {ready['base_url']}/_sim/clock/advance"),
        ("portal", "portal_url", "signs a person in: the member's pages (lab/docs/lab.md)"),
        ("tools", "mcp_url", "every call as a tool, for an assistant (lab/docs/lab.md)"),
    ):
        if not (in_blocks and key in _API_TOKENS):
            console.print(f"  {name:<14}{ready[key]}  [dim]{purpose}[/dim]")
    console.print(
        "Every experiment has a page with its progress and curves: its `experiment_url`. "
        "Quotes and hosted invoices have pages to accept and to pay.\nCtrl-C stops the lab."
    )
    return ready


def _save_lab_account(ready: dict[str, Any], receiver: str | None) -> None:
    """Everything that a campaign at this lab takes, as an account."""
    with api_errors():
        from prefect.settings import get_current_settings
        from pydantic import SecretStr

        from prefect_assay.blocks import LocalArchive, WebhookEndpoint

        home = get_current_settings().home
        key = signing_keys(home).lab
        receiver = receiver or read_address(home) or DEFAULT_ADDRESS
        account = make_lab_account(
            ready["base_url"],
            ready["token"],
            # One that exists has the log of orders of the runs that wait with it.
            archive=find_block(LocalArchive, _NAME)
            or LocalArchive(root=str(Path("assay-lab-archive").absolute())),
            webhook=WebhookEndpoint(url=receiver, signing_key=SecretStr(key)),
            wallet=_make_wallet(),
            cap_cents=_CAP_CENTS,
        )
    console = make_plain_console()
    console.print("\n".join(save_account(account, _NAME)))
    console.print(
        f"The lab delivers updates to {receiver}. If `prefect-assay up` listens on another port later, it corrects the block."
    )
    console.print(f"Account {_NAME} is {describe_mode(is_simulated=True)}: {ready['base_url']}")
    console.print(f"Next: prefect-assay run designs.fasta --target NAME{account_option(_NAME)}")


def _make_wallet() -> "X402Wallet | None":
    """A wallet that the lab takes; none without the extra. One that exists stays: it may have paid."""
    from prefect_assay.blocks import X402Wallet

    with contextlib.suppress(ImportError):
        return find_block(X402Wallet, _NAME) or new_lab_wallet()
    return None
