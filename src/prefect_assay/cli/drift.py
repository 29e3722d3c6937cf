"""`prefect-assay drift`: compares the service's openapi.json with the interface that the client was written for."""

import json
import os
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from prefect_assay.cli.failures import FAILED
from prefect_assay.cli.output import make_plain_console, print_json
from prefect_assay.cli.service import ADDRESS_VARIABLE, TOKEN_VARIABLE
from prefect_assay.errors import InputError, UnexpectedAnswer
from prefect_assay.service.client import AssayClient
from prefect_assay.service.description import Need, get_call_facts
from prefect_assay.service.drift.compare import Change, compare
from prefect_assay.service.drift.document import facts_of, known_interface
from prefect_assay.service.drift.usage import usage_by_operation
from prefect_assay.service.models.service import WireWords
from prefect_assay.service.words import many

_MARKS: Final = {"breaks": "breaks", "empty": "empty", "none": ""}


def show_drift(
    document: Path | None,
    *,
    base_url: str | None,
    account: str | None,
    words: WireWords,
    as_json: bool,
) -> None:
    """Print every difference between the described interface and the one the client knows.

    Args:
        document: a file to read in place of the service's answer.
        base_url: the service's address; defaults to the environment's if there is no account.
        account: name of an account: address, token and words.
        words: how the deployment spells the neutral words; a block brings its own.
        as_json: print JSON.

    Raises:
        SystemExit: with 1, if something would break what a campaign needs.
        InputError: no description is named, or it cannot be read.
    """
    raw, words, source = _read_description(document, base_url, account, words)
    changes = compare(known_interface(), facts_of(raw, words), usage_by_operation())
    broken = sum(change.breaks and get_call_facts(change.operation).need is Need.NEEDED for change in changes)
    if as_json:
        told = [{**c.as_json(), "need": get_call_facts(c.operation).need} for c in changes]
        report = {"source": source, "breaks": bool(broken), "changes": told}
        print_json(report)
    else:
        _show_changes(source, changes, broken)
    if broken:
        raise SystemExit(FAILED)


def wire_words(provider: str, service: str) -> WireWords:
    """The words of a deployment, from options.

    Raises:
        InputError: one of them cannot be part of a field or header name.
    """
    try:
        return WireWords(provider=provider, service=service)
    except ValidationError:
        raise InputError(
            "--provider-word takes lower-case letters and digits, --service-word letters and digits"
        ) from None


def _read_description(
    document: Path | None, base_url: str | None, account: str | None, words: WireWords
) -> tuple[dict[str, Any], WireWords, str]:
    chosen = [name for name in (document, base_url, account) if name is not None]
    if len(chosen) > 1:
        raise InputError("give one of a file, --base-url and --account")
    if document is not None:
        return _read_file(document), words, str(document)
    if account is not None:
        from prefect_assay.cli.prefect_api import saved_account

        block = saved_account(account).credentials
        account_words = WireWords(provider=block.provider_word, service=block.service_word)
        with block.get_client() as client:
            return _fetch_description(client), account_words, client.base_url
    address = base_url or os.environ.get(ADDRESS_VARIABLE)
    if not address:
        raise InputError(
            f"no service is named: give a file, --base-url or --account, or set {ADDRESS_VARIABLE}"
        )
    # without a token everything but the partners' routes is described (contract 1)
    with AssayClient(address, os.environ.get(TOKEN_VARIABLE) or None, words=words) as client:
        return _fetch_description(client), words, client.base_url


def _fetch_description(client: AssayClient) -> dict[str, Any]:
    try:
        description: dict[str, Any] = client.service.get_openapi()
    except UnexpectedAnswer as error:
        raise InputError(f"{client.base_url} does not describe itself: {error}") from None
    return description


def _read_file(path: Path) -> dict[str, Any]:
    try:
        description = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path}: is not JSON") from None
    if not isinstance(description, dict):
        raise InputError(f"{path}: is not an OpenAPI document")
    return description


def _show_changes(source: str, changes: tuple[Change, ...], broken: int) -> None:
    """The calls, those that would break first, and below each its differences."""
    line = make_plain_console().print
    by_need = sorted(changes, key=lambda change: list(Need).index(get_call_facts(change.operation).need))
    for operation in dict.fromkeys(change.operation for change in by_need):
        line(f"{operation}  ({get_call_facts(operation).need})", style="bold")
        for change in changes:
            if change.operation == operation:
                what = (
                    change.what
                    if change.place or change.kind == "new"
                    else f"gone: {_describe_without(operation)}"
                )
                line(f"  {_MARKS[change.effect]:6}  {what}", style="red" if change.breaks else None)
    if broken:
        verdict = f"{many(broken, 'difference')} would break what a campaign needs, {len(changes) - broken} would not"
    elif changes:
        verdict = f"{many(len(changes), 'difference')}, and none breaks what a campaign needs"
    else:
        verdict = "the interface is the one that the client knows"
    line(f"{source}: {verdict}", style="red" if broken else "green")


def _describe_without(operation: str) -> str:
    """What a campaign does without a call."""
    return f"without it {get_call_facts(operation).without}"
