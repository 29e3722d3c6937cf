"""`prefect-assay demo`: one campaign on real designs, end to end, on this machine.

`command` sets the stack up and clears it away, `story` prints, `campaign` reads what really happens. Nothing else may
import from here.
"""

from prefect_assay.cli.demo.command import run_demo

__all__ = ["run_demo"]
