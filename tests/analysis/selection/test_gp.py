"""What the policy `gp` learns: sequences, groups, scores, values and limits; and that it never fails."""

import itertools
import random
from collections import Counter

import numpy as np
import pytest

from prefect_assay.analysis.results import DesignSummary, Outcome
from prefect_assay.analysis.selection import make_history, read_history, select_designs
from prefect_assay.analysis.selection.evidence import read_evidence
from prefect_assay.analysis.selection.features import count_triplets
from prefect_assay.designs.candidate import Candidate
from prefect_assay.designs.proposed import pool_of
from prefect_assay.designs.selection import Fate, SelectionSettings
from prefect_assay.errors import InputError, InvalidSequences

LETTERS = "ACDEFGHIKLMNPQRSTVWY"
GP = SelectionSettings()
BEST = SelectionSettings(aim="best")
LAST = {"rounds_left": 0}


def protein(chance, length=60):
    return "".join(chance.choices(LETTERS, k=length))


def mutant(residues, chance, changes):
    letters = list(residues)
    for _ in range(changes):
        letters[chance.randrange(len(letters))] = chance.choice(LETTERS)
    return "".join(letters)


def candidate(name, residues, **columns):
    return Candidate(
        name=name, sequence=residues, columns={key: str(value) for key, value in columns.items()}
    )


def measured(name, residues, hit, *, kd=None, target=None, **columns):
    outcome = Outcome.NO_BINDING if not hit else Outcome.BINDING if kd is None else Outcome.MEASURED
    return DesignSummary(
        name=name,
        experiment_code="",
        outcome=outcome,
        kd_M=kd,
        target=target,
        aa_string=residues,
        attributes={key: str(value) for key, value in columns.items()},
    )


def names(selection):
    return [choice.candidate.name for choice in selection.choices]


def test_binders_without_a_kd_lead_to_their_relatives():
    chance = random.Random(1)
    good, bad = protein(chance), protein(chance)
    history = [measured(f"g{n}", mutant(good, chance, 9), hit=True) for n in range(4)]
    history += [measured(f"b{n}", mutant(bad, chance, 9), hit=False) for n in range(4)]
    designs = [
        candidate(f"{kind}{n}", mutant(base, chance, 9))
        for kind, base in (("good", good), ("bad", bad))
        for n in range(9)
    ]

    selection = select_designs(designs, make_history(history), 6, GP, **LAST)

    assert all(name.startswith("good") for name in names(selection))
    assert "most like g" in selection.choices[0].reason
    assert "identical, binding)" in selection.choices[0].reason
    assert selection.choices[0].score > 2 * min(selection.scores)


@pytest.mark.parametrize("column", ["method", "author", "parent", "campaign"])
def test_groups_with_hits_come_first(column):
    chance = random.Random(2)
    history = [
        measured(f"h{n}", protein(chance), hit=n % 2 == 0 and n % 5 != 0, **{column: f"m{n % 2}"})
        for n in range(40)
    ]
    designs = [candidate(f"d{n}", protein(chance), **{column: f"m{n % 2}"}) for n in range(40)]

    selection = select_designs(designs, make_history(history), 10, GP, **LAST)

    counts = Counter(
        (choice.candidate.columns.get(column) or choice.candidate.parents[0]) for choice in selection.choices
    )
    assert counts == {"m0": 10}
    assert "method, author, parents +" in selection.choices[0].reason


def test_without_a_history_scores_lead_and_families_are_spread():
    chance = random.Random(3)
    bases = [protein(chance) for _ in range(6)]
    designs = [
        candidate(f"f{family}-{n}", mutant(base, chance, 3), ipTM=0.9 - 0.02 * family - 0.001 * n)
        for family, base in enumerate(bases)
        for n in range(20)
    ]

    selection = select_designs(designs, make_history([]), 12, GP)

    assert len({name.partition("-")[0] for name in names(selection)}) >= 4
    assert "nothing is measured on this target yet: led by scores, spread over families" in selection.notes
    last = select_designs(designs, make_history([]), 3, GP, **LAST)
    assert {name.partition("-")[0] for name in names(last)} <= {"f0", "f1"}


def test_scores_are_compared_across_methods():
    chance = random.Random(4)
    designs = [candidate(f"d{n}", protein(chance), method=f"m{n // 20}", ipTM=n / 40) for n in range(40)]
    selection = select_designs(designs, make_history([]), 8, SelectionSettings(score_column="ipTM"), **LAST)
    assert {choice.candidate.columns["method"] for choice in selection.choices} == {"m1"}


