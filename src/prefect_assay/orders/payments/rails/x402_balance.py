"""Reads the balance of an `x402-exact` wallet from a node of its network. Signs nothing."""

import re
from collections.abc import Iterable
from typing import Any, Final

import httpx
from pydantic import SecretStr
from pydantic_core import from_json

from prefect_assay.errors import ServiceUnavailable
from prefect_assay.orders.payments.rails.x402 import address_of
from prefect_assay.service.client.http.deadline import deadline, limit_connections
from prefect_assay.service.client.http.exchange import Meter, TooLarge
from prefect_assay.service.client.http.wire import unlogged_query
from prefect_assay.service.network_variables import check_http_variables

_SECONDS: Final = 10.0
_WHOLE_SECONDS: Final = 60.0  # for all questions to a node
_BYTES_MAX: Final = 65_536
_DECIMALS_MAX: Final = 36  # of tokens that exist: 18 and fewer
_ASSET: Final = re.compile(r"(?:eip155:(?P<chain>\d+)/erc20:)?(?P<contract>0x[0-9a-fA-F]{40})")
# The first four bytes of the Keccak digests of the functions' signatures.
_BALANCE_OF: Final = "0x70a08231"
_DECIMALS: Final = "0x313ce567"


def balance_cents(node_url: SecretStr, private_key: SecretStr, assets: Iterable[str]) -> int:
    """Sum what the wallet holds of its assets on the node's network, in cents: they are worth a US dollar each.

    Raises:
        ConfigurationError: a variable for proxies or certificates has no usable value.
        ServiceUnavailable: the node does not answer as it should. The message does not name its address.
    """
    check_http_variables()
    owner = address_of(private_key).removeprefix("0x").lower().rjust(64, "0")
    try:
        with (
            unlogged_query(path=True),
            deadline(_WHOLE_SECONDS),
            httpx.Client(timeout=_SECONDS, follow_redirects=False) as client,
        ):
            limit_connections(client)
            chain = _call_node(client, node_url, "eth_chainId", [])
            return sum(
                _convert_to_cents(
                    _read_units(client, node_url, match["contract"], _BALANCE_OF + owner),
                    _read_units(client, node_url, match["contract"], _DECIMALS),
                )
                for asset in assets
                if (match := _ASSET.fullmatch(asset)) and match["chain"] in {None, str(chain)}
            )
    except (httpx.HTTPError, TooLarge, ValueError, KeyError, TypeError) as error:
        raise ServiceUnavailable(
            f"the node of the wallet gives no balance ({type(error).__name__})"
        ) from None


def _read_units(client: httpx.Client, url: SecretStr, contract: str, data: str) -> int:
    return _call_node(client, url, "eth_call", [{"to": contract, "data": data}, "latest"])


def _call_node(client: httpx.Client, url: SecretStr, method: str, params: list[Any]) -> int:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    with client.stream("POST", url.get_secret_value(), json=body) as answer:
        meter = Meter(answer.headers, _BYTES_MAX)
        content = b"".join(map(meter.count, answer.raise_for_status().iter_bytes()))
    return int(from_json(content)["result"], 16)


def _convert_to_cents(units: int, decimals: int) -> int:
    if decimals > _DECIMALS_MAX:  # a power of an absurd number would not end
        raise ValueError(decimals)
    return units * 100 // int(10**decimals)
