"""Deploys the flows to a Prefect server, and runs them there.

`setup` registers and deploys what `prefect.yaml` lists. Prefect's workers, which `work_pool` names, or `serve` run it. The
`*.env` files are settings for servers and runners. No module here may hold a secret or know what a flow does.
"""

__all__ = [
    "automations",
    "presets",
    "serve",
    "server_checks",
    "settings_files",
    "setup",
    "sweep_slot",
    "work_pool",
]
