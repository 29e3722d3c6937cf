"""What the policies learn from a history: methods, scores, parents, and sequences."""

import itertools
import random
from collections import Counter

import numpy as np
import pytest
from scipy.stats import norm

from prefect_assay.designs import pool_of
from prefect_assay.models.candidate import Candidate
from prefect_assay.models.selection import Fate, SelectionSettings
from prefect_assay.results import DesignSummary, Outcome
from prefect_assay.selection import gp, history_of, select
from prefect_assay.selection.gaussian import Encoder, GaussianProcess, expected_improvement
from prefect_assay.selection.method_history import family_lifts, score_trend

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
METHODS = SelectionSettings(policy="method_history", score_column="ipTM")
GP = SelectionSettings(policy="gp")


def residues(number):
    return "".join(LETTERS[number // 20**at % 20] for at in range(4)) + "GG"


def candidate(number, **columns):
    parents = tuple(columns.pop("parents", ()))
    return Candidate(
        name=f"d{number}",
        sequence=residues(number),
        parents=parents,
        columns={key: str(value) for key, value in columns.items()},
    )


def measured(number, outcome, **columns):
    return DesignSummary(
        name=f"h{number}",
        experiment_code="E1",
        outcome=outcome,
        kd_M=1e-8 if outcome is Outcome.MEASURED else None,
        aa_string=residues(10_000 + number),
        attributes={key: str(value) for key, value in columns.items()},
    )


def hits(method, count, of, start, failure=Outcome.NO_BINDING):
    return [
        measured(start + at, Outcome.MEASURED if at < count else failure, method=method) for at in range(of)
    ]


def methods_of(selection):
    return Counter(choice.candidate.columns["method"] for choice in selection.choices)


def test_the_method_with_more_hits_gets_most_places_and_the_reason_says_so():
    designs = [candidate(n, method=f"m{n % 2}") for n in range(80)]
    history = history_of(
        [*hits("m0", 20, 40, 0), *hits("m1", 1, 20, 50), *hits("m1", 0, 20, 90, Outcome.NO_EXPRESSION)]
    )

    selection = select(designs, history, 20, SelectionSettings(policy="method_history"))

    assert methods_of(selection)["m0"] == 20
    assert selection.choices[0].reason == "m0: 20 of 40 hit (35% to 65%); expected hit rate 49%"
    assert selection.choices[0].score == pytest.approx(0.49, abs=0.01)


def test_a_method_without_a_history_is_tried():
    designs = [candidate(n, method=("known", "new")[n % 2]) for n in range(60)]
    history = history_of(hits("known", 6, 40, 0))

    found = Counter()
    for seed in range(20):
        found += methods_of(
            select(designs, history, 10, SelectionSettings(policy="method_history", seed=seed))
        )

    assert 20 < found["new"] < 160


def test_without_a_history_methods_count_alike_and_scores_decide_within_a_method():
    designs = [candidate(n, method=f"m{n % 4}", ipTM=n / 80) for n in range(80)]

    selection = select(designs, history_of([]), 8, METHODS)

    assert selection.notes == ("no outcome in the history: all methods count alike",)
    assert all(float(choice.candidate.columns["ipTM"]) > 0.8 for choice in selection.choices)
    assert len(methods_of(selection)) > 1


def test_a_score_that_misleads_is_turned_around():
    designs = [candidate(n, method="m", ipTM=n / 50) for n in range(50)]
    history = history_of(
        measured(at, Outcome.MEASURED if at < 10 else Outcome.NO_BINDING, method="m", ipTM=at / 40)
        for at in range(40)
    )

    selection = select(designs, history, 5, METHODS)

    assert {choice.candidate.name for choice in selection.choices} == {f"d{n}" for n in range(5)}
    assert "in tenth 10 of its method" in selection.choices[0].reason


def test_children_of_good_parents_come_first():
    designs = [candidate(n, method="m", parents=[f"h{n % 4}"]) for n in range(40)]
    history = history_of(
        [
            *hits("m", 1, 4, 0),
            *(measured(10 + n, Outcome.MEASURED, method="m", parents="h2") for n in range(6)),
            *(measured(20 + n, Outcome.NO_BINDING, method="m", parents="h3; h1") for n in range(6)),
        ]
    )

    selection = select(designs, history, 10, SelectionSettings(policy="method_history"))

    assert {choice.candidate.parents for choice in selection.choices} == {("h2",)}
    assert "parents h2 (x" in selection.choices[0].reason


def test_the_trend_of_scores_is_found_and_a_history_of_the_best_alone_shows_none():
    chance = np.random.default_rng(1)
    places = chance.uniform(-1, 1, 4000)
    expected = np.full(4000, 0.1)

    level, slope = score_trend(
        places, (chance.random(4000) < 0.1 * np.exp(0.2 + 0.9 * places)).astype(float), expected
    )
    assert (level, slope) == pytest.approx((0.2, 0.9), abs=0.15)

    best = np.full(200, 0.95)
    level, slope = score_trend(best, (np.arange(200) < 80).astype(float), np.full(200, 0.1))
    assert slope == pytest.approx(0.5, abs=0.25)
    assert np.exp(level + slope * 0.95) == pytest.approx(4, rel=0.1)


def test_family_lifts_are_hits_beyond_what_was_expected():
    lifts = family_lifts([("p", "q"), ("p",), ()], np.array([1.0, 1, 1]), np.array([0.5, 0.5, 0.5]))
    assert lifts == {"p": pytest.approx(5 / 4), "q": pytest.approx(4 / 3.5)}


VARIANTS = ["".join(letters) for letters in itertools.product(LETTERS[:9], repeat=3)]


def affinity(variant):
    """K_D in M: an additive landscape with one pair that matters, best for `KCC`."""
    score = (
        LETTERS.index(variant[0])
        - LETTERS.index(variant[1])
        + 2 * (variant[1:] == "CC")
        + (variant[2] == "C")
    )
    return 1e-6 * 10 ** (-score / 4)


def bought(variants, chance, tag=""):
    return [
        DesignSummary(
            name=f"{tag}{variant}",
            experiment_code="",
            outcome=Outcome.MEASURED,
            kd_M=affinity(variant) * chance.lognormvariate(0, 0.1),
            aa_string=f"MK{variant}GS{tag}",
        )
        for variant in variants
    ]


@pytest.mark.parametrize("acquisition", ["expected_improvement", "thompson"])
def test_gp_finds_the_best_variants_of_a_landscape(acquisition):
    chance = random.Random(1)
    history = bought(chance.sample(VARIANTS, 60), chance)
    pool = pool_of(Candidate(name=variant, sequence=f"MK{variant}GS") for variant in VARIANTS)
    given = SelectionSettings(policy="gp", acquisition=acquisition)

    for _ in range(2):
        selection = select(pool, history_of(history), 12, given)
        history += bought([choice.candidate.name for choice in selection.choices], chance)

    best = sorted(VARIANTS, key=affinity)[:8]
    assert len({design.name for design in history} & set(best)) >= 4
    assert best[0] in {design.name for design in history}
    assert selection.choices[0].reason.startswith("predicted ")
    assert "most like " in selection.choices[0].reason


def test_gp_compares_sequences_of_several_lengths():
    """Binding follows composition here: charges help, and so do neighbouring aromatic residues."""
    chance = random.Random(2)
    sequences = ["".join(chance.choices("AEKLWFGS", k=chance.randrange(30, 45))) for _ in range(700)]

    def pkd(residues):
        return residues.count("K") / 4 + residues.count("WF") + residues.count("FW")

    history = [
        DesignSummary(
            name=residues,
            experiment_code="",
            outcome=Outcome.MEASURED,
            kd_M=10 ** -pkd(residues),
            aa_string=residues,
        )
        for residues in sequences[:200]
    ]

    selection = select([Candidate(name=r, sequence=r) for r in sequences], history_of(history), 15, GP)

    chosen = [pkd(choice.candidate.sequence) for choice in selection.choices]
    assert np.mean(chosen) > np.quantile([pkd(residues) for residues in sequences[200:]], 0.75)
    assert not {choice.candidate.sequence for choice in selection.choices} & set(sequences[:200])


def test_gp_learns_from_what_did_not_bind():
    """Half of the landscape does not bind, and no K_D says so."""
    chance = random.Random(3)
    binders = bought([v for v in chance.sample(VARIANTS, 80) if v[2] in "AC"][:15], chance)
    silent = [
        design.model_copy(update={"outcome": Outcome.NO_BINDING, "kd_M": None})
        for design in bought([v for v in chance.sample(VARIANTS, 100) if v[2] not in "AC"][:60], chance)
    ]
    pool = pool_of(Candidate(name=variant, sequence=f"MK{variant}GS") for variant in VARIANTS)

    selection = select(pool, history_of([*binders, *silent]), 12, GP)

    assert sum(choice.candidate.name[2] in "AC" for choice in selection.choices) >= 10


def test_gp_does_not_learn_from_limits():
    chance = random.Random(4)
    designs = bought(chance.sample(VARIANTS, 10), chance)
    limit = designs[0].model_copy(update={"qualifier": ">"})
    known, values, _ = gp.training([limit, *designs[1:]], GP)
    assert (limit.name in {design.name for design in known}, len(values)) == (False, 9)


def test_gp_does_not_learn_from_controls():
    """A control of another length would change how sequences are compared, and its K_D is no design's best."""
    chance = random.Random(4)
    designs = bought(chance.sample(VARIANTS, 10), chance)
    control = designs[0].model_copy(
        update={"name": "control", "control": True, "kd_M": 1e-15, "aa_string": "MK" * 90}
    )
    assert gp.training([control, *designs], GP)[0] == gp.training(designs, GP)[0]
    assert gp.training([control, *designs], GP)[2] == gp.training(designs, GP)[2]


def test_gp_reads_odd_letters_of_a_history():
    chance = random.Random(6)
    history = bought(chance.sample(VARIANTS, 20), chance)
    odd = [
        design.model_copy(update={"aa_string": f"MK{end}GS"})
        for design, end in zip(history, ("ÄXX", "***"), strict=False)
    ]
    pool = pool_of(Candidate(name=variant, sequence=f"MK{variant}GS") for variant in VARIANTS[:50])

    assert len(select(pool, history_of([*history[2:], *odd]), 5, GP).choices) == 5


def test_gp_of_melting_temperatures_predicts_degrees():
    designs = [
        DesignSummary(
            name=v, experiment_code="", outcome=Outcome.MEASURED, tm_C=50 + LETTERS.index(v[0]), aa_string=v
        )
        for v in VARIANTS[::7]
    ]
    given = SelectionSettings(policy="gp", objective="melting")

    selection = select([Candidate(name=v, sequence=v) for v in VARIANTS], history_of(designs), 3, given)

    assert {choice.candidate.name[0] for choice in selection.choices} == {LETTERS[8]}
    assert selection.choices[0].score == pytest.approx(58, abs=1)
    assert "best so far 58" in selection.choices[0].reason


@pytest.mark.parametrize("outcome", [Outcome.NO_BINDING, Outcome.MEASURED])
def test_gp_with_nothing_to_learn_from_says_so(outcome):
    history = history_of([measured(1, outcome)] if outcome is Outcome.MEASURED else hits("m", 0, 5, 0))
    selection = select([candidate(n) for n in range(30)], history, 4, GP)

    assert selection.notes == (
        "the history has fewer than two different values to learn from: chosen at random",
    )
    assert len(selection.choices) == 4


def test_gp_looks_at_the_best_scores_of_a_large_pool(monkeypatch):
    monkeypatch.setattr(gp, "MODELLED", 100)
    monkeypatch.setattr(gp, "LEARNED", 40)
    chance = random.Random(4)
    history = bought(chance.sample(VARIANTS, 60), chance)
    designs = [
        Candidate(name=v, sequence=f"MK{v}GS", columns={"ipTM": str(at)}) for at, v in enumerate(VARIANTS)
    ]

    selection = select(designs, history_of(history), 5, SelectionSettings(policy="gp", score_column="ipTM"))

    free = len(VARIANTS) - 60
    assert selection.notes == (
        f"gp looks at 100 of {free} candidates: the best scores, or drawn by the seed",
    )
    assert all(float(choice.candidate.columns["ipTM"]) > 550 for choice in selection.choices)
    assert selection.counts() == {Fate.CHOSEN: 5, Fate.MEASURED: 60, Fate.RANKED_LOWER: free - 5}


def test_a_batch_is_not_one_idea():
    """What is chosen is taken into account: alone, the ten best predictions would differ from one another less."""
    chance = random.Random(5)
    history = bought(chance.sample(VARIANTS, 40), chance)
    pool = pool_of(Candidate(name=variant, sequence=f"MK{variant}GS") for variant in VARIANTS)

    selection = select(pool, history_of(history), 10, GP)

    def apart(names):
        return sum(
            a != b for one, other in itertools.combinations(names, 2) for a, b in zip(one, other, strict=True)
        )

    greedy = sorted(range(len(pool)), key=lambda at: -np.nan_to_num(selection.scores[at], nan=-9))[:10]
    assert apart([choice.candidate.name for choice in selection.choices]) > apart(
        [pool.names[at] for at in greedy]
    )


def test_the_process_returns_to_what_it_knows_and_knows_what_it_does_not():
    sequences = [v for v in VARIANTS if v[2] == "A" and v[1] in "ACDE"]
    values = np.array([float(LETTERS.index(v[0]) + LETTERS.index(v[1])) for v in sequences])
    encoder = Encoder([*sequences, "WWW"])
    process = GaussianProcess(encoder(sequences), values, encoder.blocks)

    mean, deviation = process.predict(encoder([*sequences, "WWW"]))

    assert np.abs(mean[:-1] - values).max() < 0.5
    assert deviation[-1] > 3 * deviation[:-1].max()
    covariance = process.covariance(encoder(sequences))
    assert np.sqrt(np.diag(covariance)) == pytest.approx(deviation[:-1], abs=0.05)


def test_expected_improvement_is_the_formula():
    mean, deviation = np.array([0.0, 1, -3]), np.array([1.0, 0.5, 2])
    steps = (mean - 0.5) / deviation
    expected = (mean - 0.5) * norm.cdf(steps) + deviation * norm.pdf(steps)
    assert expected_improvement(mean, deviation, 0.5) == pytest.approx(expected)
