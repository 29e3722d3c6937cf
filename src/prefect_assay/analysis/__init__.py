"""What was measured: rows, fits, the choice of the next designs, all campaigns in one table, the report. Knows no Prefect."""