def test_a_score_that_misleads_is_turned_around():
    chance = random.Random(5)
    history = [measured(f"h{n}", protein(chance), hit=n < 15, ipTM=n / 60) for n in range(60)]
    designs = [candidate(f"d{n}", protein(chance), ipTM=n / 60) for n in range(60)]

    selection = select_designs(
        designs, make_history(history), 6, SelectionSettings(score_column="ipTM"), **LAST
    )

    assert all(int(name[1:]) < 20 for name in names(selection))


def elsewhere(chance):
    """Three other targets, on which designs of method m0 hit."""
    return [
        measured(f"{target}-{n}", protein(chance), hit=n % 3 == 0, target=f"T{target}", method=f"m{n % 3}")
        for target in range(3)
        for n in range(45)
    ]


def test_results_of_other_targets_change_no_choice():
    chance = random.Random(6)
    designs = [candidate(f"d{n}", protein(chance), method=f"m{n % 3}", target="new") for n in range(60)]
    on_target = [measured(f"f{n}", protein(chance), hit=n > 8, target="new", method="m0") for n in range(12)]
    others = elsewhere(chance)

    selection = select_designs(designs, make_history([*others, *on_target]), 10, GP, **LAST)

    assert names(selection) == names(select_designs(designs, make_history(on_target), 10, GP, **LAST))
    assert "135 results of 3 other targets do not count" in selection.notes


def test_a_reference_speaks_for_its_variants_and_not_for_strangers():
    chance = random.Random(11)
    parent = protein(chance)
    near = [candidate(f"near{n}", mutant(parent, chance, 4)) for n in range(8)]
    far = [candidate(f"far{n}", mutant(parent, chance, 20)) for n in range(24)]
    control = measured("parent", parent, hit=True).model_copy(update={"control": True})

    variants = names(select_designs([*near, *far], make_history([control]), 8, GP, **LAST))
    assert sum(name.startswith("near") for name in variants) >= 7

    others = [candidate(f"other{n}", protein(chance), ipTM=0.9) for n in range(60)]
    few = [candidate(f"near{n}", mutant(parent, chance, 4), ipTM=0.8) for n in range(8)]
    mixed = names(select_designs([*few, *others], make_history([control]), 8, GP, **LAST))
    assert not any(name.startswith("near") for name in mixed)


def test_triplets_are_numbered_alike_in_every_process():
    assert count_triplets(["AAA", "YYY"]).indices.tolist() == [0, (19 * 21 + 19) * 21 + 19]


@pytest.mark.parametrize(
    "policy", [{}, {"policy": "random"}, {"policy": "top_score", "score_column": "ipTM"}]
)
def test_a_history_of_several_targets_needs_the_one_of_the_pool(policy):
    chance = random.Random(7)
    history = make_history(elsewhere(chance))
    designs = [candidate(f"d{n}", protein(chance), method=f"m{n % 3}", ipTM=n / 9) for n in range(9)]
    with pytest.raises(InputError, match=r"3 targets.*--target"):
        select_designs(designs, history, 2, SelectionSettings(**policy))
    settings = SelectionSettings(target="t1", **policy)
    assert len(select_designs(designs, history, 2, settings).choices) == 2


def test_one_table_of_two_targets_keeps_what_failed_on_the_second_from_being_bought_again():
    first, second, new = (protein(random.Random(seed)) for seed in (1, 2, 3))
    table = (
        f"name,target,sequence,binding\nd1,egfr,{first},true\nd1,her2,{first},false\nd2,her2,{second},true\n"
    )
    designs = [Candidate(name="d1", sequence=first), Candidate(name="new", sequence=new)]
    for target, bought in (("her2", ["new"]), ("egfr", ["new"]), ("il7r", ["new"])):
        settings = SelectionSettings(target=target)
        assert names(select_designs(designs, read_history(table), 2, settings)) == bought


def test_what_was_measured_on_another_target_may_be_bought_and_on_this_one_not():
    chance = random.Random(8)
    shared, repeated = protein(chance), protein(chance)
    history = [
        measured("a", shared, hit=True, target="one"),
        measured("b", repeated, hit=True, target="two"),
    ]
    designs = [candidate("shared", shared), candidate("own", repeated)]

    two = select_designs(designs, make_history(history), 2, SelectionSettings(target="two"))
    assert names(two) == ["shared"]
    # Not to buy again what may have been measured under another name of the target.
    unknown = select_designs(
        designs, make_history(history), 2, SelectionSettings(target="Two, extracellular")
    )
    assert names(unknown) == []
    assert any("the history has no result of it" in note for note in unknown.notes)


