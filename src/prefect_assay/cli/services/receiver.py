"""`prefect-assay receiver`: the webhook receiver as a process, with keys from the environment or a file."""

import asyncio
import contextlib
import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from prefect_assay.cli.options import MAIN
from prefect_assay.cli.prefect_api import api_errors, check_api_address
from prefect_assay.cli.services.signing_keys import list_keys
from prefect_assay.errors import ConfigurationError
from prefect_assay.service.models.service import NEUTRAL_SERVICE
from prefect_assay.service.network_variables import check_http_variables

if TYPE_CHECKING:
    import uvicorn
    from prefect.client.orchestration import SyncPrefectClient
    from starlette.applications import Starlette

    from prefect_assay.campaigns.receiver.receiver import Receiver
    from prefect_assay.campaigns.receiver.settings import ReceiverSettings

_PREFIX = "PREFECT_ASSAY_RECEIVER_"
PREFIX_VARIABLE: Final = f"{_PREFIX}PATH_PREFIX"
WORDS_VARIABLE: Final = f"{_PREFIX}WORDS"  # both words as JSON
WORD_VARIABLE: Final = f"{WORDS_VARIABLE}__SERVICE"
_MOST_CONNECTIONS: Final = 2000  # each may hold a body of the largest size until its signature is checked
_GRACE_SECONDS: Final = 5


def run_receiver(
    *, host: str, port: int, prefix: str | None, keys_file: Path | None, allow_hosts: Sequence[str] = ()
) -> None:
    """Serve until stopped; a missing or wrong setting or variable is a `ConfigurationError`."""
    from prefect_assay.campaigns.receiver.receiver import Receiver
    from prefect_assay.campaigns.receiver.settings import ReceiverSettings

    if keys_file is not None:
        os.environ[f"{_PREFIX}SIGNING_KEYS"] = json.dumps(_read_keys(keys_file))  # a key may contain commas
    if prefix is not None:
        os.environ[PREFIX_VARIABLE] = prefix
    if allow_hosts:
        os.environ[f"{_PREFIX}ALLOWED_HOSTS"] = ",".join(allow_hosts)
    settings = ReceiverSettings.from_environment()
    check_http_variables()
    check_api_address()
    if settings.status_port is not None:
        settings = settings.model_copy(update={"status": False})  # not also on the public port
    with contextlib.suppress(KeyboardInterrupt):  # as uvicorn.run does
        serve_receiver(Receiver(settings), settings, host, port)


def receiver_word(api: str) -> str:
    """How the service of the saved accounts spells itself in header names; the neutral word where they do not agree.

    Accounts with a webhook count, and the one that `init` saves by default comes first.
    """
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with api_errors(), temporary_settings({PREFECT_API_URL: api}), get_client(sync_client=True) as client:
        accounts = _read_saved_blocks(client, "assay-account")
    words = {
        name: str(fields["credentials"].get("service_word") or NEUTRAL_SERVICE)
        for name, fields in accounts.items()
        if fields.get("webhook")
    }
    agreed = set(words.values())
    return words.get(MAIN) or (agreed.pop() if len(agreed) == 1 else NEUTRAL_SERVICE)


def _read_saved_blocks(client: "SyncPrefectClient", slug: str) -> dict[str, dict[str, Any]]:
    """The fields of the saved blocks of a type, by name, without secrets."""
    from prefect_assay.blocks.block_references import list_documents

    documents = list_documents(client, slug)
    return {str(document.name): document.data for document in documents if not document.is_anonymous}


def serve_receiver(receiver: "Receiver", settings: "ReceiverSettings", host: str, port: int) -> None:
    """Serve a receiver until a signal: in one process, because wake-ups are serialised in it."""
    main = _make_server(
        receiver.app,
        settings,
        host,
        port,
        log_level="info",
        limit_concurrency=_MOST_CONNECTIONS,
        # A wake-up in progress is answered before the process ends; uvicorn cancels whatever takes longer.
        timeout_graceful_shutdown=int(settings.wake_timeout_seconds) + _GRACE_SECONDS,
    )
    if settings.status_port is None:
        main.run()
        return
    status = _make_server(
        receiver.status_app,
        settings,
        settings.status_host,
        settings.status_port,
        log_level="warning",
        lifespan="off",
    )
    asyncio.run(_run_both(main, status))


def _make_server(
    app: "Starlette", settings: "ReceiverSettings", host: str, port: int, **more: Any
) -> "uvicorn.Server":
    import uvicorn

    from prefect_assay.campaigns.receiver.heads import HeadTimeoutProtocol

    http: Any = partial(HeadTimeoutProtocol, seconds=settings.head_timeout_seconds)
    # No access log: a flood of forged deliveries must not flood it. Nothing depends on the sender's address, so the
    # headers of a proxy are not read.
    return uvicorn.Server(
        uvicorn.Config(app, host=host, port=port, http=http, access_log=False, proxy_headers=False, **more)
    )


async def _run_both(main: "uvicorn.Server", status: "uvicorn.Server") -> None:
    """Run both on one event loop, so that the status is that of the deliveries.

    Each server takes the signals from the one that began before it, and gives them back when it ends: the main one,
    which begins second, ends first.
    """
    beside = asyncio.create_task(status.serve())
    await asyncio.sleep(0)  # the status server has begun
    try:
        await main.serve()
    finally:
        status.should_exit = True
        await beside


def _read_keys(path: Path) -> list[str]:
    try:
        return list_keys(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the signing keys cannot be read from {path}: {error}") from None
