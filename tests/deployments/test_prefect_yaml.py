"""`deployments/prefect.yaml` against the schema that Prefect makes of its own model, with unknown keys refused.

Prefect ignores a key that it does not know, so that a misspelt schedule or limit would be lost without a word.
"""

from copy import deepcopy
from pathlib import Path

import jsonschema
import pytest
import yaml
from prefect.cli.deploy._models import PrefectYamlModel

FILE = Path(__file__).parents[2] / "deployments" / "prefect.yaml"
SWEEP = -1  # its deployment has every kind of key


@pytest.fixture(scope="module")
def validator():
    schema = PrefectYamlModel.model_json_schema(by_alias=True)
    for part in (schema, *schema["$defs"].values()):
        part["additionalProperties"] = False
    # pydantic writes a timedelta as a text; Prefect also reads seconds.
    schema["$defs"]["RawScheduleConfig"]["properties"]["interval"] = {"type": ["number", "string", "null"]}
    schema["properties"]["definitions"] = {"type": "object"}  # the anchors, as in Prefect's own examples
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture
def content():
    return yaml.safe_load(FILE.read_text())


def test_the_file_has_only_what_prefect_knows(validator, content):
    assert [error.message for error in validator.iter_errors(content)] == []
    assert len(PrefectYamlModel.model_validate(content).deployments) == len(content["deployments"]) == 4


@pytest.mark.parametrize(
    ("where", "key", "value"),
    [
        ((), "deployment", []),
        (("deployments", SWEEP), "entry_point", "prefect_assay.flows.sweep:sweep"),
        (("deployments", SWEEP), "schedules", [{"intervall": 300}]),
        (("deployments", SWEEP), "tags", 1),
        (("deployments", SWEEP, "concurrency_limit"), "collision", "CANCEL_NEW"),
        (("deployments", SWEEP, "work_pool"), "queue", "default"),
    ],
)
def test_a_misspelt_key_is_found(validator, content, where, key, value):
    changed = part = deepcopy(content)
    for step in where:
        part = part[step]
    part[key] = value
    assert list(validator.iter_errors(changed))
