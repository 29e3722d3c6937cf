"""A campaign's plan: it carries the designer's columns, and they refuse nothing."""

import json

from prefect_assay.blocks import LocalArchive
from prefect_assay.models.sequences import ProteinSequence, Sequences
from prefect_assay.models.spec import Assay, Plan
from prefect_assay.models.vocabulary import ExperimentType
from prefect_assay.tasks.collate import keep_plan, kept_plan
from prefect_assay.tasks.read import plan_campaign

ASSAY = Assay(experiment_type=ExperimentType.EXPRESSION)


def plan_of(*columns: dict[str, str]) -> Plan:
    items = tuple(
        ProteinSequence(name=f"d{n}", aa_string="ACD" + "E" * n, attributes=c) for n, c in enumerate(columns)
    )
    sequences = Sequences(source="x", items=items)
    return plan_campaign.fn(sequences, ASSAY, None, campaign_id=None, per_experiment=2)


def test_a_plan_holds_the_designers_columns_and_a_plan_without_them_is_read():
    made = plan_of({"ipTM": "0.9"}, {})
    assert made.attributes == {"d0": {"ipTM": "0.9"}}
    assert Plan.model_validate_json(made.model_dump_json()) == made
    earlier = json.loads(made.model_dump_json())
    del earlier["attributes"], earlier["attributes_left_out"]
    assert Plan.model_validate(earlier).attributes == {}
    assert Plan.model_validate(earlier).order_keys == made.order_keys


def test_other_columns_of_the_same_designs_are_the_same_campaign(tmp_path):
    archive = LocalArchive(root=str(tmp_path))
    first, second = plan_of({"ipTM": "0.9"}), plan_of({"ipTM": "0.8", "round": "2"})
    assert first.campaign_id == second.campaign_id
    keep_plan.fn(archive, first)
    keep_plan.fn(archive, second)
    assert kept_plan(archive, first.campaign_id).attributes == {"d0": {"ipTM": "0.9"}}
