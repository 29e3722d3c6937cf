"""What the lab measures and offers is what the client's models read."""

import pytest

from assay_lab.measure import CATALOG, measure_records
from assay_lab.measure.assays import BINDING_TYPES, METHOD_TYPES
from lab_support.designs import PD_L1, invented_designs, order
from prefect_assay.service.models.result import Result
from prefect_assay.service.models.spec import Target
from prefect_assay.service.models.vocabulary import ExperimentType


@pytest.mark.parametrize("experiment_type", ExperimentType)
@pytest.mark.parametrize("partial", [False, True])
def test_the_models_read_every_entry(experiment_type, partial):
    designs = invented_designs(8)
    [record] = measure_records(
        **order(
            designs,
            experiment_type=experiment_type,
            method="bli" if experiment_type in METHOD_TYPES else None,
            target=PD_L1 if experiment_type in BINDING_TYPES else None,
            partial=partial,
        )
    )
    read = Result.model_validate({"id": "r1", **record})
    assert [entry.name for entry in read.summary] == [row["name"] for row in designs]
    assert {entry.result_type for entry in read.summary} == {experiment_type}


def test_the_models_read_every_target():
    targets = [Target.model_validate(record) for record in CATALOG]
    assert [target.id for target in targets] == [record["id"] for record in CATALOG]
