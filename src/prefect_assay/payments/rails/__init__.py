"""The two machine payment rails: challenges, terms and credentials on the wire."""
