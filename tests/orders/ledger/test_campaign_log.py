"""The log of a campaign: one sequence of records whoever writes, answers to exactly what was shown, an index of what is open."""

import json
from datetime import timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from prefect_assay.errors import ArchiveError, ArchiveUnavailable, Conflict, InputError
from prefect_assay.orders.ledger import Ledgers
from prefect_assay.orders.ledger.campaign_log import (
    CLOSED,
    EXPIRED,
    Adopted,
    Over,
    Ran,
    StartedKind,
    Stopped,
    Terms,
    list_all,
    list_open,
)
from prefect_assay.orders.question import REJECT, UNNAMED, Question, QuestionKind
from support.archive.campaign_records import NOW, a_log, some_terms, started
from support.archive.memory_store import MemoryStore

LATER = NOW + timedelta(hours=72)
CEILING = 1_000_000


def a_question(cents=600_000, subject="The quote of c 1/2 costs 6,000.00 USD."):
    return Question.of(
        QuestionKind.SPENDING,
        subject=subject,
        reason="It is over the cap.",
        choices={"approve": "exactly the amount shown", REJECT: "nothing is spent"},
        amount_cents=cents,
    )


def ask(log, question=None, question_id="q1"):
    return log.ask(question_id, question or a_question(), order_key="k", now=NOW, expires_at=LATER)


def answer(log, revision=1, decision="approve", **changes):
    values = {
        "question_id": "q1",
        "amount_cents": 600_000,
        "answerer": "ada",
        "how": "prefect-assay approve",
        "now": NOW,
        "ceiling_cents": CEILING,
    }
    values.update(changes)
    return log.answer(values.pop("question_id"), revision, decision, **values)


def open_names(store):
    return [log.name for log in list_open(store, "lab") if log.read().needs_sweep]


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def log(store):
    log = a_log(store)
    log.start(started())
    return log


# --- what was written is read ---


def test_a_fresh_object_reads_what_was_just_written(any_store):
    log = a_log(any_store)
    log.start(started())
    log.note_run("run1", "flying-fox")
    ask(log)
    answer(log)
    for record in (Adopted(home="home2", person="ada"), Stopped(person="ada", how="cancel")):
        assert a_log(any_store).append(record) == a_log(any_store).read()
        assert a_log(any_store).records()[-1] == record
    state = a_log(any_store).read()
    assert (state.count, state.home, list(state.runs)) == (6, "home2", ["run1"])
    assert state.terms == some_terms()
    assert state.decision_for("q1", a_question()).decision == "approve"
    assert log.read() == state


def test_a_run_is_noted_once_and_the_last_one_carries_the_campaign(log):
    for run in ("1", "1", "2", "1"):
        log.note_run(run, f"run-{run}", restarted=run == "2")
    assert [record.run for record in log.records() if isinstance(record, Ran)] == ["1", "2"]
    assert (list(log.state.runs), log.state.carrier) == (["1", "2"], "2")
    assert len(log.state.restarts) == 1


def test_a_campaign_and_a_loop_of_one_name_have_logs_of_their_own(store):
    a_log(store).start(started())
    loop = a_log(store, what=StartedKind.LOOP)
    assert loop.read().count == 0
    loop.start(started(what=StartedKind.LOOP))
    loop.finish("3 rounds", complete=True)
    assert [(log.what, log.name) for log in list_open(store, "lab")] == [(StartedKind.CAMPAIGN, "c")]
    assert [log.what for log in list_all(store, "lab")] == [StartedKind.CAMPAIGN, StartedKind.LOOP]


def test_logs_of_campaigns_are_no_ledgers_of_an_organisation(any_store):
    a_log(any_store).start(started())
    a_log(any_store, what=StartedKind.LOOP).start(started(what=StartedKind.LOOP))
    assert Ledgers.list_all(any_store, "lab") == []
    assert Ledgers.open(any_store, "lab", "https://lab.example", "org-1").organisation == "org-1"


def test_a_log_in_the_folder_of_another_campaign_is_refused(store, log):
    for key in list(store.keys("lab/LEDGERS/CAMPAIGNS/c")):
        store.objects[key.replace("/c/", "/d/")] = store.objects[key]
    with pytest.raises(ArchiveError, match="log of campaign c, which has another folder"):
        a_log(store, "d").read()
    with pytest.raises(ArchiveError, match="another folder"):
        a_log(store, "d").start(started())


