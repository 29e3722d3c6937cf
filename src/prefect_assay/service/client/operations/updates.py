"""Operations on updates and webhooks (contract 2.9, 4.5, 4.6 and 6), and on the feed's earlier variant (9.4).

An answer with `updates` and a cursor in place of `items` and totals shows the earlier variant. It would ignore
filters other than the parameters `experiment_id` and `type`: they are sent in that form, or refused.
"""

from collections.abc import Iterator, Mapping
from typing import Final, Unpack

from pydantic import SecretStr

from prefect_assay.errors import InvalidRequest, OutcomeUnknown
from prefect_assay.service.client import checks
from prefect_assay.service.client.answers import about_experiment, about_record
from prefect_assay.service.client.decoding import off_shape, once, page
from prefect_assay.service.client.http.pagination import Pager
from prefect_assay.service.client.http.request import (
    UNSET,
    Answer,
    Operation,
    Request,
    Unset,
    query,
    segment,
    succeeded,
)
from prefect_assay.service.client.lists import (
    Listing,
    PageOptions,
    WalkOptions,
    joined,
    walked,
)
from prefect_assay.service.models.base import Page
from prefect_assay.service.models.update import Update, Webhook

_LIST_AGAIN: Final = "List the webhooks before anything else"


def updates(
    *,
    experiment_id: str | None = None,
    type: str | None = None,  # noqa: A002 - the contract's name
    **options: Unpack[PageOptions],
) -> Operation[Page[Update]]:
    """GET /updates: one page, newest first. `experiment_id` and `type` (such as `status_change`) join the filter.

    UnexpectedAnswer if the service speaks the earlier variant and would ignore an option.
    """
    condition = joined(options.get("filter"), experiment_id=experiment_id, type=type)
    current = Listing("/updates", Update, experiment_id=experiment_id).page({**options, "filter": condition})
    ignored = [name for name in ("filter", "search", "sort", "where", "offset") if options.get(name)]
    own = query(experiment_id=experiment_id, type=type)

    def read(answer: Answer) -> Page[Update]:
        if ignored and _is_earlier(answer):
            raise off_shape(
                answer,
                f"the service speaks the earlier interface, whose feed knows no {', '.join(ignored)}; "
                "use experiment_id and type, and iter_updates for further pages",
            )
        return current.read(answer)

    def instead(answer: Answer) -> Operation[Page[Update]] | None:
        if not own or ignored or not succeeded(answer.status) or not _is_earlier(answer):
            return None
        return _earlier(experiment_id, type, limit=options.get("limit"))

    return Operation(request=current.request, read=read, instead=instead)


def iter_updates(
    *,
    experiment_id: str | None = None,
    type: str | None = None,  # noqa: A002 - the contract's name
    **options: Unpack[WalkOptions],
) -> Pager[Update]:
    """All matching updates: stop reading where the known ones begin. Raises as `updates` does."""
    return walked(
        lambda one_page: updates(experiment_id=experiment_id, type=type, **one_page),
        options,
        after=lambda limit, cursor: _earlier(experiment_id, type, limit=limit, cursor=cursor),
    )


def experiment_updates(experiment_id: str) -> Pager[Update]:
    """GET /experiments/{id}/updates: all of one experiment, oldest first."""
    path = f"/experiments/{segment(experiment_id)}/updates"
    return Listing(path, Update, experiment_id=experiment_id).rows({})


def _earlier(
    experiment_id: str | None, kind: str | None, *, limit: int | None, cursor: str | None = None
) -> Operation[Page[Update]]:
    params = query(experiment_id=experiment_id, type=kind, limit=limit, cursor=cursor)
    operation = Operation(
        request=Request(method="GET", path="/updates", params=params, repeatable=True), read=page(Update)
    )
    return operation if experiment_id is None else about_experiment(operation, experiment_id)


def _is_earlier(answer: Answer) -> bool:
    body = answer.fields()
    return "items" not in body and isinstance(body.get("updates"), list)


def webhooks() -> Operation[tuple[Webhook, ...]]:
    """GET /webhooks: all of the organization, without pages."""
    read = page(Webhook)
    return Operation(
        request=Request(method="GET", path="/webhooks", repeatable=True),
        read=lambda answer: read(answer).items,
    )


def create_webhook(
    url: str, *, secret: SecretStr | str | None = None, headers: Mapping[str, str] | None = None
) -> Operation[Webhook]:
    """POST /webhooks, once. An experiment's own webhook takes precedence over it.

    `url` is an https address that the service reaches from outside, `secret` (at least 32 characters) signs the
    deliveries and never comes back, and every delivery carries the headers, which may hold credentials.

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

    Raises as `create_webhook` does.
    """
    # null is published for the secret only
    fields = {"url": url, "secret": secret, "headers": {} if headers is None else headers, "enabled": enabled}
    operation = _written("PATCH", f"/webhooks/{segment(webhook_id)}", fields, drop=UNSET)
    return about_record(operation, webhook_id)


def delete_webhook(webhook_id: str) -> Operation[None]:
    """DELETE /webhooks/{id}, once; NotFound if it does not exist, OutcomeUnknown as for `create_webhook`."""
    return Operation(
        request=Request(
            method="DELETE",
            path=f"/webhooks/{segment(webhook_id)}",
            lost=OutcomeUnknown,
            after_loss=_LIST_AGAIN,
        ),
        read=lambda _: None,
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
