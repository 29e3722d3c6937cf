"""Webhooks of the organization (contract 4.6 and 6)."""

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import SecretStr

from prefect_assay.errors import InvalidRequest, OutcomeUnknown
from prefect_assay.service.client import checks
from prefect_assay.service.client.answers import require_record
from prefect_assay.service.client.decoding import build_act, read_page
from prefect_assay.service.client.http.request import UNSET, Operation, Request, Unset, quote_segment
from prefect_assay.service.client.resources.resource import Resource
from prefect_assay.service.models.update import Webhook

_LIST_AGAIN: Final = "List the webhooks before anything else"
_SECRET_MIN: Final = 8


class Webhooks(Resource):
    """Where the organization receives updates (contract 4.6 and 6). An experiment's own webhook takes precedence."""

    def list(self) -> tuple[Webhook, ...]:
        """List all webhooks of the organization, without pages: GET /webhooks (contract 4.6).

        Example:
            ```python
            print([webhook.url for webhook in client.webhooks.list()])
            ```
        """
        read = read_page(Webhook)
        operation = Operation(
            request=Request(method="GET", path="/webhooks", repeatable=True),
            read=lambda answer: read(answer).items,
        )
        return self._sender.run(operation)

    def create(
        self,
        url: str,
        *,
        secret: SecretStr | str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Webhook:
        """Add a webhook, sent once: POST /webhooks (contract 4.6 and 6).

        `url` is an https address that the service reaches from outside, `secret` (at least 32 characters) signs the
        deliveries and never comes back, and every delivery carries the headers, which may hold credentials.

        Raises:
            InvalidRequest: with every finding; nothing was sent.
            OutcomeUnknown: the answer was lost: list the webhooks.

        Example:
            ```python
            webhook = client.webhooks.create("https://hooks.example.org/assay", secret=secret)
            ```
        """
        fields = {"url": url, "secret": secret, "headers": headers}
        return self._sender.run(_build_webhook_write("POST", "/webhooks", fields, drop=None))

    def modify(
        self,
        webhook_id: str,
        *,
        url: str | Unset = UNSET,
        secret: SecretStr | str | Unset | None = UNSET,
        headers: Mapping[str, str] | Unset | None = UNSET,
        enabled: bool | Unset = UNSET,
    ) -> Webhook:
        """Change the fields that you name, sent once: PATCH /webhooks/{id} (published with contract 4.6).

        None clears the secret or the headers. It raises the same errors as `create`.

        Example:
            ```python
            client.webhooks.modify(webhook_id, enabled=False)
            ```
        """
        # null is published for the secret only
        fields = {
            "url": url,
            "secret": secret,
            "headers": {} if headers is None else headers,
            "enabled": enabled,
        }
        operation = _build_webhook_write(
            "PATCH", f"/webhooks/{quote_segment(webhook_id)}", fields, drop=UNSET
        )
        return self._sender.run(require_record(operation, webhook_id))

    def delete(self, webhook_id: str) -> None:
        """Remove a webhook, sent once: DELETE /webhooks/{id} (published with contract 4.6).

        Raises:
            NotFound: it does not exist.
            OutcomeUnknown: the answer was lost: list the webhooks.

        Example:
            ```python
            client.webhooks.delete(webhook_id)
            ```
        """
        operation: Operation[None] = Operation(
            request=Request(
                method="DELETE",
                path=f"/webhooks/{quote_segment(webhook_id)}",
                lost=OutcomeUnknown,
                after_loss=_LIST_AGAIN,
            ),
            read=lambda _: None,
        )
        self._sender.run(operation)


def _build_webhook_write(
    method: str, path: str, fields: Mapping[str, object], *, drop: Unset | None
) -> Operation[Webhook]:
    """The request that sends the fields of a webhook. `drop` is the value that marks a field as not given."""
    body = {name: _encode(value) for name, value in fields.items() if value is not drop}
    InvalidRequest.check([*_check(body)])
    secret, headers = body.get("secret"), body.get("headers")
    values = headers.values() if isinstance(headers, dict) else ()
    # Shorter values of headers are words, such as those of an error body.
    hidden = (secret, *(value for value in values if isinstance(value, str) and len(value) >= _SECRET_MIN))
    return build_act(
        method,
        path,
        Webhook,
        _LIST_AGAIN,
        body,
        secrets=tuple(value for value in hidden if isinstance(value, str)),
        unless_local=checks.only_for_a_lab(body.get("url"), "url"),
    )


def _encode(value: object) -> object:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return dict(value) if isinstance(value, Mapping) else value


def _check(body: Mapping[str, object]) -> Iterator[str]:
    url, secret, headers = body.get("url"), body.get("secret"), body.get("headers")
    if isinstance(url, str):
        yield from checks.webhook_url(url, "url")
    if isinstance(secret, str):
        yield from checks.webhook_secret(secret, "secret")
    if isinstance(headers, dict):
        yield from checks.headers(headers)
