"""Entry point of `python -m prefect_assay.cli`."""

import sys

if not sys.flags.safe_path and __name__ == "__main__":
    del sys.path[0]  # the current folder, whose files would take the place of modules

from prefect_assay.cli.app import main

if __name__ == "__main__":
    main()
