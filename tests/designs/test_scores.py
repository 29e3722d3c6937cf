"""The direction of a score by the words of its title: headers of public tools, titles that turn the meaning, bookkeeping."""

import pytest

from prefect_assay.designs.scores import (
    is_bookkeeping,
    is_confidence_score,
    predictions_first,
    score_direction,
)


def titles_in(text):
    return [title.strip() for title in text.split(";")]


HIGHER = titles_in("""
iptm; ipTM; i_pTM; iPTM; Average_i_pTM; 1_i_pTM; design_to_target_iptm; egfr_iptm; boltz2_iptm; af2_ig_iptm;
protein_iptm; chain_pair_ipTM_AB; actifpTM; ptm+iptm; ipSAE; min_ipSAE; ipSAE_d0chn; pDockQ; pDockQ2;
p_dock_q; LIS; plddt_total; plddt_binder; pLDDT; Average_ss_pLDDT; complex_plddt; complex_iplddt; Mean pLDDT;
esmfold_plddt; pTM; Average_Binder_pTM; ranking_score; ranking_confidence; confidence_score;
overall_confidence; LigandMPNN ligand_confidence; esm_pll; ESM
pseudo-log-likelihood; log_likelihood; LLR; log_prob; pKd; pred_pKD; pIC50; affinity_probability_binary;
affinity_probability_binary1; p_bind; binding probability; DMS_score; Average_ShapeComplementarity;
shape_complementarity; shape_complimentarity_boltz2_binder_ss; delta_sasa_refolded; quality_score; TM-score
""")
LOWER = titles_in("""
RMSD; bb_rmsd; Average_Binder_RMSD; binder_aligned_rmsd; target_aligned_rmsd; filter_rmsd; scRMSD;
rmsd_to_native; pAE; Average_pAE; pae_interaction; pae_binder; i_pAE; ipae; af2_ig_ipae;
min_design_to_target_pae; Predicted Aligned Error; complex_pde; dG; Average_dG; Average_dG/dSASA; ΔG
(kcal/mol); ΔΔG; ddG; interface_ddG; prodigy_dG; delta_G; energy; Binder_Energy_Score; RosettaEnergy;
total_score; TotalScore; rosetta_total_score; I_sc; nll; NLL_mean; mean_nll; negative_log_likelihood;
perplexity; ESM pseudo-perplexity; ppl; mpnn; MPNN_score; proteinmpnn_score; global_score; kd_pred_nM;
pred_kd; log10_kd; Kd; KD (nM); IC50_uM; Ki; affinity_pred_value; affinity_pred_value1; clashes;
Unrelaxed_Clashes; Rank; rank; final_rank; selection_rank; dG (kcal mol^-1); dG (kJ mol⁻¹)
""")
UNKNOWN = titles_in("""
magic; score; affinity; binding_affinity; Length; seed; Hydrophobicity; charge; n_hbonds; iptm_std;
plddt_stdev; rmsd_error; KD error; kd_ci; iptm_rank; rank_by_iptm; iptm_percentile; delta_iptm; iptm_diff;
plddt_loss; rmsd_cutoff; pass_rmsd; frac_plddt_above_70; low_confidence; confidence_interval; ptm_sites; n_contacts_pae5; num_plddt; dG_unfolding; ddG stability; rank_score;
ptm_count; kD (kDa); 1-pAE; 1 - ipae; -dG; -log10(KD); neg_kd; neg_min_design_to_target_pae; minus_ddg;
1/rmsd; inverse_rmsd; off_target_iptm; offtarget_ipsae; decoy_iptm; nonbinder_probability; iptm_pae; iptm/pae;
mpnn_prob; MPNN sequence probability; ligandmpnn_likelihood; mpnn_recovery; mpnn_logp; (1-pae); exp(-nll); score = -ipae; RMSD < 2;
neglog10_kd; neglogKd; minuslog10Kd; mlogKd; kd_selectivity; P(Kd<100 nM);
plddt - rmsd; confidence_nll; mpnn_iptm_rmsd; seq_recovery; MPNN_seq_recovery; seq_rec; sequence_recovery;
mpnn_sample; score: -ipae; mean -ddG; kd_prob; Pr(KD); Kd^-1; Kd^(-1); KD⁻¹; log10(Kd)*-1; pae_reward; recip_rmsd;
ddG (positive = stabilizing); PTM_risk; PTM (deamidation)
""")


@pytest.mark.parametrize("title", HIGHER)
def test_titles_of_which_higher_is_better(title):
    assert score_direction(title) is True


@pytest.mark.parametrize("title", LOWER)
def test_titles_of_which_lower_is_better(title):
    assert score_direction(title) is False


@pytest.mark.parametrize("title", UNKNOWN)
def test_titles_that_do_not_say_which_direction_is_better(title):
    assert score_direction(title) is None


@pytest.mark.parametrize("title", sorted({*HIGHER, *LOWER} - {"1_i_pTM", "RosettaEnergy"}))
def test_case_and_separators_make_no_difference(title):
    for other in (title.upper(), title.replace("_", " "), title.replace("_", "-"), title.replace(" ", "_")):
        assert score_direction(other) is score_direction(title), other


def test_a_score_of_a_producers_file_is_known_by_the_producer():
    assert score_direction("score", "ProteinMPNN") is False
    assert score_direction("score", "BindCraft") is None
    assert score_direction("seq_recovery", "ProteinMPNN") is None


@pytest.mark.parametrize(
    "title",
    titles_in(
        "Rank; final_rank; Length; binder_len; n_residues; seq_length; Seed; random_seed; Unnamed: 0; #; n; index; row; "
        "row_number; loop; round; T; sample; Design; price_cents; design_id; rank_iptm; mpnn_seed; ProteinMPNN length"
    ),
)
def test_bookkeeping_is_never_a_prediction(title):
    assert is_bookkeeping(title)
    assert predictions_first([title, "magic"]) == ("magic",)


@pytest.mark.parametrize(
    "title", ["ipTM", "iptm_seed_1", "iptm sample 3", "selection_score", "Hydrophobicity"]
)
def test_a_score_is_no_bookkeeping(title):
    assert not is_bookkeeping(title)


def test_one_known_score_of_each_kind_comes_first():
    titles = ["Rank", "Length", "Seed", "Helicity", "MPNN_score", "Average_pLDDT", "1_pLDDT", "Average_i_pTM"]
    titles += ["1_i_pTM", "Average_i_pAE", "Average_dG", "Average_Binder_RMSD"]
    assert predictions_first(titles) == (
        *(
            "Average_i_pTM",
            "Average_i_pAE",
            "Average_dG",
            "Average_pLDDT",
            "Average_Binder_RMSD",
            "MPNN_score",
        ),
        *("1_i_pTM", "1_pLDDT", "Helicity"),
    )


def test_confidences_are_those_of_structure_prediction():
    assert all(
        map(is_confidence_score, ["egfr_iptm", "Average_i_pAE", "pLDDT", "bb_rmsd", "min_ipsae", "LIS"])
    )
    assert not any(
        map(is_confidence_score, ["MPNN_score", "dG", "kd_pred_nM", "Rank", "magic", "1-pae", "score"])
    )