def test_a_batch_is_not_of_one_family_unless_asked():
    chance = random.Random(9)
    good = protein(chance)
    history = [measured(f"g{n}", mutant(good, chance, 2), hit=True) for n in range(6)]
    history += [measured(f"b{n}", protein(chance), hit=False) for n in range(30)]
    designs = [candidate(f"copy{n}", mutant(good, chance, 2)) for n in range(20)]
    designs += [candidate(f"other{n}", protein(chance)) for n in range(30)]

    def copies(settings, n=12):
        selection = select_designs(designs, make_history(history), n, settings, **LAST)
        assert len(selection.choices) == n
        return sum(name.startswith("copy") for name in names(selection)), selection

    guarded, selection = copies(GP)
    assert guarded == 4
    assert any("--one-family" in note for note in selection.notes)
    assert selection.counts()[Fate.CLUSTER_LIMIT] > 0
    assert copies(SelectionSettings(one_family=True))[0] == 12
    assert copies(GP, n=48)[0] >= 16  # the guard leaves no place empty


def test_places_that_the_guard_left_are_filled_within_the_limits():
    chance = random.Random(9)
    good = protein(chance)
    history = [measured(f"g{n}", mutant(good, chance, 2), hit=True) for n in range(6)]
    history += [measured(f"b{n}", protein(chance), hit=False) for n in range(30)]
    designs = [candidate(f"copy{n}", mutant(good, chance, 2), method="m", parent="p") for n in range(20)]
    designs += [candidate(f"other{n}", protein(chance), method="o", parent=f"o{n}") for n in range(30)]

    for limit in ("max_per_method", "max_per_parent"):
        chosen = names(
            select_designs(designs, make_history(history), 48, SelectionSettings(**{limit: 17}), **LAST)
        )
        assert sum(name.startswith("copy") for name in chosen) == 17


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


def bought(variants, chance):
    return [
        measured(variant, f"MK{variant}GS", hit=True, kd=affinity(variant) * chance.lognormvariate(0, 0.1))
        for variant in variants
    ]


LIBRARY = [candidate(variant, f"MK{variant}GS") for variant in VARIANTS]


def test_the_best_variants_of_a_landscape_are_found():
    chance = random.Random(1)
    history = bought(chance.sample(VARIANTS, 60), chance)
    for _ in range(2):
        selection = select_designs(LIBRARY, make_history(history), 12, GP)
        history += bought(names(selection), chance)

    best = sorted(VARIANTS, key=affinity)[:8]
    assert len({design.name for design in history} & set(best)) >= 4
    assert best[0] in {design.name for design in history}
    assert any(note.startswith("aim: the best value") for note in selection.notes)
    assert selection.choices[0].reason.startswith("predicted ")


def test_one_wrong_entry_does_not_change_what_a_batch_is_worth():
    """48 measured, and one of them is a thousand times too strong."""
    lost = []
    for seed in range(6):
        chance = random.Random(seed)
        history = bought(chance.sample(VARIANTS, 48), chance)
        wrong = [history[0].model_copy(update={"kd_M": 1e-11}), *history[1:]]
        clean, dirty = (
            min(affinity(name) for name in names(select_designs(LIBRARY, make_history(entries), 24, BEST)))
            for entries in (history, wrong)
        )
        lost.append(np.log10(dirty / clean))
    assert np.mean(lost) <= 0.05


def single_mutants(seed, length=56):
    """K_D of all single mutants: positions tolerate more or less, and some gain by a larger or smaller residue."""
    chance = np.random.default_rng(seed)
    wild, size = protein(random.Random(seed), length), dict(zip(LETTERS, chance.normal(size=20), strict=True))
    tolerance, slope = np.exp(chance.normal(-1.2, 1.0, length)), chance.normal(0, 0.15, length)
    kds_molar = {}
    for place, letter in itertools.product(range(length), LETTERS):
        if letter != wild[place]:
            step = size[letter] - size[wild[place]]
            loss = tolerance[place] * (0.25 + 0.3 * abs(step)) - slope[place] * step
            kds_molar[wild[:place] + letter + wild[place + 1 :]] = 1e-8 * 10 ** (loss + chance.normal(0, 0.1))
    return kds_molar


def test_single_mutants_are_bought_better_than_at_random():
    gained = []
    for seed in range(6):
        table, chance = single_mutants(seed), random.Random(seed)
        pool = [candidate(residues, residues) for residues in table]
        drawn = chance.sample(list(table), 96)
        history = [
            measured(residues, residues, hit=True, kd=table[residues] * chance.lognormvariate(0, 0.15))
            for residues in drawn[:48]
        ]
        chosen = names(select_designs(pool, make_history(history), 48, BEST))
        by_chance, by_gp = (
            np.mean(np.log10([table[residues] for residues in bought_ones]))
            for bought_ones in (drawn[48:], chosen)
        )
        gained.append(by_chance - by_gp)
    assert np.mean(gained) >= 0.1
    assert np.mean(gained) > 2 * np.std(gained, ddof=1) / len(gained) ** 0.5


