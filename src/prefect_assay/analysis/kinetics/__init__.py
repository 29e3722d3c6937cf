"""Rate constants and melting temperatures from the raw curves of a data package (extra `kinetics`).

Knows neither the archive nor how anything is shown. `analysis` holds the models, without NumPy; the fits need the extra.
"""
