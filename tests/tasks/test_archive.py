"""Data packages that cannot be fetched or stored: the measurements and the other packages are archived anyway."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import httpx
import pyarrow.parquet as pq
import pytest
from prefect.logging import disable_run_logger

from prefect_assay.analysis.results.mapping import read_mapping
from prefect_assay.analysis.tables.reread import reread_experiments
from prefect_assay.archive import read_latest
from prefect_assay.blocks import LocalArchive
from prefect_assay.campaigns import artifacts
from prefect_assay.errors import ArchiveUnavailable, TransientError
from prefect_assay.orders.job import Order
from prefect_assay.service.client import AssayClient
from prefect_assay.service.models.experiment import Experiment
from prefect_assay.service.models.spec import ExperimentSpec, SequenceValue
from prefect_assay.tasks.archive import ResultsGone, _receive_packages, archive_experiment

SPEC = ExperimentSpec(experiment_type="expression", sequences={"a": SequenceValue(aa_string="MKT")})
ORDER = Order(
    experiment_id="e1", experiment_code="LAB-001-001", order_key="0" * 20, status="done", adopted=False
)
EXPERIMENT = {
    "id": "e1",
    "code": "LAB-001-001",
    "status": "done",
    "results_status": "all",
    "created_at": "2026-11-21T12:00:00Z",
}
GOOD = "https://files.example/good.zip?sig=permission"


class Credentials:
    """A service whose results name these packages; `files` says how each host answers."""

    def __init__(self, *packages, files=None):
        self.results = [
            {"id": f"r{n}", "result_type": "expression", "summary": [], "data_package_url": url}
            for n, url in enumerate(packages)
        ]
        self.files = files or {}
        self.answers = {}  # to reading a single result once more, by id

    def get_client(self):
        return AssayClient(
            "https://lab.example",
            "canary-token",
            transport=httpx.MockTransport(self.answer),
            max_download=1000,
            sleep=lambda _: None,
        )

    def answer(self, request):
        if request.url.host != "lab.example":
            return self.files.get(request.url.path, httpx.Response(200, content=b"package"))
        if request.url.path.endswith("/e1"):
            return httpx.Response(200, json=EXPERIMENT)
        if request.url.path.endswith("/results"):
            return httpx.Response(200, json={"items": self.results, "total": len(self.results)})
        return self.answers.get(
            request.url.path.rpartition("/")[2], httpx.Response(404, json={"error": "none"})
        )


def kept(credentials, folder):
    with disable_run_logger():
        return archive_experiment.fn(
            credentials,
            LocalArchive(root=str(folder)),
            Experiment.model_validate(EXPERIMENT),
            campaign_id="c",
            order=ORDER,
            payment=None,
            spec=SPEC,
        )


def test_a_version_is_not_sealed_without_the_results_that_are_released(tmp_path):
    """A gateway or another server of the service may not know them for a moment."""
    credentials = Credentials()
    credentials.results = [{"id": "r0", "result_type": "expression", "summary": []}]
    answers = iter([False, True, True])

    def answer(request):
        if request.url.path.endswith("/results") and not next(answers):
            return httpx.Response(404, json={"error": "no results"})
        return Credentials.answer(credentials, request)

    credentials.answer = answer
    with pytest.raises(TransientError, match="are released, and cannot be read yet"):
        kept(credentials, tmp_path)
    assert read_latest(LocalArchive(root=str(tmp_path)).get_store(), "", "c", "LAB-001-001") is None
    assert list(Path(kept(credentials, tmp_path).record.location).rglob("raw/results-0001.json"))


EMPTY = [
    httpx.Response(404, json={"error": "no results"}),
    httpx.Response(202),
    httpx.Response(204),
    httpx.Response(200),
    httpx.Response(200, json={"items": [], "total": 0}),
]


@pytest.mark.parametrize("empty", EMPTY)
def test_a_preliminary_look_without_results_hides_none_that_are_archived(tmp_path, monkeypatch, empty):
    monkeypatch.setitem(EXPERIMENT, "results_status", "partial")
    credentials = Credentials()
    usual, answers = credentials.answer, [empty, None, empty, None]
    credentials.results = [{"id": "r0", "result_type": "expression", "summary": []}]

    def answer(request):
        return (request.url.path.endswith("/results") and answers.pop(0)) or usual(request)

    credentials.answer = answer
    assert kept(credentials, tmp_path).record.version == 1, "nothing is there yet"
    assert kept(credentials, tmp_path).record.version == 2
    with pytest.raises(ResultsGone, match="shows no results of experiment e1 any more"):
        kept(credentials, tmp_path)
    assert kept(credentials, tmp_path).record.unchanged


def test_a_list_that_the_service_may_not_have_does_not_hold_back_the_results(tmp_path):
    credentials = Credentials(GOOD)
    credentials.answers = {"updates": httpx.Response(404)}
    results = kept(credentials, tmp_path)
    place = Path(results.record.location)
    assert (place / "raw" / "results-0001.json").exists()
    assert json.loads((place / "raw" / "updates.absent.json").read_text()) == {"status_code": 404}
    assert "in place of a list" in (place / "ro-crate-metadata.json").read_text()
    (line,) = results.notes
    assert "raw/updates.absent.json" in line
    assert kept(credentials, tmp_path).record.unchanged
    credentials.answers = {"updates": httpx.Response(200, json={"items": [], "total": 0})}
    results = kept(credentials, tmp_path)
    assert (results.record.version, results.notes) == (2, ())


BAD = {
    "https://[::1/x": None,
    "https://xn--/x": None,
    "https://169.254.169.254/x": None,
    "https://files.example/turned?sig=permission": httpx.Response(302, headers={"location": "https://[::1/"}),
    "https://files.example/inward": httpx.Response(302, headers={"location": "https://10.0.0.1/"}),
    "https://files.example/expired?sig=permission": httpx.Response(403, json={"error": "expired"}),
    "https://files.example/gone": httpx.Response(410, json={"error": "gone"}),
    "https://files.example/page": httpx.Response(200, content=b"\n<!DOCTYPE html><html>maintenance</html>"),
    "https://files.example/large": httpx.Response(200, content=bytes(1001)),
}


@pytest.mark.parametrize("url", BAD)
def test_one_bad_package_loses_neither_the_others_nor_the_results(tmp_path, monkeypatch, url):
    credentials = Credentials(url, GOOD, files={urlsplit(url).path: BAD[url]} if BAD[url] else {})
    results = kept(credentials, tmp_path)
    place = tmp_path / "c" / "LAB-001-001" / "v001"
    assert (place / "packages" / "r1.zip").read_bytes() == b"package"
    assert (place / "results.csv").exists()
    assert (place / "raw" / "results-0001.json").exists()
    assert not (place / "packages" / "r0.zip").exists()
    assert json.loads((place / "packages" / "r0.absent.json").read_text())["error"]
    (line,) = results.notes
    assert "result r0" in line
    assert "permission" not in line
    assert kept(credentials, tmp_path).record.unchanged
    shown = []
    monkeypatch.setattr(artifacts, "create_markdown_artifact", lambda text, **_: shown.append(text))
    artifacts.show_results("one", results, "account main (simulated)")
    assert "data package of result r0" in shown[0]


def test_a_package_that_comes_later_makes_a_new_version(tmp_path):
    kept(Credentials("https://10.0.0.1/x"), tmp_path)
    results = kept(Credentials(GOOD), tmp_path)
    assert (results.record.version, results.notes) == (2, ())


@pytest.mark.parametrize("status", [400, 403, 404, 410])
def test_an_address_that_expired_before_its_download_is_read_again(tmp_path, status):
    """Addresses are signed for each request and for a time; a version that is complete must not lack its package."""
    credentials = Credentials(
        "https://files.example/old?sig=permission",
        "https://files.example/never?sig=permission",
        files={path: httpx.Response(status, content=b"<Error/>") for path in ("/old", "/never")},
    )
    again = {**credentials.results[0], "data_package_url": GOOD}
    credentials.answers = {"r0": httpx.Response(200, json=again)}
    results = kept(credentials, tmp_path)
    place = tmp_path / "c" / "LAB-001-001" / "v001" / "packages"
    assert sorted(path.name for path in place.iterdir()) == ["r0.zip", "r1.absent.json"]
    assert (place / "r0.zip").read_bytes() == b"package"
    assert json.loads((place / "r1.absent.json").read_text())["status_code"] == status
    assert ["result r1" in line for line in results.notes] == [True]


def test_a_page_of_a_gateway_in_place_of_the_new_address_leaves_the_package_for_later(tmp_path):
    url = "https://files.example/old?sig=permission"
    credentials = Credentials(url, files={"/old": httpx.Response(403)})
    credentials.answers = {"r0": httpx.Response(200, content=b"<html>maintenance</html>")}
    assert kept(credentials, tmp_path).deferred == ("r0",)


def test_an_unreachable_host_does_not_hold_back_what_was_received(tmp_path):
    credentials = Credentials("https://files.example/away", GOOD, files={"/away": httpx.Response(503)})
    results = kept(credentials, tmp_path)
    assert results.deferred == ("r0",)
    place = Path(results.record.location)
    assert (place / "raw" / "results-0001.json").exists()
    assert (place / "packages" / "r1.zip").exists()
    del credentials.files["/away"]
    results = kept(credentials, tmp_path)
    assert (results.deferred, results.notes, results.record.version) == ((), (), 2)


def unread_results(folder, body, **answers):
    credentials = Credentials()

    def answer(request):
        name = request.url.path.rpartition("/")[2]
        if name == "results":
            return httpx.Response(200, json=body)
        return answers.get(name) or Credentials.answer(credentials, request)

    credentials.answer = answer
    return kept(credentials, folder)


@pytest.mark.parametrize("body", [{"plates": [[1]]}, [{"id": "r", "data": []}], ["x"], []])
def test_complete_results_that_cannot_be_read_are_archived_and_named(tmp_path, body):
    results = unread_results(tmp_path, body)
    (raw,) = results.unread
    assert json.loads(Path(raw).read_text()) == body
    assert {row.outcome for row in results.rows} == {"unknown"}


@pytest.mark.parametrize(
    "elsewhere", [httpx.Response(200, text="<html>"), httpx.Response(403), httpx.Response(405)]
)
def test_paths_that_the_contract_does_not_have_hold_nothing_back(tmp_path, elsewhere):
    row = {"id": "r", "result_type": "expression", "summary": [{"sequence_id": "s-1", "expression": "high"}]}
    results = unread_results(tmp_path, [row], sequences=elsewhere, updates=elsewhere)
    assert results.unread == ()
    assert {row.name for row in results.rows} == {"a", "unmatched [r/1]"}


def test_a_sequence_id_is_resolved_where_the_service_lists_them(tmp_path):
    row = {"id": "r", "result_type": "expression", "summary": [{"sequence_id": "s-1", "expression": "high"}]}
    listed = httpx.Response(200, json={"items": [{"id": "s-1", "name": "A"}], "total": 1})
    assert [line.name for line in unread_results(tmp_path, [row], sequences=listed).rows] == ["a"]


def test_a_unit_that_is_not_known_is_named_where_people_look(tmp_path):
    credentials = Credentials(None)
    credentials.results[0]["summary"] = [
        {"sequence_name": "a", "result_type": "affinity", "kd_mean": 4.2, "kd_units": "mg/mL"}
    ]
    (line,) = kept(credentials, tmp_path).notes
    assert "K_D in result r0 is 4.2 in 'mg/mL'" in line


@pytest.mark.parametrize(
    "answer",
    [httpx.Response(403), httpx.Response(410), httpx.Response(503), httpx.Response(200, text="<html>")],
)
def test_a_package_that_is_archived_stays_where_it_cannot_be_fetched_again(tmp_path, answer):
    credentials = Credentials(GOOD)
    kept(credentials, tmp_path)
    credentials.files = {"/good.zip": answer}
    results = kept(credentials, tmp_path)
    assert (results.record.version, results.record.unchanged) == (1, True)
    credentials.results[0]["title"] = "corrected"
    credentials.results.append({**credentials.results[0], "id": "r1"})
    results = kept(credentials, tmp_path)
    packages = {path.name: path.read_bytes() for path in Path(results.record.location, "packages").iterdir()}
    assert (results.record.version, sorted(packages)) == (2, ["r0.zip", "r1.absent.json"])
    assert packages["r0.zip"] == b"package"
    kept_line, absent_line = results.notes
    assert kept_line.startswith("The data package of result r0 is the one archived before: ")
    assert absent_line.startswith("The data package of result r1 is not in the archive: ")
    assert results.deferred == (("r0", "r1") if answer.status_code == 503 else ())
    credentials.results[0]["summary"] = [{"sequence_name": "a", "expression": 2}]
    results = kept(credentials, tmp_path)
    packages = sorted(path.name for path in Path(results.record.location, "packages").iterdir())
    assert packages == ["r0.absent.json", "r1.absent.json"], "curves of what was measured before"
    credentials.files = {"/good.zip": httpx.Response(200, content=b"changed")}
    results = kept(credentials, tmp_path)
    assert Path(results.record.location, "packages", "r0.zip").read_bytes() == b"changed"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is Linux's")
def test_a_package_that_finds_no_space_is_fetched_again_later(tmp_path):
    (tmp_path / "0.zip").symlink_to("/dev/full")
    client = SimpleNamespace(documents=SimpleNamespace(download=lambda _url: iter([b"PK"])))
    result = SimpleNamespace(id="r-1", data_package_url="https://lab.example/p.zip")
    with pytest.raises(ArchiveUnavailable, match="no space left"):
        list(_receive_packages(client, "e-1", [result], tmp_path, [], []))


def versions_in_table(folder):
    return {pq.read_table(path)["version"][0].as_py() for path in folder.rglob("TABLES/**/*.parquet")}


def test_the_table_has_the_newest_version(tmp_path):
    kept(Credentials("https://10.0.0.1/x"), tmp_path)
    assert versions_in_table(tmp_path) == {1}
    assert kept(Credentials("https://10.0.0.1/x"), tmp_path).record.unchanged
    assert versions_in_table(tmp_path) == {1}
    kept(Credentials(GOOD), tmp_path)
    assert versions_in_table(tmp_path) == {2}


def test_a_table_that_fails_is_a_note_and_is_healed_by_the_next_run(tmp_path, monkeypatch):
    def fail(*_):
        raise ValueError("this pyarrow cannot")

    with monkeypatch.context() as broken:
        broken.setattr("prefect_assay.tasks.archive.write_newest_table", fail)
        results = kept(Credentials(GOOD), tmp_path)
    assert results.notes == (
        "LAB-001-001 is not in the tables: this pyarrow cannot. `prefect-assay archive tables` adds it later",
    )
    assert results.record.version == 1
    results = kept(Credentials(GOOD), tmp_path)
    assert (results.notes, results.record.unchanged, versions_in_table(tmp_path)) == ((), True, {1})


def test_without_the_extra_an_experiment_is_archived_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    results = kept(Credentials(GOOD), tmp_path)
    assert (results.notes, results.record.version) == ((), 1)
    assert not (tmp_path / "TABLES").exists()


def test_a_mapping_that_was_declared_stays_when_the_run_archives_again(tmp_path):
    credentials = Credentials()
    entry = {"sequence": {"name": "a", "aa_string": "MKT"}, "milligrams": 12.0}
    credentials.results = [{"id": "r0", "result_type": "expression", "summary": [entry]}]
    first = kept(credentials, tmp_path)
    assert [row.outcome for row in first.rows] == ["unknown"]
    store = LocalArchive(root=str(tmp_path)).get_store()
    mapping = read_mapping(b'[expression.fields.milligrams]\ncolumn = "yield_mean"', "map.toml")
    (again,) = reread_experiments(store, "", now=datetime(2026, 12, 1, tzinfo=UTC), mapping=mapping)
    assert again.record.version == 2

    unchanged = kept(credentials, tmp_path)
    assert (unchanged.record.version, unchanged.record.unchanged) == (2, True)
    credentials.results[0]["title"] = "corrected"
    later = kept(credentials, tmp_path)
    assert (later.record.version, later.rows[0].outcome) == (3, "measured")
    assert "mapping.json" in read_latest(store, "", "c", "LAB-001-001").files
