"""The job block at a real Prefect server, lab and archive. The campaign is written record by record, as its flow does it."""

import asyncio
from contextlib import nullcontext
from datetime import timedelta
from uuid import uuid4

import pytest
from prefect import flow
from prefect.blocks.abstract import JobBlock, JobRun
from prefect.client.orchestration import get_client
from prefect.states import Cancelled, Completed, Failed, Running
from prefect.testing.utilities import prefect_test_harness

from assay_lab.testing import LocalLab
from prefect_assay.archive.plans import find_plan
from prefect_assay.blocks import (
    AssayExperiment,
    experiment_run,
)
from prefect_assay.blocks.experiment_run import AssayExperimentRun
from prefect_assay.errors import (
    ArchiveUnavailable,
    ConfigurationError,
    InvalidSequences,
    InvalidSpec,
    JobFailed,
    NotReady,
    Overdue,
)
from prefect_assay.orders.payments.interfaces import normalize_address
from prefect_assay.service.models.spec import Assay, Target
from support.accounts import make_account, make_options, save_account
from support.campaign_logs import DESIGNS, WrittenCampaign


@pytest.fixture(scope="module")
def lab():
    with LocalLab() as running:
        yield running


@pytest.fixture(scope="module")
def client():
    with prefect_test_harness(server_startup_timeout=120), get_client(sync_client=True) as client:

        @flow(name="campaign")
        def played():
            pass

        client.create_deployment(client.create_flow(played), "assay-campaign")
        yield client


@pytest.fixture
def job(client, lab, tmp_path):
    name = f"job-{uuid4().hex[:8]}"
    account = make_account(base_url=lab.base_url, token=lab.token, archive=tmp_path / "archive")
    return AssayExperiment(
        designs=DESIGNS,
        assay=Assay(target="Human EGFR, extracellular domain"),
        campaign_id=name,
        account=save_account(account, name),
        spend_up_to_usd=500,
        options=make_options(deadline_days=9, designs_name="mine"),
    )


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    """The seconds that a wait has paused for; none of them passes."""
    pauses = []
    monkeypatch.setattr(experiment_run.time, "sleep", pauses.append)
    return pauses


def begun(job, run=None):
    """The job's campaign as its flow begins it, carried by the triggered run."""
    plan = find_plan(job.account.archive.get_store(), job.account.archive.prefix, job.campaign_id)
    written = WrittenCampaign(
        job.account.archive.get_store(),
        job.account.archive.prefix,
        job.campaign_id,
        plan=plan,
        service=normalize_address(job.account.credentials.base_url),
    )
    if run is not None:
        written.log.note_run(str(run.flow_run_id), "first")
    return written


def end(client, run, state):
    client.set_flow_run_state(run.flow_run_id, Running(), force=True)
    client.set_flow_run_state(run.flow_run_id, state, force=True)


def test_it_is_a_job_for_prefect():
    assert issubclass(AssayExperiment, JobBlock)
    assert issubclass(AssayExperimentRun, JobRun)


def test_it_starts_a_campaign_of_one_experiment_whose_plan_is_in_the_archive(job, client):
    run = job.trigger()
    started = client.read_flow_run(run.flow_run_id)
    assert started.parameters["designs"] == f"campaign:{job.campaign_id}"
    assert started.parameters["campaign_id"] == job.campaign_id
    assert set(started.parameters["account"]) == {"$ref"}, "a saved block, and no secret"
    assert started.parameters["spend_up_to_usd"] == 500
    assert started.parameters["options"]["waiting"]["deadline_days"] == 9
    plan = find_plan(job.account.archive.get_store(), job.account.archive.prefix, job.campaign_id)
    assert plan.order_keys == (run.order_key,)
    assert set(plan.experiments[0].spec.sequences) == {"a", "b"}


def test_triggering_again_finds_the_run_and_another_campaign_is_another_order(job):
    first, again = job.trigger(), job.trigger()
    other = job.model_copy(update={"campaign_id": f"{job.campaign_id}-2"}).trigger()
    assert first.flow_run_id == again.flow_run_id != other.flow_run_id
    assert first.order_key == again.order_key != other.order_key


def test_a_campaign_that_goes_on_is_found_by_its_log_whatever_became_of_its_run(job, client):
    run = job.trigger()
    written = begun(job, run)
    client.delete_flow_run(run.flow_run_id)
    carried = str(uuid4())
    written.log.note_run(carried, "second", restarted=True)
    assert str(job.trigger().flow_run_id) == carried
    written.log.finish("measured", complete=True)
    run.wait_for_completion()
    assert str(job.trigger().flow_run_id) == carried, "what is over with all results is not started again"


def test_a_run_that_ended_before_its_campaign_began_is_started_again(job, client):
    run = job.trigger()
    end(client, run, Failed(message="the block is not valid"))
    with pytest.raises(JobFailed, match=r"is Failed and did not begin its campaign: the block is not valid"):
        run.wait_for_completion()
    again = job.trigger()
    assert again.flow_run_id != run.flow_run_id
    client.delete_flow_run(again.flow_run_id)
    with pytest.raises(JobFailed, match=r"was deleted before it began its campaign: nothing was ordered"):
        again.wait_for_completion()


def test_a_campaign_that_is_over_without_results_fails_the_job_and_trigger_goes_on_with_its_order(
    job, client
):
    run = job.trigger()
    written = begun(job, run)
    written.log.finish("the laboratory canceled it", complete=False)
    with pytest.raises(JobFailed, match="over without complete results: the laboratory canceled it"):
        run.wait_for_completion()

    again = job.trigger()
    assert (again.flow_run_id != run.flow_run_id, again.order_key) == (True, run.order_key)
    with pytest.raises(Overdue):  # the earlier end is not the end of this start
        again.wait_for_completion(timedelta(0))
    written.start()
    written.log.note_run(str(again.flow_run_id), "second")
    written.log.finish("measured", complete=True)
    again.wait_for_completion()


