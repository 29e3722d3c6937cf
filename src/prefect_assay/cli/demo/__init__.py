"""`prefect-assay demo`."""
