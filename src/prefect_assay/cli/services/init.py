"""`prefect-assay init`: asks for what a campaign needs, tries it, and saves it as an account and the blocks in it.

Safe to repeat: what is not given stays as it is saved. The output says which blocks have changed. The token is never an
option.
"""

import json
import os
import sys
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import typer

from prefect_assay.cli.asking import ask_for_value, ask_usd, parse_address, user_name
from prefect_assay.cli.options import account_option
from prefect_assay.cli.output import make_plain_console
from prefect_assay.cli.prefect_api import api_errors, find_archive, find_block, require_api
from prefect_assay.cli.service import TOKEN_VARIABLE
from prefect_assay.cli.services.receiver import WORD_VARIABLE
from prefect_assay.cli.services.saved_blocks import change_block, format_reference, save_account
from prefect_assay.cli.services.signing_keys import file_without, how_to_add_key, signing_keys
from prefect_assay.errors import (
    ArchiveError,
    AssayError,
    Forbidden,
    InputError,
    NotFound,
    UnexpectedAnswer,
    is_absent,
)
from prefect_assay.orders.ledger import known_archive_id
from prefect_assay.service.client.http.address import is_loopback_url
from prefect_assay.service.models.identifiers import is_uuid
from prefect_assay.service.models.service import NEUTRAL_PROVIDER, NEUTRAL_SERVICE
from prefect_assay.service.webhook_signature import LAB_KEY_PREFIX
from prefect_assay.service.words import describe_mode, listed

if TYPE_CHECKING:
    from pydantic import SecretStr

    from prefect_assay.blocks import Archive, AssayAccount, AssayCredentials, SpendingPolicy, WebhookEndpoint
    from prefect_assay.service.client import AssayClient
    from prefect_assay.service.models.tokens import Identity

NONE: Final = "none"
_PER_EXPERIMENT_USD: Final = 5_000
_PER_CAMPAIGN_USD: Final = 20_000
_NAMED: Final = 3  # runs in a message


@dataclass(frozen=True)
class Answers:
    """What was given as options; everything else is asked for."""

    name: str
    base_url: str | None
    provider_word: str | None
    service_word: str | None
    per_experiment: str | None
    per_campaign: str | None
    archive: str | None
    s3_endpoint: str | None
    receiver: str | None
    owner: str | None
    purchase_order: str | None
    cost_center: str | None
    forms: bool | None


def run_init(answers: Answers) -> None:
    """Ask, try, save, and say what to do next.

    Raises:
        InputError: something is missing without a terminal to ask at, is not an address or amount, names an archive in
            place of one that has orders, or names a new account like blocks that are saved.
        AccessError: the service refuses the token.
        ConfigurationError: no Prefect API is configured.
        ArchiveError: the archive cannot be written, or overwrites what it holds.
    """
    from prefect_assay.blocks import AssayAccount

    require_api()
    with api_errors():
        saved = find_block(AssayAccount, answers.name)
        if saved is None:
            _refuse_saved_blocks(answers.name)
    credentials, user, is_simulated = _ask_credentials(answers, saved)
    policy = _ask_policy(answers, saved)
    archive = _ask_archive(answers, saved)
    webhook, notes = _ask_webhook(answers, saved.webhook if saved else None, credentials)
    account = change_block(
        AssayAccount,
        saved,
        credentials=credentials,
        policy=policy,
        archive=archive,
        webhook=webhook,
        owner=ask_for_value(
            answers.owner, "--owner", "Owner of the account", (saved and saved.owner) or user
        ),
        purchase_order=_ask_optional(
            answers.purchase_order, "Purchase order number", saved.purchase_order if saved else None
        ),
        cost_center=_ask_optional(answers.cost_center, "Cost center", saved.cost_center if saved else None),
    )
    changes = save_account(account, answers.name)
    with api_errors():
        notes += _fill_forms(answers)
    console = make_plain_console()
    for line in [*changes, *notes]:
        console.print(line)
    console.print(
        f"Account {answers.name} is {describe_mode(is_simulated=is_simulated)}: {credentials.base_url}"
    )
    console.print(f"Next: prefect-assay run designs.fasta --target NAME{account_option(answers.name)}")
    if webhook is None:
        console.print("Without a receiver the sweep looks for news of waiting campaigns every five minutes.")


