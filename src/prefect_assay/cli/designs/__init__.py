"""`prefect-assay designs`: choosing what to buy next, and what became of it."""