# --- several writers ---


def test_of_two_starts_at_once_under_other_terms_one_counts(store):
    first, second = a_log(store), a_log(store)
    first.read()
    second.read()
    first.start(started())
    with pytest.raises(Conflict, match="at the same moment, under other terms"):
        second.start(started(service="https://live.example"))
    assert a_log(store).read().terms == some_terms()
    assert a_log(store).read().count == 1
    second.start(
        started(per_experiment_cents=1)
    )  # it has read the others' terms by now, and decides from them
    assert a_log(store).read().terms.per_experiment_cents == 1


def test_of_two_starts_at_once_under_the_same_terms_both_count(store):
    first, second = a_log(store), a_log(store)
    first.read()
    second.read()
    first.start(started())
    second.start(started())
    assert a_log(store).read().count == 2


def test_an_end_that_was_decided_before_another_start_closes_nothing(store, log):
    other = a_log(store)
    other.read()
    other.start(started())
    assert log.finish("the file cannot be read", complete=False).over is None
    assert open_names(store) == ["c"]
    assert log.finish("all measured", complete=True).over.words == "all measured"
    assert open_names(store) == []


# --- cancel and reopen ---


def test_a_start_does_not_reopen_what_a_person_has_stopped(store, log):
    log.stop("ada", "cancel")
    a_log(store).stop("bob", "the run's Cancel")
    state = a_log(store).start(started())
    assert (state.is_open, state.stopped.person) == (False, "ada")
    assert a_log(store).reopen("ada").is_open


def test_a_stopped_campaign_is_swept_until_it_is_settled(store, log):
    log.stop("ada", "cancel")
    assert open_names(store) == ["c"]
    a_log(store).finish("everything is over", complete=False)
    assert open_names(store) == ["c"]
    log.settle()
    assert (list(list_open(store, "lab")), log.read().settled) == ([], True)
    count = log.state.count
    log.settle()
    log.stop("ada", "cancel")
    assert (list(list_open(store, "lab")), log.read().count) == ([], count)


def test_the_report_of_an_earlier_cancellation_does_not_settle_a_later_one(store, log):
    log.stop("ada", "cancel")
    other = a_log(store)
    other.reopen("ada")
    other.stop("ada", "cancel")
    log.settle()
    assert not log.read().settled
    assert open_names(store) == ["c"]
    log.settle()
    assert log.read().settled


def test_a_stop_that_the_store_promised_and_did_not_write_is_written_again(store, log, waits, monkeypatch):
    put, lost = store.put_if_absent, ["000002.json"]

    def promise(key, data, content_type, *, sha256=None):
        if lost and key.endswith(lost[0]):
            return bool(lost.pop())
        return put(key, data, content_type, sha256=sha256)

    monkeypatch.setattr(store, "put_if_absent", promise)
    log.stop("ada", "cancel")
    assert a_log(store).read().stopped is not None


# --- questions and answers ---


def test_a_question_stands_until_it_is_answered_or_asked_with_other_figures(store, log):
    assert ask(log)
    assert not ask(a_log(store))
    assert log.read().open_questions["q1"].revision == 1
    assert ask(log, a_question(700_000))
    assert log.state.open_questions["q1"].revision == 2
    assert answer(log, 2, amount_cents=700_000).amount_cents == 700_000
    assert a_log(store).read().open_questions == {}
    assert log.state.decision_for("q1", a_question(700_000)).answerer == "ada"
    assert log.state.decision_for("q1", a_question()) is None
    assert not ask(a_log(store), a_question(700_000)), "the answer came while it was about to be asked again"


@pytest.mark.parametrize("by_nobody", [EXPIRED, CLOSED])
def test_a_question_that_nobody_answered_is_asked_again_and_its_old_end_does_not_count(log, by_nobody):
    ask(log)
    if by_nobody == EXPIRED:
        answer(log, decision=EXPIRED, amount_cents=None, now=LATER + timedelta(seconds=1))
    else:
        log.close_question("q1", 1)
    ended = log.read().decision_for("q1", a_question())
    assert (ended.decision, ended.amount_cents) == (by_nobody, None)
    assert ask(log)
    assert log.state.decision_for("q1", a_question()) is None
    answer(log, 2)
    assert log.state.decision_for("q1", a_question()).decision == "approve"