def _refuse_saved_blocks(name: str) -> None:
    """Refuse a new account of this name where its blocks would replace those that other accounts may refer to."""
    from prefect_assay.blocks import AssayCredentials, SpendingPolicy, WebhookEndpoint

    for kind in (AssayCredentials, SpendingPolicy, WebhookEndpoint):
        block = find_block(kind, name)
        if block is not None:
            raise InputError(
                f"there is no account {name!r}, and the block {format_reference(block, name)} exists, which other accounts "
                "may use: choose another --name, or make the account in the Prefect UI under Blocks; nothing was saved"
            )


def _ask_optional(value: str | None, question: str, saved: str | None) -> str | None:
    """A text that may be missing: `none` removes a saved one."""
    answer = ask_for_value(value, "", f"{question}, or none", saved or NONE)
    return None if answer == NONE else answer


def _ask_credentials(
    answers: Answers, account: "AssayAccount | None"
) -> "tuple[AssayCredentials, str, bool]":
    """The credentials, tried; who the service says the user is, and whether the service is simulated."""
    from pydantic import SecretStr

    from prefect_assay.blocks import AssayCredentials
    from prefect_assay.cli.drift import wire_words

    saved = account.credentials if account else None
    address = parse_address(
        ask_for_value(
            answers.base_url, "--base-url", "Address of the service", saved.base_url if saved else None
        ),
        "--base-url",
    )
    words = wire_words(
        answers.provider_word or (saved.provider_word if saved else NEUTRAL_PROVIDER),
        answers.service_word or (saved.service_word if saved else NEUTRAL_SERVICE),
    )
    # A saved token is not sent to another service.
    kept = saved.token if saved and saved.base_url.rstrip("/") == address else None
    credentials = change_block(
        AssayCredentials,
        saved,
        base_url=address,
        token=SecretStr(_read_token(kept)),
        provider_word=words.provider,
        service_word=words.service,
    )
    with credentials.get_client() as service:
        identity = token_owner(service)
        is_simulated = service.is_simulated
    make_plain_console().print(f"The service knows this token: {_describe_user(identity)}")
    return credentials, _name_of(identity), is_simulated


def token_owner(service: "AssayClient") -> "Identity | None":
    """Whose the token is, or None where the service does not say: the contract has no call for it.

    Raises:
        AssayError: the service does not answer a call of the contract with this token.
    """
    service.targets.list(limit=1)
    try:
        return service.tokens.whoami()
    except (Forbidden, NotFound, UnexpectedAnswer):
        return None
    except AssayError as error:
        if is_absent(error):
            return None
        raise


def _name_of(identity: "Identity | None") -> str:
    """Who the service says the user is; this machine's user where it gives no more than a uuid."""
    named = identity.user_id if identity else None
    return named if named and not is_uuid(named) else user_name()


def _describe_user(identity: "Identity | None") -> str:
    if identity is None:
        return "whose it is, it does not say"
    organization = next((one.name for one in identity.organizations if one.name), None)
    expires = identity.token_expires_at
    words = (identity.user_id, organization, expires and f"expires {expires:%Y-%m-%d}")
    return ", ".join(word for word in words if word) or "its owner is not named"


def _read_token(saved: "SecretStr | None") -> str:
    """From the environment, from a prompt that does not show it, or from the standard input; else the saved one."""
    token = os.environ.get(TOKEN_VARIABLE)
    if not token and sys.stdin.isatty():
        hint, default = ("; Enter keeps the saved one", "") if saved else ("", None)
        token = typer.prompt(
            f"API token (not shown{hint})", hide_input=True, default=default, show_default=False
        )
    elif not token:
        token = sys.stdin.readline()
    token = str(token).strip() or (saved.get_secret_value() if saved else "")
    if not token:
        raise InputError(f"no API token: set {TOKEN_VARIABLE}, or give it on the standard input")
    return token


