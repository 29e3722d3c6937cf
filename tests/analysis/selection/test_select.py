"""Selecting designs: who is bought, who is not and why, within limits and a budget."""

import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefect_assay.analysis.results import DesignSummary, Outcome
from prefect_assay.analysis.results.repeats import get_residues
from prefect_assay.analysis.selection import (
    History,
    make_history,
    read_history,
    select_designs,
)
from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.options import ReadingOptions
from prefect_assay.designs.proposed import choices_csv, pool_of
from prefect_assay.designs.read import read_pool, read_sequences
from prefect_assay.designs.scores import score_direction
from prefect_assay.designs.selection import Fate, SelectionPolicy, SelectionSettings
from prefect_assay.errors import ConfigurationError, InputError, InvalidSequences
from prefect_assay.service.assays import Objective

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
NOTHING = History()
TOP = SelectionSettings(policy="top_score", score_column="ipTM")
RANDOM = SelectionSettings(policy="random")


def residues(number, length=20):
    """Sequences that differ in most positions."""
    return "".join(
        LETTERS[(number * 7 + place * (number % 13 + 1) + place * place) % 20] for place in range(length)
    )


def candidate(number, *, control=False, parents=(), **columns):
    return Candidate(
        name=f"d{number}",
        sequence=residues(number),
        control=control,
        parents=parents,
        columns={key: str(value) for key, value in columns.items()},
    )


def pool(count=40, method_of=lambda number: f"m{number % 4}"):
    return pool_of(candidate(n, ipTM=n / count, method=method_of(n)) for n in range(count))


def measured(number, outcome=Outcome.MEASURED, kd=1e-8, **columns):
    return DesignSummary(
        name=f"d{number}",
        experiment_code="E1",
        outcome=outcome,
        kd_M=kd if outcome is Outcome.MEASURED else None,
        aa_string=residues(number),
        attributes={key: str(value) for key, value in columns.items()},
    )


def names(selection):
    return [choice.candidate.name for choice in selection.choices]


def test_top_score_takes_the_highest_and_says_why():
    selection = select_designs(pool(), NOTHING, 3, TOP)

    assert names(selection) == ["d39", "d38", "d37"]
    assert selection.choices[0].reason == "ipTM 0.975, place 1 of 40"
    assert selection.counts() == {Fate.CHOSEN: 3, Fate.RANKED_LOWER: 37}
    assert selection.fate(39) is Fate.CHOSEN


def test_a_low_score_can_be_the_good_one():
    selection = select_designs(pool(), NOTHING, 2, TOP.model_copy(update={"higher_is_better": False}))

    assert names(selection) == ["d0", "d1"]
    assert selection.choices[1].reason.startswith("ipTM 0.025,")


@pytest.mark.parametrize("policy", SelectionPolicy)
def test_ties_are_broken_by_the_seed_and_not_by_the_order_of_the_pool(policy):
    designs = [candidate(n, ipTM=0.9, method="m") for n in range(60)]
    selection_settings = SelectionSettings(policy=policy, score_column="ipTM", seed=3)

    chosen = set(names(select_designs(designs, NOTHING, 10, selection_settings)))

    assert set(names(select_designs(designs[::-1], NOTHING, 10, selection_settings))) == chosen
    assert (
        set(names(select_designs(designs, NOTHING, 10, selection_settings.model_copy(update={"seed": 4}))))
        != chosen
    )
    assert chosen != {f"d{n}" for n in range(10)}


