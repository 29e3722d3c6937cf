"""Commands that read an archive: results, reports, payments, verification."""
