from importlib.resources import files

from prefect_assay.cli.campaigns.run import _read_parameters
from prefect_assay.designs.options import CampaignOptions, ReadingOptions
from prefect_assay.tasks.read import read_designs
from support.command import command

EGFR = str(files("assay_lab") / "data" / "egfr_round1_designs.fasta")


def test_good_file(tmp_path):
    done = command("designs", "check", EGFR)
    assert done.code == 0
    assert "can be ordered" in done.out
    assert "11 (0 controls)" in done.out


def test_summary_as_json(tmp_path):
    path = tmp_path / "designs.csv"
    path.write_text("name,sequence,control\na,MKVLAAGG,\nb,MKVLAAGGWW,\nb2,MKVLAAGGWW,\nc,MKVLAAGGHHH,true\n")
    done = command("designs", "check", str(path), "--json", "--designs-per-experiment", "2")
    assert done.code == 0, done.err
    summary = done.json()
    assert summary["designs"] == 3
    assert summary["controls"] == 1
    assert summary["duplicates"] == [{"name": "b2", "same_as": "b"}]
    assert summary["residues"] == {"shortest": 8, "median": 10, "longest": 11}
    assert summary["experiments"] == 2


def test_bad_file_lists_every_finding(tmp_path):
    path = tmp_path / "bad.fasta"
    path.write_text(">one\nMKV*LL\n>two\nMKVLLX\n>two\nMKV\n")
    done = command("designs", "check", str(path))
    assert done.code == 1
    assert done.out == ""
    assert done.err.count("  - ") == 3
    assert "line 1" in done.err
    assert "Traceback" not in done.err


def test_bad_file_as_json(tmp_path):
    path = tmp_path / "bad.fasta"
    path.write_text(">one\nMKV*LL\n")
    done = command("designs", "check", str(path), "--json")
    assert done.code == 1
    error = done.json()["error"]
    assert error["type"] == "InvalidSequences"
    assert len(error["findings"]) == 1
    assert error["exit_code"] == 1


def test_a_missing_file_is_a_finding_with_its_name(tmp_path):
    done = command("designs", "check", str(tmp_path / "nowhere.fasta"))
    assert done.code == 1
    assert done.err.startswith("1 problem with ")
    assert "nowhere.fasta" in done.err
    assert "order" not in done.err


def test_pasted_text():
    done = command("designs", "check", ">a\nMKVLA", "--json")
    assert done.code == 0
    assert done.json()["source"] == "pasted text"


def test_rules_of_the_assay_are_applied(tmp_path):
    path = tmp_path / "three.fasta"
    path.write_text(">a\nMKVLA\n>b\nMKVLAW\n>c\nMKVLAY\n")
    done = command("designs", "check", str(path), "--type", "epitope_binning")
    assert done.code == 1
    assert "multiples of 4" in done.err


def test_warnings_notes_and_columns_are_shown_and_nothing_is_refused(tmp_path):
    path = tmp_path / "3HTN.fa"
    path.write_text(
        ">3HTN, score=1.1, fixed_chains=[], designed_chains=['A'], model_name=v_48_020, seed=37\nMKVLAXX\n"
        ">T=0.1, sample=1, score=0.7, seq_recovery=0.5\nMKVLCNGS\n"
    )
    done = command("designs", "check", str(path))
    assert done.code == 0, done.err
    assert "the native input of ProteinMPNN left out: 3HTN" in done.out
    assert "1 of 1 design has an odd number of cysteines" in done.out
    summary = command("designs", "check", str(path), "--json").json()
    assert len(summary["warnings"]) == 4
    assert {"T", "sample", "score", "backbone"} <= set(summary["columns"])
    assert command("designs", "check", str(path), "--keep-native").code == 1


def test_columns_are_chosen_by_their_titles(tmp_path):
    path = tmp_path / "designs.csv"
    path.write_text("id,Construct,seq,Chain\n1,c1,AAA,MKVLAAGG\n")
    chosen = ("--name-column", "Construct", "--sequence-column", "Chain")
    done = command("designs", "check", str(path), "--json", *chosen)
    assert done.json()["residues"]["longest"] == 8
    wrong = command("designs", "check", str(path), "--name-column", "Name of it")
    assert wrong.code == 1
    assert "no column 'Name of it' in [id, Construct, seq, Chain]" in wrong.err


def test_a_file_that_is_sent_as_text_keeps_its_name(tmp_path):
    path = tmp_path / "round-1.fasta"
    path.write_text(">a\nMKV\n")
    options = CampaignOptions(reading=ReadingOptions(designs_per_experiment=7))
    reading = options.reading.model_copy(update={"designs_name": str(path)})
    sent = _read_parameters(str(path), options)
    assert sent == {"designs": ">a\nMKV\n", "options": options.model_copy(update={"reading": reading})}
    assert _read_parameters(">a\nMKV\n", options) == {"designs": ">a\nMKV\n"}
    assert _read_parameters("s3://designs/a.fasta", options) == {"designs": "s3://designs/a.fasta"}
    assert read_designs.fn(source=sent["designs"], reading=sent["options"].reading).source == str(path)


def test_a_name_that_was_chosen_for_the_designs_is_kept(tmp_path):
    path = tmp_path / "round-1.fasta"
    path.write_text(">a\nMKV\n")
    options = CampaignOptions(reading=ReadingOptions(designs_name="round one"))
    assert _read_parameters(str(path), options)["options"].reading.designs_name == "round one"