def test_the_choices_do_not_depend_on_the_process():
    code = (
        "import sys; sys.path.insert(0, 'tests/analysis/selection'); import test_select as t\n"
        "from prefect_assay.designs.selection import SelectionSettings\n"
        "history = t.make_history([t.measured(n, method=f'm{n % 3}', ipTM=n / 50) for n in range(100, 140)])\n"
        "for policy in ('gp', 'random'):\n"
        "    print(t.names(t.select_designs(t.pool(), history, 8, SelectionSettings(policy=policy, seed=5, score_column='ipTM'))))"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": hash_seed, "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(answers) == 1


def test_what_was_measured_or_ordered_is_not_bought_again():
    history = make_history(
        [measured(39), measured(38, Outcome.NO_BINDING), measured(37, Outcome.PENDING), measured(5)]
    )

    selection = select_designs(pool(), history, 2, TOP)

    assert names(selection) == ["d36", "d35"]
    assert selection.counts()[Fate.MEASURED] == 4


def other(number, result_type, **changes):
    fields = {"kd_M": None, "result_type": result_type} | changes
    return measured(number).model_copy(update=fields)


@pytest.mark.parametrize(
    ("objective", "last", "is_bought"),
    [
        ("affinity", other(39, "thermostability", tm_C=60.0), True),
        ("affinity", other(39, "thermostability", outcome=Outcome.PENDING), True),
        ("affinity", other(39, "expression", outcome=Outcome.NO_EXPRESSION), False),
        ("affinity", other(39, "screening", outcome=Outcome.PENDING), False),
        ("melting", measured(39), True),
        ("melting", other(39, "thermostability", outcome=Outcome.PENDING), False),
        ("melting", other(39, "", kd_M=1e-8, tm_C=60.0), False),
        ("expression", other(39, "affinity", outcome=Outcome.PENDING), False),
    ],
)
def test_what_was_measured_only_in_another_assay_is_offered(objective, last, is_bought):
    settings = TOP.model_copy(update={"objective": Objective(objective)})
    selection = select_designs(pool(), make_history([last]), 1, settings)
    assert (names(selection) == ["d39"]) is is_bought
    assert any("1 design of the pool has results" in note for note in selection.notes) is is_bought


@pytest.mark.parametrize("ordered", [(), (measured(7, Outcome.PENDING),)])
def test_a_target_that_the_history_calls_otherwise_is_no_reason_to_buy_again(ordered):
    history = [measured(n).model_copy(update={"target": "Human EGFR (ECD)"}) for n in (39, 38, 37)]
    designs = [candidate(n, ipTM=n, target="EGFR") for n in range(40)]

    selection = select_designs(designs, make_history([*history, *ordered]), 2, TOP)

    assert names(selection) == ["d36", "d35"]


def test_controls_are_bought_in_any_case_and_count():
    designs = [*(candidate(n, ipTM=n) for n in range(20)), candidate(50, control=True)]
    selection_settings = TOP.model_copy(update={"controls": ("d1",)})

    selection = select_designs(designs, make_history([measured(1), measured(50)]), 4, selection_settings)

    assert names(selection) == ["d1", "d50", "d19", "d18"]
    assert [choice.candidate.control for choice in selection.choices] == [True, True, False, False]
    with pytest.raises(InputError, match="room for 1 design, and 2 are controls"):
        select_designs(designs, NOTHING, 1, selection_settings)
    with pytest.raises(InputError, match="no design is called d77"):
        select_designs(designs, NOTHING, 4, TOP.model_copy(update={"controls": ("d77",)}))


def test_a_budget_caps_the_number():
    selection = select_designs(pool(), NOTHING, 30, TOP, price_cents=20_000, budget_cents=110_000)

    assert len(selection.choices) == 5
    assert selection.price_cents == 100_000
    assert selection.notes == ("the budget pays for 5 of 30 designs",)
    with pytest.raises(InputError, match="does not pay for one design"):
        select_designs(pool(), NOTHING, 30, TOP, price_cents=20_000, budget_cents=19_999)
    with pytest.raises(InputError, match="needs the price per design"):
        select_designs(pool(), NOTHING, 30, TOP, budget_cents=19_999)


def test_limits_per_method_and_parent():
    designs = [candidate(n, ipTM=n, method=f"m{n % 2}", parents=(f"p{n % 4}",)) for n in range(40)]

    selection = select_designs(
        designs, NOTHING, 10, TOP.model_copy(update={"max_per_method": 3, "max_per_parent": 2})
    )

    chosen = [choice.candidate for choice in selection.choices]
    assert Counter(c.columns["method"] for c in chosen) == {"m0": 3, "m1": 3}
    assert max(Counter(parent for c in chosen for parent in c.parents).values()) == 2
    assert selection.counts() == {Fate.CHOSEN: 6, Fate.METHOD_LIMIT: 34}
    assert selection.notes == ("only 6 of 10 places are filled: the pool and the limits allow no more",)


def test_more_than_the_pool_has_is_all_of_it():
    selection = select_designs(pool(5), NOTHING, 10, RANDOM)

    assert sorted(names(selection)) == [f"d{n}" for n in range(5)]
    assert "only 5 of 10 places" in selection.notes[0]


def test_candidates_without_a_number_are_left_out_of_a_ranking_by_score():
    scores = ["0.5", "NaN", "inf", "", "high", "0.7"]
    designs = [candidate(n, ipTM=score) for n, score in enumerate(scores)]

    selection = select_designs(designs, NOTHING, 6, TOP)

    assert names(selection) == ["d5", "d0"]
    assert selection.counts()[Fate.NO_SCORE] == 4


def test_unknown_columns_are_named_with_those_that_exist():
    with pytest.raises(InputError, match=r"no column 'pTM' of scores .* its columns are: ipTM, method"):
        select_designs(pool(), NOTHING, 1, TOP.model_copy(update={"score_column": "pTM"}))
    with pytest.raises(InputError, match="no column 'made_by' of methods"):
        select_designs(pool(), NOTHING, 1, RANDOM.model_copy(update={"method_column": "made_by"}))
    with pytest.raises(InputError, match="top_score needs a score"):
        select_designs(pool(), NOTHING, 1, SelectionSettings(policy="top_score"))


def test_proposed_candidates_get_the_checks_of_a_file():
    with pytest.raises(InvalidSequences, match=r"line 2, sequence .*d1.*not an amino acid") as caught:
        pool_of([candidate(0), Candidate(name="d1", sequence="ACX"), Candidate(name="D0", sequence="WWW")])
    assert len(caught.value.findings) == 2


def test_choices_are_a_file_of_designs():
    made = [
        Candidate(name="=a", sequence="ACDEFG", columns={"ipTM": "0.9"}, metadata={"tag_location": "N"}),
        Candidate(
            name="b",
            sequence="WWWWHH",
            parents=("=a", "x"),
            metadata={"framework_regions": {"ch": "C", "cl": "D"}},
        ),
    ]
    selection = select_designs(
        made, NOTHING, 2, RANDOM.model_copy(update={"controls": ("b",)}), price_cents=150
    )

    read = {d.name: d for d in read_sequences("next.csv", data=choices_csv(selection.choices)).items}

    assert read["b"].control
    assert read["=a"].metadata == made[0].metadata
    assert read["b"].metadata == made[1].metadata
    assert Candidate.of(read["b"]).parents == ("=a", "x")
    assert read["=a"].attributes["selection_reason"] == "drawn at random from 1 with seed 0"
    assert read["=a"].attributes["selection_price_cents"] == "150"


@pytest.mark.parametrize(
    ("table", "chosen"),
    [
        (
            "design_id,sequence,binder_sequence,name,tag_location,tag\nd1,WWWW,ACDE,other,,x\n",
            ReadingOptions(sequence_column="binder_sequence", name_column="design_id"),
        ),
        (">d1 name=other sequence=WWWW tag=x\nACDE\n", ReadingOptions()),
    ],
    ids=["table", "fasta"],
)
def test_a_column_of_the_designer_does_not_take_the_place_of_what_is_ordered(table, chosen):
    selection = select_designs(read_pool("pool.csv", text=table, reading=chosen), NOTHING, 1, RANDOM)
    (read,) = read_sequences("next.csv", data=choices_csv(selection.choices)).items
    assert (read.name, read.aa_string, read.control, read.metadata) == ("d1", "ACDE", False, {})
    assert {read.attributes[f"{title} (own)"] for title in ("name", "sequence", "tag")} == {
        "other",
        "WWWW",
        "x",
    }


def test_a_pool_without_columns_is_enough_for_random():
    fasta = "".join(f">d{n}\n{residues(n)}\n" for n in range(9))
    selection = select_designs(read_pool("pool.fasta", text=fasta), NOTHING, 4, RANDOM)
    assert len(set(names(selection))) == 4


def test_without_the_extra_one_line_says_how_to_get_it(monkeypatch):
    for module in [name for name in sys.modules if name.startswith("prefect_assay.analysis.selection.")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ConfigurationError) as caught:
        select_designs(pool(), NOTHING, 1, RANDOM)
    assert str(caught.value) == "selecting designs needs an extra: in a checkout, run pip install '.[design]'"


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3), st.integers(0, 3), st.one_of(st.none(), st.integers(0, 2)), st.booleans()
        ),
        min_size=1,
        max_size=30,
    ),
    st.integers(1, 12),
    st.sampled_from(SelectionPolicy),
    st.one_of(st.none(), st.integers(1, 3)),
    st.one_of(st.none(), st.sampled_from([0.7, 0.9, 1.0])),
)
def test_every_candidate_has_one_fate_and_no_limit_is_passed(rows, n, policy, most, identity):
    designs = [
        candidate(number, method=f"m{method}", parents=(f"p{parent}",), ipTM=0.1 if score is None else score)
        for number, (method, parent, score, _) in enumerate(rows)
    ]
    history = make_history(measured(number, method=f"m{row[0]}") for number, row in enumerate(rows) if row[3])
    selection_settings = SelectionSettings(
        policy=policy, score_column="ipTM", max_per_method=most, max_per_parent=most, identity=identity
    )

    selection = select_designs(designs, history, n, selection_settings)

    assert sum(selection.counts().values()) == selection.pool_size == len(rows)
    assert selection.counts().get(Fate.CHOSEN, 0) == len(selection.choices) <= n
    assert [choice.rank for choice in selection.choices] == list(range(1, len(selection.choices) + 1))
    chosen = [choice.candidate for choice in selection.choices]
    assert not {c.sequence for c in chosen} & set(map(get_residues, history.designs))
    if most:
        assert max(Counter(c.columns["method"] for c in chosen).values(), default=0) <= most
    assert all("\n" not in choice.reason and choice.reason for choice in selection.choices)