def _ask_policy(answers: Answers, account: "AssayAccount | None") -> "SpendingPolicy":
    from prefect_assay.blocks import SpendingPolicy

    saved = account.policy if account else None
    return change_block(
        SpendingPolicy,
        saved,
        per_experiment_usd=ask_usd(
            answers.per_experiment,
            "--per-experiment",
            "Cap per experiment, in USD",
            saved.per_experiment_usd if saved else _PER_EXPERIMENT_USD,
        ),
        per_campaign_usd=ask_usd(
            answers.per_campaign,
            "--per-campaign",
            "Cap per campaign, in USD",
            saved.per_campaign_usd if saved else _PER_CAMPAIGN_USD,
        ),
    )


def _ask_archive(answers: Answers, account: "AssayAccount | None") -> "Archive":
    """The archive that was given, tried, or the saved one."""
    from prefect_assay.blocks.archives import describe_archive_addresses, get_archive_kind

    # Without an account a block of this name may hold the orders of a deleted one.
    saved = account.archive if account else find_archive(answers.name)
    place = answers.archive
    if saved is None:
        place = ask_for_value(
            place, "--archive", f"Archive: {describe_archive_addresses()}", "~/assay-archive"
        )
    elif place is None and answers.s3_endpoint is None:
        return saved
    fields: dict[str, object] = {}
    try:
        kind: type[Archive] = type(saved) if place is None and saved else get_archive_kind(place or "")
        if place is not None:
            fields |= kind.parse_address(place)
    except InputError as error:
        raise InputError(f"--archive: {error}") from None
    if answers.s3_endpoint is not None and "endpoint_url" not in kind.model_fields:
        raise InputError(
            f"--s3-endpoint belongs to --archive s3://bucket/prefix, and {place or 'the saved archive'!r} is "
            f"{kind.address_form}"
        )
    if answers.s3_endpoint is not None:
        fields["endpoint_url"] = (
            None if answers.s3_endpoint == NONE else parse_address(answers.s3_endpoint, "--s3-endpoint")
        )
    archive = change_block(kind, saved if isinstance(saved, kind) else None, **fields)
    archive.get_store().probe(archive.prefix)
    if saved is not None:
        _keep_orders(saved, archive, answers.name, account)
    return archive


def _keep_orders(before: "Archive", archive: "Archive", name: str, account: "AssayAccount | None") -> None:
    """Refuse to part waiting campaigns from their log of orders: a copy of the archive has its id."""
    there = known_archive_id(archive.get_store(), archive.prefix)
    try:
        known = known_archive_id(before.get_store(), before.prefix)
        why = "has a log of orders, which the campaigns that wait with it need"
    except ArchiveError as error:
        # Without an answer only an archive that has orders, such as a moved one, takes its place.
        known, why = there or "unknown", f"may have a log of orders, and cannot be read: {error}"
    if known in {None, there}:  # a folder that is not mounted has no log either
        waiting = _waiting_elsewhere(account, archive)
        if not waiting:
            return
        why = (
            f"should have the log of what these runs carry: {listed(waiting, _NAMED)}. The new archive does not have it; "
            "mount the old one's folder, if it is missing"
        )
    raise InputError(
        f"{format_reference(before, name)} {why}. Save the new archive under another --name, leave out --archive and "
        "--s3-endpoint to keep the old one, or move its whole content to the new place first"
    )


