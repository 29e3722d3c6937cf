"""A sweep never depends on one thing: whatever cannot be read, the rest is done, and is done again where it was not."""

import json
import sys
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from uuid import uuid4

import httpx
import pytest
from prefect.blocks.core import UnknownBlockType
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.client.schemas.responses import SetStateStatus
from prefect.logging import disable_run_logger

from prefect_assay.errors import Forbidden, NotFound, ServiceUnavailable, Unauthorized
from prefect_assay.events import sending
from prefect_assay.flows.sweep import _Sweep
from prefect_assay.models.experiment import ExperimentSummary
from prefect_assay.models.update import Update
from prefect_assay.runs.tags import EXPERIMENT_TAG, GROUP_TAG, WAITS_TAG
from prefect_assay.sweeping.watermarks import SweepState

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
AWAY = ServiceUnavailable("the service answers 503", request_id="r-17")


@pytest.fixture(autouse=True)
def _no_run_logger(monkeypatch):
    monkeypatch.setattr(sys.modules[_Sweep.__module__], "create_markdown_artifact", lambda **_: None)
    monkeypatch.setattr("prefect_assay.alerts.saved.send", lambda _: True)
    with disable_run_logger():
        yield


class Service:
    """One organisation's experiments and updates; what is in `faults` cannot be read."""

    service_time = None

    def __init__(self, *ids, done=()):
        self.experiments = {
            i: ExperimentSummary(
                id=i,
                code=i,
                status="done" if i in done else "in_production",
                results_status="all" if i in done else "none",
                created_at=NOW - timedelta(days=20),
            )
            for i in ids
        }
        self.updates, self.faults, self.asked = [], {}, []

    def iter_updates(self):
        self._fail("updates")
        return iter(self.updates)

    def iter_experiments(self, *, filter):  # noqa: A002 - the client's own name
        self._fail("list")
        return iter([found for i, found in self.experiments.items() if i in str(filter)])

    def experiment(self, experiment_id):
        self.asked.append(experiment_id)
        self._fail("each")
        self._fail(experiment_id)
        if experiment_id not in self.experiments:
            raise NotFound("no such experiment")
        return self.experiments[experiment_id]

    def _fail(self, what):
        if what in self.faults:
            raise self.faults[what]


class Prefect:
    """Runs and variables, as the sweep's client sees them; what is in `faults` fails."""

    def __init__(self):
        self.runs, self.variables, self.resumed, self.faults = [], {}, [], {}

    def suspended(self, *tags, name="run", reference=None, kind="results", **parameters):
        state = State(
            type=StateType.PAUSED,
            name="Suspended",
            timestamp=NOW - timedelta(days=19),
            state_details={"pause_key": f"{kind}-x:{uuid4()}"},
        )
        blocks = {
            "credentials": {"$ref": {"block_document_id": reference or "block"}},
            "policy": {},
            "archive": {},
        }
        run = FlowRun(
            id=uuid4(),
            flow_id=uuid4(),
            name=name,
            tags=["assay", *tags],
            state=state,
            parameters=blocks | parameters,
        )
        self.runs.append(run)
        return run

    def read_flow_runs(self, *, flow_run_filter, offset=0, **_):
        chosen, states = flow_run_filter, flow_run_filter.state
        kinds = states.type.any_ if states else None
        tags = flow_run_filter.tags
        self._fail("suspended" if kinds == [StateType.PAUSED] and tags is None else "")
        self._fail("ended" if chosen.end_time and kinds and len(kinds) > 1 else "")
        self._fail("started" if chosen.start_time else "")
        return [
            run
            for run in self.runs
            if not offset
            and (chosen.start_time is None or run.start_time)
            and (kinds is None or run.state.type in kinds)
            and (tags is None or tags.any_ is None or set(tags.any_) & set(run.tags))
            and (tags is None or tags.all_ is None or set(tags.all_) <= set(run.tags))
        ]

    def read_deployments(self, **_):
        return []

    def count_flow_runs(self, *, flow_run_filter):
        return len(self.read_flow_runs(flow_run_filter=flow_run_filter))

    def resume_flow_run(self, run_id, **_):
        self._fail(run_id)
        self.resumed.append(run_id)
        return SimpleNamespace(status=SetStateStatus.ACCEPT)

    def request(self, _method, _path, *, json):
        rows = [{"name": name, "value": text} for name, text in self.variables.items()]
        return SimpleNamespace(json=lambda: rows)

    def create_variable(self, variable):
        self.variables[variable.name] = variable.value

    def delete_variable_by_name(self, name):
        del self.variables[name]

    def read_block_documents_by_type(self, *_, **__):
        return []

    def update_variable(self, variable):
        self.variables[variable.name] = variable.value

    def _fail(self, what):
        if what in self.faults:
            raise self.faults[what]

    def sweep(self, services, *, after=timedelta(), minutes=0):
        """One sweep; the credentials blocks lead to these services."""
        made = _Sweep(self, SweepState.read(self), NOW + after, minutes)

        def block(mark):
            service = services[json.loads(mark.reference)["block_document_id"]]
            if isinstance(service, Exception):
                raise service
            return SimpleNamespace(get_client=lambda: nullcontext(service), _block_document_name="my lab")

        made.watch.block = block
        return made.run()