@pytest.mark.parametrize(
    ("text", "limits", "message"),
    [
        (
            "name,sequence\na,ACD\nb,ACE\n",
            {"max_per_parent": 1},
            r"no candidate has parents.*--max-per-parent.*'parents'",
        ),
        (
            "name,sequence\na,ACD\nb,ACE\n",
            {"max_per_method": 1},
            r"no candidate has a method.*--max-per-method.*'method'",
        ),
        ("name,sequence,parents\na,ACD,\nb,ACE,null\n", {"max_per_parent": 1}, r"no candidate has parents"),
    ],
)
def test_a_limit_that_nothing_in_the_pool_is_about_is_refused(text, limits, message):
    with pytest.raises(InputError, match=message):
        select_designs(read_pool("pool", text=text), NOTHING, 1, SelectionSettings(policy="random", **limits))


@pytest.mark.parametrize("title", ["parents", "Parent", "backbone", "parent_id"])
def test_a_limit_per_parent_knows_the_usual_titles(title):
    text = f"name,sequence,{title}\na,ACD,p\nb,ACE,p\nc,ACF,q\n"
    selection = select_designs(
        read_pool("pool", text=text), NOTHING, 3, SelectionSettings(policy="random", max_per_parent=1)
    )
    assert [choice.candidate.parents for choice in selection.choices].count(("p",)) == 1
    assert selection.counts()[Fate.PARENT_LIMIT] == 1


