"""The job block without a Prefect server: what it starts, how it waits, what it reads. docs/jobs.md is run in tests/e2e."""

import asyncio
import inspect
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import pytest
from prefect.blocks.abstract import JobBlock, JobRun
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound
from prefect.states import Cancelled, Completed, Running

from prefect_assay.archive import Document, archive_version
from prefect_assay.blocks import (
    AssayCredentials,
    AssayExperiment,
    LocalArchive,
    SpendingPolicy,
    experiment_run,
)
from prefect_assay.blocks.experiment_run import AssayExperimentRun
from prefect_assay.errors import InvalidSpec, JobFailed, NotReady, Overdue
from prefect_assay.flows import experiment
from prefect_assay.lab.testing import LocalLab
from prefect_assay.models.spec import Assay
from prefect_assay.results import to_csv
from prefect_assay.runs.tags import EXPERIMENT_CODE_LABEL

DESIGNS = ">a\nNSDSECPLSHDGYCLHDGVCMYIEALDKYACNCVVGYIGERCQYRDLKWWELR\n>b\nSESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE"


@pytest.fixture(scope="module")
def lab():
    with LocalLab() as running:
        yield running


@pytest.fixture
def job(lab, tmp_path):
    return AssayExperiment(
        designs=DESIGNS,
        assay=Assay(target="Human EGFR, extracellular domain"),
        campaign_id="job-1",
        credentials=AssayCredentials(base_url=lab.base_url, token=lab.token),
        policy=SpendingPolicy(per_experiment_cents=1, per_campaign_cents=1),
        archive=LocalArchive(root=str(tmp_path)),
    )


@pytest.fixture
def started(monkeypatch):
    """The flow runs that jobs have started, by their keys."""
    runs = {}

    def start_child(flow, key, parameters, **_):
        return runs.setdefault(key, FlowRun(flow_id=uuid4(), parameters={"flow": flow, **parameters}))

    monkeypatch.setattr(experiment_run, "start_child", start_child)
    return runs


@pytest.fixture
def prefect(monkeypatch):
    """A Prefect API that shows the run in one state after the other; the clock does not run."""
    seen = []

    def read(_run_id):
        found = seen.pop(0) if len(seen) > 1 else seen[0]
        if isinstance(found, Exception):
            raise found
        return found

    class Client(SimpleNamespace):
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    async def no_sleep(_seconds):
        pass

    monkeypatch.setattr(experiment_run, "get_client", lambda **_: Client(read_flow_run=read))
    monkeypatch.setattr(experiment_run, "time", SimpleNamespace(sleep=lambda _: None, monotonic=lambda: 0.0))
    monkeypatch.setattr(experiment_run.asyncio, "sleep", no_sleep)
    return seen


def a_run(state=None, **labels):
    return FlowRun(flow_id=uuid4(), name="job-1 1/1", state=state, labels=labels)


def test_it_is_a_job_for_prefect():
    assert issubclass(AssayExperiment, JobBlock)
    assert issubclass(AssayExperimentRun, JobRun)


def test_triggering_again_finds_the_run_and_another_campaign_is_another_order(job, started):
    first, again = job.trigger(), job.trigger()
    other = job.model_copy(update={"campaign_id": "job-2"}).trigger()
    assert first.flow_run_id == again.flow_run_id != other.flow_run_id
    assert (len(started), first.order_key) != (3, other.order_key)


def test_the_run_gets_parameters_of_the_flow(job, started):
    job.trigger()
    (run,) = started.values()
    given = {name: value for name, value in run.parameters.items() if name != "flow"}
    parameters = inspect.signature(experiment.fn).parameters
    required = {name for name, p in parameters.items() if p.default is inspect.Parameter.empty}
    assert required <= set(given) <= set(parameters)
    assert set(given["spec"].sequences) == {"a", "b"}
    assert experiment.name == run.parameters["flow"]


def test_in_an_event_loop_the_plain_names_are_awaited(job, started, prefect):
    prefect.append(a_run(Completed()))

    async def many():
        plain = await job.trigger()
        runs = await asyncio.gather(*(job.atrigger() for _ in range(4)))
        await plain.wait_for_completion()
        with pytest.raises(NotReady, match="nothing in the archive"):
            await plain.fetch_result()
        return {run.flow_run_id for run in runs} | {plain.flow_run_id}

    assert len(asyncio.run(many())) == 1


def test_designs_of_several_experiments_are_refused(job, started):
    many = "".join(f">d{n}\n{'ACDEFGHIKLMNPQRSTVWY' * 3}{'A' * n}\n" for n in range(400))
    with pytest.raises(
        InvalidSpec, match="need 2 experiments; trigger one job for each, or start a campaign"
    ):
        job.model_copy(update={"designs": many}).trigger()
    with pytest.raises(InvalidSpec, match="not in the service's catalog"):
        job.model_copy(update={"assay": Assay(target="nothing like it")}).trigger()
    assert started == {}


def test_it_waits_until_the_run_has_ended(job, started, prefect):
    run = job.trigger()
    prefect += [a_run(), a_run(Running()), a_run(Completed())]
    run.wait_for_completion()
    assert len(prefect) == 1


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (a_run(Cancelled(message="by Ada")), "flow run job-1 1/1 is Cancelled: by Ada"),
        (ObjectNotFound(http_exc=Exception()), "was deleted; trigger the job again"),
    ],
)
def test_a_run_without_results_is_an_error_that_says_why(job, started, prefect, found, message):
    run = job.trigger()
    prefect.append(found)
    with pytest.raises(JobFailed, match=message):
        run.wait_for_completion()


def test_patience_ends_the_wait_and_not_the_experiment(job, started, prefect):
    run = job.trigger()
    prefect.append(a_run(Running()))
    with pytest.raises(Overdue, match="wait again"):
        run.wait_for_completion(timedelta(0))
    with pytest.raises(Overdue, match="wait again"):
        asyncio.run(run.await_for_completion(timedelta(0)))


def test_the_result_is_the_newest_archived_version(job, started, prefect):
    run = job.trigger()
    prefect.append(a_run(Completed(), **{EXPERIMENT_CODE_LABEL: "LAB-1"}))
    for status in ("partial", "all"):
        archive_version(
            job.archive.get_store(),
            job.archive.prefix,
            campaign_id=job.campaign_id,
            experiment_id="e-1",
            experiment_code="LAB-1",
            results_status=status,
            documents=[Document(path="results.csv", content_type="text/csv", body=to_csv(()))],
            now=datetime.now(UTC),
        )
        assert run.fetch_result().results_status == status
    result = run.fetch_result()
    assert (result.experiment_code, result.version, result.rows) == ("LAB-1", 2, ())
