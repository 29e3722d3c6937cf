"""Writes `interface.json`, the interface that the client knows, from the lab's own description.

python tests/support/interface/manifest.py
"""

import json
from pathlib import Path

from assay_lab.api import document
from prefect_assay.service.client import drift
from prefect_assay.service.client.drift import facts_of


def current():
    """The manifest as it should be."""
    return manifest_of(facts_of(document(partner=True)))


def manifest_of(facts):
    """One line for each place, so that a change of the file can be read."""
    operations = []
    for name, places in facts.items():
        lines = [
            f"  {json.dumps(place)}: {json.dumps(fact, sort_keys=True)}" for place, fact in places.items()
        ]
        operations.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(operations) + "\n}\n"


if __name__ == "__main__":
    Path(drift.__file__).with_name("interface.json").resolve().write_text(current(), encoding="utf-8")
