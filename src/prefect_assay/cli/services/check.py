"""`prefect-assay check`: looks at a whole installation, and lists each problem with its fix.

Each part is looked at alone and for a bounded time; one that fails or hangs does not stop the others. Nothing is changed,
but for the probe object that an archive gets and loses again. A receiver gets a signed body that is not a delivery.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextvars import copy_context
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from importlib.metadata import version
from threading import Thread
from typing import Final

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import StateType
from prefect.settings import get_current_settings
from rich.text import Text

from prefect_assay.blocks import AssayAccount, WebhookEndpoint
from prefect_assay.blocks.block_references import UNUSABLE, fault_of, list_documents
from prefect_assay.campaigns.problems.find import SILENT_AFTER, expiring_token
from prefect_assay.campaigns.problems.problem import AlertLimits
from prefect_assay.campaigns.problems.saved import read_saved
from prefect_assay.campaigns.runs.queries import (
    FLOW_NAMES,
    newest_runs,
    read_runs,
    run_filter,
    suspended_filter,
    unreadable_runs,
    why_unreadable,
)
from prefect_assay.campaigns.runs.starting import find_obstacles, read_own_deployments
from prefect_assay.cli.failures import FAILED
from prefect_assay.cli.output import make_plain_console, print_json
from prefect_assay.cli.prefect_api import api_errors, hide_credentials, require_api
from prefect_assay.cli.services.init import token_owner
from prefect_assay.cli.services.receiver import WORD_VARIABLE
from prefect_assay.cli.services.receiver_address import read_address
from prefect_assay.cli.services.signing_keys import file_without, how_to_add_key
from prefect_assay.deployments.server_checks import settings_advice
from prefect_assay.errors import AssayError
from prefect_assay.service.client.http.address import is_loopback_url
from prefect_assay.service.client.http.dates import sent_at
from prefect_assay.service.models.billing import usd
from prefect_assay.service.models.service import WireWords
from prefect_assay.service.webhook_signature import sign
from prefect_assay.service.words import describe_mode
from prefect_assay.tasks.pay import require_rail

_SECONDS: Final = 30.0  # for one part
_CLOCKS_DIFFER: Final = timedelta(minutes=2)
_NO_ORDER: Final = "f" * 20  # in place of an order's key
_SHOWN: Final = 200


@dataclass(frozen=True)
class Line:
    """What was looked at, and for a problem the next step."""

    part: str
    ok: bool
    text: str
    next_step: str = ""


def run_check(*, as_json: bool) -> None:
    """Print a line per finding; exit with 1 if one is a problem."""
    require_api()
    lines = _look_at_all()
    if as_json:
        print_json({"ok": all(line.ok for line in lines), "lines": [asdict(line) for line in lines]})
    else:
        console = make_plain_console()
        for line in lines:
            word = Text("ok     ", "green") if line.ok else Text("PROBLEM", "red")
            next_step = f"\n        what to do: {line.next_step}" if line.next_step else ""
            console.print(word, f"{line.part:<11}{line.text}{next_step}")
    if not all(line.ok for line in lines):
        raise SystemExit(FAILED)


def _look_at_all() -> list[Line]:
    """Every part; where the server does not answer, the others only by name: each would wait for it again."""
    (first, server), *others = PARTS.items()
    lines = _run_bounded(first, server)
    if any(line.ok for line in lines):
        return lines + [line for part, look in others for line in _run_bounded(part, look)]
    text = "not looked at: it needs the Prefect server"
    return lines + [
        Line(part, ok=False, text=text, next_step="let the server answer first") for part, _ in others
    ]


def _run_bounded(part: str, look: Callable[[SyncPrefectClient], Iterator[Line]]) -> list[Line]:
    """Run one part in a thread, for the time-out: neither Prefect's client nor boto3 has one for the whole."""
    lines: list[Line] = []

    def go() -> None:
        try:
            with api_errors(), get_client(sync_client=True) as client:
                lines.extend(look(client))
        except Exception as error:  # noqa: BLE001 - any failure is a finding
            text = hide_credentials(str(error)) or type(error).__name__
            lines.append(Line(part, ok=False, text=text, next_step="as the message says"))

    thread = Thread(target=copy_context().run, args=(go,), daemon=True)
    thread.start()
    thread.join(_SECONDS)
    if thread.is_alive():
        lines.append(
            Line(part, ok=False, text=f"no answer within {_SECONDS:g} seconds", next_step="look at its log")
        )
    return lines


def _check_versions(client: SyncPrefectClient) -> Iterator[Line]:
    here, server = version("prefect"), client.request("GET", "/admin/version").json()
    text = f"Prefect {here} here, {server} on the server; prefect-assay {version('prefect-assay')}; Python {sys.version.split()[0]}"
    same = here.split(".")[:2] == str(server).split(".")[:2]
    yield Line(
        "versions",
        same,
        text,
        "" if same else "install the server's Prefect version here, or upgrade the server first",
    )