def test_limits_and_failures_are_evidence():
    chance = random.Random(3)
    known = chance.sample(VARIANTS, 120)
    exact = [design for design in bought(known, chance) if design.name[2] in "ACD"][:15]
    limits = [
        design.model_copy(update={"kd_M": 1e-5, "qualifier": ">"})
        if n % 2
        else measured(design.name, design.aa_string, hit=False)
        for n, design in enumerate(bought(known, chance))
        if design.name[2] not in "ACD"
    ]
    selection = select_designs(LIBRARY, make_history([*exact, *limits]), 12, BEST)
    assert sum(name[2] in "ACD" for name in names(selection)) >= 10


@pytest.mark.parametrize(("limit", "same_as"), [(1e-10, 1e-8), (1e-7, 1e-7)])
def test_a_design_that_is_at_most_so_good_counts_as_no_better_than_the_median(limit, same_as):
    values = {"AC": 1e-9, "AD": 1e-8, "AE": 1e-7, "AF": limit}
    designs = [measured(residues, residues, hit=True, kd=kd) for residues, kd in values.items()]
    designs[-1] = designs[-1].model_copy(update={"qualifier": ">"})
    learned = dict(zip(values, read_evidence(designs, BEST).values.tolist(), strict=True))
    assert learned["AF"] == next(learned[residues] for residues, kd in values.items() if kd == same_as)


def test_melting_temperatures_are_predicted_in_degrees():
    designs = [
        DesignSummary(
            name=v, experiment_code="", outcome=Outcome.MEASURED, tm_C=50 + LETTERS.index(v[0]), aa_string=v
        )
        for v in VARIANTS[::7]
    ]
    settings = SelectionSettings(objective="melting")
    selection = select_designs([candidate(v, v) for v in VARIANTS], make_history(designs), 3, settings)
    assert {name[0] for name in names(selection)} == {LETTERS[8]}
    assert selection.choices[0].score == pytest.approx(58, abs=1)


@pytest.mark.parametrize("sites", [12, 13, 20])
@pytest.mark.parametrize("framework", ["", "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEV"])
def test_a_library_of_any_number_of_sites_is_compared_site_by_site(sites, framework):
    """Additive in its sites: what is bought is close to the best of the pool, and far from what chance finds."""
    chance = random.Random(sites)
    effects = [{letter: chance.gauss(0, 0.5) for letter in LETTERS} for _ in range(sites)]
    texts = ["".join(chance.choices(LETTERS[:6], k=sites)) for _ in range(500)]
    kd = {
        text: 1e-8 * 10 ** -sum(effect[letter] for effect, letter in zip(effects, text, strict=True))
        for text in texts
    }
    history = [measured(text, framework + text, hit=True, kd=kd[text]) for text in texts[:96]]
    pool = [candidate(text, framework + text) for text in texts[96:]]
    chosen = names(select_designs(pool, make_history(history), 24, BEST, **LAST))
    assert min(kd[name] for name in chosen) == min(kd[text] for text in texts[96:])


def landscape(seed):
    """A pool and a history of any kind: lengths, copies, odd letters, empty columns, values of any size, limits."""
    chance = random.Random(seed)
    length, letters = chance.choice([1, 2, 4, 30, 80]), chance.choice(["W", "WK", LETTERS])
    bases = ["".join(chance.choices(letters, k=length)) for _ in range(chance.randint(1, 6))]
    same_length = chance.random() < 0.5

    def sequence():
        mutated = mutant(chance.choice(bases), chance, chance.randint(0, 3))
        return mutated if same_length else mutated + "G" * chance.randint(0, 9)

    def columns():
        return {
            title: value
            for title, value in (
                ("method", chance.choice(["a", "b", ""])),
                ("ipTM", chance.choice(["", "nan", "0.5", f"{chance.random():.3f}"])),
                ("other", f"{chance.gauss(0, 10 ** chance.randint(-30, 30)):.4g}"),
                ("author", chance.choice(["x", "y", "z"])),
            )
            if value and chance.random() < 0.8
        }

    def result(n):
        value = 10 ** chance.uniform(-14, -2) if chance.random() < 0.6 else None
        summary = measured(
            f"h{n}", sequence(), hit=chance.random() < 0.6, target=chance.choice(["t", "t", "u"]), **columns()
        )
        if summary.outcome is Outcome.NO_BINDING or value is None:
            return summary
        return summary.model_copy(
            update={
                "outcome": Outcome.MEASURED,
                "kd_M": value,
                "qualifier": chance.choice([None, None, ">", "<"]),
            }
        )

    history = [result(n) for n in range(chance.choice([0, 1, 2, 10, 40]))]
    designs = {sequence() for _ in range(chance.choice([1, 5, 60]))}
    pool = pool_of(candidate(f"d{n}", residues, **columns()) for n, residues in enumerate(sorted(designs)))
    settings = SelectionSettings(
        aim=chance.choice([None, "hits", "best"]),
        target="t",
        score_column="ipTM"
        if any(pool.unpack(extra).get("ipTM", "nan") != "nan" for extra in pool.extras if extra)
        else None,
        hit_limit=None,
    )
    return pool, history, settings, chance.choice([None, 0, 3]), chance.randint(1, 30)


