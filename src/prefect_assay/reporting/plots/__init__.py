"""Figures as SVG (extra `report`): same input, same bytes. Knows neither the archive nor Prefect."""
