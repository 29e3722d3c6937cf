"""The part of the guard that differs between rails: the terms of a transfer or charge. Empty lists allow nothing."""

from collections.abc import Collection
from typing import Final
from urllib.parse import urljoin, urlparse, urlsplit

from prefect_assay.orders.payments.interfaces import origin
from prefect_assay.orders.payments.terms import MppTerms, X402Terms, ascii_quoted

# The bearer token is in Authorization; a credential there would need a second value of that header.
CREDENTIAL_HEADER: Final = "Payment-Authorization"


def transfer(
    terms: X402Terms,
    *,
    expected_url: str,
    networks: Collection[str],
    assets: Collection[str],
    pay_to: Collection[str],
) -> tuple[str | None, ...]:
    """The faults of a stablecoin transfer, apart from its amount and its validity."""
    return (
        _resource(terms, expected_url),
        _listed("network", terms.network, networks, "networks of the X402Wallet block"),
        _asset(terms, networks, assets),
        _listed("payTo", terms.pay_to, pay_to, "pay_to of the X402Wallet block"),
    )


def charge(
    terms: MppTerms, *, invoice_id: str, currency: str, network_ids: Collection[str]
) -> tuple[str | None, ...]:
    """The faults of a charge to a shared payment token, apart from its amount and its validity."""
    return (
        _external(terms, invoice_id),
        _currency(terms, currency),
        _network_id(terms, network_ids),
        _credential_header(terms),
    )


def named(values: Collection[str]) -> str:
    """An allow-list for people."""
    return ", ".join(sorted(values)) or "which is empty"


def _resource(terms: X402Terms, expected: str) -> str | None:
    try:
        stated = terms.resource_url or ""
        given = urljoin(expected, stated)
        parts = urlsplit(given)
        same = (
            urlparse(stated).path != ""  # without a path, urljoin gives back what is expected
            and f"{origin(given)}{parts.path}" == expected
            and not (parts.query or parts.fragment or parts.username or parts.password)
        )
    except ValueError:
        same = False
    return (
        None if same else f"resource.url is {ascii_quoted(terms.resource_url)}, this invoice's is {expected}"
    )


def _listed(name: str, value: str, allowed: Collection[str], setting: str) -> str | None:
    if value.lower() in {item.lower() for item in allowed}:
        return None
    return f"{name} {ascii_quoted(value)} is not in {setting} ({named(allowed)})"


def unpaired(networks: Collection[str], assets: Collection[str]) -> tuple[str, ...]:
    """The assets without a network, where several are allowed: ambiguous, so allowed on no network."""
    several = len({network.lower() for network in networks}) > 1
    return tuple(asset for asset in assets if several and "/" not in asset)


def caip19(network: str, asset: str) -> str:
    """A token contract with its network, as CAIP-19 writes it."""
    return f"{network}/erc20:{asset}"


def _asset(terms: X402Terms, networks: Collection[str], assets: Collection[str]) -> str | None:
    # An address is a different token on each network: worthless on a test network, anything on another.
    usable = {asset.lower() for asset in assets} - {asset.lower() for asset in unpaired(networks, assets)}
    if usable & {terms.asset.lower(), caip19(terms.network, terms.asset).lower()}:
        return None
    hint = f"; with several networks each asset names its own, as {caip19('eip155:8453', '0x...')}"
    return (
        f"asset {ascii_quoted(terms.asset)} is not in assets of the X402Wallet block ({named(assets)})"
        f"{hint if unpaired(networks, assets) else f' for {ascii_quoted(terms.network)}'}"
    )


def _external(terms: MppTerms, invoice_id: str) -> str | None:
    if terms.external_id == invoice_id:
        return None
    return f"externalId is {ascii_quoted(terms.external_id)}, this invoice's is {invoice_id}"


def _currency(terms: MppTerms, currency: str) -> str | None:
    if terms.asset.lower() == currency:
        return None
    return f"the currency is {ascii_quoted(terms.asset)}, not {currency}"


def _network_id(terms: MppTerms, allowed: Collection[str]) -> str | None:
    # Ids, unlike addresses in hex, differ when their case differs.
    if terms.pay_to in allowed:
        return None
    return f"networkId {ascii_quoted(terms.pay_to)} is not in network_ids of the SpendingPolicy block ({named(allowed)})"


def _credential_header(terms: MppTerms) -> str | None:
    given = terms.credential_header
    if given is None:
        return (
            f"it names no header for the credential, which would then replace the API token; a challenge must say "
            f'header="{CREDENTIAL_HEADER}"'
        )
    if given.lower() == CREDENTIAL_HEADER.lower():
        return None
    return (
        f"it wants the credential in the header {ascii_quoted(given)}; only {CREDENTIAL_HEADER} is answered"
    )
