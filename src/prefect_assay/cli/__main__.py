"""Entry point of `python -m prefect_assay.cli`."""

from prefect_assay.cli.app import main

if __name__ == "__main__":
    main()
