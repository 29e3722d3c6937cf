"""`prefect-assay designs`: a pool and tables of results in, the designs to buy next out."""

import pytest

from prefect_assay.designs import read_sequences
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
            "method_history",
        ),
        *(
            "--score",
            "ipTM",
            "--seed",
            "1",
            "--price-cents",
            "20000",
            "--budget-cents",
            "65000",
            "-o",
            "next.csv",
        ),
    )
    done = command(*arguments, "--json", cwd=files)

    assert done.code == 0, done.err
    answer = done.json()
    assert answer["counts"] == {"chosen": 3, "measured": 1, "ranked_lower": 12}
    assert answer["price_cents"] == 60_000
    assert answer["notes"] == ["the budget pays for 3 of 4 designs"]
    written = (files / "next.csv").read_bytes()
    bought = read_sequences("next.csv", data=written).items
    assert {design.name for design in bought} == {c["candidate"]["name"] for c in answer["choices"]}
    assert all("expected hit rate" in design.attributes["selection_reason"] for design in bought)
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
        (["--policy", "top_score", "--score", "pTM"], "its columns are: method, ipTM"),
        (["--history", "pool.csv"], "pool.csv is no table of results"),
        (["--budget-cents", "100"], "a budget needs the price per design"),
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
