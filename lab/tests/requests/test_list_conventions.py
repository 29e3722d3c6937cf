"""The conventions of every list, and the filter language's corners (contract 4.1, 4.5 and 8)."""

import pytest

from assay_lab.requests import filters
from assay_lab.requests.filters import Atom
from lab_support.core import EPOCH, advance, get, lab_core, order, refusal, spec, to_quote

LISTS = (
    "/experiments", "/sequences", "/targets", "/targets/request-custom", "/results", "/updates", "/quotes",
    "/invoices",
)  # fmt: skip


@pytest.fixture(scope="module")
def core():
    """Three experiments: one with results, one rejected, one draft with parameters."""
    made = lab_core()
    made.ordered = order(made, name="ordered", auto_accept_quote=True).body["experiment_id"]
    advance(made, days=16)
    made.rejected = to_quote(made, name="rejected")
    quote_id = get(made, f"/experiments/{made.rejected}")["provider_quote_id"]
    made.request("POST", f"/quotes/{quote_id}/reject", json_body={"reason": "price"})
    made.draft = order(
        made, spec(parameters={"n": "12", "x": "abc", "f": 2.5, "deep": {"er": "y"}}), name="it's a draft"
    ).body["experiment_id"]
    made.request(
        "POST", "/targets/request-custom", json_body={"name": "t", "product_id": "p", "pdb_id": "1abc"}
    )
    yield made
    made.close()


def names(core, **query):
    return sorted(item["name"] for item in get(core, "/experiments", **query)["items"])


def lists(core):
    return (*LISTS, *(f"/experiments/{core.ordered}/{kind}" for kind in ("results", "sequences", "updates")))


def test_every_list_keeps_the_conventions(core):
    for path in lists(core):
        whole = get(core, path)
        assert set(whole) == {"items", "total", "count", "offset"}, path
        assert whole["total"] >= 1, path
        assert (whole["count"], whole["offset"]) == (len(whole["items"]), 0)
        page = get(core, path, limit="1", offset="1")
        assert page["items"] == whole["items"][1:2], path
        assert (page["total"], page["offset"]) == (whole["total"], 1)
        first = whole["items"][0]
        assert get(core, path, filter=f"eq(id,{first['id']})")["items"] == [first], path
        assert get(core, path, filter=f"neq(id,{first['id']})")["total"] == whole["total"] - 1
        assert get(core, path, **{"equ(id)": first["id"]})["items"] == [first], path
        assert [item["id"] for item in get(core, path, sort="asc(id)")["items"]] == sorted(
            item["id"] for item in whole["items"]
        ), path
        assert get(core, path, search="no such thing anywhere")["total"] == 0, path


@pytest.mark.parametrize(
    "path", ["/experiments", "/results", "/quotes", "/invoices", "/sequences", "/updates"]
)
def test_created_at_filters(core, path):
    total = get(core, path)["total"]
    start, later = EPOCH.isoformat(), "2026-04-30"
    assert get(core, path, **{"geq(created_at)": start})["total"] == total
    assert get(core, path, **{"leq(created_at)": later})["total"] == total
    assert get(core, path, **{"gtr(created_at)": later})["total"] == 0
    assert get(core, path, **{"lss(created_at)": start})["total"] == 0
    with core.lab.store.transaction() as db:  # a row need not show its time
        (stamp, *_) = db.column(f"SELECT created_at FROM {path.removeprefix('/')} ORDER BY seq DESC")
    assert get(core, path, **{"equ(created_at)": stamp})["total"] >= 1
    assert get(core, path, filter=f"and(gte(created_at,{start}),lt(created_at,{later}))")["total"] == total


@pytest.mark.parametrize("path", ["/experiments", "/results", "/quotes"])
def test_created_at_alone_is_an_equality(core, path):
    # contract 4.2: a filter by created_at; contract 4.5: =
    with core.lab.store.transaction() as db:
        (stamp, *_) = db.column(f"SELECT created_at FROM {path.removeprefix('/')} ORDER BY seq DESC")
    rows = get(core, path, created_at=stamp)
    assert rows["total"] >= 1
    assert rows == get(core, path, **{"equ(created_at)": stamp})
    assert get(core, path, created_at="2026-01-01")["total"] == 0
    assert refusal(core, "GET", path, query={"created_at": "soon"}).status == 400


