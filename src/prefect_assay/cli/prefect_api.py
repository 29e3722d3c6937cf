"""The Prefect API for commands: blocks by name, addresses in the UI, and errors of this package."""

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import SecretStr

from prefect_assay.cli.options import MAIN
from prefect_assay.errors import ConfigurationError, MissingBlock, ServiceUnavailable, Unauthorized
from prefect_assay.service.network_variables import check_certificates, check_http_variables

if TYPE_CHECKING:
    from prefect.blocks.core import Block
    from prefect.client.orchestration import SyncPrefectClient

    from prefect_assay.blocks import Archive, AssayAccount

B = TypeVar("B", bound="Block")

_OTHER: Final = "another program answers"
# Refusals of a Prefect API, or of a front before one.
_OF_AN_API: Final = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.MISDIRECTED_REQUEST,
        HTTPStatus.TOO_MANY_REQUESTS,
    }
)


_CREDENTIALS: Final = re.compile(r"(\w+://|^)\S*@")  # PREFECT_API_URL may be http://user:password@host/api


def hide_credentials(text: str) -> str:
    """An address, or a text with addresses, without user and password."""
    return _CREDENTIALS.sub(r"\1", text)


@contextmanager
def api_errors() -> Iterator[None]:
    """Turn errors of the Prefect client into `ServiceUnavailable` and `Unauthorized`; others stay as they are.

    Raises:
        ConfigurationError: Prefect's client cannot be made with the environment's variables.
    """
    import httpx

    check_client_variables()
    check_api_address()
    try:
        yield
    except httpx.TransportError as error:
        raise ServiceUnavailable(
            f"the Prefect API at {_api_url()} does not answer ({type(error).__name__}); start it with "
            "`prefect-assay up`, or set PREFECT_API_URL to the one in use"
        ) from error
    except httpx.HTTPStatusError as error:
        if error.response.status_code in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            raise Unauthorized(
                f"the Prefect API at {_api_url()} refuses this user; check PREFECT_API_KEY or PREFECT_API_AUTH_STRING"
            ) from error
        if error.response.status_code == HTTPStatus.MISDIRECTED_REQUEST:
            raise ConfigurationError(
                f"the Prefect server at {_api_url()} does not answer under this name; start it with --allow-host and the name, "
                "or set PREFECT_API_URL to a name that it has"
            ) from error
        from prefect_assay.service.transient_failures import is_busy

        if is_busy(error):
            raise ServiceUnavailable(
                f"the Prefect API at {_api_url()} cannot answer now (HTTP {error.response.status_code}); repeat the command "
                "in a minute, and look at the server's log if this lasts",
                status_code=error.response.status_code,
            ) from error
        raise


def report_unreadable(client: "SyncPrefectClient") -> list[str]:
    """Name on stderr the runs that were left out of what was read, because Prefect cannot send them; returns their ids."""
    from prefect_assay.campaigns.runs.queries import unreadable_runs, why_unreadable

    run_ids = unreadable_runs(client)
    for run_id in run_ids:
        print("Warning: flow run {} {}.".format(run_id, ". ".join(why_unreadable(run_id))), file=sys.stderr)
    return [str(run_id) for run_id in run_ids]


def check_client_variables() -> None:
    """Check the variables that a Prefect client is made with: proxies and certificates."""
    from prefect.settings import get_current_settings

    check_http_variables()
    api = get_current_settings().api
    if api.ssl_cert_file and not api.tls_insecure_skip_verify:
        check_certificates("PREFECT_API_SSL_CERT_FILE", api.ssl_cert_file)
    refuse_unusable_auth("PREFECT_API_AUTH_STRING", api.auth_string)


def refuse_unusable_auth(name: str, auth: SecretStr | str | None) -> None:
    """Raise ConfigurationError for user and password that Prefect's server cannot compare: it fails at each request."""
    text = auth.get_secret_value() if isinstance(auth, SecretStr) else auth or ""
    if not text.isascii():
        raise ConfigurationError(
            f"{name} has a letter outside of ASCII, which Prefect's server fails to compare; choose a password of ASCII "
            "letters, digits and signs, on the server (PREFECT_SERVER_API_AUTH_STRING) and for its users"
        )


def check_api_address() -> None:
    """Ask once whether PREFECT_API_URL leads to a Prefect API. A server that does not answer is another matter.

    Raises:
        ConfigurationError: another program, or another part of Prefect's server, answers there.
    """
    from prefect.settings import get_current_settings

    settings = get_current_settings()
    if settings.api.url:
        _check_address(settings.api.url, settings.cloud.api_url)


def _why_no_api() -> str | None:
    """What shows that no Prefect API answers; None where one does, or nothing answers: each command says that by itself."""
    import httpx
    from prefect.client.orchestration import get_client

    try:
        answer = get_client(sync_client=True).request("GET", "/health")
        return None if answer.json() is True else _OTHER
    except httpx.TransportError:
        return None
    except httpx.HTTPStatusError as error:
        is_refusal = error.response.status_code in _OF_AN_API or error.response.is_server_error
        return None if is_refusal else f"it answers with HTTP {error.response.status_code}"
    except httpx.TooManyRedirects:
        return _OTHER
    except (ValueError, httpx.InvalidURL):
        return "it answers with a page"


