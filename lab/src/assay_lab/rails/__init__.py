"""The machine payment rails. They must not know storage, requests or experiments."""