def test_a_hit_limit_without_a_value_in_the_history_is_refused():
    called = read_history("name,sequence,binding\na,WWW,true\nb,WWY,false\n")
    limited = SelectionSettings(hit_limit=100)
    with pytest.raises(InputError, match=r"1 hit and no K_D.*--hit-limit.*has no effect"):
        select_designs(pool(), called, 2, limited)
    # Before the first hit there is nothing to compare.
    for history in (NOTHING, read_history("name,sequence,binding\nb,WWY,false\n")):
        assert select_designs(pool(), history, 2, limited).choices


@pytest.mark.parametrize(
    "given_settings",
    [
        {"max_per_cluster": 2},
        {"higher_is_better": False},
        {"policy": "random", "hit_limit": 100},
        {"policy": "top_score", "aim": "best"},
    ],
)
def test_settings_without_effect_are_refused(given_settings):
    with pytest.raises(ValueError, match="has no effect without"):
        SelectionSettings(**given_settings)


DATA = Path(__file__).parent / "data"


def test_of_duplicates_the_best_score_counts_and_is_said():
    designs = read_pool(str(DATA / "pool_duplicate_scores.csv"))
    selection = select_designs(designs, NOTHING, 1, TOP)
    assert names(selection) == ["b"]
    assert selection.choices[0].candidate.columns == {"ipTM": "0.9"}
    assert selection.choices[0].reason == "ipTM 0.9, place 1 of 2"
    assert selection.notes == (
        "1 of 3 designs of the pool has the residues of another one: left out",
        "1 of 2 designs has a better ipTM in another row with the same residues, which counts: 'b' in place of 'a'",
    )


def test_of_duplicates_the_lowest_score_counts_where_lower_is_better():
    text = "name,sequence,global_score\na,ACDE,1.2\nb,ACDE,0.7\nc,ACDE,\nd,ACDE,0.9\nx,ACDF,0.8\n"
    selection = select_designs(
        read_pool("pool", text=text),
        NOTHING,
        2,
        SelectionSettings(policy="top_score", score_column="global_score"),
    )
    assert [(choice.candidate.name, choice.reason) for choice in selection.choices] == [
        ("b", "global_score 0.7, place 1 of 2"),
        ("x", "global_score 0.8, place 2 of 2"),
    ]
    assert "global_score: lower is better" in selection.notes


