"""docs/client.md names every method, setting and filter word, and both faces are the same."""

import inspect
import re
from pathlib import Path

from prefect_assay.service.client import (
    AssayClient,
    AsyncAssayClient,
    filters,
    parameters,
)

DOCS = (Path(__file__).parents[3] / "docs" / "client.md").read_text(encoding="utf-8")
NAMED = set(re.findall(r"`([a-z_]+)", DOCS))


def public(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


def test_the_docs_name_every_method():
    assert public(AssayClient) - NAMED == set()


def test_the_docs_name_every_setting():
    settings = set(inspect.signature(AssayClient.__init__).parameters) - {"self"}
    assert settings - NAMED == set()


def test_the_docs_name_every_filter_builder():
    words = {name for module in (filters, parameters) for name in module.__all__ if name[0].islower()}
    assert words - {"tests"} - NAMED == set()


def parameters_of(call):
    return [str(parameter) for parameter in inspect.signature(call).parameters.values()]


def test_both_faces_have_the_same_methods_and_parameters():
    assert public(AssayClient) == public(AsyncAssayClient)
    for name in public(AssayClient) - {"base_url", "is_simulated", "service_time"}:
        one, other = getattr(AssayClient, name), getattr(AsyncAssayClient, name)
        assert parameters_of(one) == parameters_of(other), name
        assert inspect.getdoc(one) == inspect.getdoc(other), name
        assert inspect.getdoc(one), name
