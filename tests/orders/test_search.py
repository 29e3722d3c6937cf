"""Experiment names as the service's `search` finds them (contract 4.1: a substring of the name)."""

from prefect_assay.orders.find import find_order
from prefect_assay.orders.identity import experiment_name, search_token
from prefect_assay.service.models.experiment import CreateRequest
from prefect_assay.service.models.spec import ExperimentSpec
from support.services.order_service import ledgers

SPEC = ExperimentSpec.model_validate({"experiment_type": "expression", "sequences": {"a": "ACD"}})


def test_a_search_finds_the_order_whatever_its_label_says(service, tmp_path):
    key, other = "0a" * 10, "1b" * 10
    label = f"notes {search_token(other)} {search_token(other).upper()} x{search_token(other)}x"
    name = experiment_name(label, 0, 2, key)
    made = service.experiments.create(CreateRequest(experiment_spec=SPEC, name=name))
    logs = ledgers(tmp_path)
    assert find_order(service, logs.open_order("camp", key), SPEC).experiment_id == made.experiment_id
    assert find_order(service, logs.open_order("camp", other), SPEC) is None
    assert service.experiments.list(search=search_token(other)).items == ()


def test_a_search_finds_part_of_a_name_in_any_letter_case(service):
    made = service.experiments.create(CreateRequest(experiment_spec=SPEC, name="one two-three four"))
    assert [e.id for e in service.experiments.list(search="O-THREE F").items] == [made.experiment_id]
