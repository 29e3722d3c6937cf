"""`run` and `status` against real processes: a deployed campaign that is followed, and one in the command's own process."""

import json
import os
import subprocess
import sys
import threading

import pytest

from support.accounts import PARTS, make_account, save_account
from support.command import command
from support.runs.world import EGFR, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"


@pytest.fixture(scope="module")
def blocks(world):
    """The option that names the world's account."""
    return ["--account", save_account(make_account(**{part: getattr(world, part) for part in PARTS})).name]


def _run(world, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "prefect_assay.cli", "run", *arguments],
        env={**world.stack.env, "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _status(world, *arguments):
    return command("status", *arguments, "--json", **world.stack.env)


@pytest.mark.long
def test_followed_and_in_process(world, blocks):
    designs = str(world.designs("cli", BINDER))
    common = [designs, "--target", EGFR, "--payment", "x402-exact", "--max-usd", "5000", "--yes", *blocks]
    followed = _run(world, *common, "--campaign-id", "followed", "--wait", "--json")
    here = _run(world, *common, "--campaign-id", "here", "--here", "--json")
    try:
        eventually(lambda: world.orders("followed") and world.orders("here"), seconds=90, what="two orders")
        assert len(world.orders("followed")) == len(world.orders("here")) == 1

        def in_the_laboratory():
            (view,) = _status(world, "followed").json()["campaigns"]
            return view if [one["stage"] for one in view["experiments"]] == ["in the laboratory"] else None

        view = eventually(in_the_laboratory, seconds=60, what="an experiment in the laboratory")
        assert (view["progress"], view["planned"], view["terms"]["simulated"]) == ("open", 1, True)
        assert view["experiments"][0]["paid_cents"] > 0
        (run,) = view["runs"]
        assert run["name"] == "followed, 1 design"
        told = _status(world, run["run"], *blocks)
        experiment = told.json()["campaigns"][0]["experiments"][0]
        assert experiment["experiment_code"].startswith("LAB-")
        assert experiment["service_status"] == "waiting_for_materials"

        threading.Thread(target=world.advance, kwargs={"days": 16}).start()
        for process in (followed, here):
            out, err = process.communicate(timeout=120)
            assert process.returncode == 0, err
            assert json.loads(out)
            assert world.stack.lab.token not in out + err
        assert json.loads(out)["rows"] >= 1
    finally:
        for process in (followed, here):
            if process.poll() is None:
                process.kill()
                process.communicate()
    ended = {view["name"]: view["progress"] for view in _status(world, "--all").json()["campaigns"]}
    assert (ended["followed"], ended["here"]) == ("complete", "complete")
    intact = command("archive", "verify", "--archive", world.archive._block_document_name, **world.stack.env)
    assert intact.code == 0, intact.err


def test_without_a_prefect_api_the_error_says_what_to_start(tmp_path):
    done = command(
        "status",
        PREFECT_API_URL="http://127.0.0.1:9/api",
        PREFECT_HOME=str(tmp_path),
        PATH=os.environ["PATH"],
    )
    assert done.code == 5
    assert "http://127.0.0.1:9/api does not answer" in done.err
    assert "Traceback" not in done.err
