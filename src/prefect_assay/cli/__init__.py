"""The command line: `prefect-assay` and `python -m prefect_assay.cli`.

`app` declares the commands, and each module next to it is one of them. Nothing may import from here. `main` imports
`app` when it runs, because `__main__` first takes the current folder out of the search path.
"""

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    from prefect_assay.cli.app import main as run_commands

    run_commands()
