"""The examples of docs/designs.md and docs/ordering.md, played as they are shown."""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from assay_lab.testing import LocalLab
from prefect_assay import AssayClient
from prefect_assay.cli.app import app
from prefect_assay.cli.campaigns import estimate
from support.accounts import make_account
from support.pages import blocks, commands

DOCS = Path(__file__).parents[2] / "docs"
DESIGNS = DOCS / "designs.md"
ORDERING = DOCS / "ordering.md"


def run_python(code, **names):
    """Execute a page's Python block; returns its names."""
    exec(compile(code, "a page of docs/", "exec"), names)
    return names


def play(command, monkeypatch):
    """The exit code of a command of a page, and what the terminal shows."""
    monkeypatch.setenv("COLUMNS", "80")
    program, *arguments = shlex.split(command)
    assert program == "prefect-assay"
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, [line.rstrip() for line in done.output.strip().splitlines()]


def test_a_file_is_read_as_the_page_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (table,) = blocks(DESIGNS, "csv")
    accepted, refused = (block.strip().splitlines() for block in blocks(DESIGNS, "text"))
    Path("designs.csv").write_text(table, encoding="utf-8")
    assert play(commands(DESIGNS)[0], monkeypatch) == (0, accepted)
    Path("designs.csv").write_text(table.replace("MGSREWLDA", "MGSREWLXA"), encoding="utf-8")
    assert play(commands(DESIGNS)[0], monkeypatch) == (1, refused)


def test_designs_are_read_in_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = blocks(DESIGNS, "csv")[0]
    records = re.findall(r"^([\w-]+),([A-Z]+),", table, re.MULTILINE)
    fasta = "".join(f">{name} score=1.3\n{residues}\n" for name, residues in records)
    for name in ("designs.fasta", "generated.fasta"):
        Path(name).write_text(fasta, encoding="utf-8")
    (code,) = blocks(DESIGNS, "python")
    result = run_python(code)
    assert [len(batch.items) for batch in result["batches"]] == [3]
    assert result["pool"][0].attributes == {"score": "1.3"}


def test_the_price_is_shown_as_on_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("designs.csv").write_text(blocks(DESIGNS, "csv")[0], encoding="utf-8")
    with LocalLab() as lab:
        account = make_account(
            base_url=lab.base_url,
            token=lab.token,
            archive=tmp_path,
            policy={"per_experiment_usd": 5_000, "per_campaign_usd": 20_000},
        )
        account._block_document_name = "main"
        monkeypatch.setattr(estimate, "saved_account", lambda _: account)
        _, printed = play(commands(ORDERING)[0], monkeypatch)
        shown = " ".join(printed).replace(lab.base_url, "https://lab.example.org").split()
    expected = blocks(ORDERING, "text")[0].split()
    assert shown[: len(expected)] == expected


def test_a_token_is_weakened():
    (code,) = blocks(ORDERING, "python")
    with LocalLab() as lab:
        code = code.replace("https://lab.example.org", lab.base_url)
        names = run_python(code, token=lab.token)
        with AssayClient(lab.base_url, names["created"].token) as client:
            assert set(client.tokens.whoami().permissions) == {
                f"{thing}:{action}" for thing in ("experiment", "result") for action in ("list", "read")
            }
