"""`prefect.yaml` for real, on a process work pool, and no secret in anything that is written there.

One installation serves both: the campaign that the worker runs is the one whose traces are searched.
"""

import base64
import subprocess
import sys

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import DeploymentUpdate
from prefect.client.schemas.filters import FlowFilter, FlowFilterName

from prefect_assay.blocks import AssayCredentials
from prefect_assay.service.webhook_signature import derive_secret
from support.runs.prefect_tables import dumped
from support.runs.world import WALLET_KEY, a_world, eventually

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(600)]

BINDER = "NSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR"
WRONG = "assay_labCANARYwrongtokenCANARYwrongtoken"


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with a_world(tmp_path_factory.mktemp("worker"), stack_options={"runner": "worker"}) as made:
        yield made


def deploy(world):
    return subprocess.run(
        [sys.executable, "-m", "prefect_assay.cli", "deploy"],
        env=world.stack.env,
        cwd=world.folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_deploying_again_makes_everything_once(world):
    for _ in range(2):  # the stack has deployed once already
        done = deploy(world)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "nothing starts the sweep" not in done.stdout
    with get_client(sync_client=True) as client:
        deployments = {d.entrypoint: d for d in client.read_deployments()}
        assert set(deployments) == {
            "prefect_assay.flows.campaign:campaign",
            "prefect_assay.flows.decide:decide",
            "prefect_assay.flows.design_build_test:design_build_test",
            "prefect_assay.flows.sweep:sweep",
        }
        assert {d.work_pool_name for d in deployments.values()} == {"assay"}
        sweep = deployments["prefect_assay.flows.sweep:sweep"]
        (schedule,) = sweep.schedules
        assert schedule.active
        assert schedule.schedule.interval.total_seconds() == 300
        assert sweep.global_concurrency_limit.limit == 1
        assert sweep.concurrency_options.collision_strategy == "CANCEL_NEW"
        (automation,) = client.read_automations()
        assert (automation.name, automation.enabled) == ("assay-cancel", True)
        assert automation.actions[0].deployment_id == deployments["prefect_assay.flows.decide:decide"].id
        limits = [limit.name for limit in client.read_global_concurrency_limits()]
        assert not [name for name in limits if name.startswith("assay-")]  # orders and payments take none


def test_deploying_again_keeps_what_an_operator_has_changed(world):
    with get_client(sync_client=True) as client:
        sweep = client.read_deployment_by_name("sweep/assay-sweep")
        campaign = client.read_deployment_by_name("campaign/assay-campaign")
        (automation,) = client.read_automations_by_name("assay-cancel")
        (schedule,) = sweep.schedules
        client.update_deployment_schedule(sweep.id, schedule.id, active=False)
        client.pause_deployment(sweep.id)
        client.pause_automation(automation.id)
        operators = {
            "job_variables": {"env": {"NOTE": "{{ prefect.blocks.secret.mine }}"}},
            "parameters": {"deadline_days": 60},
            "concurrency_limit": 20,
        }
        client.update_deployment(campaign.id, DeploymentUpdate(**operators))

        done = deploy(world)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "nothing starts the sweep" in done.stdout

        now = client.read_deployment_by_name("sweep/assay-sweep")
        assert now.paused
        assert [s.active for s in now.schedules] == [False]
        assert not client.read_automations_by_name("assay-cancel")[0].enabled
        assert "assay-cancel: unchanged; it is disabled" in done.stdout
        then = client.read_deployment_by_name("campaign/assay-campaign")
        assert then.job_variables == operators["job_variables"]  # a reference, not what it stands for
        assert then.parameters == operators["parameters"]
        assert then.global_concurrency_limit.limit == 20

        client.update_deployment_schedule(sweep.id, now.schedules[0].id, active=True)
        client.resume_deployment(sweep.id)
        client.resume_automation(automation.id)
        client.update_deployment(campaign.id, DeploymentUpdate(job_variables={}, parameters={}))


def test_the_server_schedules_the_sweep_by_itself(world):
    """The safety net hangs on Prefect's scheduler: versions that do not go together have silenced it before."""
    flow_filter = FlowFilter(name=FlowFilterName(any_=["sweep"]))

    def scheduled():
        runs = world.api.read_flow_runs(flow_filter=flow_filter)
        return [run for run in runs if run.auto_scheduled]

    assert eventually(scheduled, seconds=60, what="a scheduled sweep")


def files_below(*folders):
    return [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]


def forms_of(text: str) -> list[bytes]:
    """A text as it could have been written: plain, UTF-16, hex, and base64 at each of the three alignments."""
    raw = text.encode()
    inner = [base64.b64encode(b"." * shift + raw + b"." * 3)[4 if shift else 0 : -8] for shift in range(3)]
    return [raw, text.encode("utf-16-le"), raw.hex().encode(), *inner]


def places_with(needle: str, files) -> list[str]:
    """The files that hold a text in any of its forms."""
    forms = forms_of(needle)
    return [str(path) for path in files if any(form in path.read_bytes() for form in forms)]


def test_the_search_finds_every_form(tmp_path):
    for number, form in enumerate(("a:{}", "{}", "bb{}", "ccc{}")):
        text = form.format("canary-token-canary")
        (tmp_path / f"{number}").write_bytes(base64.b64encode(text.encode()))
    (tmp_path / "hex").write_text(b"canary-token-canary".hex())
    assert len(places_with("canary-token-canary", files_below(tmp_path))) == 5


def test_a_campaign_on_the_worker_leaves_no_secret_anywhere(world):
    run = world.campaign(world.designs("canary", BINDER), campaign_id="canary")
    world.asleep(run)
    world.advance(days=16)
    done = world.until(run, "Completed", seconds=90)
    assert "1 measured" in done.state.message
    assert done.name == "canary", "a run is called what it carries"

    # Runs that fail with the secrets in reach: a refused token, and answers that never come.
    wrong = AssayCredentials(base_url=world.stack.lab.base_url, token=WRONG)
    wrong.save("test-wrong", overwrite=True)
    refused = world.experiment("refused", BINDER, credentials=wrong)
    world.until(refused, "Failed", seconds=90)
    world.fault("lose_answer", method="POST", path="/api/v1/invoices/*/pay", count=3)
    lost = world.experiment("lost", BINDER)
    eventually(
        lambda: world.run(lost).state.name in {"Failed", "Suspended"}, seconds=120, what="the lost payment"
    )

    (key,) = (word for word in world.orders("canary")[0].name.split() if word.startswith("pa-"))
    secrets = {
        "token": world.stack.lab.token,
        "refused token": WRONG,
        "wallet key": WALLET_KEY.removeprefix("0x"),
        "signing key": world.stack.signing_key,
        "webhook secret": derive_secret(world.stack.signing_key, key.removeprefix("pa-")),
    }
    world.stack.stop_runner()
    world.stack.stop_receiver()
    rows = world.folder / "database.sql"  # its files may hold texts compressed
    rows.write_text(dumped(world.stack.database.embedded))
    world.stack.stop_server()  # its database is complete on disk now

    prefect = files_below(
        world.stack.folder / "prefect", world.folder / "client-home", world.stack.database.embedded.data
    )
    prefect.append(rows)
    results = files_below(world.folder / "results")
    archive = files_below(world.folder / "archive")
    logs = list(world.stack.logs.values())

    # The search finds what is there, in every place: a search that cannot find proves nothing.
    for place in (prefect, results, archive, logs):
        assert places_with("canary", place)
    everything = [*prefect, *results, *archive, *logs]
    leaks = {name: places_with(secret, everything) for name, secret in secrets.items()}
    assert {name: places for name, places in leaks.items() if places} == {}


def test_reprs_and_parameters_hold_references_only(world):
    for block in (world.credentials, world.wallet, world.webhook):
        for secret in (world.stack.lab.token, WALLET_KEY, world.stack.signing_key):
            assert secret not in repr(block)
            assert secret not in block.model_dump_json()
