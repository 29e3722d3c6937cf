"""The command line: `prefect-assay` and `python -m prefect_assay.cli`.

`app` declares the commands, and each module beside it is one of them. Nothing may import from here.
"""

from prefect_assay.cli.app import main

__all__ = ["main"]