@given(
    scores=st.lists(
        st.tuples(st.sampled_from(["ACD", "ACE", "ACF"]), st.integers(0, 9)), min_size=1, max_size=9
    ),
    lower=st.booleans(),
)
def test_a_pool_with_duplicates_ranks_as_one_of_their_best(scores, lower):
    text = "".join(f"d{index},{residues},{score}\n" for index, (residues, score) in enumerate(scores))
    given_settings = SelectionSettings(policy="top_score", score_column="s", higher_is_better=not lower)
    designs = read_pool("pool", text=f"name,sequence,s\n{text}")
    selection = select_designs(designs, NOTHING, 9, given_settings)
    best = min if lower else max
    assert {
        choice.candidate.sequence: float(choice.candidate.columns["s"]) for choice in selection.choices
    } == {residues: best(score for other, score in scores if other == residues) for residues, _ in scores}
    for choice in selection.choices:
        index = int(choice.candidate.name[1:])
        assert scores[index] == (choice.candidate.sequence, float(choice.candidate.columns["s"]))
    kept = designs.keeping(frozenset(names(selection)))
    assert sorted(kept.names) == sorted(names(selection))
    assert sorted([*kept.names, *(left for left, _ in kept.duplicates)]) == sorted(
        f"d{index}" for index in range(len(scores))
    )
    assert {name for _, name in kept.duplicates} <= set(kept.names)


BINDCRAFT = """Rank,Design,Sequence,Average_i_pTM,Average_pLDDT,Average_Binder_RMSD,Average_i_pAE,MPNN_score,Average_dG
1,d_l42_s0_mpnn1,MVKLWRAPIWDGELQIMSETIAHNKGMGEFVVPFFAAHHGGK,0.90,0.90,0.50,0.10,0.70,-60
2,d_l42_s1_mpnn1,MLHSYWHGHMKALNGFKELKVTAVYLEKLKQLGQQGDKALMA,0.80,0.89,0.80,0.15,0.80,-55
3,d_l42_s2_mpnn1,MSNLMTAPDGVHEIPLRLRKPETLKDNEHLRVLFLKSEKYLK,0.70,0.88,1.10,0.20,0.90,-50
4,d_l42_s3_mpnn1,MGEWFKQGDEVSMDIVLKPWNFDWDQLHFTFWNEGNLFDNKF,0.60,0.87,1.40,0.25,1.00,-45
5,d_l42_s4_mpnn1,MPVGRPQLQKKQMFEMSGWQLGEQKRSRLELTYDKLSYKQKK,0.50,0.86,1.70,0.30,1.10,-40
"""


@pytest.mark.parametrize("policy", ["top_score", "gp"])
@pytest.mark.parametrize(
    "score",
    [
        "Rank",
        "Average_i_pTM",
        "Average_pLDDT",
        "Average_Binder_RMSD",
        "Average_i_pAE",
        "MPNN_score",
        "Average_dG",
    ],
)
def test_the_best_design_of_a_bindcraft_table_is_bought_by_any_of_its_scores(policy, score):
    """The first row is the best one by every score, and the last row the worst."""
    chosen = SelectionSettings(policy=policy, score_column=score)
    selection = select_designs(read_pool("pool", text=BINDCRAFT), NOTHING, 1, chosen, rounds_left=0)
    assert names(selection) == ["d_l42_s0_mpnn1"]


@given(
    title=st.sampled_from(
        [
            "ipTM",
            "bb_rmsd",
            "total_score",
            "nll",
            "kd_pred_nM",
            "min_ipSAE",
            "ddG",
            "pLDDT",
            "Rank",
            "esm_pll",
        ]
    ),
    policy=st.sampled_from(["top_score", "gp"]),
    values=st.lists(st.integers(-50, 50), min_size=3, max_size=8, unique=True),
)
@settings(max_examples=60, deadline=None)
def test_no_policy_buys_the_worst_design_under_a_known_score(title, policy, values):
    designs = [candidate(number, **{title: value}) for number, value in enumerate(values)]
    chosen = SelectionSettings(policy=policy, score_column=title)
    bought = select_designs(designs, NOTHING, 1, chosen, rounds_left=0).choices[0].candidate
    worst = max(values) if score_direction(title) is False else min(values)
    assert float(bought.columns[title]) != worst


