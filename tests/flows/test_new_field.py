"""A field of the request is added in one file: form, command, job, loop, order key and request body follow."""

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

from breaks.play import ROOT, Copy
from prefect_assay.service.models.spec import Assay, ExperimentSpec

FIELD = """
    running_buffer: str | None = Field(
        default=None, title="Running buffer", description="What the proteins are measured in."
    )
"""
LOOK = """
import json
from typer.main import get_command
from prefect.utilities.callables import parameter_schema
from prefect_assay.blocks import AssayExperiment
from prefect_assay.cli.app import app
from prefect_assay.flows import campaign, design_build_test
from prefect_assay.service.models.spec import Assay, ExperimentSpec
from prefect_assay.service.models.sequences import Batch, ProteinSequence
from prefect_assay.service.models.experiment import Experiment
from prefect_assay.orders.identity import evidence, order_key

def form(flow):
    return "running_buffer" in parameter_schema(flow).model_dump_for_openapi()["definitions"]["Assay"]["properties"]

def options(command):
    return [name for parameter in get_command(app).commands[command].params for name in parameter.opts]

def spec(buffer):
    batch = Batch(index=0, count=1, items=(ProteinSequence(name="a", aa_string="MKVLAAGTWYHHEEDDKK"),))
    return ExperimentSpec.of(Assay(experiment_type="expression", running_buffer=buffer), batch, None)

def differences(shown):
    record = {"id": "e1", "status": "draft", "experiment_spec": {"running_buffer": shown}}
    return list(evidence(spec("PBS"), Experiment.model_validate(record)).differs)

print(json.dumps({
    "forms": [form(campaign), form(design_build_test)],
    "job": "running_buffer" in json.dumps(AssayExperiment.model_json_schema()),
    "commands": ["--running-buffer" in options(command) for command in ("estimate", "run", "loop")],
    "request": spec("PBS").wire().get("running_buffer"),
    "unset": "running_buffer" in spec(None).wire(),
    "differences": [differences("PBS"), differences("HEPES")],
    "another order": order_key("c", 0, spec("PBS")) != order_key("c", 0, spec(None)),
}))
"""


def test_a_request_field_is_added_to_its_two_models_in_one_file(tmp_path):
    (file,) = {Path(inspect.getfile(model)).resolve().relative_to(ROOT) for model in (Assay, ExperimentSpec)}
    copy = Copy.make(ROOT, tmp_path / "copy")
    path = copy.root / file
    text = path.read_text(encoding="utf-8")
    marker = "    antigen_concentrations: Concentrations"
    assert text.count(marker) == 2
    path.write_text(text.replace(marker, FIELD + marker), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(copy.root / "build" / "package")}
    looked = subprocess.run(
        [sys.executable, "-c", LOOK],
        cwd=copy.root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert looked.returncode == 0, looked.stderr
    assert json.loads(looked.stdout.splitlines()[-1]) == {
        "forms": [True, True],
        "job": True,
        "commands": [True, True, True],
        "request": "PBS",
        "unset": False,
        "differences": [[], ["running_buffer: 'HEPES', not 'PBS'"]],
        "another order": True,
    }
