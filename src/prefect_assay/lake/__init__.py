"""The lake: the results of all campaigns of an archive as Parquet files. Knows no Prefect."""
