"""The service's interface as data: the calls and schemas of `openapi.yaml`, which is written by hand.

The document is in neutral words; its first lines explain its `x-` fields. Tests hold the client, the lab and every answer against
it (`tests/support/description.py`), and `drift` compares a service's own description with it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

_METHODS: Final = ("get", "put", "post", "patch", "delete")
_PREFIX: Final = re.compile(r"^.*?/api/v\d+(?=/)")


class Need(StrEnum):
    """What a call is to a campaign."""

    NEEDED = "a campaign needs this"
    IMPROVES = "improves"
    UNUSED = "unused"


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What the description says of one call in addition to its shapes."""

    need: Need = Need.UNUSED
    without: str = "nothing is missed"  # what happens to a campaign where the service does not have the call
    section: str | None = None  # of the contract; None for a call that is not in it


@cache
def load_description() -> Mapping[str, Any]:
    """The whole document, read once; do not change it."""
    text = files("prefect_assay.service").joinpath("openapi.yaml").read_text(encoding="utf-8")
    # The loader in C is ten times as fast, and not in every build of PyYAML.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document: dict[str, Any] = yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader in both cases
    return document


def list_calls(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], list[Any]]]:
    """The calls of an OpenAPI document: name, operation, and the parameters that all calls of its path share.

    A name is the method and the path without `/api/v1` and without names of placeholders, such as
    `GET /experiments/{}`.
    """
    for path, item in document["paths"].items():
        for method in _METHODS:
            operation = item.get(method) if isinstance(item, Mapping) else None
            if isinstance(operation, Mapping):
                name = re.sub(r"\{[^}]*\}", "{}", _PREFIX.sub("", path))
                yield f"{method.upper()} {name}", operation, item.get("parameters") or []


def get_call_facts(name: str) -> CallFacts:
    """What the description says of a call such as `GET /experiments/{}`; of one that it does not have, it is unused."""
    return _call_facts().get(name, CallFacts())


@cache
def _call_facts() -> dict[str, CallFacts]:
    return {
        name: CallFacts(
            need=Need[raw["x-need"].upper()] if "x-need" in raw else Need.UNUSED,
            without=raw.get("x-without", CallFacts().without),
            section=raw.get("x-contract"),
        )
        for name, raw, _ in list_calls(load_description())
    }
