"""The service's interface as data: the calls and schemas of `openapi.yaml`, which is written by hand.

The document is in neutral words; its first lines explain its `x-` fields. Tests hold the client, the lab and every answer against
it (`tests/support/description.py`), and `drift` compares a service's own description with it.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml  # type: ignore[import-untyped]


@cache
def load_description() -> Mapping[str, Any]:
    """The whole document, read once; do not change it."""
    text = files("prefect_assay.service").joinpath("openapi.yaml").read_text(encoding="utf-8")
    # The loader in C is ten times as fast, and not in every build of PyYAML.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document: dict[str, Any] = yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader in both cases
    return document