def test_both_spellings_of_a_status_are_read(core):
    for key in ("status", "state"):
        assert names(core, **{key: "done"}) == names(core, **{key: "Done"}) == ["ordered"]
    assert get(core, "/experiments", status="WaitingForMaterials")["total"] == 0
    assert get(core, "/experiments", filter="eq(results_status,All)")["total"] == 1
    assert names(core, filter="in(status,Draft,quote_sent)") == ["it's a draft", "rejected"]
    for query in ({"experiment_type": "western_blot"}, {"status": "finished"}, {"state": "x"}):
        assert refusal(core, "GET", "/experiments", query=query).status == 400


def test_both_vocabularies_of_quotes_are_read(core):
    for word in ("rejected", "canceled", "Rejected"):
        (row,) = get(core, "/quotes", status=word)["items"]
        page = get(core, f"/experiments/{core.rejected}/quote")["provider_quote_url"]
        assert (row["status"], row["provider_quote_url"]) == ("rejected", page)
    assert get(core, "/quotes", filter="in(status,canceled,accepted)")["total"] == 2
    for word in ("open", "pending", "stale", "expired"):
        assert get(core, "/quotes", status=word)["total"] == 0
    assert refusal(core, "GET", "/quotes", query={"status": "maybe"}).status == 400
    assert row["expires_at"] == row["valid_until"]
    detail = get(core, f"/quotes/{row['id']}")
    assert (detail["expires_at"], detail["provider_quote_url"]) == (row["valid_until"], page)
    assert get(core, "/quotes", experiment_id=core.rejected)["items"] == [row]


def test_a_quote_by_its_id_speaks_the_words_of_the_list():
    """Contract 2.7; the experiment's own quote speaks those of 2.6."""
    core = lab_core()
    accepted, rejected, expired = (to_quote(core, name=name) for name in ("accepted", "rejected", "expired"))
    paths = {
        it: f"/quotes/{get(core, f'/experiments/{it}')['provider_quote_id']}"
        for it in (accepted, rejected, expired)
    }
    assert {get(core, path)["status"] for path in paths.values()} == {"pending"}
    price = {"reason": "price"}
    core.request("POST", f"{paths[accepted]}/confirm", json_body={})
    assert core.request("POST", f"{paths[rejected]}/reject", json_body=price).body["status"] == "rejected"
    advance(core, days=31)
    for name, status, experiment_word in (
        (accepted, "accepted", "accepted"),
        (rejected, "rejected", "canceled"),
        (expired, "expired", "stale"),
    ):
        assert get(core, paths[name])["status"] == status
        assert get(core, f"/experiments/{name}/quote")["status"] == experiment_word
        again = refusal(core, "POST", f"{paths[name]}/reject", json_body=price)
        assert (again.status, again.message) == (409, f"the quote is {status} and cannot be rejected")
    core.close()


def test_the_purity_of_a_target_is_a_number(core):
    row = get(core, "/targets", detailed="true")["items"][0]
    assert isinstance(row["details"]["purity"], float)
    everything = get(core, "/targets")["total"]
    assert get(core, "/targets", filter="gte(purity,9.5)", sort="-purity")["total"] == everything
    assert get(core, "/targets", filter="between(purity,94.5,95.5)")["total"] == everything
    assert get(core, "/targets", filter="lt(purity,100)")["total"] == everything  # "100" is not text


def test_updates_and_results_filter_by_experiment_and_type(core):
    whole = get(core, "/updates", limit="100")
    moves = get(core, "/updates", filter="eq(type,status_change)", limit="100")
    assert 0 < moves["total"] < whole["total"]
    assert moves == get(core, "/updates", type="status_change", limit="100")
    experiment_updates = get(core, "/updates", experiment_id=core.rejected)
    assert {item["experiment_id"] for item in experiment_updates["items"]} == {core.rejected}
    assert experiment_updates == get(core, "/updates", filter=f"eq(experiment_id,{core.rejected})")
    assert get(core, "/results", experiment_id=core.ordered)["total"] == get(core, "/results")["total"] == 1
    row = get(core, "/results")["items"][0]
    assert set(row) == {"id", "experiment_id", "result_type", "title", "created_at", "size_bytes"}


