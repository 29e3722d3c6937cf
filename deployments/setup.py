"""Registers block types and automations on a Prefect server, and deploys the flows to a work pool.

Safe to repeat. What an operator has changed stays or is restored.
"""

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal

import yaml  # type: ignore[import-untyped]
from prefect.blocks.core import Block
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import DeploymentUpdate
from prefect.client.schemas.responses import DeploymentResponse
from prefect.exceptions import ObjectNotFound

from prefect_assay import blocks
from prefect_assay.blocks.archives import ARCHIVES
from prefect_assay.blocks.deployment_runs import deployment_of, find_deployment
from prefect_assay.blocks.wallets import WALLETS
from prefect_assay.deployments.automations import (
    CANCEL,
    AutomationChange,
    make_cancellation_automation,
    register_automations,
)
from prefect_assay.deployments.event_automations import check_choices, make_chosen_automations
from prefect_assay.deployments.presets import fill_account_into_forms
from prefect_assay.deployments.server_checks import settings_advice, sweep_advice
from prefect_assay.deployments.work_pool import PROCESS, WORK_POOL
from prefect_assay.errors import ConfigurationError

_SWEEP: Final = deployment_of("sweep")
_DECIDE: Final = deployment_of("decide")
_BLOCKS: Final[tuple[type[Block], ...]] = (
    blocks.AssayAccount,
    blocks.AssayCredentials,
    blocks.SpendingPolicy,
    *WALLETS,
    blocks.WebhookEndpoint,
    *ARCHIVES,
    blocks.AssayExperiment,
)

Presence = Literal["created", "present"]


@dataclass(frozen=True)
class WorkPool:
    """The work pool, and whether it existed."""

    name: str
    change: Presence
    type: str = PROCESS
    needs_worker: bool = True  # False: Prefect starts the runs itself (a push pool, a managed pool)


@dataclass(frozen=True)
class Registration:
    """The state of the server after registering, or with a dry run: the state it would get."""

    block_types: tuple[str, ...]
    automations: tuple[AutomationChange, ...]
    work_pool: WorkPool | None  # None if only registered
    deployments: Mapping[str, Presence]  # as `flow/name`, and whether they existed
    advice: tuple[str, ...] = ()  # risks of the server's settings and of operators' changes, as sentences
    presets: tuple[str, ...] = ()  # the deployments into whose form the account was filled


def register_all(
    *, dry_run: bool = False, with_automations: bool = True, chosen: Sequence[str] = ()
) -> Registration:
    """Register the block types and, once `decide` is deployed, the automation on Cancelled; `dry_run` only reports.

    `chosen` automations (`NAME=TARGET`) are registered as well; those of an earlier registration stay.

    Raises:
        ConfigurationError: a choice is unknown, or its target does not exist.
    """
    if not dry_run:
        for block in _BLOCKS:
            block.register_type_and_schema()
    with get_client(sync_client=True) as client:
        changes = register_cancellation_automation(client, dry_run=dry_run) if with_automations else ()
        changes += register_automations(client, make_chosen_automations(client, chosen), dry_run=dry_run)
        advised = settings_advice(client)
    slugs = tuple(block.get_block_type_slug() for block in _BLOCKS)
    return Registration(slugs, changes, work_pool=None, deployments={}, advice=advised)


def register_cancellation_automation(
    client: SyncPrefectClient, *, dry_run: bool = False
) -> tuple[AutomationChange, ...]:
    """Register the automation on Cancelled, which starts `decide`; before that is deployed, there is nothing to start."""
    decide = find_deployment(client, _DECIDE)
    if decide is None:
        later = "it needs the deployment, and is registered after it"
        return (AutomationChange(CANCEL, "created", note=later),) if dry_run else ()
    return register_automations(client, [make_cancellation_automation(decide.id)], dry_run=dry_run)


def deploy_all(
    *,
    work_pool: str | None = None,
    dry_run: bool = False,
    with_automations: bool = True,
    chosen: Sequence[str] = (),
) -> Registration:
    """Register everything, deploy what `prefect.yaml` lists to a work pool of any type, and fill saved blocks into its forms.

    The pool is `work_pool`, else that of the existing deployments, else `assay`, which alone is created, for processes.

    An existing deployment keeps what operators change: paused or not, schedules, default parameters, job variables,
    another concurrency limit.

    Raises:
        ConfigurationError: the pool does not exist; Prefect refused, with its output; or as `register`.
    """
    check_choices(chosen)
    shipped = shipped_deployments()
    with get_client(sync_client=True) as client:
        present = _read_existing_deployments(client, shipped)
        pool = _ensure_work_pool(client, work_pool or _pool_of(present) or WORK_POOL, dry_run=dry_run)
        registered = register_all(dry_run=dry_run, with_automations=False)
        if not dry_run:
            _apply_file(in_work_pool(keep_schedules_and_pauses(shipped, present), pool.name))
            for name, before in present.items():
                _restore_operators_choices(client, before, client.read_deployment_by_name(name))
        presets = fill_account_into_forms(client, dry_run=dry_run)
        changes = register_cancellation_automation(client, dry_run=dry_run) if with_automations else ()
        changes += register_automations(client, make_chosen_automations(client, chosen), dry_run=dry_run)
    return replace(
        registered,
        automations=changes,
        work_pool=pool,
        deployments={name: "present" if name in present else "created" for name in _list_names(shipped)},
        advice=registered.advice + sweep_advice(present.get(_SWEEP)),
        presets=presets,
    )


