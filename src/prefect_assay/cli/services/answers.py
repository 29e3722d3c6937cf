"""Answers to the questions of `init`, from options or a terminal: amounts and addresses."""

import sys
from decimal import Decimal, InvalidOperation

import typer

from prefect_assay.cli.options import CENTS_MAX
from prefect_assay.client.http.address import is_address
from prefect_assay.errors import InputError
from prefect_assay.models.billing import usd


def cents(value: str | None, option: str, question: str, default: int) -> int:
    """An amount in US cents; InputError if the text is not an amount."""
    text = asked(value, option, question, usd(default).removesuffix(" USD"))
    text = text.replace(",", "").removeprefix("$")
    try:
        amount = Decimal(text) * 100
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or not 0 <= amount <= CENTS_MAX or amount != int(amount):
        raise InputError(f"{option}: {text!r} is no amount in USD, such as 5000 or 438.50")
    return int(amount)


def http_address(value: str, option: str) -> str:
    """An http address without a slash at its end; InputError if the text is not an address."""
    if not is_address(value, "https", "http"):
        raise InputError(f"{option}: {value!r} is no address such as https://lab.example.org")
    return value.rstrip("/")


def asked(value: str | None, option: str, question: str, default: str | None = None) -> str:
    """What was given, else the answer at a terminal, else the default; InputError without one."""
    if value is not None:
        return value
    if sys.stdin.isatty():
        return str(typer.prompt(question, default=default))
    if default is None:
        raise InputError(f"{option} is missing, and there is no terminal to ask at")
    return default