def test_targets_filter_by_name_vendor_and_self_service(core):
    everything = get(core, "/targets")
    one = everything["items"][0]
    assert get(core, "/targets", name=one["name"])["total"] == 1
    for key in ("vendor", "vendor_name"):
        assert get(core, "/targets", **{key: one["vendor_name"]})["total"] == everything["total"]
    priced = get(core, "/targets", selfservice_only="true")
    assert priced == get(core, "/targets", selfservice_only="1")
    assert all(item["pricing"] for item in priced["items"])
    assert priced["total"] == sum(bool(item["pricing"]) for item in everything["items"])
    assert refusal(core, "GET", "/targets", query={"selfservice_only": "perhaps"}).status == 400


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("eq(name,'rejected')", ["rejected"]),
        ('eq(name,"it\'s a draft")', ["it's a draft"]),
        (r"eq(name,'it\'s a draft')", ["it's a draft"]),
        ("contains(name,it's)", ["it's a draft"]),
        ("contains(status,DRA)", ["it's a draft", "rejected"]),
        ("eq(int(at(at(experiment_spec,parameters),n)),12)", ["it's a draft"]),
        ("is_null(int(at(at(experiment_spec,parameters),x)))", ["it's a draft", "ordered", "rejected"]),
        ("eq(int(at(at(experiment_spec,parameters),f)),2)", ["it's a draft"]),
        ("between(float(at(at(experiment_spec,parameters),f)),2,3)", ["it's a draft"]),
        ("is_not_null(float(name))", []),
        ("eq(at(at(at(experiment_spec,parameters),deep),er),y)", ["it's a draft"]),
        ("gte(timestamp(created_at),0500-01-01)", ["it's a draft", "ordered", "rejected"]),
        ("eq(date(created_at),2026-03-02)", ["ordered"]),
        ("eq(text(results_status),all)", ["ordered"]),
        # Contract 4.1 lists the casts without saying where they stand: around values, too.
        ("eq(date(created_at),date(2026-03-02))", ["ordered"]),
        ("eq(date(created_at),date(2026-03-02T23:59:59Z))", ["ordered"]),
        ("lt(created_at,date(2026-03-03))", ["ordered"]),
        ("gt(created_at,timestamp(2026-03-03T00:00:00+00:00))", ["it's a draft", "rejected"]),
        ("between(created_at,timestamp(2026-03-02),timestamp(2026-03-03))", ["ordered"]),
        ("in(name,text(ordered),text('rejected'))", ["ordered", "rejected"]),
        ("contains(name,text(draft))", ["it's a draft"]),
        ("eq(status,text(Draft))", ["it's a draft", "rejected"]),
        ("eq(at(at(experiment_spec,parameters),n),text(12))", ["it's a draft"]),
        ("eq(at(at(experiment_spec,parameters),n),int(12))", []),
        ("eq(at(at(experiment_spec,parameters),f),float(2.5))", ["it's a draft"]),
        ("eq(int(at(at(experiment_spec,parameters),n)),float(12.0))", ["it's a draft"]),
        ("eq(int(at(at(experiment_spec,parameters),n)),int(text(12)))", ["it's a draft"]),
    ],
)
def test_filters(core, text, expected):
    assert names(core, filter=text) == expected


@pytest.mark.parametrize(
    ("text", "position"),
    [
        *(("eq(int(name),1_000)", 13), ("eq(int(name),int(abc))", 17), ("eq(int(name),int(1,2))", 13)),
        *(("eq(created_at,date(soon))", 19), ("eq(name,lower(x))", 8), ("eq(name,at(name,x))", 8)),
        *(
            ("is_null(text(date(x)))", 18),
            ("eq(int(name),9223372036854775808)", 13),
            ("asc(name)", 0),
            (")", 0),
        ),
        *(("eq(float(name),1e999)", 15), ("eq(float(name),nan)", 15), ("eq(name,a", 9), ("eq(name,'a", 10)),
        *(("eq(name,a b(c))", 11), ('eq(name,a "b")', 9), ("eq(name," + "x" * 5_000 + ")", 4_000)),
        *(("eq(at(name,x),1)", 3), ('eq(at(experiment_spec,"a\\"b"),1)', 23)),
    ],
)
def test_a_bad_filter_names_its_position(core, text, position):
    refused = refusal(core, "GET", "/experiments", query={"filter": text})
    assert (refused.status, refused.message.endswith(f"at position {position}")) == (400, True), (
        refused.message
    )


def test_null_sorts_last_in_both_directions(core):
    way = "float(at(at(experiment_spec,parameters),f))"
    for direction in ("asc", "desc"):
        first = get(core, "/experiments", sort=f"{direction}({way})")["items"][0]
        assert first["name"] == "it's a draft"


def test_single_quotes_keep_what_is_inside():
    tree = filters.parse_expression(r"in(name,'a,b)'," r"'c\'d')")
    assert tree.arguments[1:] == (Atom("a,b)", 9, quoted=True), Atom("c'd", 16, quoted=True))