@pytest.mark.parametrize("error", [AWAY, Forbidden("GET /updates: 403")], ids=["503", "403"])
def test_a_feed_that_cannot_be_read_switches_nothing_off(error):
    service, prefect = Service("e-1", "e-2", done=["e-1"]), Prefect()
    done, _ = prefect.suspended(EXPERIMENT_TAG + "e-1"), prefect.suspended(EXPERIMENT_TAG + "e-2")
    service.faults["updates"] = error
    report = prefect.sweep({"block": service})
    assert prefect.resumed == [done.id]
    assert [str(error) in line for line in report.problems] == [True]


def test_a_deadline_passes_although_the_feed_cannot_be_read():
    """The full check is rare here: the deadline brings it forward."""
    service, prefect = Service("e-1"), Prefect()
    run = prefect.suspended(EXPERIMENT_TAG + "e-1", deadline_days=30)
    prefect.sweep({"block": service})
    service.faults["updates"] = AWAY
    prefect.sweep({"block": service}, after=timedelta(days=9), minutes=100_000)
    assert prefect.resumed == []
    prefect.sweep({"block": service}, after=timedelta(days=10, minutes=1), minutes=100_000)
    assert prefect.resumed == [run.id]


@pytest.mark.parametrize("error", [AWAY, Forbidden("GET /experiments: 403")], ids=["503", "403"])
def test_without_the_list_each_experiment_is_read_with_its_own_request(error):
    ids = [f"e-{n}" for n in range(60)]
    service, prefect = Service(*ids, done=["e-7", "e-58"]), Prefect()
    runs = {i: prefect.suspended(EXPERIMENT_TAG + i) for i in [*ids, "gone"]}
    service.faults = {"updates": error, "list": error}
    prefect.sweep({"block": service})
    assert sorted(service.asked) == sorted(runs)
    assert set(prefect.resumed) == {runs["e-7"].id, runs["e-58"].id}


def test_news_whose_experiment_cannot_be_read_are_read_again():
    service, prefect = Service("e-1"), Prefect()
    run = prefect.suspended(EXPERIMENT_TAG + "e-1")
    prefect.sweep({"block": service})
    service.experiments |= Service("e-1", done=["e-1"]).experiments
    service.updates = [Update(id="u-1", experiment_id="e-1", timestamp=NOW)]
    service.faults = {"list": AWAY, "each": AWAY}
    prefect.sweep({"block": service}, minutes=100_000, after=timedelta(minutes=5))
    assert prefect.resumed == []
    service.faults = {}
    report = prefect.sweep({"block": service}, minutes=100_000, after=timedelta(minutes=10))
    assert (prefect.resumed, report.updates_seen) == ([run.id], 1)


def test_runs_are_woken_before_events_are_sent(monkeypatch):
    """Events may take seconds where they do not get through; all sleeping runs of a feed share that time."""
    service, prefect = Service("e-1", "e-2", "e-3"), Prefect()
    runs = {
        i: prefect.suspended(EXPERIMENT_TAG + i, payment_method="x402-exact") for i in service.experiments
    }
    prefect.sweep({"block": service})
    service.experiments |= Service("e-1", done=["e-1"]).experiments
    service.updates = [Update(id=f"u-{i}", experiment_id=i, timestamp=NOW) for i in runs]
    flushed = []
    monkeypatch.setattr(sending, "send", lambda fact, run: True)
    monkeypatch.setattr(sending, "flush", lambda: flushed.append(list(prefect.resumed)))
    prefect.sweep({"block": service}, minutes=100_000, after=timedelta(minutes=5))
    assert flushed == [[runs["e-1"].id]]


def test_a_service_that_is_away_is_not_asked_for_every_experiment():
    ids = [f"e-{n}" for n in range(60)]
    service, prefect = Service(*ids), Prefect()
    for i in ids:
        prefect.suspended(EXPERIMENT_TAG + i)
    service.faults = dict.fromkeys(("updates", "list", "each"), AWAY)
    prefect.sweep({"block": service})
    assert len(service.asked) == 3
    service.asked.clear()
    service.faults = dict.fromkeys(("updates", "list", "each"), Unauthorized("401"))
    prefect.sweep({"block": service}, after=timedelta(hours=1))
    assert len(service.asked) == 1