def test_a_person_s_cancellation_ends_the_wait_and_no_trigger_opens_it_again(job, client):
    run = job.trigger()
    begun(job, run).log.stop("grace", "prefect-assay cancel")
    for waiting in (run, job.trigger()):
        with pytest.raises(JobFailed, match="canceled by grace; only a person opens it again"):
            waiting.wait_for_completion()
    assert job.trigger().flow_run_id == run.flow_run_id


@pytest.mark.parametrize("state", [Failed(message="by hand"), Cancelled(), Completed()], ids=lambda s: s.name)
def test_the_state_of_a_run_that_has_begun_its_campaign_decides_nothing(job, client, state):
    run = job.trigger()
    written = begun(job, run)
    end(client, run, state)
    with pytest.raises(Overdue):
        run.wait_for_completion(timedelta(0))
    written.log.finish("measured", complete=True)
    run.wait_for_completion()


def test_an_archive_that_does_not_answer_for_a_while_is_asked_again(job, monkeypatch, no_pauses):
    run = job.trigger()
    begun(job, run).log.finish("measured", complete=True)
    answers = [nullcontext(), nullcontext()]

    def read(log):
        if answers:
            answers.pop()
            raise ArchiveUnavailable("the bucket does not answer")
        return whole(log)

    whole = experiment_run.CampaignLog.read
    monkeypatch.setattr(experiment_run.CampaignLog, "read", read)
    run.wait_for_completion()
    assert not answers
    assert len(no_pauses) >= 2  # other threads of the process pause too


def test_patience_ends_the_wait_and_not_the_experiment(job):
    run = job.trigger()
    begun(job, run)
    with pytest.raises(Overdue, match="wait again"):
        run.wait_for_completion(timedelta(0))


def test_async_code_calls_it_in_threads_and_several_at_once_find_one_run(job):
    async def trigger_several():
        plain = job.trigger()
        runs = await asyncio.gather(*(asyncio.to_thread(job.trigger) for _ in range(4)))
        begun(job, plain).log.finish("measured", complete=True)
        await asyncio.to_thread(plain.wait_for_completion)
        with pytest.raises(NotReady, match="nothing in the archive"):
            await asyncio.to_thread(plain.fetch_result)
        return {run.flow_run_id for run in runs} | {plain.flow_run_id}

    assert len(asyncio.run(trigger_several())) == 1


def test_the_result_is_the_newest_archived_version_preliminary_ones_included(job):
    run = job.trigger()
    written = begun(job, run)
    written.order(1)
    for status in ("partial", "all"):
        written.archive_results(1, "LAB-1", status)
        assert run.fetch_result().results_status == status
    result = run.fetch_result()
    assert (result.experiment_id, result.experiment_code) == (f"exp-{job.campaign_id}-1", "LAB-1")
    assert (result.version, result.rows) == (2, ())


def test_results_of_another_experiment_are_not_those_of_the_order(job):
    run = job.trigger()
    begun(job, run).archive_results(1, "LAB-1")  # the ledger names no experiment
    with pytest.raises(NotReady):
        run.fetch_result()


def test_designs_of_several_experiments_are_refused_before_anything_is_written(job):
    many = "".join(f">d{n}\n{'ACDEFGHIKLMNPQRSTVWY' * 3}{'A' * n}\n" for n in range(400))
    with pytest.raises(
        InvalidSpec, match="need 2 experiments; trigger one job for each, or start a campaign"
    ):
        job.model_copy(update={"designs": many}).trigger()
    with pytest.raises(InvalidSpec, match="not in the service's catalog"):
        job.model_copy(update={"assay": Assay(target="nothing like it")}).trigger()
    assert find_plan(job.account.archive.get_store(), job.account.archive.prefix, job.campaign_id) is None


def test_designs_that_are_the_target_are_refused_as_by_a_campaign(job, monkeypatch):
    residues = DESIGNS.splitlines()[1]
    target = Target(id=str(uuid4()), details={"sequence": residues})
    monkeypatch.setattr(experiment_run, "resolve_target", lambda *_: target)
    with pytest.raises(InvalidSequences, match="the target in the service's catalog"):
        job.trigger()
    assert find_plan(job.account.archive.get_store(), job.account.archive.prefix, job.campaign_id) is None
    reading = job.options.reading.model_copy(update={"as_is": True})
    options = job.options.model_copy(update={"reading": reading})
    job.model_copy(update={"options": options}).trigger()


def test_the_plan_has_the_designers_columns_and_how_the_designs_were_read(job):
    designs = DESIGNS.replace(">a", ">a ipTM=0.9")
    job.model_copy(update={"designs": designs}).trigger()
    plan = find_plan(job.account.archive.get_store(), job.account.archive.prefix, job.campaign_id)
    assert plan.attributes == {"a": {"ipTM": "0.9"}}
    assert "2 designs" in plan.reading[0]


def test_a_campaign_id_of_other_designs_is_refused(job):
    job.trigger()
    with pytest.raises(InvalidSpec, match="has been used for other designs or another assay"):
        job.model_copy(update={"designs": f"{DESIGNS}A"}).trigger()


def test_an_account_that_is_not_saved_starts_nothing(job):
    account = make_account(
        credentials=job.account.credentials, archive=job.account.archive, policy=job.account.policy
    )
    unsaved = job.model_copy(update={"account": account})
    with pytest.raises(ConfigurationError, match="not saved"):
        unsaved.trigger()