def test_what_was_rejected_is_asked_again_after_a_person_has_opened_the_campaign_again(log):
    ask(log)
    answer(log, decision=REJECT)
    assert not ask(log)
    log.stop("ada", "cancel")
    log.reopen("ada")
    assert ask(log)


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"question_id": "q2"}, InputError, "has q1, and q2 is none of them"),
        ({"revision": 2}, Conflict, "is in revision 1 by now"),
        ({"revision": 0}, Conflict, "is in revision 1 by now"),
        ({"decision": "change_cap"}, InputError, "takes approve, reject"),
        ({"decision": CLOSED}, InputError, "takes approve, reject"),
        ({"amount_cents": 600_001}, Conflict, r"about 6,000.00 USD, and the answer names 6,000.01 USD"),
        ({"amount_cents": 599_999}, Conflict, "the answer names 5,999.99 USD"),
        ({"amount_cents": None}, Conflict, "the answer names no amount"),
        ({"decision": REJECT, "amount_cents": 1}, Conflict, "the answer names 0.01 USD"),
        ({"ceiling_cents": 599_999}, InputError, "the ceiling for answers is 5,999.99 USD"),
        ({"ceiling_cents": None}, InputError, "the ceiling for answers is not known"),
        ({"now": LATER + timedelta(seconds=1)}, Conflict, "expired at 2026-11-30 12:00 UTC"),
        ({"decision": EXPIRED}, Conflict, "is open until 2026-11-30 12:00 UTC"),
    ],
)
def test_an_answer_to_anything_but_what_was_shown_is_refused(log, changes, error, words):
    ask(log)
    with pytest.raises(error, match=words):
        answer(log, **changes)
    assert log.read().count == 2
    assert answer(log).decision == "approve"


def test_an_amount_for_a_question_that_shows_none_is_refused(log):
    ask(log, a_question(None))
    with pytest.raises(Conflict, match=r"without an amount, and the answer names 6,000.00 USD"):
        answer(log)
    assert answer(log, amount_cents=None, ceiling_cents=None).amount_cents is None


def test_the_ceiling_is_for_every_decision_that_spends_and_for_no_rejection(log):
    question = Question.of(
        QuestionKind.ORDER_AGAIN,
        subject="Is c 1/2 sent again?",
        reason="Its answer was lost.",
        choices={"again": "it is sent again", "approve": "the same", REJECT: "nothing is sent"},
        amount_cents=CEILING + 1,
    )
    ask(log, question)
    for decision in ("again", "approve"):
        with pytest.raises(InputError, match="ceiling"):
            answer(log, decision=decision, amount_cents=CEILING + 1)
    assert answer(log, decision=REJECT, amount_cents=None, ceiling_cents=None).amount_cents is None


def test_the_ceiling_itself_may_be_approved(log):
    ask(log, a_question(CEILING))
    assert answer(log, amount_cents=CEILING).amount_cents == CEILING


@pytest.fixture
def log_of_ada(store):
    """The log of a campaign that Ada has asked for, with a question for two persons."""
    log = a_log(store)
    log.start(started().model_copy(update={"requester": "Ada"}))
    ask(log, a_question().model_copy(update={"second_person": True}))
    return log


@pytest.mark.parametrize(
    ("answerer", "words"),
    [
        ("Ada", "Ada has asked for it; nothing was recorded. Have another person answer it"),
        (" ADA ", "Ada has asked for it"),
        (UNNAMED, "you gave no name; nothing was recorded"),
        (" ", "you gave no name; nothing was recorded"),
    ],
)
def test_whoever_asks_for_it_does_not_approve_what_needs_two_persons(log_of_ada, answerer, words):
    before = log_of_ada.read()
    with pytest.raises(InputError, match=words):
        answer(log_of_ada, answerer=answerer)
    assert log_of_ada.read() == before
    assert answer(log_of_ada, answerer="Grace").decision == "approve"


def test_whoever_asks_for_it_may_reject_it(log_of_ada):
    assert answer(log_of_ada, decision=REJECT, answerer="Ada").decision == REJECT


