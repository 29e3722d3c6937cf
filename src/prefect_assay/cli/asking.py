"""Questions to the person at a terminal, and what they give as options instead: amounts, addresses, confirmations."""

import getpass
import re
import sys
from decimal import Decimal
from typing import Final

import typer

from prefect_assay.cli.failures import FAILED, INTERRUPTED
from prefect_assay.errors import InputError
from prefect_assay.service.bounds import CENTS_MAX
from prefect_assay.service.client.http.address import is_address

_USD: Final = re.compile(r"\$?([0-9]+|[0-9]{1,3}(,[0-9]{3})+)(\.[0-9]{1,2})?")


def parse_cents(text: str, option: str) -> int:
    """The US cents of an amount in USD.

    Raises:
        InputError: the text is not an amount, has parts of a cent, or has a comma that separates no thousands.
    """
    amount = text.strip()
    cents = int(Decimal(amount.removeprefix("$").replace(",", "")) * 100) if _USD.fullmatch(amount) else -1
    if not 0 <= cents <= CENTS_MAX:
        raise InputError(
            f"{option}: {text!r} is not an amount in USD; write it like 5000, 5,000 or 438.50, with a point before the cents"
        )
    return cents


def ask_usd(value: str | None, option: str, question: str, default_usd: float) -> float:
    """The amount in USD that was given, else the answer at a terminal, else the default."""
    return parse_cents(ask_for_value(value, option, question, f"{default_usd:,.2f}"), option) / 100


def parse_address(value: str, option: str) -> str:
    """An http address without a slash at its end; InputError if the text is not an address."""
    if not is_address(value, "https", "http"):
        raise InputError(f"{option}: {value!r} is not an address such as https://lab.example.org")
    return value.rstrip("/")


def ask_for_value(value: str | None, option: str, question: str, default: str | None = None) -> str:
    """What was given, else the answer at a terminal, else the default; InputError without one."""
    if value is not None:
        return value
    if sys.stdin.isatty():
        return str(typer.prompt(question, default=default))
    if default is None:
        raise InputError(f"{option} is missing, and there is no terminal to ask at")
    return default


def is_at_terminal() -> bool:
    """Return True if a person can be asked and sees what about."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def require_consent(question: str, *, nothing: str, next_step: str = "repeat the command with --yes") -> None:
    """Go on if the person at the terminal agrees; `nothing` is what is then not done, such as `ordered`.

    Raises:
        InputError: there is no terminal.
        SystemExit: with 1 on a no, with 130 on Ctrl-C.
    """
    if not sys.stdin.isatty():
        raise InputError(f"nothing was {nothing}: there is no terminal to confirm it; {next_step}")
    code = FAILED
    try:
        if typer.confirm(question, err=True):
            return
    except typer.Abort:
        code = INTERRUPTED
        print(file=sys.stderr)
    print(f"Nothing was {nothing}.", file=sys.stderr)
    raise SystemExit(code)


def user_name() -> str:
    """This machine's user, who decides without --by."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        raise InputError("this user has no name here; say who decides with --by") from None
