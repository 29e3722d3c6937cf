"""The tables of the lab. `seq` is the insertion order: it breaks ties, so that pages are stable.

Ids are UUIDs as text, times fixed-width UTC text, money integer cents, `*_json` columns and `spec` JSON text.
"""

from typing import Final

TABLES: Final = """
CREATE TABLE IF NOT EXISTS organizations (
  id TEXT PRIMARY KEY, slug TEXT UNIQUE NOT NULL, code TEXT NOT NULL, name TEXT NOT NULL,
  webhook_secret TEXT, payment_policy TEXT NOT NULL, experiments INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS clocks (
  id TEXT PRIMARY KEY, mode TEXT NOT NULL, seconds_per_day REAL NOT NULL, now TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS tokens (
  id TEXT PRIMARY KEY, org_id TEXT NOT NULL REFERENCES organizations, name TEXT NOT NULL, role TEXT NOT NULL,
  digest TEXT UNIQUE NOT NULL, created_at TEXT NOT NULL, expires_at TEXT NOT NULL, revoked_at TEXT);
CREATE TABLE IF NOT EXISTS targets (
  id TEXT PRIMARY KEY, seq INTEGER, name TEXT, vendor_name TEXT, catalog_number TEXT, url TEXT, uniprot_id TEXT,
  purity TEXT, conjugated INTEGER NOT NULL DEFAULT 0, pricing TEXT, details TEXT);
CREATE TABLE IF NOT EXISTS experiments (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, org_id TEXT NOT NULL REFERENCES organizations,
  code TEXT UNIQUE NOT NULL, name TEXT, description TEXT, status TEXT NOT NULL, results_status TEXT NOT NULL,
  experiment_type TEXT NOT NULL, spec TEXT NOT NULL, payment_method TEXT, webhook_url TEXT, webhook_secret TEXT,
  created_at TEXT NOT NULL, work_started_at TEXT, eta TEXT, portal_key TEXT UNIQUE NOT NULL);
CREATE INDEX IF NOT EXISTS experiments_by_org ON experiments (org_id, created_at, seq);
CREATE TABLE IF NOT EXISTS sequences (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, experiment_id TEXT NOT NULL, name TEXT,
  aa_string TEXT NOT NULL, is_control INTEGER NOT NULL, metadata TEXT, created_at TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS sequences_by_experiment ON sequences (experiment_id, seq);
CREATE TABLE IF NOT EXISTS quotes (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, org_id TEXT NOT NULL,
  experiment_id TEXT NOT NULL, quote_number TEXT NOT NULL, status TEXT NOT NULL, line_items TEXT NOT NULL,
  subtotal_cents INTEGER NOT NULL, total_cents INTEGER NOT NULL, currency TEXT NOT NULL, valid_until TEXT NOT NULL,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL, purchase_order_number TEXT, notes TEXT, reject_reason TEXT,
  reject_feedback TEXT, portal_key TEXT UNIQUE NOT NULL);
CREATE INDEX IF NOT EXISTS quotes_by_experiment ON quotes (experiment_id, seq);
CREATE TABLE IF NOT EXISTS invoices (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, org_id TEXT NOT NULL,
  experiment_id TEXT NOT NULL, quote_id TEXT NOT NULL, provider_invoice_id TEXT UNIQUE NOT NULL,
  status TEXT NOT NULL, amount_cents INTEGER NOT NULL, currency TEXT NOT NULL, payment_method TEXT NOT NULL,
  created_at TEXT NOT NULL, paid_at TEXT, portal_key TEXT UNIQUE NOT NULL);
CREATE INDEX IF NOT EXISTS invoices_by_experiment ON invoices (experiment_id, seq);
CREATE TABLE IF NOT EXISTS settlements (
  id INTEGER PRIMARY KEY AUTOINCREMENT, invoice_id TEXT NOT NULL, experiment_id TEXT NOT NULL,
  payment_method TEXT NOT NULL, amount_cents INTEGER NOT NULL, payer TEXT, nonce TEXT, reference TEXT,
  settled_at TEXT NOT NULL, UNIQUE (payer, nonce));
CREATE TABLE IF NOT EXISTS updates (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, org_id TEXT NOT NULL,
  experiment_id TEXT NOT NULL, type TEXT NOT NULL, name TEXT NOT NULL, description TEXT NOT NULL,
  created_at TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS updates_by_org ON updates (org_id, created_at, seq);
CREATE INDEX IF NOT EXISTS updates_by_experiment ON updates (experiment_id, seq);
CREATE TABLE IF NOT EXISTS results (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, org_id TEXT NOT NULL,
  experiment_id TEXT NOT NULL, position INTEGER NOT NULL, result_type TEXT NOT NULL, title TEXT NOT NULL,
  summary TEXT NOT NULL, metadata TEXT NOT NULL, package_key TEXT, size_bytes INTEGER, created_at TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS results_by_experiment ON results (experiment_id, position);
CREATE TABLE IF NOT EXISTS packages (
  id TEXT PRIMARY KEY, experiment_id TEXT NOT NULL, file_name TEXT NOT NULL, request TEXT NOT NULL,
  content BLOB);
CREATE TABLE IF NOT EXISTS due (
  id INTEGER PRIMARY KEY AUTOINCREMENT, org_id TEXT NOT NULL, experiment_id TEXT NOT NULL, due_at TEXT NOT NULL,
  kind TEXT NOT NULL, detail TEXT, passive INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS due_by_time ON due (org_id, due_at, id);
CREATE TABLE IF NOT EXISTS outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT, org_id TEXT NOT NULL, experiment_id TEXT NOT NULL,
  update_id TEXT NOT NULL, due_at TEXT NOT NULL, due_real REAL NOT NULL, attempts INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS deliveries (
  id INTEGER PRIMARY KEY AUTOINCREMENT, delivery_id TEXT NOT NULL, org_id TEXT NOT NULL,
  experiment_id TEXT NOT NULL, update_id TEXT NOT NULL, url TEXT NOT NULL, attempt INTEGER NOT NULL,
  sent_at TEXT NOT NULL, fault TEXT, status INTEGER, error TEXT, outcome TEXT NOT NULL);
"""

ALL_TABLES: Final = (
    "deliveries",
    "outbox",
    "due",
    "packages",
    "results",
    "updates",
    "settlements",
    "invoices",
    "quotes",
    "sequences",
    "experiments",
    "tokens",
    "clocks",
    "organizations",
)