def _waiting_elsewhere(account: "AssayAccount | None", archive: "Archive") -> list[str]:
    """The suspended runs of an account that carry a campaign or a loop without a log in `archive`."""
    from prefect.client.orchestration import get_client

    from prefect_assay.campaigns.runs.queries import ASSAY_FLOWS, read_runs, suspended_filter
    from prefect_assay.cli.campaigns.find import played_by
    from prefect_assay.orders.ledger.campaign_log import CampaignLog

    if account is None:
        return []
    with api_errors(), get_client(sync_client=True) as client:
        runs = read_runs(client, suspended_filter(), ASSAY_FLOWS)
    document_id, store = str(account._block_document_id), archive.get_store()  # noqa: SLF001 - Prefect has no public name
    return sorted(
        run.name
        for run in runs
        if document_id in json.dumps(run.parameters.get("account"))
        for kind, name in played_by(run)
        if CampaignLog(store, archive.prefix, name, kind).read().started is None
    )


def _ask_webhook(
    answers: Answers, saved: "WebhookEndpoint | None", credentials: "AssayCredentials"
) -> "tuple[WebhookEndpoint | None, list[str]]":
    """The endpoint, if there is a receiver, and what its receiver needs."""
    from prefect.settings import get_current_settings
    from pydantic import SecretStr

    from prefect_assay.blocks import WebhookEndpoint

    receiver = ask_for_value(
        answers.receiver,
        "--receiver",
        "Public https address that leads to the webhook receiver, or none",
        saved.url if saved else NONE,
    )
    if receiver == NONE:
        return None, []
    address = parse_address(receiver, "--receiver")
    notes = []
    if credentials.service_word != NEUTRAL_SERVICE:
        notes.append(
            "The receiver needs the service's word: stop prefect-assay up and start it again, because it reads the word from "
            f"these blocks when it starts, or start your own receiver with {WORD_VARIABLE}={credentials.service_word}"
        )
    settings = get_current_settings()
    receiver_is_here = is_loopback_url(settings.api.url or "")
    lab = _is_local_lab(credentials.base_url)
    # The receiver does not judge the age of what a lab's key has signed.
    kept = saved.signing_key.get_secret_value() if saved else ""
    if saved and kept.startswith(LAB_KEY_PREFIX) == lab:
        if receiver_is_here and (file := file_without(settings.home, kept)):
            notes.append(
                f"{file} does not hold the endpoint's signing key, which waiting experiments are also signed with: a receiver "
                f"that uses this file refuses all deliveries. To correct this, {how_to_add_key(file, answers.name)}"
            )
        return change_block(WebhookEndpoint, saved, url=address), notes
    keys = signing_keys(settings.home)
    if not receiver_is_here:
        notes.append(
            f"The endpoint's signing key is from {keys.file}. A receiver on another machine refuses all deliveries until it "
            "has it: copy the file there for prefect-assay receiver --keys-file, or put that receiver's key into the block"
        )
    key = SecretStr(keys.lab if lab else keys.service)
    return change_block(WebhookEndpoint, saved, url=address, signing_key=key), notes


def _fill_forms(answers: Answers) -> list[str]:
    """Make the account the default of the deployed forms, for everybody who uses them; what somebody has chosen stays."""
    from prefect.client.orchestration import get_client

    from prefect_assay.deployments.presets import fill_account_into_forms

    if answers.forms is False or (answers.forms is None and not sys.stdin.isatty()):
        return []
    with get_client(sync_client=True) as client:
        filled = fill_account_into_forms(client, answers.name, dry_run=True)
        question = f"Fill this account into the forms of {' and '.join(filled)}, for everybody who uses them?"
        if not filled or not (answers.forms or typer.confirm(question, default=True)):
            return []
        fill_account_into_forms(client, answers.name)
    return [f"The form of {name} has the account {answers.name}" for name in filled]


def _is_local_lab(base_url: str) -> bool:
    """Whether the control surface of a lab answers on this machine; a tunnel to a service has none."""
    import httpx

    if not is_loopback_url(base_url):
        return False
    return httpx.get(f"{base_url}/_sim/clock", trust_env=False).status_code == HTTPStatus.UNAUTHORIZED
