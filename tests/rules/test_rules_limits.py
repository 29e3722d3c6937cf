"""Every limit of contract 8 at its edge, on both sides."""

from operator import attrgetter

from lab_support.core import spec
from support.rules.register import lab_holds
from support.rules.rows import LISTS, binning, many


@lab_holds("8.limit.default")
def test_a_page_has_fifty_rows(org):
    experiment_id = org.made(spec(sequences=many(101)))["experiment_id"]
    for path in ("/sequences", f"/experiments/{experiment_id}/sequences"):
        page = org.http.get(path).json()
        assert (page["count"], len(page["items"]), page["total"], page["offset"]) == (50, 50, 101, 0)
        assert org.http.get(path, params={"limit": 100}).json()["count"] == 100
        assert org.http.get(path, params={"limit": 100, "offset": 100}).json()["count"] == 1


@lab_holds("8.concentrations.default", "8.replicates.default")
def test_five_concentrations_and_three_replicates_are_the_default(org):
    def shown(specification):
        path = f"/experiments/{org.made(specification)['experiment_id']}"
        return org.http.get(path).json()["experiment_spec"]

    assert shown(spec())["antigen_concentrations"] == [1000.0, 316.2, 100.0, 31.6, 0.0]
    assert shown(spec())["n_replicates"] == 3
    assert "antigen_concentrations" not in shown(spec(experiment_type="screening"))
    assert "n_replicates" not in shown(binning(4))


def test_what_is_at_a_limit_is_taken(org):
    for name in LISTS:
        for page in ({"limit": 1}, {"limit": 100}, {"offset": 0}, {"sort": ",".join(["id"] * 8)}):
            attrgetter(name)(org.client)(**page)
    assert org.http.get("/experiments", params={"offset": 2**63 - 1}).status_code == 200
    org.made(webhook_url="https://example.org", webhook_secret="x" * 32)
    org.client.webhooks.create("https://example.org/x", secret="x" * 32)