@pytest.mark.parametrize(
    "seeds",
    [range(50), pytest.param(range(50, 1000), marks=[pytest.mark.long, pytest.mark.timeout(900)])],
    ids=["50", "1000"],
)
def test_no_landscape_makes_it_fail_or_leave_places_empty(seeds):
    played = 0
    for seed in seeds:
        try:
            pool, history, settings, left, n = landscape(seed)
        except InvalidSequences:  # drawn letters may be those of DNA, or of a missing value
            continue
        played += 1
        selection = select_designs(pool, make_history(history), n, settings, rounds_left=left)
        free = len(pool) - selection.counts().get(Fate.MEASURED, 0)
        assert len(selection.choices) == min(n, free), seed
        assert all(np.isfinite(choice.score) and choice.reason for choice in selection.choices), seed
        assert names(selection) == names(
            select_designs(pool, make_history(history), n, settings, rounds_left=left)
        ), seed
    assert played >= 0.9 * len(seeds)


@pytest.mark.parametrize("is_melting", [False, True])
def test_the_design_most_like_a_candidate_has_its_own_value_and_not_that_of_a_failure(is_melting):
    """The weakest of all values is where failures count, and it was measured."""
    chance = random.Random(3)
    base, stranger = protein(chance), protein(chance)
    history = [measured(f"m{n}", mutant(base, chance, 6), hit=True, kd=10e-9 * 2**n) for n in range(6)]
    failed = measured("none", protein(chance), hit=False)
    if is_melting:
        history = [
            design.model_copy(update={"kd_M": None, "tm_C": 40.0 + 5 * (5 - n)})
            for n, design in enumerate(history)
        ]
        failed = failed.model_copy(update={"outcome": Outcome.NO_EXPRESSION})
    near = {design.name: mutant(design.aa_string, chance, 3) for design in history}
    designs = [*(candidate(f"near {name}", text) for name, text in near.items()), candidate("far", stranger)]
    settings = SelectionSettings(aim="best", objective="melting" if is_melting else "affinity")
    selection = select_designs(designs, make_history([*history, failed]), 7, settings)
    reasons = {choice.candidate.name: choice.reason for choice in selection.choices}
    values = ("65.0 °C", "40.0 °C") if is_melting else ("10.0 nM", "320 nM")
    for name, value in zip(("m0", "m5"), values, strict=True):
        assert f"most like {name} (" in reasons[f"near {name}"]
        assert f"identical, {value})" in reasons[f"near {name}"]


def test_a_pool_next_to_unrelated_results_of_its_length_keeps_what_other_lengths_taught():
    chance = random.Random(5)
    parent = protein(chance)
    variants = [mutant(parent, chance, 3) for _ in range(8)]
    longer = [
        measured(f"v{n}", f"{mutant(parent, chance, 3)}GGSGG", hit=n % 2 == 1, method="m") for n in range(20)
    ]
    unrelated = [measured(f"u{n}", protein(chance), hit=n % 3 == 0, method="m") for n in range(20)]
    relatives = [measured(f"r{n}", mutant(parent, chance, 3), hit=n % 3 == 0, method="m") for n in range(20)]
    dropped = "20 results of other lengths do not count: the candidates are variants at a few positions"
    designs = [candidate(f"c{n}", text, method="m") for n, text in enumerate(variants)]
    for history, is_library in ((unrelated, False), (relatives, True)):
        selection = select_designs(designs, make_history([*history, *longer]), 2, GP)
        assert (dropped in selection.notes) is is_library
        nearest = "most like r" if is_library else "most like v"
        assert all(nearest in choice.reason for choice in selection.choices)