def test_two_persons_are_not_two_if_nobody_knows_who_has_asked(store, log):
    ask(log, a_question().model_copy(update={"second_person": True}))
    with pytest.raises(InputError, match="who has asked for it is not known"):
        answer(log, answerer="Grace")


def test_a_question_is_answered_once(store, log):
    ask(log)
    answer(log)
    with pytest.raises(Conflict, match="was answered before: approve, by ada"):
        answer(a_log(store), decision=REJECT, answerer="bob")
    assert a_log(store).read().decision_for("q1", a_question()).answerer == "ada"


def test_an_answer_to_figures_that_change_at_that_moment_is_refused(store, log):
    ask(log)
    stale_log = a_log(store)
    stale_log.read()
    fired = []

    def change(key):
        if key.endswith("000003.json") and not fired:
            fired.append(key)
            ask(a_log(store), a_question(900_000))

    store.before_put = change
    with pytest.raises(Conflict, match="is in revision 2 by now"):
        answer(stale_log)
    assert log.read().decisions == {}


def test_a_question_is_closed_only_in_the_revision_that_was_seen(log):
    ask(log)
    log.close_question("q1", 2)
    log.close_question("q2", 1)
    assert "q1" in log.read().open_questions
    log.close_question("q1", 1)
    assert log.read().open_questions == {}


# --- the index of what is open ---


def test_a_kill_between_index_and_record_leaves_an_entry_of_no_open_campaign(store):
    store.pass_puts()
    store.fail_before_writing(4)
    with pytest.raises(ArchiveUnavailable):
        a_log(store).start(started())
    (entry,) = list_open(store, "lab")
    assert (entry.read().count, entry.state.needs_sweep) == (0, False)
    entry.close_index()
    assert list(list_open(store, "lab")) == []


def test_a_kill_after_the_record_leaves_the_campaign_in_the_index(store):
    store.pass_puts(2)
    store.fail_before_writing()
    with pytest.raises(ArchiveUnavailable):
        a_log(store).start(started())
    assert open_names(store) == ["c"]


def test_a_kill_between_the_end_and_its_entry_leaves_an_entry_that_says_nothing(store, log, monkeypatch):
    def kill(key):
        raise ArchiveUnavailable("killed")

    monkeypatch.setattr(store, "delete", kill)
    with pytest.raises(ArchiveUnavailable):
        log.finish("all measured", complete=True)
    monkeypatch.undo()
    (entry,) = list_open(store, "lab")
    assert not entry.read().needs_sweep
    entry.close_index()
    assert list(list_open(store, "lab")) == []


def test_a_store_that_forbids_to_delete_keeps_the_entry_and_the_end_is_recorded(store, log, monkeypatch):
    monkeypatch.setattr(store, "delete", lambda key: False)
    assert log.finish("all measured", complete=True).over is not None
    assert open_names(store) == []


def test_an_entry_that_is_closed_while_somebody_opens_the_campaign_is_written_again(store, log, monkeypatch):
    log.finish("all measured", complete=True)
    log.open_index()
    delete = store.delete

    def reopen_first(key):
        monkeypatch.undo()
        a_log(store).reopen("ada")
        return delete(key)

    monkeypatch.setattr(store, "delete", reopen_first)
    a_log(store).close_index()
    assert open_names(store) == ["c"]


def test_the_entry_of_an_open_campaign_is_not_closed(store, log):
    log.close_index()
    assert open_names(store) == ["c"]


def test_the_index_costs_one_listing_however_many_campaigns_have_ended(store):
    for number in range(1000):
        log = a_log(store, f"c{number}")
        log.start(started(f"c{number}"))
        if number != 500:
            log.finish("all measured", complete=True)
    store.calls.clear()
    (one,) = list_open(store, "lab")
    assert (one.name, dict(store.calls)) == ("c500", {})
    assert one.read().is_open
    assert store.calls["find"] <= 3


def test_an_id_that_is_no_safe_name_is_found_by_its_folder(any_store):
    name = "PD-L1 binders, round 2"
    a_log(any_store, name).start(started(name))
    (by_index,), (by_log,) = list_open(any_store, "lab"), list_all(any_store, "lab")
    assert by_index.read() == by_log.state == a_log(any_store, name).read()
    assert (by_index.name, by_log.name) == (name, name)
    by_index.finish("all measured", complete=True)
    assert list(list_open(any_store, "lab")) == []