def _check_server(client: SyncPrefectClient) -> Iterator[Line]:
    answer = client.request("GET", "/health")
    yield Line("server", ok=True, text=f"answers at {hide_credentials(str(client.api_url))}")
    yield _check_clock("server", answer.headers)
    client.count_flow_runs()
    yield Line("database", ok=True, text="answers a query of the runs")
    yield from _check_runs(client)
    for advice in settings_advice(client):
        problem, _, next_step = advice.partition("; ")
        yield Line("server", ok=False, text=problem, next_step=next_step)


def _check_runs(client: SyncPrefectClient) -> Iterator[Line]:
    """A run that cannot be read fails every list with it; one that is due also keeps its worker from all others."""
    for flow_run_filter in (suspended_filter(), run_filter(states=[StateType.SCHEDULED, StateType.RUNNING])):
        read_runs(client, flow_run_filter)
    for flow in FLOW_NAMES:
        newest_runs(client, flow, 1)
    for run_id in unreadable_runs(client):
        what, next_step = why_unreadable(run_id)
        yield Line("database", ok=False, text=f"flow run {run_id} {what}", next_step=next_step)


def _check_clock(what: str, headers: Mapping[str, str]) -> Line:
    clock = sent_at(headers)
    if clock is None:
        sent_text = "a time that cannot be read" if headers.get("date") else "no time"
        return Line("clock", ok=True, text=f"the {what} sends {sent_text}")
    off = clock - datetime.now(UTC)
    ok = abs(off) < _CLOCKS_DIFFER
    next_step = "" if ok else f"set both clocks by NTP; the {what}'s differs by more than {_CLOCKS_DIFFER}"
    return Line("clock", ok, f"the {what}'s is {abs(off.total_seconds()):.0f} s from this one", next_step)


def _check_worker(client: SyncPrefectClient) -> Iterator[Line]:
    deployments = read_own_deployments(client)
    for flow in (flow for flow, deployment in deployments.items() if deployment is None):
        yield Line("deployment", ok=False, text=f"{flow} is not deployed", next_step="prefect-assay deploy")
    obstacles = find_obstacles(client, deployments, datetime.now(UTC))
    for obstacle in obstacles:
        yield Line(obstacle.part, ok=False, text=obstacle.text, next_step=obstacle.next_step)
    started = [flow for flow, deployment in deployments.items() if deployment is not None]
    if started and not obstacles:
        yield Line("worker", ok=True, text=f"runs of {', '.join(started)} can start")


def _check_schedule(client: SyncPrefectClient) -> Iterator[Line]:
    sweep = read_own_deployments(client)["sweep"]
    if sweep is None:
        return  # named already
    swept = read_saved(client).swept
    fresh = swept is not None and datetime.now(UTC) - swept <= SILENT_AFTER
    deployed = sweep.created
    if swept is None and deployed is not None and datetime.now(UTC) - deployed <= SILENT_AFTER:
        yield Line(
            "schedule", ok=True, text="no sweep has completed yet; the first one begins within minutes"
        )
        return
    text = (
        f"the last complete sweep began {swept:%Y-%m-%d %H:%M} UTC" if swept else "no sweep has completed yet"
    )
    next_step = (
        "" if fresh else "wait for the first one, or look into the log of the last run of the flow sweep"
    )
    yield Line("schedule", fresh, text, next_step)


def _load_accounts(client: SyncPrefectClient, unusable: list[str] | None = None) -> Iterator[AssayAccount]:
    """Every saved account that can be loaded, with the blocks in it; says in `unusable` what is wrong with the others."""
    slug = AssayAccount.get_block_type_slug()
    for document in list_documents(client, slug, include_secrets=True):
        if not document.is_anonymous:
            try:
                account = AssayAccount._load_from_block_document(document)  # noqa: SLF001 - Prefect's only way
            except UNUSABLE as error:
                # pydantic's own message may hold secrets of the block
                if unusable is not None:
                    unusable.append(f"account {document.name} {fault_of(error)}")
                continue
            yield account


def _check_accounts(client: SyncPrefectClient) -> Iterator[Line]:
    unusable: list[str] = []
    accounts = list(_load_accounts(client, unusable))
    for text in unusable:
        yield Line(
            "account", ok=False, text=text, next_step="correct its blocks in the Prefect UI under Blocks"
        )
    if not accounts and not unusable:
        yield Line("account", ok=False, text="there is no account", next_step="prefect-assay init")
    for account in accounts:
        name = f"account {account.name}"
        try:
            with account.credentials.get_client() as service:
                identity = token_owner(service)
                mode = describe_mode(is_simulated=service.is_simulated)
            expires = identity.token_expires_at if identity else None
            expiring = list(expiring_token(name, expires, datetime.now(UTC), AlertLimits()))
            for problem in expiring:
                yield Line("account", ok=False, text=problem.text, next_step=problem.next_step)
            if not expiring:
                text = f"{name} ({mode}): {account.credentials.base_url} knows its token"
                yield Line("account", ok=True, text=text)
            yield _check_clock(
                f"service of {name}", httpx.head(account.credentials.base_url, timeout=5).headers
            )
        except Exception as error:  # noqa: BLE001 - each account alone
            next_step = f"correct address or token with prefect-assay init --name {account.name}; the message says which"
            yield Line("account", ok=False, text=f"{name}: {error}", next_step=next_step)
        yield _check_payment(account)


