"""The report of a campaign: collected from the archive alone, shown as one HTML file. Knows no Prefect."""