def shipped_deployments() -> dict[str, Any]:
    """The content of `prefect.yaml`."""
    text = (files("prefect_assay.deployments") / "prefect.yaml").read_text(encoding="utf-8")
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def keep_schedules_and_pauses(
    shipped: Mapping[str, Any], present: Mapping[str, DeploymentResponse]
) -> dict[str, Any]:
    """The file to apply where some deployments exist: they keep their schedules and stay paused."""
    entries = []
    for entry in shipped["deployments"]:
        existing = present.get(_read_name(entry))
        if existing is None:
            entries.append(entry)
        else:
            # Prefect keeps the schedules of a deployment for which the file names none.
            entries.append({k: v for k, v in entry.items() if k != "schedules"} | {"paused": existing.paused})
    return {**shipped, "deployments": entries}


def in_work_pool(content: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The file to apply with all deployments in this pool; each keeps its queue."""
    entries = [
        {**entry, "work_pool": {**entry["work_pool"], "name": name}} for entry in content["deployments"]
    ]
    return {**content, "deployments": entries, "definitions": {}}


def operators_choices(before: DeploymentResponse, after: DeploymentResponse) -> dict[str, Any]:
    """What deploying has overwritten and must be restored, as fields of a `DeploymentUpdate`."""
    choices: dict[str, Any] = {}
    for name in ("job_variables", "parameters"):
        deployed = getattr(after, name) or {}
        chosen = deployed | (getattr(before, name) or {})
        if chosen != deployed:
            choices[name] = chosen
    limit, shipped = before.global_concurrency_limit, after.global_concurrency_limit
    if limit is not None and limit.limit != (shipped.limit if shipped else None):
        choices["concurrency_limit"] = limit.limit
        if before.concurrency_options is not None:
            choices["concurrency_options"] = before.concurrency_options
    return choices


def _restore_operators_choices(
    client: SyncPrefectClient, before: DeploymentResponse, after: DeploymentResponse
) -> None:
    # Not through the file: Prefect would resolve references in it, and write secrets in place of references.
    choices = operators_choices(before, after)
    if choices:
        client.update_deployment(before.id, DeploymentUpdate(**choices))


def _read_name(entry: Mapping[str, Any]) -> str:
    return f"{entry['entrypoint'].rpartition(':')[2].replace('_', '-')}/{entry['name']}"


def _list_names(shipped: Mapping[str, Any]) -> list[str]:
    return [_read_name(entry) for entry in shipped["deployments"]]


def _read_existing_deployments(
    client: SyncPrefectClient, shipped: Mapping[str, Any]
) -> dict[str, DeploymentResponse]:
    deployments = {name: find_deployment(client, name) for name in _list_names(shipped)}
    return {name: one for name, one in deployments.items() if one is not None}


def _apply_file(content: Mapping[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "prefect.yaml"
        path.write_text(yaml.safe_dump(dict(content), sort_keys=False), encoding="utf-8")
        _run_prefect("--no-prompt", "deploy", "--all", "--prefect-file", str(path))


def _pool_of(present: Mapping[str, DeploymentResponse]) -> str | None:
    return next(
        (deployment.work_pool_name for deployment in present.values() if deployment.work_pool_name), None
    )


def _ensure_work_pool(client: SyncPrefectClient, name: str, *, dry_run: bool) -> WorkPool:
    """Create the default pool; an existing one is not changed, because operators adapt its job template."""
    try:
        pool = client.read_work_pool(name)
    except ObjectNotFound:
        if name != WORK_POOL:
            raise ConfigurationError(
                f"the work pool {name!r} does not exist; create it with `prefect work-pool create {shlex.quote(name)} --type docker` "
                "(or process, kubernetes, ecs, ...), then deploy again"
            ) from None
        if not dry_run:
            _run_prefect("work-pool", "create", name, "--type", PROCESS)
        return WorkPool(name, "created")
    needs_worker = not (pool.is_push_pool or pool.is_managed_pool)
    return WorkPool(name, "present", pool.type, needs_worker=needs_worker)


def _run_prefect(*arguments: str) -> None:
    """Run Prefect's own command, which knows its file format and rules."""
    done = subprocess.run(  # noqa: S603 - this interpreter, our own arguments
        [sys.executable, "-P", "-m", "prefect", *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ConfigurationError(
            f"prefect {' '.join(arguments)} failed:\n{done.stdout.strip()}\n{done.stderr.strip()}"
        )