def test_an_experiment_that_cannot_be_read_hides_no_other():
    ids = [f"e-{n}" for n in range(9)]
    service, prefect = Service(*ids, done=ids), Prefect()
    runs = {i: prefect.suspended(EXPERIMENT_TAG + i) for i in ids}
    service.faults = {"list": Forbidden("403")} | {i: Forbidden("403") for i in ids[:4]}
    prefect.sweep({"block": service})
    assert set(prefect.resumed) == {runs[i].id for i in ids[4:]}


def test_one_users_failure_affects_no_other_user_and_names_block_and_runs():
    mine, prefect = Service("e-1", done=["e-1"]), Prefect()
    run = prefect.suspended(EXPERIMENT_TAG + "e-1")
    for n in range(6):
        prefect.suspended(EXPERIMENT_TAG + f"x-{n}", reference="other", name=f"campaign {n}")
    services = {"block": mine, "other": Service(*(f"x-{n}" for n in range(6)))}
    prefect.sweep(services, after=timedelta(days=-1))
    prefect.resumed.clear()
    services["other"] = ConnectionError("no such block")
    report = prefect.sweep(services)
    assert prefect.resumed == [run.id]
    (line,) = report.problems
    assert line == (
        "credentials block my lab: no such block; runs that wait with it: campaign 0, campaign 1, campaign 2, "
        "campaign 3 and 2 more"
    )


def test_a_run_that_waits_for_a_block_is_woken_when_it_is_saved_and_by_nothing_else(monkeypatch):
    service, prefect = Service("e-1", done=["e-1"]), Prefect()
    run = prefect.suspended(
        EXPERIMENT_TAG + "e-1", "assay-again:1", kind="again-block-policy=assay-spending-policy/caps:"
    )
    saved = []
    monkeypatch.setattr(
        sys.modules[_Sweep.__module__],
        "is_saved",
        lambda _client, block, *, since: block in saved and not since,
    )
    report = prefect.sweep({"block": service}, after=timedelta(days=1))
    assert prefect.resumed == []
    assert "assay-spending-policy/caps of its parameter policy" in report.attention[0]
    saved.append("assay-spending-policy/caps")
    prefect.sweep({"block": service}, after=timedelta(days=1))
    assert prefect.resumed == [run.id]


def test_a_run_that_cannot_go_on_with_a_block_is_woken_when_it_is_saved_again_and_hourly(monkeypatch):
    service, prefect = Service("e-1"), Prefect()
    kind = "again-unfit-credentials=assay-credentials/mine:"
    run = prefect.suspended(EXPERIMENT_TAG + "e-1", "assay-again:5", kind=kind)
    run.state.timestamp = NOW
    saved = []
    monkeypatch.setattr(
        sys.modules[_Sweep.__module__],
        "is_saved",
        lambda _client, block, *, since: (
            block == "assay-credentials/mine" and any(at > since for at in saved)
        ),
    )
    saved.append(run.state.timestamp - timedelta(seconds=1))
    report = prefect.sweep({"block": service}, after=timedelta(minutes=5))
    assert prefect.resumed == []
    assert "assay-credentials/mine of its parameter credentials" in report.attention[0]
    saved.append(run.state.timestamp + timedelta(seconds=1))
    prefect.sweep({"block": service}, after=timedelta(minutes=5))
    assert prefect.resumed == [run.id]
    saved.pop()
    prefect.sweep({"block": service}, after=timedelta(minutes=61))  # what it leads to may be right again
    assert prefect.resumed == [run.id] * 2


@pytest.mark.parametrize("error", [UnknownBlockType("azure-archive"), OSError("500")])
def test_a_block_that_cannot_be_read_leaves_the_retry_of_the_other_runs_alone(error):
    """Such as a block of a newer version's type."""
    service, prefect = Service("e-1", "e-2"), Prefect()
    kinds = ("again-block-archive=azure-archive/mine:", "again-steps")
    _, due = [
        prefect.suspended(f"{EXPERIMENT_TAG}e-{n}", "assay-again:1", kind=kind)
        for n, kind in enumerate(kinds, 1)
    ]

    def read_block_document_by_name(_name, _slug):
        raise error

    prefect.read_block_document_by_name = read_block_document_by_name
    report = prefect.sweep({"block": service}, after=timedelta(days=1))
    assert prefect.resumed == [due.id]
    named = ["azure-archive/mine: 500" in line for line in report.problems]
    assert named == [True] * isinstance(error, OSError)


