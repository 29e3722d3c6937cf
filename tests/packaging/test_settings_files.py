"""The settings files and the compose file of `deployments/`: read as their users read them, and in agreement."""

import json
import re
import subprocess
from datetime import timedelta
from pathlib import Path

import jsonschema
import prefect.server
import pytest
import yaml
from prefect.settings import Settings

from prefect_assay.deployments.settings_files import EMBEDDED, POSTGRES, RUNNER, SQLITE, read_shipped_settings

DEPLOYMENTS = Path(__file__).parents[2] / "deployments"
PAGE = Path(__file__).parents[2] / "docs" / "operating.md"
SERVERS = (EMBEDDED, SQLITE, POSTGRES)
COMPOSE = yaml.safe_load((DEPLOYMENTS / "compose.yaml").read_text())
FROM_REDIS = {
    "PREFECT_REDIS_MESSAGING_URL"
}  # a setting of prefect-redis, which Prefect's own settings do not know


@pytest.mark.parametrize("name", [EMBEDDED, SQLITE, POSTGRES, RUNNER])
def test_a_shell_reads_what_the_package_reads(name):
    script = f"set -a; . {DEPLOYMENTS / name}; env"
    done = subprocess.run(["sh", "-c", script], env={}, capture_output=True, text=True, check=True)
    told = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert read_shipped_settings(name)
    assert {k: v for k, v in told.items() if k.startswith("PREFECT_")} == read_shipped_settings(name)


@pytest.mark.parametrize("name", [EMBEDDED, SQLITE, POSTGRES, RUNNER])
def test_prefect_knows_every_setting(name, monkeypatch):
    """A name that Prefect does not know would be passed over in silence."""
    for variable, value in read_shipped_settings(name).items():
        monkeypatch.setenv(variable, value)
    known = Settings().to_environment_variables(exclude_unset=True)
    assert set(read_shipped_settings(name)) - FROM_REDIS <= set(known)


def test_prefect_takes_the_settings_that_are_left_to_operators(monkeypatch):
    """Those in comments: what they would delete, and after how long."""
    offered = [
        re.findall(r"^#   (PREFECT_\w+)=(\S+)$", (DEPLOYMENTS / name).read_text(), re.MULTILINE)
        for name in SERVERS
    ]
    assert offered[0] == offered[1] == offered[2] != []
    for variable, value in offered[0]:
        monkeypatch.setenv(variable, value)
    vacuum = Settings().server.services.db_vacuum
    assert vacuum.enabled_vacuum_types >= {"events", "flow_runs"}
    assert vacuum.retention_period > timedelta(days=365)  # the longest deadline


@pytest.mark.parametrize("name", [EMBEDDED, SQLITE, POSTGRES, RUNNER])
def test_the_page_names_every_setting(name):
    page = PAGE.read_text()
    assert all(variable in page for variable in read_shipped_settings(name))


@pytest.mark.parametrize(
    ("kind", "label"), [("docker", "Docker"), ("kubernetes", "Kubernetes"), ("ecs", "ECS")]
)
def test_each_pool_takes_the_job_variables_of_the_page(kind, label):
    """By the templates of work pools that Prefect's server ships."""
    shipped = (
        Path(prefect.server.__file__).parent / "api/collections_data/views/aggregate-worker-metadata.json"
    )
    workers = {
        name: worker for kinds in json.loads(shipped.read_text()).values() for name, worker in kinds.items()
    }
    schema = workers[kind]["default_base_job_configuration"]["variables"]
    (row,) = re.findall(rf"^\| {label} \| `(.+)` \|$", PAGE.read_text(), re.MULTILINE)
    variables = json.loads(row)
    assert variables.keys() <= schema["properties"].keys()
    jsonschema.validate(variables, schema)


def test_the_containers_get_the_settings_of_the_file():
    for name in ("migrate", "api", "services"):
        service = COMPOSE["services"][name]
        assert service["env_file"] == POSTGRES
        for variable, value in service["environment"].items():
            # the same setting, at the address that the containers see
            same = read_shipped_settings(POSTGRES)[variable].replace("127.0.0.1:5432", "postgres:5432")
            assert value == same.replace("127.0.0.1:6379", "redis:6379")


def test_twice_as_many_servers_have_their_connections():
    settings = read_shipped_settings(POSTGRES)
    pool = int(settings["PREFECT_SERVER_DATABASE_SQLALCHEMY_POOL_SIZE"])
    server_connections = pool + Settings().server.database.sqlalchemy.max_overflow
    (allowed,) = re.findall(r"max_connections=(\d+)", " ".join(COMPOSE["services"]["postgres"]["command"]))
    servers = COMPOSE["services"]["api"]["deploy"]["replicas"] + 1
    assert 2 * servers * server_connections + 10 <= int(allowed)


def test_the_containers_run_commands_that_exist():
    """What answers requests is guarded (docs/operating.md)."""
    commands = {name: COMPOSE["services"][name]["command"] for name in ("migrate", "services", "api")}
    assert commands == {
        "migrate": ["prefect", "server", "database", "upgrade", "--yes"],
        "services": ["prefect", "server", "services", "start"],
        "api": [
            "prefect-assay",
            "server",
            *["--host", "0.0.0.0", "--no-services", "--allow-host", "balance"],
        ],
    }


def test_every_dependency_of_a_container_exists():
    services = COMPOSE["services"]
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
    assert {
        mount.split(":")[0] for name in ("postgres", "redis") for mount in services[name]["volumes"]
    } == set(COMPOSE["volumes"])
