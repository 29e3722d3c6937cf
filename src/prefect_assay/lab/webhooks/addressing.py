"""Where an update's deliveries go, and whose secret signs them (contract 6, rule 2; service shapes, webhooks)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from prefect_assay.lab.kernel.store import Db, Row, load
from prefect_assay.lab.requests.core import Lab

Step = Literal["experiment", "organization", "deployment"]


@dataclass(frozen=True, slots=True)
class Signing:
    """The secret of a delivery.

    Attributes:
        secret: what signs it.
        step: which of the three steps the secret comes from.
        replaced: what signed before the last change, if there was one.
    """

    secret: str = field(repr=False)
    step: Step
    replaced: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Destination:
    """Where one delivery goes: the experiment's own address, or a webhook of the organisation."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    webhook: Row | None = field(repr=False)


def recipients(db: Db, experiment: Row) -> list[str | None]:
    """Who gets an update, as outbox rows name it: None is the experiment's own address.

    An experiment's own webhook overrides the organisation's; without one, every enabled webhook of the
    organisation gets the delivery.
    """
    return choose(experiment, of_organization(db, experiment["org_id"]))


def choose(experiment: Row, everybody: list[str | None]) -> list[str | None]:
    """Who gets an update, out of the organisation's webhooks."""
    return [None] if experiment["webhook_url"] else everybody


def of_organization(db: Db, org_id: str) -> list[str | None]:
    """The organisation's enabled webhooks, oldest first."""
    return db.column("SELECT id FROM webhooks WHERE org_id = ? AND enabled ORDER BY seq", org_id)


def destination(db: Db, experiment: Row, webhook_id: str | None) -> Destination | None:
    """The address as it is now, because it can change at any time; None when there is none any more."""
    if webhook_id is None:
        own = experiment["webhook_url"]
        return Destination(own, {}, None) if own else None
    row = db.one("SELECT * FROM webhooks WHERE id = ? AND enabled", webhook_id)
    return Destination(row["url"], load(row, "headers")["headers"], row) if row else None


def signing(lab: Lab, db: Db, experiment: Row, webhook: Row | None) -> Signing:
    """The experiment's secret, else the organisation's, else the deployment's (contract 6, rule 2)."""
    if experiment["webhook_secret"]:
        return Signing(experiment["webhook_secret"], "experiment", _replaced(db, experiment["id"]))
    owner, secret = organization_secret(db, experiment["org_id"], webhook)
    ids = [experiment["id"], webhook["id"] if webhook else None, owner, experiment["org_id"]]
    replaced = _replaced(db, *ids)
    if secret is None:
        return Signing(lab.settings.deployment_secret, "deployment", replaced)
    return Signing(secret, "organization", replaced)


def organization_secret(db: Db, org_id: str, webhook: Row | None) -> tuple[str | None, str | None]:
    """The organisation's secret, and the id of the row that holds it.

    It is the webhook's own; for a webhook without one, and for an experiment's own address, the one seeded for the
    whole organisation; else that of its oldest enabled webhook that has one.
    """
    if webhook is not None and webhook["secret"]:
        return webhook["id"], webhook["secret"]
    org = db.one("SELECT webhook_secret FROM organizations WHERE id = ?", org_id)
    if org and org["webhook_secret"]:
        return org_id, org["webhook_secret"]
    oldest = db.one(
        "SELECT id, secret FROM webhooks WHERE org_id = ? AND enabled AND secret IS NOT NULL ORDER BY seq LIMIT 1",
        org_id,
    )
    return (oldest["id"], oldest["secret"]) if oldest else (None, None)


def keep_replaced(db: Db, owner: str, secret: str, at: datetime) -> None:
    """Remember the secret with which `owner` (experiment, webhook or organisation) signed until now."""
    db.run("DELETE FROM replaced_secrets WHERE id = ?", owner)
    db.insert("replaced_secrets", {"id": owner, "secret": secret, "replaced_at": at})


def _replaced(db: Db, *owners: str | None) -> str | None:
    for owner in owners:
        row = db.one("SELECT secret FROM replaced_secrets WHERE id = ?", owner) if owner else None
        if row is not None:
            return str(row["secret"])
    return None
