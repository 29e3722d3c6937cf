"""What an idle sweep costs does not grow with the campaigns that are over."""

from prefect_assay.orders.ledger.campaign_log import CampaignLog
from support.campaign_logs import started
from support.counting import counted_requests
from support.runs.sweeps import swept

REQUESTS_MAX = 15


def finish(home, numbers):
    """Campaigns that are over, with the records of a short life."""
    for number in numbers:
        log = CampaignLog(home.store, "", f"c-{number}")
        log.start(started(home.ledgers, log.name, experiments=1, home=home.id))
        log.note_run(f"r-{number}", "run")
        log.finish("1 of 1 measured", complete=True)


def test_an_idle_sweep_makes_few_requests_however_many_campaigns_are_over(home, monkeypatch):
    reads = []
    find = type(home.store).find

    def counted_find(store, key):
        reads.append(key)
        return find(store, key)

    monkeypatch.setattr(type(home.store), "find", counted_find)
    costs = []
    for numbers in (range(1), range(1, 200)):
        finish(home, numbers)
        swept()  # the entries of the index are gone, and everything hourly is done
        reads.clear()
        with counted_requests() as made:
            report = swept()
        assert (report.open_campaigns, report.problems) == (0, ())
        # By kind: on a busy machine Prefect's client repeats a request that the server has put off.
        costs.append((sorted(set(made)), len(reads)))
        assert len(made) <= REQUESTS_MAX, made
    assert costs[0] == costs[1], "neither requests nor readings of the archive grow"
