"""Commands that set up or start something are for a server that stays, not for one that Prefect starts for a moment."""

import pytest

from support.command import command

DESIGNS = ">a\nSESELEAKRQELKELMEKTEEKARELLAKGDVAGARAAYGAYLLKAAE\n"
RUN = ("run", "designs.fasta", "--type", "thermostability")
BLOCKS = ("--credentials", "c", "--policy", "p", "--archive", "a")


@pytest.mark.parametrize(
    "arguments",
    [("register",), ("deploy",), ("deploy", "--check"), ("deploy", "--serve"), ("worker",), RUN + BLOCKS],
    ids=" ".join,
)
def test_without_a_server_nothing_is_set_up_or_started(tmp_path, arguments):
    (tmp_path / "designs.fasta").write_text(DESIGNS)
    done = command(*arguments, cwd=tmp_path, PREFECT_HOME=str(tmp_path / "prefect"))
    assert done.code == 1, done.err
    assert "no Prefect API is configured" in done.err
    assert "prefect config set PREFECT_API_URL=" in done.err
    assert not (tmp_path / "prefect" / "prefect.db").exists()


@pytest.mark.parametrize("option", ["--check", "--json"])
def test_serving_takes_no_option_that_it_would_ignore(tmp_path, option):
    done = command("deploy", "--serve", option, cwd=tmp_path, PREFECT_HOME=str(tmp_path / "prefect"))
    assert done.code == 2
    assert "leave out --check and --json" in done.err
