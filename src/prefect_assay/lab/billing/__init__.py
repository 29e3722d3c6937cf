"""Prices, specifications, quotes, invoices and their documents."""