def _check_payment(account: AssayAccount) -> Line:
    """Whether the account can pay as it says."""
    policy = account.policy
    caps = f"caps {usd(policy.per_experiment_cents)} per experiment, {usd(policy.per_campaign_cents)} per campaign"
    try:
        require_rail(account.payment_method, policy, account.wallet)
    except AssayError as error:
        return Line(
            "account", ok=False, text=f"account {account.name}: {error}", next_step="as the message says"
        )
    return Line("account", ok=True, text=f"account {account.name} pays by {account.payment_method}, {caps}")


def _check_receiver(client: SyncPrefectClient) -> Iterator[Line]:
    endpoints = [(account, account.webhook) for account in _load_accounts(client) if account.webhook]
    if not endpoints:
        yield Line(
            "receiver", ok=True, text="no account has a webhook: only the sweep wakes runs, minutes later"
        )
    for account, block in endpoints:
        name, word = f"account {account.name}", account.credentials.service_word
        home = get_current_settings().home
        if why := _silence_of(block):
            next_step = _how_to_reach_receiver(block, read_address(home) if _is_here(client) else None)
            yield Line("receiver", ok=False, text=f"{name}: {why}", next_step=next_step)
            continue
        if _is_here(client) and (file := file_without(home, block.signing_key.get_secret_value())):
            why = f"{name}: {file} does not hold its signing key, so a receiver that uses this file refuses all deliveries"
            yield Line("receiver", ok=False, text=why, next_step=how_to_add_key(file, str(account.name)))
            continue
        if refusal := _explain_refusal(block, word):
            next_step = (
                f"give the receiver this key, and {WORD_VARIABLE}={word}; prefect-assay up reads the word from the accounts "
                "when it starts"
            )
            yield Line("receiver", ok=False, text=f"{name}: {refusal}", next_step=next_step)
            continue
        text = f"{name}: {block.url} answers; whether the service reaches it, its first delivery shows"
        yield Line("receiver", ok=True, text=text)


def _how_to_reach_receiver(block: WebhookEndpoint, address: str | None) -> str:
    """The next step where nothing answers at a block's address; `address` is that of `up` on this machine, if it has run."""
    if not is_loopback_url(block.url):
        return (
            f"start prefect-assay up, or prefect-assay receiver, and let your proxy pass {block.url} to it"
            + (f", at {address}" if address else "")
        )
    if address is None or block.url.rstrip("/") == address:
        return "start prefect-assay up, or prefect-assay receiver with the port of this address"
    return (
        f"prefect-assay up listened at {address} when it last started. Set this as the URL of the block in the Prefect UI under "
        "Blocks, or start up again with --receiver-port and the port of the block"
    )


def silent_receivers(client: SyncPrefectClient) -> Iterator[tuple[str, str]]:
    """The accounts whose receiver does not answer, and why."""
    for account in _load_accounts(client):
        if account.webhook and (why := _silence_of(account.webhook)):
            yield f"account {account.name}", why


def _silence_of(block: WebhookEndpoint) -> str | None:
    url = f"{block.url.rstrip('/')}/health"
    try:
        httpx.get(url, timeout=10).raise_for_status()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return f"{url} gives {type(error).__name__}"
    return None


def _explain_refusal(block: WebhookEndpoint, word: str) -> str | None:
    """Why the receiver refuses what is signed with the block's key under the service's word; None if it does not."""
    address, secret = block.derive_for_order(_NO_ORDER)
    body = b'{"event": "prefect-assay check"}'  # signed, but no delivery: it wakes nothing
    signature = {WireWords(service=word).header("Signature"): sign(body, secret.get_secret_value())}
    try:
        answer = httpx.post(address, content=body, headers=signature, timeout=10)
    except httpx.HTTPError as error:
        return f"{block.url} takes no delivery ({type(error).__name__})"
    if answer.status_code != HTTPStatus.UNAUTHORIZED:
        return None
    return f"{block.url} refuses what its key signs under {', '.join(signature)}: {answer.text[:_SHOWN]}"


def _is_here(client: SyncPrefectClient) -> bool:
    return is_loopback_url(str(client.api_url))


def _check_archive(client: SyncPrefectClient) -> Iterator[Line]:
    for account in _load_accounts(client):
        block, name = account.archive, f"account {account.name}"
        try:
            block.get_store().probe(block.prefix)
        except Exception as error:  # noqa: BLE001 - each archive alone
            yield Line("archive", ok=False, text=f"{name}: {error}", next_step="as the message says")
            continue
        yield Line(
            "archive",
            ok=True,
            text=f"{name}: {block.get_store().location(block.prefix)} takes objects, and overwrites none",
        )


PARTS: Final[dict[str, Callable[[SyncPrefectClient], Iterator[Line]]]] = {
    "server": _check_server,
    "versions": _check_versions,
    "worker": _check_worker,
    "schedule": _check_schedule,
    "account": _check_accounts,
    "receiver": _check_receiver,
    "archive": _check_archive,
}
