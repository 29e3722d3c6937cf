"""The files of `deployments/production/` agree with each other and with the package."""

import itertools
import json
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from prefect.server.concurrency.lease_storage.filesystem import ConcurrencyLeaseStorage
from prefect.settings import get_current_settings

from prefect_assay.campaigns.receiver.settings import ENV_PREFIX, ReceiverSettings
from prefect_assay.deployments.settings_files import EMBEDDED, POSTGRES, read_shipped_settings

ROOT = Path(__file__).parents[2]
FILES = ROOT / "deployments" / "production"
KUBERNETES = FILES / "kubernetes"


class _CloudFormation(yaml.SafeLoader):
    """Reads `!Ref x` and the like as their text."""


def _plain(loader, _, node):
    """`!GetAtt a.b` as `a.b`."""
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_scalar(node)


_CloudFormation.add_multi_constructor("!", _plain)


def documents(name):
    return list(yaml.safe_load_all((KUBERNETES / name).read_text()))


def containers():
    """Command line and environment of every container, in the manifests and in the template."""
    for name in ("worker.yaml", "receiver.yaml"):
        for one in documents(name)[0]["spec"]["template"]["spec"]["containers"]:
            env = {entry["name"]: entry.get("value") for entry in one["env"]}
            yield pytest.param(one["args"], env, id=f"kubernetes-{one['name']}")
    stack = yaml.load((FILES / "ecs.yaml").read_text(), _CloudFormation)
    for name in ("WorkerTask", "ReceiverTask"):
        for one in stack["Resources"][name]["Properties"]["ContainerDefinitions"]:
            env = {entry["Name"]: entry.get("Value") for entry in one["Environment"] + one["Secrets"]}
            yield pytest.param(one["Command"], env, id=f"ecs-{one['Name']}")


@pytest.mark.parametrize(("arguments", "env"), [*containers()])
def test_containers_run_commands_with_options_and_settings_that_exist(arguments, env):
    program, *words = arguments
    command = list(itertools.takewhile(lambda word: not word.startswith("--"), words))
    options = words[len(command) :]
    module = {"prefect-assay": "prefect_assay.cli", "prefect": "prefect"}[program]
    help_of = [sys.executable, "-m", module, *command, "--help"]
    known = subprocess.run(help_of, capture_output=True, text=True, check=True).stdout
    assert all(option in known for option in options if option.startswith("--"))
    settings = {f"{ENV_PREFIX}{name.upper()}" for name in ReceiverSettings.model_fields}
    assert {name for name in env if name.startswith(ENV_PREFIX)} <= settings


def test_the_template_grants_what_the_policy_grants():
    stack = yaml.load((FILES / "ecs.yaml").read_text(), _CloudFormation)
    (granted,) = stack["Resources"]["TaskRole"]["Properties"]["Policies"]
    policy = json.loads((FILES / "bucket-policy.json").read_text())
    text = json.dumps(granted["PolicyDocument"]["Statement"])
    filled = json.loads(text.replace("${AWS::Partition}", "aws").replace("${Bucket}", "BUCKET"))
    same = [(one["Effect"], one["Action"], one["Resource"]) for one in filled]
    assert same == [(one["Effect"], one["Action"], one["Resource"]) for one in policy["Statement"]]


def test_the_charts_server_has_the_shipped_settings():
    values = yaml.safe_load((KUBERNETES / "server-values.yaml").read_text())
    leases = "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE"
    without_redis = {
        name: value
        for name, value in read_shipped_settings(POSTGRES).items()
        if "redis" not in value and name != "PREFECT_SERVER_DATABASE_CONNECTION_URL"
    }
    chosen = {entry["name"]: entry["value"] for entry in values["server"]["env"]}
    assert chosen == without_redis | {leases: read_shipped_settings(EMBEDDED)[leases]}


def test_the_charts_server_answers_only_its_own_pages():
    values = yaml.safe_load((KUBERNETES / "server-values.yaml").read_text())
    assert values["server"]["command"] == ["prefect-assay"]
    assert values["server"]["args"][0] == "server"
    assert values["global"]["prefect"]["image"]["repository"].endswith("/prefect-assay")
    (address,) = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_text())["configMapGenerator"]
    workers = next(line for line in address["literals"] if line.startswith("PREFECT_API_URL="))
    allowed = {name for option, name in pairwise(values["server"]["args"]) if option == "--allow-host"}
    assert urlsplit(workers.partition("=")[2]).hostname in allowed


def test_leases_on_disk_outlive_the_charts_pod():
    server = yaml.safe_load((KUBERNETES / "server-values.yaml").read_text())["server"]
    (claim,) = documents("server-leases.yaml")
    (mount,) = server["extraVolumeMounts"]
    (volume,) = server["extraVolumes"]
    assert mount["name"] == volume["name"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    home = get_current_settings().home
    assert ConcurrencyLeaseStorage().storage_path.is_relative_to(home)
    # The chart's HOME is /home/prefect; a folder above the mount would be root's.
    assert mount["mountPath"] == "/home/prefect/.prefect"
    assert "subPath" not in mount


def test_the_image_installs_extras_that_exist_on_a_python_that_is_supported():
    text = (FILES / "Dockerfile").read_text()
    (extras,) = re.findall(r"^ARG EXTRAS=([a-z0-9,]+)$", text, re.MULTILINE)
    project = (ROOT / "pyproject.toml").read_text()
    assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in extras.split(","))
    assert set(re.findall(r"FROM python:(\d+\.\d+)", text)) == {"3.11"}


def test_flow_runs_do_not_load_the_collection_that_only_servers_need():
    assert "scale" not in (FILES / "Dockerfile").read_text()
    assert (
        "--build-arg EXTRAS=scale " in (FILES.parent / "compose.yaml").read_text()
    )  # docs/operating.md has the reason


@pytest.mark.parametrize(("arguments", "env"), [*containers()])
def test_a_server_with_a_password_is_reached(arguments, env):
    stack = yaml.load((FILES / "ecs.yaml").read_text(), _CloudFormation)["Parameters"]
    by_choice = stack["PrefectSecretName"]["AllowedValues"] if "PrefectSecretName" in env else []
    assert {"PREFECT_API_KEY", "PREFECT_API_AUTH_STRING"} <= {*env, *by_choice}, arguments


def test_every_file_is_in_the_page():
    page = (ROOT / "docs" / "operating.md").read_text()
    for name in (
        "Dockerfile",
        "ecs.yaml",
        "bucket-policy.json",
        "kubernetes/",
        "server-values.yaml",
        "server-leases.yaml",
    ):
        assert name in page
