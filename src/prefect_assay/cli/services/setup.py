"""`prefect-assay register` and `deploy`: set up a Prefect server for the flows."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from prefect_assay.cli.output import print_json
from prefect_assay.cli.prefect_api import api_errors, require_api

if TYPE_CHECKING:
    from prefect_assay.deployments.setup import Registration


def run_register(*, with_automations: bool, chosen: Sequence[str], as_json: bool) -> None:
    """Register block types and automations."""
    require_api()
    with api_errors():
        from prefect_assay.deployments.setup import register_all

        registered = register_all(with_automations=with_automations, chosen=chosen)
    _show_registered(registered, as_json=as_json)
    if not as_json:
        print(
            "Next: `prefect-assay init` asks for the blocks of a campaign and saves them; then `prefect-assay deploy`."
        )


def run_deploy(
    *, work_pool: str | None, check: bool, with_automations: bool, chosen: Sequence[str], as_json: bool
) -> None:
    """Deploy to a work pool; `check` only reports what would be done."""
    require_api()
    with api_errors():
        from prefect_assay.deployments.setup import deploy_all

        registered = deploy_all(
            work_pool=work_pool, dry_run=check, with_automations=with_automations, chosen=chosen
        )
    _show_registered(registered, as_json=as_json)
    if not as_json:
        print("Nothing was changed." if check else "\n".join(_next_steps(registered)))


def _next_steps(registered: "Registration") -> Iterator[str]:
    from prefect_assay.deployments.work_pool import worker_commands

    pool = registered.work_pool
    if pool is None or not pool.needs_worker:
        yield "Next: `prefect-assay check`. Prefect starts the runs of this pool; it needs no worker."
        return
    commands = worker_commands(pool.name, pool.type)
    yield f"Next: {'two workers' if len(commands) > 1 else 'a worker'} under a supervisor:"
    yield from (f"  {command}" for command in commands)


def run_serve(sweep_seconds: float, *, with_automations: bool) -> None:
    """Register, then serve the flows until stopped."""
    require_api()
    with api_errors():
        from prefect_assay.deployments.serve import paused_sweep_advice, serve_flows
        from prefect_assay.deployments.setup import register_all

        registered = register_all(with_automations=with_automations)
        _show_registered(replace(registered, advice=registered.advice + paused_sweep_advice()), as_json=False)
        serve_flows(timedelta(seconds=sweep_seconds), with_automations=with_automations)


def _show_registered(registered: "Registration", *, as_json: bool) -> None:
    if as_json:
        print_json(asdict(registered))
        return
    print("block types  " + ", ".join(registered.block_types))
    if registered.work_pool:
        print(
            f"work pool    {registered.work_pool.name} ({registered.work_pool.type}): {registered.work_pool.change}"
        )
    for name, presence in registered.deployments.items():
        print(f"deployment   {name}: {presence}")
    for name in registered.presets:
        print(f"form         {name}: the account main")
    for change in registered.automations:
        print(f"automation   {change.name}: {change.change}" + (f"; {change.note}" if change.note else ""))
    for sentence in registered.advice:
        print(f"server       {sentence}")
