"""Results in every form that the contract leaves open: none is lost, and what cannot be read names its file."""

import codecs
import json

import pytest

from prefect_assay.analysis.results import read_results
from prefect_assay.analysis.results.reading import read_sequence_names
from prefect_assay.analysis.results.row import Outcome
from prefect_assay.analysis.results.tidy import read_rows
from prefect_assay.service.models.sequences import ProteinSequence

ENTRY = {"name": "a", "kd_mean": 1e-9}
BESIDE = {"kd_mean": 1e-9}
ROW = {"id": "r", "result_type": "affinity", "summary": [ENTRY]}


def read(body, *more):
    bodies = (one if isinstance(one, bytes) else json.dumps(one).encode() for one in (body, *more))
    return read_results({f"results-{number:04d}.json": raw for number, raw in enumerate(bodies, start=1)})


def entries(results):
    return [(entry.name, entry.kd_mean) for result in results for entry in result.summary]


@pytest.mark.parametrize(
    "body",
    [
        [ROW],
        {"items": [ROW]},
        {"results": [ROW]},
        ROW,
        {"items": ["x", ROW, {"title": 1}]},
        codecs.BOM_UTF8 + json.dumps([ROW]).encode(),
        json.dumps(ROW).encode() + b"\n",
    ],
)
def test_results_are_read_in_the_known_forms_row_by_row(body):
    results, _ = read(body)
    assert [entry for entry in entries(results) if entry[1] is not None] == [("a", 1e-9)]


@pytest.mark.parametrize(
    "body",
    [
        {"plates": [[1]]},
        {"statistics": {"mean": 3}},
        "later",
        7,
        [1, 2],
        [{"id": "r", "data": []}],
        [{"id": "r", "title": "Results", "size_bytes": 7}],
        None,
        [],
        {"items": []},
        b"name,kd\na,1e-9\n",
        # Forms that neither the contract nor a published description shows.
        {"data": {"items": [ROW], "total": 1}},
        {"data": [ROW]},
        {"rows": [ROW]},
        {"measurements": [ENTRY]},
        {"result": ROW},
        [{**ROW, "summary": {"a": BESIDE}}],
        [{**ROW, "summary": None, "data": [ENTRY]}],
        [{"id": "r", "result_type": "affinity", **ENTRY}],
        [ENTRY],
        {"items": [ENTRY], "total": 1},
        {"a": BESIDE},
        json.dumps(ENTRY).encode() + b"\n\n" + json.dumps({"name": "b"}).encode(),
    ],
)
def test_results_of_an_unknown_shape_name_their_raw_file(body):
    results, lines = read(body)
    assert not any(one.summary for one in results)
    assert all(line.startswith("raw/results-0001.json") for line in lines)
    assert lines


def test_an_empty_summary_is_a_known_shape():
    assert read([{**ROW, "summary": []}])[1] == ()


def test_results_that_share_an_id_or_have_none_are_all_kept():
    several = [{**ROW, "summary": [{"name": name, "kd_mean": 1e-9}]} for name in "abc"]
    results, _ = read(several)
    assert [(one.id, one.summary[0].name) for one in results] == [("r", "a"), ("r-2", "b"), ("r-3", "c")]
    results, _ = read([{**one, "id": None} for one in several])
    assert [(one.id, one.summary[0].name) for one in results] == [
        ("row-1", "a"),
        ("row-2", "b"),
        ("row-3", "c"),
    ]


@pytest.mark.parametrize("result_ids", [("old", "new"), ("r", "r"), (None, None)])
@pytest.mark.parametrize("more", [{}, {"id": "other", "summary": [{"name": "b", "kd_mean": 1e-9}]}])
def test_the_newest_result_comes_last_in_whatever_order_they_are_listed(result_ids, more):
    old, new = (
        {
            **ROW,
            "id": result_id,
            "created_at": f"2026-0{month}-01T00:00:00Z",
            "summary": [{"name": "a", "kd_mean": kd}],
        }
        for result_id, month, kd in zip(result_ids, (1, 2), (1e-6, 1e-9), strict=True)
    )
    later = [{**ROW, **more, "created_at": "2026-03-01T00:00:00+02:00"}] if more else []
    listed, reversed_list = read([old, new, *later])[0], read([*later, new], [old])[0]
    assert listed == reversed_list
    assert entries(listed)[:2] == [("a", 1e-6), ("a", 1e-9)]
    untimed, _ = read([new, {**old, "created_at": None}])
    assert entries(untimed) == [("a", 1e-9), ("a", 1e-6)], (
        "the order of the list counts where a time is missing"
    )


def test_a_result_on_two_pages_is_one_although_its_link_is_signed_again():
    link = "https://files.example/p.zip?sig="
    results, _ = read([{**ROW, "data_package_url": f"{link}1"}], [{**ROW, "data_package_url": f"{link}2"}])
    assert [one.id for one in results] == ["r"]


@pytest.mark.parametrize(
    "says", [{"total": 3}, {"has_more": True}, {"next": "?page=9"}, {"next_cursor": "r"}]
)
def test_a_list_that_has_more_than_came_says_so_and_no_design_is_missing(says):
    results, lines = read({"items": [ROW], **says})
    assert lines == ("raw/results-0001.json says that the service has more results than the 1 that came",)
    designs = [ProteinSequence(name=name, aa_string=f"MK{name.upper()}") for name in "ac"]
    table = read_rows(results, ordered=designs, complete=True, unread=bool(lines))
    assert [(row.name, row.outcome) for row in table] == [("a", Outcome.MEASURED), ("c", Outcome.UNKNOWN)]


def test_names_of_sequence_ids_are_those_of_the_archived_lists():
    listed = {"items": [{"id": 7, "name": "a"}, {"id": "s-2", "name": None}, "odd"]}
    assert read_sequence_names([json.dumps(listed).encode(), b"<html>"]) == {"7": "a"}
