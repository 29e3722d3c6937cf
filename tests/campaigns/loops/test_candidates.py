"""Every candidate of a loop in the tables: why it was chosen or not, what became of it later, and one file per round."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from prefect_assay.analysis.results import Outcome, write_summary_csv
from prefect_assay.analysis.selection import History, read_history, select_designs
from prefect_assay.analysis.tables.candidates import check_candidates, digest_sequence, read_proposals
from prefect_assay.analysis.tables.designs import read_measured_designs
from prefect_assay.analysis.tables.files import UpdatedTables, update_tables
from prefect_assay.archive import LocalStore, verify_versions
from prefect_assay.archive.layout import is_table, safe_name
from prefect_assay.campaigns.loops.candidates import update_candidates, write_round
from prefect_assay.campaigns.loops.loop_log import LoopLog, RoundFixed
from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.proposed import pool_of
from prefect_assay.designs.selection import KeptFates, SelectionSettings
from prefect_assay.errors import ArchiveError
from support.archive.campaigns import archive_rows, row
from support.archive.loops import CODE, LOOP, STEM, archive_measured_round, selected_round, whole_round


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path)


def rows_of(address):
    return pq.ParquetFile(address).read().to_pylist()


def files(store):
    return sorted(filter(is_table, store.keys("TABLES/candidates")))


def test_every_candidate_has_its_fate_and_what_was_not_bought_is_kept_without_its_sequence(store):
    rows = rows_of(write_round(store, "lab", selected_round(store, "lab")))
    assert {
        candidate["name"]: (candidate["fate"], candidate["method"], candidate["rank"]) for candidate in rows
    } == {
        "d0": ("chosen", "rfd", 1),
        "d1": ("chosen", "rfd", 2),
        "d2": ("chosen", "old", 3),
        "d3": ("chosen", "old", 4),
        "d4": ("ranked_lower", "rfd", None),
        "d5": ("ranked_lower", "old", None),
        "twin": ("duplicate", None, None),
    }
    first, second, *_, passed, _, twin = rows
    assert first["sequence_sha256"] == twin["sequence_sha256"] == digest_sequence(STEM + STEM)
    assert (twin["reason"], passed["reason"]) == ("same residues as d0", "others ranked higher")
    assert (first["sequence"], passed["sequence"], passed["columns"]) == (STEM + STEM, None, None)
    assert json.loads(first["columns"]) == {"Method": "rfd", "ipTM": "0.9", "note": "keep"}
    assert (first["price_cents"], first["score"], first["reason"]) == (19_900, 0.9, "ipTM 0.9, place 1 of 6")
    assert second["parents"] == ["wt", "d9"]
    assert (first["loop_id"], first["round_number"], first["campaign_id"]) == (LOOP, 1, "binders-round-001")
    assert store.stat(f"{LoopLog(store, 'lab', LOOP).folder}/{first['pool']}") is not None


def test_a_limit_that_kept_a_candidate_out_is_its_fate(store):
    fixed = selected_round(store, "", n=5)
    fates = {candidate["name"]: candidate["fate"] for candidate in rows_of(write_round(store, "", fixed))}
    assert (len(fixed.choices), fates["d4"], fates["d5"]) == (4, "method_limit", "method_limit")


def test_a_round_is_written_once_and_is_made_again_from_the_archive_with_the_same_bytes(store):
    first = write_round(store, "", selected_round(store, ""))
    whole_round(store, "")
    assert update_candidates(store, "") == UpdatedTables(files=2, written=1)
    assert update_candidates(store, "") == UpdatedTables(files=2, written=0)
    before = files(store)
    folder = f"TABLES/candidates/{safe_name(LOOP)}"
    assert before == [f"{folder}/000001.parquet", f"{folder}/000002.parquet"]
    assert first in map(store.location, before)
    assert verify_versions(store).ok
    for key in before:
        (store.root / key).unlink()
    assert update_candidates(store, "").written == 2
    assert files(store) == before


def test_a_changed_file_and_a_changed_pool_are_noticed(store):
    path = write_round(store, "", selected_round(store, ""))
    content = Path(path).read_bytes()
    position = content.index(b"ranked_lower")
    Path(path).write_bytes(content[:position] + b"Ranked_lower" + content[position + 12 :])
    assert verify_versions(store).ok
    (finding,) = check_candidates(store, "")
    assert (finding.kind, store.location(finding.key)) == ("changed", path)
    with pytest.raises(ArchiveError, match=r"cannot be read: .*; run `prefect-assay archive tables`"):
        read_proposals(store, "")
    assert update_candidates(store, "").written == 1
    assert Path(path).read_bytes() == content
    Path(path).unlink()
    (pool,) = (store.root / key for key in store.keys("LOOPS") if "POOLS" in key)
    pool.write_text(pool.read_text().replace("0.9", "0.8"))
    done = update_candidates(store, "")
    assert (done.files, done.written) == (0, 0)
    assert "is not completely in the tables" in done.notes[0]
    assert "has changed; restore it from a backup" in done.notes[0]


def test_candidates_of_a_function_are_read_as_they_were_selected(store):
    proposed = [
        Candidate(name=f"f{start}", sequence=STEM[start:] + STEM, parents=("wt",)) for start in range(5)
    ]
    proposed.insert(1, Candidate(name="again", sequence=STEM + STEM))
    loop_log = LoopLog(store, "", LOOP)
    chosen = select_designs(pool_of(proposed), History(), 2, SelectionSettings(policy="random", seed=3))
    fixed = RoundFixed(
        loop_id=LOOP,
        number=1,
        name="r",
        campaign_id="c",
        origin="designer f",
        pool=loop_log.save_candidates(proposed, "f"),
        choices=chosen.choices,
        fates=KeptFates.of(chosen),
    )
    rows = rows_of(write_round(store, "", loop_log.fix(fixed)))
    assert [candidate["name"] for candidate in rows] == ["f0", "f1", "f2", "f3", "f4", "again"]
    assert {candidate["name"] for candidate in rows if candidate["fate"] == "chosen"} == {
        choice.candidate.name for choice in chosen.choices
    }


def test_fates_of_another_number_of_candidates_are_refused(store):
    fixed = selected_round(store, "")
    words = fixed.fates.words
    wrong = fixed.model_copy(
        update={"fates": KeptFates(words=words, packed=fixed.fates.packed[:-4] + "AAAA")}
    )
    with pytest.raises(ArchiveError, match="fates of round 1"):
        write_round(store, "", wrong)
    assert files(store) == []


def test_what_was_measured_is_joined_when_it_is_read(store):
    fixed = selected_round(store, "")
    write_round(store, "", fixed)
    write_round(store, "", whole_round(store, ""))
    before = read_measured_designs(store, "")
    assert (before.designs, len(before.unanswered)) == ((), 6)
    names = files(store)

    archive_measured_round(store, "", fixed)
    archive_rows(store, "", "by-hand", "HND-001", [row("h1", "HND-001", kd_M=1e-9, aa_string="MKV")])
    update_tables(store, "")
    assert files(store) == names

    designs = {design.name: design for design in read_measured_designs(store, "").designs}
    assert set(designs) == {"d0", "d1", "d2", "d3", "h1"}
    best = designs["d0"]
    assert (best.kd_M, best.verdict, best.price_cents, best.aa_string) == (
        5e-9,
        "agrees",
        19_999.0,
        STEM + STEM,
    )
    assert best.attributes == {
        "Method": "rfd",
        "ipTM": "0.9",
        "note": "keep",
        "parents": "wt",
        "loop": LOOP,
        "round": "1",
        "selection_rank": "1",
        "selection_score": "0.9",
        "selection_reason": "ipTM 0.9, place 1 of 6",
    }
    assert (designs["d2"].outcome, designs["d2"].kd_M) == (Outcome.NO_BINDING, None)
    assert "loop" not in designs["h1"].attributes
    of_loop = read_measured_designs(store, "", LOOP)
    assert {design.name for design in of_loop.designs} == {"d0", "d1", "d2", "d3"}
    assert len(of_loop.unanswered) == 2  # of the second round


def test_the_export_of_the_tables_is_a_history(store):
    fixed = selected_round(store, "")
    write_round(store, "", fixed)
    archive_measured_round(store, "", fixed)
    update_tables(store, "")
    designs = read_measured_designs(store, "").designs
    assert read_history(write_summary_csv(designs)).designs == designs


def test_a_name_like_another_campaigns_gets_no_other_decision(store):
    fixed = selected_round(store, "")
    write_round(store, "", fixed)
    archive_rows(store, "", "elsewhere", CODE, [row("d0", CODE, kd_M=1e-9, aa_string=STEM + STEM)])
    archive_rows(store, "", fixed.campaign_id, CODE, [row("d0", CODE, kd_M=1e-8, aa_string="MKV")])
    update_tables(store, "")
    measured = read_measured_designs(store, "")
    assert [design.attributes for design in measured.designs] == [{}, {}]
    assert len(measured.unanswered) == 4