def test_files_of_others_in_the_index_are_left_alone(store, log):
    store.objects["lab/LEDGERS/OPEN/notes.txt"] = b""
    store.objects["lab/LEDGERS/OPEN/campaign-d.json"] = b"{damaged"
    assert open_names(store) == ["c"]


# --- an archive that is unreachable is never an empty one ---


class Away(MemoryStore):
    def find(self, key):
        raise ArchiveUnavailable(f"{key}: no connection")

    def keys(self, prefix):
        raise ArchiveUnavailable(f"{prefix}: no connection")

    stat = find
    folders = keys


@pytest.mark.parametrize(
    "call",
    [
        lambda store: a_log(store).read(),
        lambda store: a_log(store).records(),
        lambda store: a_log(store).stop("ada", "cancel"),
        lambda store: a_log(store).finish("x", complete=True),
        lambda store: a_log(store).close_index(),
        lambda store: list(list_open(store, "lab")),
        lambda store: list(list_all(store, "lab")),
    ],
)
def test_an_archive_that_is_unreachable_is_an_error_and_never_an_empty_one(call):
    with pytest.raises(ArchiveUnavailable):
        call(Away())


def test_no_record_holds_a_block_with_its_secrets(log, store):
    body = json.loads(store.objects["lab/LEDGERS/CAMPAIGNS/c/000001.json"])
    assert set(body["terms"]) == set(Terms.model_fields)
    assert not [name for name in Terms.model_fields if "token" in name or "key" in name or "secret" in name]


# --- any story, with several writers ---


class AnyStory(RuleBasedStateMachine):
    """Two objects write in any order, each from what it last read: the index has every campaign that needs the sweep."""

    @initialize()
    def begin(self):
        self.store = MemoryStore()
        self.logs = [a_log(self.store), a_log(self.store)]
        self.reopened = False

    @rule(which=st.integers(0, 1), home=st.sampled_from(["home1", "home2"]))
    def start(self, which, home):
        before = a_log(self.store).read()
        state = self.logs[which].start(started(home=home))
        assert state.stopped == before.stopped

    @rule(which=st.integers(0, 1))
    def stop(self, which):
        assert self.logs[which].stop("ada", "cancel").stopped is not None

    @rule(which=st.integers(0, 1))
    def reopen(self, which):
        state = self.logs[which].reopen("ada")
        assert (state.stopped, state.over) == (None, None)

    @rule(which=st.integers(0, 1))
    def finish(self, which):
        self.logs[which].finish("x", complete=True)

    @rule(which=st.integers(0, 1))
    def settle(self, which):
        self.logs[which].settle()

    @rule(which=st.integers(0, 1))
    def note(self, which):
        self.logs[which].note_run(str(which), "x")

    @invariant()
    def the_index_names_what_needs_the_sweep(self):
        state = a_log(self.store).read()
        listed = [log.name for log in list_open(self.store, "lab")]
        assert not state.needs_sweep or listed == ["c"]

    @invariant()
    def nobody_but_a_person_opens_what_was_stopped(self):
        records = a_log(self.store).records()
        stops = [n for n, record in enumerate(records) if record.kind == "stopped"]
        opens = [n for n, record in enumerate(records) if record.kind == "reopened"]
        is_stopped = bool(stops) and (not opens or stops[-1] > opens[-1])
        assert (a_log(self.store).read().stopped is not None) == is_stopped
        assert sum(isinstance(record, Over) for record in records) <= 1 + len(opens) + sum(
            record.kind == "started" for record in records
        )


AnyStory.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestAnyStory = AnyStory.TestCase


def test_an_answer_does_not_count_for_the_same_question_asked_anew(log):
    question = a_question()
    ask(log, question)
    answer(log)
    assert log.read().decision_for("q1", question) is not None
    assert not ask(log, question), "it is answered"
    assert log.ask("q1", question, order_key="k", now=NOW, expires_at=LATER, anew=True)
    assert log.read().open_questions["q1"].revision == 2
    assert log.read().decision_for("q1", question) is None
