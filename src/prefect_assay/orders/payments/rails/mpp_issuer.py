"""Requests a shared payment token from the user's issuer, once. If the answer is lost, the token expires unused."""

from typing import Final
from urllib.parse import urlsplit

import httpx
from pydantic import SecretStr
from pydantic_core import from_json

from prefect_assay.errors import ConfigurationError, PaymentRefused
from prefect_assay.orders.payments.rails.mpp import TokenLimits
from prefect_assay.service.client.http.address import checked_token, is_protected
from prefect_assay.service.client.http.deadline import deadline, limit_connections
from prefect_assay.service.client.http.exchange import Meter, TooLarge
from prefect_assay.service.client.http.wire import unlogged_query
from prefect_assay.service.network_variables import check_http_variables

_SECONDS: Final = 30.0
_WHOLE_SECONDS: Final = 60.0
_BYTES_MAX: Final = 65_536


class HttpTokenIssuer:
    """Callable: limits in, token out. No repr, error or log contains its key."""

    def __init__(self, url: str, key: SecretStr) -> None:
        """Check address and key, send nothing; ConfigurationError unless https or loopback, with a valid key."""
        try:
            named = urlsplit(url)
            usable = is_protected(url) and named.username is None and not named.fragment
        except (ConfigurationError, ValueError):
            usable = False
        if not usable:
            raise ConfigurationError(
                "issuer_url of the shared payment tokens must be an https address without a user name; plain http is "
                "accepted on loopback only"
            )
        try:
            self._key = checked_token(key)
        except ConfigurationError:
            raise ConfigurationError(
                "issuer_key of the shared payment tokens is empty or no valid header value"
            ) from None
        self._url = url

    def __repr__(self) -> str:
        return "HttpTokenIssuer()"

    def __call__(self, limits: TokenLimits) -> SecretStr:
        """One token within the limits.

        Raises:
            ConfigurationError: a variable for proxies or certificates has no usable value.
            PaymentRefused: the issuer gave none.
        """
        check_http_variables()
        try:
            status, content = self._request_token(limits)
        except httpx.HTTPError as error:
            why = f"it gave no answer ({type(error).__name__})"
        except TooLarge as cause:
            why = f"its answer is {cause}"
        else:
            if not httpx.codes.is_success(status):
                why = f"it answered {status}"
            elif token := _read_token(content):
                return SecretStr(token)
            else:
                why = 'its answer is not {"spt": "..."}'
        raise PaymentRefused(f"the issuer of shared payment tokens gave none: {why}; nothing was sent")

    def _request_token(self, limits: TokenLimits) -> tuple[int, bytes]:
        headers = {
            "Authorization": f"Bearer {self._key.get_secret_value()}",
            "Accept-Encoding": "identity",
        }
        with (
            unlogged_query(),
            deadline(_WHOLE_SECONDS),
            httpx.Client(timeout=_SECONDS, follow_redirects=False) as client,
        ):
            limit_connections(client)
            with client.stream("POST", self._url, json=limits.model_dump(), headers=headers) as answer:
                meter = Meter(answer.headers, _BYTES_MAX)
                return answer.status_code, b"".join(map(meter.count, answer.iter_bytes()))


def _read_token(body: bytes) -> str | None:
    try:
        content = from_json(body)
    except ValueError:
        return None
    token = content.get("spt") if isinstance(content, dict) else None
    return token if isinstance(token, str) and token else None
