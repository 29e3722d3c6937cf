"""Names of task runs: mapped calls can be told apart, and every field of a name is a parameter of its task."""

import inspect
import string

import pytest
from prefect import Task

from prefect_assay import tasks
from prefect_assay.service.models.spec import ExperimentSpec

NAMED = [
    task for task in vars(tasks).values() if isinstance(task, Task) and isinstance(task.task_run_name, str)
]


def spec(*residues):
    designs = {f"d{n}": {"aa_string": text} for n, text in enumerate(residues)}
    return ExperimentSpec.model_validate({"experiment_type": "expression", "sequences": designs})


def estimate(specification):
    return tasks.estimate_cost.task_run_name(parameters={"credentials": None, "spec": specification})


def test_estimates_are_named_after_their_designs():
    names = [estimate(spec(*["ACDEFGHIKL"] * n)) for n in range(1, 51)]
    assert len(set(names)) == 50
    assert names[23].startswith("estimate-cost-24-designs-")
    assert estimate(spec("ACDEFGHIKL")) == names[0] != estimate(spec("ACDEFGHIKV"))


@pytest.mark.parametrize("task", NAMED, ids=lambda task: task.name)
def test_a_name_begins_with_its_task_and_has_fields_of_its_parameters(task):
    assert task.task_run_name.startswith(f"{task.name}-")
    fields = [field for _, field, _, _ in string.Formatter().parse(task.task_run_name) if field]
    assert {field.split(".")[0] for field in fields} <= set(inspect.signature(task.fn).parameters)


def test_only_the_tasks_that_a_campaign_has_once_need_no_names():
    named = {"estimate-cost", *(task.name for task in NAMED)}
    assert {task.name for task in vars(tasks).values() if isinstance(task, Task)} - named == {
        "check-access",
        "collate-campaign",
        "save-plan",
        "plan-campaign",
        "read-designs",
        "report-campaign",
    }
