"""`prefect-assay register`, `deploy` and `worker`: set up a Prefect server for the flows, and run them."""

import json
import runpy
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from prefect_assay.cli.prefect_api import api_errors, require_api

if TYPE_CHECKING:
    from prefect_assay.deployments.setup import Registration


def run_register(*, with_automations: bool, as_json: bool) -> None:
    """Register block types and automations."""
    require_api()
    with api_errors():
        from prefect_assay.deployments.setup import register

        registered = register(with_automations=with_automations)
    _show(registered, as_json=as_json)
    if not as_json:
        print("Next: create blocks in the Prefect UI, then `prefect-assay deploy`.")


def run_deploy(*, check: bool, with_automations: bool, as_json: bool) -> None:
    """Deploy to the work pool; `check` only reports what would be done."""
    require_api()
    with api_errors():
        from prefect_assay.deployments.setup import deploy

        registered = deploy(dry_run=check, with_automations=with_automations)
    _show(registered, as_json=as_json)
    if not as_json:
        print("Nothing was changed." if check else "Next: prefect-assay worker")


def run_serve(sweep_seconds: float, *, with_automations: bool) -> None:
    """Register, then serve the flows until stopped."""
    require_api()
    with api_errors():
        from prefect_assay.deployments.serve import serve_flows
        from prefect_assay.deployments.setup import register

        _show(register(with_automations=with_automations), as_json=False)
        serve_flows(timedelta(seconds=sweep_seconds))


def run_worker(arguments: Sequence[str]) -> None:
    """Run the worker until it is stopped; `arguments` are those of `prefect worker start`."""
    require_api()
    module = "prefect_assay.deployments.worker"
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _show(registered: "Registration", *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(_report(registered), indent=2))
        return
    print("block types  " + ", ".join(registered.block_types))
    for title, things in (
        ("work pool", registered.work_pool),
        ("deployment", registered.deployments),
    ):
        for name, presence in things.items():
            print(f"{title:<11}  {name}: {presence}")
    for change in registered.automations:
        print(f"automation   {change.name}: {change.change}" + (f"; {change.note}" if change.note else ""))
    for name in registered.moved:
        print(f"moved        run {name}: its deployment or work pool was made again")
    for sentence in registered.advice:
        print(f"server       {sentence}")


def _report(registered: "Registration") -> dict[str, Any]:
    return {
        "block_types": list(registered.block_types),
        "automations": [
            {"name": c.name, "change": c.change, "enabled": c.enabled, "note": c.note}
            for c in registered.automations
        ],
        "work_pool": _only(registered.work_pool),
        "deployments": dict(registered.deployments),
        "advice": list(registered.advice),
        "moved": list(registered.moved),
    }


def _only(things: Mapping[str, str]) -> dict[str, str] | None:
    return next(({"name": name, "change": change} for name, change in things.items()), None)
