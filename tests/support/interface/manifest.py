"""Writes `interface.json`, the interface that the client knows, from the lab's own description.

python tests/support/interface/manifest.py
"""

from pathlib import Path

from prefect_assay.cli.drift import manifest_of
from prefect_assay.client import drift
from prefect_assay.client.drift import facts_of
from prefect_assay.lab.api import document


def current():
    """The manifest as it should be."""
    return manifest_of(facts_of(document(partner=True)))


if __name__ == "__main__":
    Path(drift.__file__).with_name("interface.json").resolve().write_text(current(), encoding="utf-8")
