"""`prefect-assay designs`: a pool and tables of results in, the designs to buy next out."""

import re
from pathlib import Path

import pytest

from prefect_assay.designs.read import read_sequences
from support.command import command

POOL = "name,sequence,method,ipTM\n" + "".join(
    f"d{n},{'ACDEFGHIKLMNPQRSTVWY'[n:]}{'GSTE' * 5},{'new' if n % 2 else 'old'},0.{n:02}\n" for n in range(16)
)
HISTORY = (
    'name,kd,binding,expression,sequence,method\n"d1",2e-8,true,high,{},new\n"x",null,false,high,WWWW,old\n'
)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "pool.csv").write_text(POOL)
    measured = POOL.splitlines()[2].split(",")[1]
    (tmp_path / "competition.csv").write_text("\ufeff" + HISTORY.format(measured))
    return tmp_path


def test_select_writes_designs_with_reasons_that_can_be_ordered(files):
    arguments = (
        *(
            "designs",
            "select",
            "pool.csv",
            "--history",
            "competition.csv",
            "-n",
            "4",
            "--policy",
            "gp",
        ),
        *(
            "--score-column",
            "ipTM",
            "--seed",
            "1",
            "--price-usd",
            "200",
            "--budget-usd",
            "650",
            "-o",
            "next.csv",
        ),
    )
    done = command(*arguments, "--json", cwd=files)

    assert done.code == 0, done.err
    answer = done.json()
    assert answer["counts"] == {"chosen": 3, "measured": 1, "ranked_lower": 12}
    assert answer["price_cents"] == 60_000
    assert answer["notes"] == [
        "all 16 designs share their last 25 residues (STVWYGSTEGSTEGSTEGSTEGSTE)",
        "competition.csv: kd has no unit, and its values (2e-08) are taken as M",
        "the budget pays for 3 of 4 designs",
    ]
    written = (files / "next.csv").read_bytes()
    bought = read_sequences("next.csv", data=written).items
    assert {design.name for design in bought} == {c["candidate"]["name"] for c in answer["choices"]}
    assert all("hits with " in design.attributes["selection_reason"] for design in bought)
    shown = command(*arguments, cwd=files)
    assert "16 candidates, 2 in the history: 3 chosen, 1 measured" in shown.out
    assert "600.00 USD" in shown.out
    assert (files / "next.csv").read_bytes() == written


def test_wrong_input_is_one_line_with_the_next_step(files):
    rows = (line.split(",") for line in POOL.splitlines()[1:])
    (files / "all.csv").write_text(
        "name,outcome,aa_string\n" + "".join(f"{r[0]},pending,{r[1]}\n" for r in rows)
    )
    for arguments, message in (
        (["--policy", "top_score"], "needs a score"),
        (["--policy", "top_score", "--score-column", "pTM"], "its columns are: method, ipTM"),
        (["--history", "pool.csv"], "pool.csv, line 1: no table of results"),
        (["--budget-usd", "1"], "a budget needs the price per design"),
        (
            ["--history", "all.csv", "-o", "next.csv"],
            "no candidate is left to buy: 16 measured; widen the pool",
        ),
    ):
        done = command("designs", "select", "pool.csv", *arguments, cwd=files)
        assert done.code == 2
        assert message in done.err
        assert "Traceback" not in done.err
    assert not (files / "next.csv").exists()


def test_the_examples_of_the_page_run(files, monkeypatch, capsys):
    """The command and the program of docs/loops.md, on small files of the names that they use."""
    page = (Path(__file__).parents[2] / "docs" / "loops.md").read_text()
    (files / "round1").mkdir()
    for table in ("summary.csv", "round1/summary.csv"):
        (files / table).write_text("name,outcome,aa_string,method,ipTM\nh,no_binding,WWWW,old,0.1\n")
    with_parents = "".join(
        f"{line},{'parent' if index == 0 else 'wt'}\n" for index, line in enumerate(POOL.splitlines())
    )
    (files / "pool.csv").write_text(with_parents)
    line = re.search(r"^prefect-assay (designs select .*)$", page.replace("\\\n", ""), re.MULTILINE).group(1)

    done = command(*line.split(), cwd=files)

    assert done.code == 0, done.err
    bought = read_sequences("next.csv", data=(files / "next.csv").read_bytes()).items
    assert bought
    assert all("hits with " in design.attributes["selection_reason"] for design in bought)
    monkeypatch.chdir(files)
    (program,) = [text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "read_pool" in text]
    exec(compile(program, "loops.md", "exec"), {})
    assert "1 d" in capsys.readouterr().out


def test_the_unit_of_a_history_is_asked_for_and_given(files):
    (files / "nm.csv").write_text(HISTORY.format("WWWA").replace("2e-8", "12.5"))
    arguments = ("designs", "select", "pool.csv", "-n", "2", "--hit-limit", "100", "--json")

    refused = command(*arguments, "--history", "nm.csv", cwd=files)
    assert refused.code == 2
    assert "nm.csv: kd has no unit, and its values (12.5) cannot be taken as M" in refused.out
    assert command(*arguments, "--history", "nm.csv", "--kd-unit", "nM", cwd=files).code == 0
    alone = command(*arguments, "--kd-unit", "nM", cwd=files)
    assert "--kd-unit would be ignored: it belongs to --history" in alone.out


def test_options_without_effect_are_refused_before_anything_is_read(files):
    for arguments, message in (
        (["--lower-is-better"], "--higher-is-better has no effect without a --score-column"),
        (["--policy", "random", "--hit-limit", "9"], "--hit-limit has no effect without the --policy gp"),
        (["--max-per-parent", "1"], "pool.csv: no candidate has parents, so that the limit max_per_parent"),
        (["--max-per-cluster", "2"], "--max-per-cluster has no effect without an --identity"),
    ):
        done = command("designs", "select", "pool.csv", *arguments, cwd=files)
        assert done.code == 2
        assert message in " ".join(done.err.split())


def test_backtest_plays_a_measured_table_and_says_what_to_take(tmp_path):
    letters = "ACDEFGHIKLMNPQRSTVWY"
    rows = [
        f"d{n},{''.join(letters[(n * 7 + pos * pos * (n + 3)) % 20] for pos in range(40))},{str(n % 3 == 0).lower()},0.{n:02}\n"
        for n in range(30)
    ]
    (tmp_path / "table.csv").write_text("name,sequence,binding,ipTM\n" + "".join(rows))
    arguments = (
        "designs",
        "backtest",
        "table.csv",
        "--score-column",
        "ipTM",
        "-n",
        "4",
        "--rounds",
        "2",
        "--splits",
        "3",
    )

    answer = command(*arguments, "--json", cwd=tmp_path).json()

    assert {"gp", "ridge", "top_score", "random"} < {policy["policy"] for policy in answer["policies"]}
    assert answer["verdict"]["policy"] in {"gp", "top_score", "random"}
    shown = command(*arguments, cwd=tmp_path)
    assert shown.code == 0, shown.err
    assert f"take {answer['verdict']['policy']}: " in shown.out
    alone = command(*arguments[:-1], "1", "--json", cwd=tmp_path).json()
    assert {policy["last_error"] for policy in alone["policies"]} == {None}
    assert not alone["verdict"]["real"]