@pytest.mark.parametrize("kind", ["again-steps", "again-block-policy=assay-spending-policy/caps:"])
def test_a_run_to_be_tried_again_whose_tag_could_not_be_set_is_found_by_the_full_check(kind):
    """Its experiment, unpaid, has no news that would wake it; `_mark` failed before it was suspended."""
    service, prefect = Service("e-1"), Prefect()
    run = prefect.suspended(EXPERIMENT_TAG + "e-1", kind=kind)
    prefect.sweep({"block": service})
    assert prefect.resumed == [run.id]


@pytest.mark.parametrize("part", ["suspended", "ended", "started"])
def test_what_prefect_does_not_answer_leaves_the_other_parts_alone(part):
    service, prefect = Service("e-1", done=["e-1"]), Prefect()
    prefect.sweep({"block": service})
    swept = SweepState.read(prefect).overall.swept
    parent = prefect.suspended(WAITS_TAG + "family")
    child = prefect.suspended(GROUP_TAG + "family")
    child.state = State(type=StateType.COMPLETED, timestamp=NOW)
    run = prefect.suspended(EXPERIMENT_TAG + "e-1")
    run.start_time = None if part == "suspended" else NOW
    prefect.faults[part] = httpx.HTTPStatusError(
        "503", request=httpx.Request("POST", "http://prefect"), response=httpx.Response(503)
    )
    report = prefect.sweep({"block": service}, after=timedelta(hours=2))
    expected = {"suspended": {parent.id}, "ended": {parent.id, run.id}, "started": {parent.id, run.id}}
    assert set(prefect.resumed) == expected[part]
    assert any("503" in line for line in report.problems)
    # What was not read is read by the next one.
    after = SweepState.read(prefect).overall
    assert (after.swept == swept) == (part != "suspended")
    assert (after.walked == swept) == (part == "suspended")
    prefect.faults.clear()
    prefect.sweep({"block": service}, after=timedelta(hours=2, minutes=5), minutes=60)
    assert {parent.id, run.id} <= set(prefect.resumed)


def test_a_run_that_cannot_be_woken_leaves_the_others_and_is_woken_by_the_next_sweep():
    service, prefect = Service("e-1", "e-2", done=["e-1", "e-2"]), Prefect()
    runs = [prefect.suspended(EXPERIMENT_TAG + i) for i in ("e-1", "e-2")]
    prefect.faults[runs[0].id] = RuntimeError("deadlock")
    prefect.sweep({"block": service})
    assert prefect.resumed == [runs[1].id]
    prefect.faults.clear()
    prefect.sweep({"block": service}, after=timedelta(hours=1))
    assert runs[0].id in prefect.resumed


def test_prefect_away_for_good_ends_the_sweep_and_leaves_its_watermarks(monkeypatch):
    prefect = Prefect()
    prefect.sweep({})
    kept = dict(prefect.variables)

    def away(**_):
        raise httpx.ConnectError("no connection")

    monkeypatch.setattr(prefect, "read_flow_runs", away)
    with pytest.raises(httpx.ConnectError):
        prefect.sweep({}, after=timedelta(hours=2))
    assert prefect.variables == kept


YEAR = timedelta(days=365)


def test_an_incomplete_sweep_with_a_clock_a_year_ahead_puts_off_no_later_full_check():
    service, prefect = Service("e-1"), Prefect()
    service.service_time = NOW
    run = prefect.suspended(EXPERIMENT_TAG + "e-1")
    prefect.sweep({"block": service}, minutes=60)
    prefect.faults = {"ended": AWAY}  # so that the sweep is incomplete
    prefect.sweep({"block": service}, after=YEAR, minutes=60)
    prefect.faults = {}
    service.experiments |= Service("e-1", done=["e-1"]).experiments
    prefect.sweep({"block": service}, after=timedelta(minutes=5), minutes=60)
    assert prefect.resumed == [run.id]
    memory = SweepState.read(prefect).overall
    assert max(memory.swept, memory.walked, memory.canceled) <= NOW + timedelta(minutes=5)


@pytest.mark.parametrize(("local", "woken"), [(timedelta(days=60), False), (timedelta(days=-60), True)])
def test_a_sweep_counts_deadlines_by_the_services_clock(local, woken):
    """This machine's clock is 60 days ahead of the service's, or behind it."""
    service, prefect = Service("e-1"), Prefect()
    prefect.suspended(EXPERIMENT_TAG + "e-1", deadline_days=30)
    service.service_time = NOW + (YEAR if woken else timedelta())
    service.experiments["e-1"] = service.experiments["e-1"].model_copy(update={"created_at": NOW})
    prefect.sweep({"block": service}, after=local)
    assert bool(prefect.resumed) is woken