@pytest.mark.parametrize("policy", ["top_score", "gp", "random"])
def test_a_score_of_unknown_direction_is_refused_until_an_option_decides(policy):
    text = "name,sequence,magic\na,ACD,1\nb,ACE,2\n"
    unclear = SelectionSettings(policy=policy, score_column="magic")
    with pytest.raises(InputError, match=r"'magic' does not say .* --higher-is-better or --lower-is-better"):
        select_designs(read_pool("pool", text=text), NOTHING, 1, unclear)
    magic = SelectionSettings(policy="top_score", score_column="magic")
    for direction, name in ((True, "b"), (False, "a")):
        chosen = magic.model_copy(update={"higher_is_better": direction})
        selection = select_designs(read_pool("pool", text=text), NOTHING, 1, chosen)
        assert (names(selection), selection.notes) == ([name], ())


def test_a_direction_against_the_usual_one_is_said():
    settings = SelectionSettings(policy="top_score", score_column="ipTM", higher_is_better=False)
    assert select_designs(pool(), NOTHING, 1, settings).notes == (
        "ipTM: lower is better, as asked for; usually it is the other way round",
    )


def test_a_pool_with_decimal_commas_has_scores():
    selection = select_designs(read_pool(str(DATA / "pool_decimal_comma.csv")), NOTHING, 2, TOP)
    assert names(selection) == ["p2", "p4"]


def test_of_duplicates_that_a_cut_has_made_the_best_score_counts_too():
    chance = random.Random(1)
    first, second, third, shared = ("".join(chance.choices(LETTERS, k=length)) for length in (40, 40, 40, 60))
    rows = [
        ("a", first + shared, 0.5),
        ("b", first + shared, 0.7),
        ("x", second + shared, 0.6),
        ("y", third + shared, 0.1),
    ]
    text = "name,sequence,ipTM\n" + "".join(f"{name},{residues},{score}\n" for name, residues, score in rows)
    designs = read_pool("pool", text=text, reading=ReadingOptions(chain="1"))
    assert len(designs.duplicates) == len(designs.duplicate_extras) == 1
    assert names(select_designs(designs, NOTHING, 2, TOP)) == ["b", "x"]


SAMPLES = """>bb1, score=1.2, global_score=1.3, fixed_chains=[], designed_chains=['A'], model_name=v_48_020, seed={seed}
MKTAYIAKQRQISFVKSHFSRQLEERLG
>T=0.1, sample=1, score=0.9, global_score=1.1, seq_recovery=0.5
MKTAYIAKQRQISFVKSHFSRQ{ends[0]}EERLG
>T=0.1, sample=2, score=0.7, global_score=1.2, seq_recovery=0.4
MKTAYIAKQRQISFVKSHFSRQ{ends[1]}EERLG
"""


def test_samples_of_proteinmpnn_are_ranked_by_their_lowest_score_within_a_backbone():
    text = SAMPLES.format(seed=1, ends="AC") + SAMPLES.format(seed=2, ends="DE").replace("bb1", "bb2")
    best = SelectionSettings(policy="top_score", score_column="score", max_per_parent=1)
    selection = select_designs(read_pool("mpnn.fa", text=text), NOTHING, 4, best)
    assert sorted((choice.candidate.name, choice.candidate.parents) for choice in selection.choices) == [
        ("bb1_T=0.1_sample=2", ("bb1",)),
        ("bb2_T=0.1_sample=2", ("bb2",)),
    ]
    assert "score: lower is better" in selection.notes


@pytest.mark.parametrize(
    ("file", "expected", "note"),
    [
        ("names_na.csv", ["NA", "null"], ""),
        ("excel_mangled_names.csv", ["2-Mar", "1.00E+05", "#NAME?"], "look like dates, numbers or errors"),
        (
            "two_runs_same_names.csv",
            ["EGFR_l42_s1_mpnn1_A", "EGFR_l42_s1_mpnn1_B"],
            "names are in several runs",
        ),
    ],
)
def test_names_of_a_pool_keep_their_letters_and_their_run_also_in_the_file_of_choices(file, expected, note):
    selection = select_designs(read_pool(str(DATA / file)), NOTHING, 9, RANDOM)
    assert sorted(names(selection)) == sorted(expected)
    assert any(note in line for line in (*selection.notes, ""))
    again = read_sequences("next.csv", data=choices_csv(selection.choices))
    assert sorted(design.name for design in again.items) == sorted(expected)