@cache
def _check_address(address: str, cloud: str) -> None:
    shown = hide_credentials(address)
    wrong = f"PREFECT_API_URL is {shown}, which is not the address of a Prefect API"
    spelling = f"{wrong}; write it as http://127.0.0.1:4200/api"
    try:
        parts = urlsplit(address)
        is_web = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        raise ConfigurationError(spelling) from None
    if not is_web:
        raise ConfigurationError(spelling)
    if address.startswith(cloud.rstrip("/")):
        if not re.search(r"/accounts/[^/]+/workspaces/[^/]+", parts.path):
            raise ConfigurationError(
                f"{wrong} of Prefect Cloud: name the workspace with `prefect cloud login`"
            )
        return
    reason = _why_no_api()
    if reason is None:
        return
    advice = "" if parts.path.rstrip("/").endswith("/api") else f"; write {shown.rstrip('/')}/api"
    raise ConfigurationError(
        f"{wrong}: {reason}{advice or '; correct host, port and path'}, with `prefect config set PREFECT_API_URL=...`"
    )


def require_api() -> None:
    """Refuse the temporary server that Prefect starts where no API is configured: no other process sees its runs."""
    from prefect.settings import get_current_settings

    if not get_current_settings().api.url:
        raise ConfigurationError(
            "no Prefect API is configured. Start everything with `prefect-assay up`, which configures it; or name a server "
            "that runs elsewhere, once on each machine: prefect config set PREFECT_API_URL=http://127.0.0.1:4200/api"
        )


def start_temporary_server() -> None:
    """Start the server that Prefect's client would start where no API is configured."""
    from prefect.settings import get_current_settings

    settings = get_current_settings()
    if settings.api.url or not settings.server.ephemeral.enabled:
        require_api()
        return
    check_client_variables()
    try:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=settings.home):
            pass
    except OSError as error:
        raise ConfigurationError(
            f"the Prefect home {settings.home} cannot be written ({error.strerror}), and Prefect's temporary server "
            "keeps its database there; set PREFECT_HOME to a folder that this user may write"
        ) from None
    from prefect.server.api.server import SubprocessASGIServer

    try:
        SubprocessASGIServer().start()  # the instance that the client uses
    except Exception as error:
        reason = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        raise ConfigurationError(
            f"Prefect's temporary server does not start: {reason}. Start everything with `prefect-assay up`, or  give this one more time with "
            "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS (20)"
        ) from error


def find_block(kind: type[B], name: str) -> B | None:
    """The saved block of a type; None if no block has this name, a `ConfigurationError` if it is not valid."""
    try:
        # load() gives a coroutine only inside an event loop; commands run outside one
        return cast("B", kind.load(name))
    except ValueError as error:
        if "Unable to find" not in str(error):
            raise
        return None
    except RuntimeError as error:
        from prefect_assay.blocks.block_references import fault_of

        raise ConfigurationError(
            f"the block {kind.get_block_type_slug()}/{name} {fault_of(error)}; correct it in the Prefect UI under Blocks"
        ) from None


def load_account(name: str) -> "AssayAccount":
    """The account of a name.

    Raises:
        MissingBlock: there is none.
    """
    from prefect_assay.blocks import AssayAccount

    account = find_block(AssayAccount, name)
    if account is None:
        raise MissingBlock(
            f"there is no account {name!r} (an AssayAccount block){_other_accounts()}; make it with {_init(name)}, or in the "
            "Prefect UI under Blocks"
        )
    return account


def _other_accounts() -> str:
    """The accounts that are saved, with the option that names one; nothing where there is none."""
    from prefect.client.orchestration import get_client

    from prefect_assay.blocks import AssayAccount
    from prefect_assay.blocks.block_references import list_documents

    with get_client(sync_client=True) as client:
        documents = list_documents(client, AssayAccount.get_block_type_slug())
    names = sorted(one.name for one in documents if one.name and not one.is_anonymous)
    return f"; saved: {', '.join(f'--account {name}' for name in names)}" if names else ""


def saved_account(name: str) -> "AssayAccount":
    """The account of a name, at the configured API: a temporary server has no blocks.

    Raises:
        ConfigurationError: no API is configured, or there is no account of this name.
    """
    require_api()
    with api_errors():
        return load_account(name)


def find_archive(name: str) -> "Archive | None":
    """The archive block of a name; None if there is none, a `ConfigurationError` if several kinds have one."""
    from prefect_assay.blocks.archives import ARCHIVES

    archives = [archive for kind in ARCHIVES if (archive := find_block(kind, name)) is not None]
    if len(archives) > 1:
        choices = " or ".join(f"{archive.get_block_type_slug()}/{name}" for archive in archives)
        raise ConfigurationError(f"{len(archives)} archive blocks are named {name!r}; choose {choices}")
    return archives[0] if archives else None


def load_archive(name: str) -> "Archive":
    """The archive block of a name, or of `<slug>/<name>` where several kinds have one."""
    from prefect_assay.blocks.archives import ARCHIVES

    slug, slash, rest = name.rpartition("/")
    kinds = {kind.get_block_type_slug(): kind for kind in ARCHIVES}
    if slash and slug not in kinds:
        raise ConfigurationError(f"{slug!r} is not an archive block; use one of {', '.join(kinds)}")
    archive = find_block(kinds[slug], rest) if slash else find_archive(name)
    if archive is None:
        raise MissingBlock(
            f"there is no archive block named {name!r}; make it with {_init(rest)}, or create a block of one of these types "
            f"in the Prefect UI: {', '.join(kind.get_block_type_name() for kind in ARCHIVES)}"
        )
    return archive


def _init(name: str) -> str:
    return f"`prefect-assay init{'' if name == MAIN else f' --name {name}'}`"


def run_url(run_id: object) -> str | None:
    """The address of a flow run in the UI; None if the UI's address is unknown."""
    from prefect.settings import get_current_settings

    ui_url = get_current_settings().ui_url
    return f"{hide_credentials(ui_url).rstrip('/')}/runs/flow-run/{run_id}" if ui_url else None


def _api_url() -> str:
    from prefect.settings import get_current_settings

    return hide_credentials(get_current_settings().api.url or "(none is set)")
