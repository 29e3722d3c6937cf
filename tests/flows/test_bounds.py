"""Every value that a form, a model or a block takes is one that Prefect's database, JSON and a browser keep as it is."""

import json
import math

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prefect.blocks.core import Block
from prefect.exceptions import ParameterTypeError
from prefect.utilities.callables import parameter_schema
from pydantic import ValidationError

from prefect_assay import blocks
from prefect_assay.designs.selection import SelectionSettings
from prefect_assay.flows.campaign import campaign
from prefect_assay.flows.decide import decide
from prefect_assay.flows.design_build_test import design_build_test
from prefect_assay.flows.sweep import sweep
from prefect_assay.service.bounds import (
    DEPTH_MAX,
    NUMBER_MAX,
    FreeForm,
    unstorable,
)
from prefect_assay.service.models.spec import Assay

FLOWS = (campaign, decide, design_build_test, sweep)
BLOCKS = [
    value
    for name in blocks.__all__
    if isinstance(value := getattr(blocks, name), type) and issubclass(value, Block)
]
_LOWER, _UPPER = {"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}


def unbounded(schema, definitions, place, seen=frozenset()):
    """The places of a schema that take a number, a text, a list or a mapping of any size."""
    if reference := schema.get("$ref"):
        name = reference.rsplit("/", 1)[-1]
        if name not in seen:
            yield from unbounded(definitions[name], definitions, f"{place}<{name}>", seen | {name})
        return
    if not bounded(schema):
        yield f"{place}: {schema.get('type', 'anything')}"
    for name, inner in schema.get("properties", {}).items():
        yield from unbounded(inner, definitions, f"{place}.{name}", seen)
    several = (inner for word in ("anyOf", "oneOf", "allOf", "prefixItems") for inner in schema.get(word, ()))
    within = (
        schema[word] for word in ("items", "additionalProperties") if isinstance(schema.get(word), dict)
    )
    for inner in (*several, *within):
        yield from unbounded(inner, definitions, f"{place}[]", seen)


def bounded(schema):
    words = schema.keys()
    match schema.get("type"):
        case "integer" | "number":
            return bool(words & _LOWER and words & _UPPER)
        case "string":
            return bool(words & {"maxLength", "enum", "const"})
        case "array":
            return "maxItems" in words
        case "object":
            return "properties" in words or schema.get("additionalProperties", True) is not True
        case None:
            return bool(words & {"anyOf", "oneOf", "allOf", "enum", "const"})
    return True


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_every_parameter_of_a_flow_has_bounds(flow):
    schema = parameter_schema(flow).model_dump_for_openapi()
    assert list(unbounded(schema, schema.get("definitions", {}), flow.name)) == []


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.__name__)
def test_every_field_of_a_block_has_bounds(block):
    schema = block.model_json_schema()
    definitions = schema.get("$defs") or schema.get("definitions") or {}
    inner = {name: other.model_json_schema() for name, other in ((b.__name__, b) for b in BLOCKS)}
    places = list(unbounded(schema, {**models(), **inner, **definitions}, block.__name__))
    # Prefect leaves `additionalProperties` out of a block's schema; the model refuses.
    assert [place for place in places if place != "AssayExperiment.assay<Assay>.parameters: object"] == []


def models():
    schema = parameter_schema(campaign).model_dump_for_openapi()
    return schema["definitions"]


def test_an_unbounded_value_is_found():
    schema = {
        "type": "object",
        "properties": {"a": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}]}, "b": {}},
    }
    assert list(unbounded(schema, {}, "x")) == ["x.a[]: integer", "x.b: anything"]


HUGE = 99999999999999999999


@pytest.mark.parametrize(
    "make",
    [
        lambda: SelectionSettings(seed=2**100),
        lambda: SelectionSettings(max_per_cluster=HUGE),
        lambda: SelectionSettings(hit_limit=math.inf),
        lambda: SelectionSettings(controls=("a\0",)),
        lambda: SelectionSettings(score_column="a\ud800"),
        lambda: Assay(parameters={"x": 10**30}),
        lambda: Assay(parameters={"x": [{"y": math.nan}]}),
        lambda: Assay(parameters={"x": "a\0b"}),
        lambda: Assay(parameters={"a": {"b": {"c": {"d": {}}}}}),
        lambda: Assay(antigen_concentrations=(math.inf,)),
        lambda: blocks.SpendingPolicy(per_experiment_usd=HUGE, per_campaign_usd=0.01),
        lambda: blocks.SpendingPolicy(per_experiment_usd=-0.01, per_campaign_usd=0.01),
        lambda: blocks.LocalArchive(root="a\0b"),
    ],
)
def test_a_value_that_is_not_kept_is_refused(make):
    with pytest.raises(ValidationError) as refused:
        make()
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize(
    ("flow", "parameter", "value"),
    [
        (campaign, "spend_up_to_usd", HUGE),
        (campaign, "designs", "x\0"),
        (design_build_test, "budget_usd", HUGE),
        (design_build_test, "rounds", {"goal_tm_C": math.nan}),
        (design_build_test, "rounds", {"stop_after_flat_rounds": HUGE}),
        (campaign, "options", {"waiting": {"poll_seconds": math.inf}}),
        (campaign, "campaign_id", "x" * 61),
        (sweep, "full_check_minutes", HUGE),
    ],
)
def test_a_parameter_that_is_not_kept_is_refused_in_code_and_by_the_form(flow, parameter, value):
    with pytest.raises(ParameterTypeError, match=parameter):
        flow.validate_parameters({parameter: value})
    if "nan" not in repr(value):  # JSON has none
        schema = parameter_schema(flow).model_dump_for_openapi()
        of_parameter = schema["properties"][parameter] | {"definitions": schema.get("definitions", {})}
        assert not jsonschema.Draft202012Validator(of_parameter).is_valid(value)


FREE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(blacklist_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=5), FREE, max_size=4))
def test_a_free_form_value_is_kept_as_it_is_or_refused(value):
    """What passes goes through JSON unchanged, and what does not pass is refused by the same rule at any depth."""
    if any(unstorable(value)):
        return
    text = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    assert b"\0" not in text
    assert json.loads(text, parse_int=exact) == value
    assert depth(value) <= DEPTH_MAX


def exact(digits):
    assert int(float(digits)) == int(digits)  # what a browser makes of it
    return int(digits)


def depth(value):
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(
        (depth(item) for item in (value.values() if isinstance(value, dict) else value)), default=0
    )


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), FREE, max_size=4))
def test_the_form_and_the_model_refuse_the_same_free_form_values(value):
    """But for texts within keys, which a schema of values does not see, and NaN, which JSON does not have."""
    findings = [f for f in unstorable(value) if "name that is not text" not in f]
    if "NaN" in repr(value) or "nan" in repr(value) or len(findings) != len(list(unstorable(value))):
        return
    schema = FreeForm.__metadata__[-1].json_schema_extra
    assert jsonschema.Draft202012Validator({"type": "object", **schema}).is_valid(value) == (not findings)


def test_the_largest_number_is_kept():
    assert Assay(parameters={"x": NUMBER_MAX, "y": -NUMBER_MAX}).parameters == {
        "x": NUMBER_MAX,
        "y": -NUMBER_MAX,
    }
    with pytest.raises(ValidationError, match="not kept exactly"):
        Assay(parameters={"x": NUMBER_MAX + 1})
