"""Reading each format of a file of designs: tables, FASTA, complexes, antibodies, what producers write."""
