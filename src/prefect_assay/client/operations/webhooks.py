"""Operations on the organization's webhooks (contract 4.6 and 6; shapes of service-shapes, Updates and webhooks)."""

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import SecretStr

from prefect_assay.client import checks
from prefect_assay.client.decoding import nothing, once, rows_of
from prefect_assay.client.http.request import UNSET, Operation, Request, Unset, segment
from prefect_assay.errors import InvalidRequest, OutcomeUnknown
from prefect_assay.models.update import Webhook

_LIST_AGAIN: Final = "List the webhooks before anything else"


def webhooks() -> Operation[tuple[Webhook, ...]]:
    """GET /webhooks: all webhooks of the organization, a plain list without pages."""
    return Operation(request=Request(method="GET", path="/webhooks", repeatable=True), read=rows_of(Webhook))


def create_webhook(
    url: str, *, secret: SecretStr | str | None = None, headers: Mapping[str, str] | None = None
) -> Operation[Webhook]:
    """POST /webhooks, once. An experiment's own webhook takes precedence over it.

    Args:
        url: https address that the service reaches from outside.
        secret: signs the deliveries, at least 32 characters; never comes back.
        headers: carried by every delivery; may hold credentials.

    Raises:
        InvalidRequest: with every finding; nothing was sent.
        OutcomeUnknown: the answer was lost: list the webhooks.
    """
    return _written("POST", "/webhooks", {"url": url, "secret": secret, "headers": headers}, drop=None)


def update_webhook(
    webhook_id: str,
    *,
    url: str | Unset = UNSET,
    secret: SecretStr | str | Unset | None = UNSET,
    headers: Mapping[str, str] | Unset | None = UNSET,
    enabled: bool | Unset = UNSET,
) -> Operation[Webhook]:
    """PATCH /webhooks/{id}, once; only the fields that are named. None clears the secret or the headers.

    Raises:
        InvalidRequest: with every finding; nothing was sent.
        OutcomeUnknown: the answer was lost: list the webhooks.
    """
    fields = {"url": url, "secret": secret, "headers": headers, "enabled": enabled}
    return _written("PATCH", f"/webhooks/{segment(webhook_id)}", fields, drop=UNSET)


def delete_webhook(webhook_id: str) -> Operation[None]:
    """DELETE /webhooks/{id}, once.

    Raises:
        NotFound: it does not exist, or no longer.
        OutcomeUnknown: the answer was lost: list the webhooks.
    """
    return Operation(
        request=Request(
            method="DELETE",
            path=f"/webhooks/{segment(webhook_id)}",
            lost=OutcomeUnknown,
            after_loss=_LIST_AGAIN,
        ),
        read=nothing,
    )


def _written(
    method: str, path: str, fields: Mapping[str, object], *, drop: Unset | None
) -> Operation[Webhook]:
    body = {name: _sendable(value) for name, value in fields.items() if value is not drop}
    InvalidRequest.check(list(_findings(body)))
    secret, headers = body.get("secret"), body.get("headers")
    hidden = (*(headers.values() if isinstance(headers, dict) else ()), secret)
    return once(
        method,
        path,
        Webhook,
        _LIST_AGAIN,
        body,
        secrets=tuple(value for value in hidden if isinstance(value, str)),
        unless_local=checks.only_for_a_lab(body.get("url"), "url"),
    )


def _sendable(value: object) -> object:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return dict(value) if isinstance(value, Mapping) else value


def _findings(body: Mapping[str, object]) -> Iterator[str]:
    url, secret, headers = body.get("url"), body.get("secret"), body.get("headers")
    if isinstance(url, str):
        yield from checks.webhook_url(url, "url")
    if isinstance(secret, str):
        yield from checks.webhook_secret(secret, "secret")
    if isinstance(headers, dict):
        yield from checks.headers(headers)
