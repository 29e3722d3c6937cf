"""The forms of the flows, as Prefect's server makes and checks them."""

import pytest
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import build_error_obj, validate

from prefect_assay.designs.options import USUAL
from prefect_assay.flows import campaign, decide, design_build_test, sweep
from prefect_assay.service.assays import BINDING_TYPES
from prefect_assay.service.models.spec import Assay
from prefect_assay.service.models.vocabulary import ExperimentType
from support.accounts import make_account

BLOCK = {"$ref": {"block_document_id": "0190a3c4-0000-7000-8000-000000000000"}}
GIVEN = {"designs": ">a\nMKV\n", "account": BLOCK}
TARGET = "Human EGFR, extracellular domain"
OTHERS = sorted(set(ExperimentType) - BINDING_TYPES)
FLOWS = (campaign, decide, design_build_test, sweep)


def schema_of(flow):
    return parameter_schema(flow).model_dump_for_openapi()


def errors_of(assay, **options):
    return validate(GIVEN | {"assay": assay}, schema_of(campaign), **options)


@pytest.mark.parametrize("assay", [{}, *({"experiment_type": kind} for kind in sorted(BINDING_TYPES))])
@pytest.mark.parametrize("target", [{}, {"target": None}, {"target": ""}], ids=["missing", "null", "empty"])
def test_a_binding_assay_without_a_target_is_refused_at_its_field(assay, target):
    (error,) = build_error_obj(errors_of(assay | target))["errors"]
    assert (error["property"], error["errors"][0]["property"]) == ("assay", "target")
    assert errors_of(assay | {"target": TARGET}) == []


@pytest.mark.parametrize("kind", OTHERS)
def test_another_assay_takes_no_target(kind):
    assert [e.json_path for e in errors_of({"experiment_type": kind, "target": TARGET})] == ["$.assay.target"]
    for empty in ({}, {"target": None}, {"target": ""}):
        assert errors_of({"experiment_type": kind} | empty) == []


def test_what_code_sends_passes():
    for kind in ExperimentType:
        assay = Assay(experiment_type=kind, target=TARGET if kind in BINDING_TYPES else None)
        assert errors_of(assay.model_dump(mode="json")) == []


def test_defaults_of_a_deployment_may_be_incomplete():
    for assay in ({}, {"target": None}, {"experiment_type": "thermostability", "target": TARGET}):
        assert errors_of(assay, ignore_required=True) == []


@pytest.mark.parametrize(
    ("flow", "first"),
    [
        (
            campaign,
            ["Designs", "What to measure", "Account", "Spend without asking up to (USD)", "Campaign name"],
        ),
        (
            design_build_test,
            [
                *("Folder of design files", "Designer", "Loop name", "What to measure", "Account"),
                *("Budget of all rounds (USD)", "Rounds"),
            ],
        ),
    ],
)
def test_a_form_shows_what_is_decided_and_keeps_everything_else_in_one_group(flow, first):
    fields = schema_of(flow)["properties"].values()
    shown = [field["title"] for field in sorted(fields, key=lambda field: field["position"])]
    assert shown == [*first, "More options"]


@pytest.mark.parametrize(
    "left_empty",
    [
        {"spend_up_to_usd": None, "campaign_id": None},
        {"options": {"reading": {"chain": None}, "spending": {"payment_method": None}}},
        {"options": USUAL.model_dump(mode="json")},
    ],
)
def test_what_is_left_empty_is_shown_at_once_and_may_be_sent_as_null(left_empty):
    """Both interfaces hide a field whose schema names null behind a switch."""
    schema = schema_of(campaign)
    parameters = GIVEN | {"assay": {"experiment_type": "thermostability"}} | left_empty
    assert validate(parameters, schema) == []
    for name in ("spend_up_to_usd", "campaign_id"):
        assert not schema["properties"][name].keys() & {"anyOf", "default"}
    assert campaign.validate_parameters(parameters | {"account": make_account()})["options"] == USUAL


@pytest.mark.parametrize("flow", FLOWS, ids=lambda flow: flow.name)
def test_every_field_has_a_title_and_help_in_the_users_words(flow):
    schema = schema_of(flow)
    blocks = {name for name, kind in schema["definitions"].items() if "block_type_slug" in kind}
    forms = {"": schema} | {n: kind for n, kind in schema["definitions"].items() if n not in blocks}
    for name, form in forms.items():
        assert "ontract" not in form.get("description", ""), name
        for field, shown in form.get("properties", {}).items():
            assert shown["title"][0].isupper(), f"{name}.{field} is titled {shown['title']}"
            # The interfaces take the help of a field without its own from what it refers to.
            kind = schema["definitions"].get(shown.get("$ref", "").rpartition("/")[2], {})
            text = shown.get("description") or kind.get("description")
            assert text, f"{name}.{field}"
            assert "ontract" not in text, f"{name}.{field}"
