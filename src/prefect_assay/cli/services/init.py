"""`prefect-assay init`: asks for what a campaign needs, tries it, and saves it as blocks of one name.

Safe to repeat: a block that exists is kept or replaced, and the output says which. The token is never an option.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import typer
from rich.console import Console

from prefect_assay.cli.options import BLOCKS
from prefect_assay.cli.prefect_api import api_errors, find_block, require_api
from prefect_assay.cli.services.signing_keys import signing_keys
from prefect_assay.client.http.address import is_loopback
from prefect_assay.errors import InputError

if TYPE_CHECKING:
    from prefect.blocks.core import Block
    from pydantic import SecretStr

    from prefect_assay.blocks import Archive, AssayCredentials
    from prefect_assay.models.tokens import Identity

TOKEN_VARIABLE: Final = "PREFECT_ASSAY_TOKEN"  # noqa: S105 - its name, not its value
NO_RECEIVER: Final = "none"


@dataclass(frozen=True)
class Answers:
    """What was given as options; everything else is asked for."""

    name: str
    base_url: str | None
    per_experiment: str | None
    per_campaign: str | None
    archive: str | None
    s3_endpoint: str | None
    receiver: str | None


def run_init(given: Answers) -> None:
    """Ask, try, save, and say what to do next.

    Raises:
        InputError: something is missing without a terminal to ask at, or is no address or amount.
        AccessError: the service refuses the token.
        ConfigurationError: no Prefect API is configured.
        ArchiveError: the archive cannot be written, or overwrites what it holds.
    """
    require_api()
    credentials = _credentials(given)
    per_experiment = _cents(given.per_experiment, "--per-experiment", "Cap per experiment, in USD", "5000")
    per_campaign = _cents(given.per_campaign, "--per-campaign", "Cap per campaign, in USD", "20000")
    archive = _archive(given)
    receiver = _asked(
        given.receiver,
        "--receiver",
        "Public https address that leads to the webhook receiver, or none",
        NO_RECEIVER,
    )
    with api_errors():
        from prefect_assay.blocks import SpendingPolicy, WebhookEndpoint

        saved: list[Block] = [
            credentials,
            SpendingPolicy(per_experiment_cents=per_experiment, per_campaign_cents=per_campaign),
            archive,
        ]
        if receiver != NO_RECEIVER:
            saved.append(
                WebhookEndpoint(
                    url=_address(receiver, "--receiver"),
                    signing_key=_signing_key(given.name, credentials.base_url),
                )
            )
        changes = [(type(block).get_block_type_slug(), save_block(block, given.name)) for block in saved]
    _show(given.name, changes, with_receiver=receiver != NO_RECEIVER)


def save_block(block: "Block", name: str) -> str:
    """Save a block; says whether it is `new`, `replaced` or `unchanged`."""
    before = find_block(type(block), name)
    if before is not None and _fields(before) == _fields(block):
        return "unchanged"
    block.save(name, overwrite=True)
    return "new" if before is None else "replaced"


def _fields(block: "Block") -> dict[str, object]:
    # equal secrets are equal; the id and the name of the saved block do not count
    return {name: getattr(block, name) for name in type(block).model_fields}


def _credentials(given: Answers) -> "AssayCredentials":
    from pydantic import SecretStr

    from prefect_assay.blocks import AssayCredentials

    address = _address(_asked(given.base_url, "--base-url", "Address of the service"), "--base-url")
    credentials = AssayCredentials(base_url=address, token=SecretStr(_token()))
    with credentials.get_client() as service:
        identity = service.whoami()
    Console(highlight=False).print(
        f"The service knows this token: {_who(identity)}", soft_wrap=True, markup=False
    )
    return credentials


def _who(identity: "Identity") -> str:
    organization = next((one.name for one in identity.organizations if one.name), None)
    expires = identity.token_expires_at
    words = (identity.user_id, organization, expires and f"expires {expires:%Y-%m-%d}")
    return ", ".join(word for word in words if word) or "its owner is not named"


def _token() -> str:
    """From the environment, from a prompt that does not show it, or from the standard input."""
    token = os.environ.get(TOKEN_VARIABLE)
    if not token and sys.stdin.isatty():
        token = typer.prompt("API token (not shown)", hide_input=True)
    token = (token or sys.stdin.readline()).strip()
    if not token:
        raise InputError(f"no API token: set {TOKEN_VARIABLE}, or give it on the standard input")
    return token


def _archive(given: Answers) -> "Archive":
    from prefect_assay.blocks import LocalArchive, S3Archive

    place = _asked(given.archive, "--archive", "Archive: a folder, or s3://bucket/prefix", "~/assay-archive")
    archive: Archive
    if place.startswith("s3://"):
        parts = urlsplit(place)
        archive = S3Archive(bucket=parts.netloc, prefix=parts.path.strip("/"), endpoint_url=given.s3_endpoint)
    else:
        path = Path(place).expanduser().absolute()
        archive = LocalArchive(root=place if place.startswith("~") else str(path))
    archive.get_store().probe(archive.prefix)
    return archive


def _signing_key(name: str, base_url: str) -> "SecretStr":
    """The key of an endpoint that exists, else that of the Prefect home, which `prefect-assay up` gives its receiver."""
    from prefect.settings import get_current_settings
    from pydantic import SecretStr

    from prefect_assay.blocks import WebhookEndpoint

    kept = find_block(WebhookEndpoint, name)
    if kept is not None:
        return kept.signing_key
    keys = signing_keys(get_current_settings().home)
    return SecretStr(keys.lab if _is_local_lab(base_url) else keys.service)


def _is_local_lab(base_url: str) -> bool:
    """Whether the control surface of a lab answers on this machine; a tunnel to a service has none."""
    import httpx

    if not is_loopback(urlsplit(base_url).hostname or ""):
        return False
    return httpx.get(f"{base_url}/_sim/clock", trust_env=False).status_code == HTTPStatus.UNAUTHORIZED


def _cents(value: str | None, option: str, question: str, default: str) -> int:
    text = _asked(value, option, question, default).replace(",", "").removeprefix("$")
    try:
        cents = Decimal(text) * 100
    except InvalidOperation:
        cents = Decimal(-1)
    if not cents.is_finite() or cents < 0 or cents != int(cents):
        raise InputError(f"{option}: {text!r} is no amount in USD, such as 5000 or 438.50")
    return int(cents)


def _address(value: str, option: str) -> str:
    if urlsplit(value).scheme not in {"https", "http"} or not urlsplit(value).hostname:
        raise InputError(f"{option}: {value!r} is no address such as https://lab.example.org")
    return value.rstrip("/")


def _asked(value: str | None, option: str, question: str, default: str | None = None) -> str:
    if value is not None:
        return value
    if sys.stdin.isatty():
        return str(typer.prompt(question, default=default))
    if default is None:
        raise InputError(f"{option} is missing, and there is no terminal to ask at")
    return default


def _show(name: str, changes: Sequence[tuple[str, str]], *, with_receiver: bool) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for slug, change in changes:
        console.print(f"{slug}/{name}: {change}", markup=False)
    webhook = f" --webhook {name}" if with_receiver else ""
    blocks = "" if name == BLOCKS else f" --credentials {name} --policy {name} --archive {name}"
    console.print(f"Next: prefect-assay run designs.fasta --target NAME{blocks}{webhook}", markup=False)
    if not with_receiver:
        console.print("Without a receiver the sweep looks at waiting runs every five minutes.")
