-- The tables of the lab. `seq` is the insertion order: it breaks ties, so that pages are stable.
-- Numbers that are public, or that other rows refer to, are never reused (AUTOINCREMENT). Ids are UUIDs as text, times
-- fixed-width UTC text, money integer cents, structured columns such as `spec` JSON text.

CREATE TABLE IF NOT EXISTS organizations (
  id TEXT PRIMARY KEY, slug TEXT UNIQUE NOT NULL, code TEXT NOT NULL, name TEXT NOT NULL,
  webhook_secret TEXT, payment_policy TEXT NOT NULL, experiments INTEGER NOT NULL DEFAULT 0, onboarded_by TEXT);
CREATE TABLE IF NOT EXISTS clocks (
  id TEXT PRIMARY KEY, mode TEXT NOT NULL, seconds_per_day REAL NOT NULL, now TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS users (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, org_id TEXT NOT NULL REFERENCES organizations,
  email TEXT UNIQUE NOT NULL, name TEXT, role TEXT NOT NULL, created_at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS portal_sessions (
  id TEXT PRIMARY KEY, user_id TEXT NOT NULL REFERENCES users (id), csrf TEXT NOT NULL, expires_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS oauth_clients (id TEXT PRIMARY KEY, information TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS oauth_grants (
  id TEXT PRIMARY KEY, client_id TEXT NOT NULL, request TEXT NOT NULL, expires_at REAL NOT NULL, session_id TEXT,
  code TEXT UNIQUE, used INTEGER NOT NULL DEFAULT 0, token_id TEXT);
CREATE TABLE IF NOT EXISTS signing_keys (private_key TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS tokens (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, org_id TEXT NOT NULL REFERENCES organizations,
  user_id TEXT REFERENCES users (id), name TEXT NOT NULL, kind TEXT NOT NULL, role TEXT NOT NULL,
  revocation_id TEXT UNIQUE NOT NULL, root_token_id TEXT, parent_token_id TEXT, attenuation_spec TEXT,
  alias TEXT UNIQUE, created_at TEXT NOT NULL, expires_at TEXT NOT NULL, revoked_at TEXT);
CREATE INDEX IF NOT EXISTS tokens_by_org ON tokens (org_id, created_at, seq);
CREATE INDEX IF NOT EXISTS tokens_by_root ON tokens (root_token_id);
CREATE TABLE IF NOT EXISTS targets (
  id TEXT PRIMARY KEY, seq INTEGER, name TEXT, vendor_name TEXT, catalog_number TEXT, url TEXT, uniprot_id TEXT,
  purity REAL, conjugated INTEGER NOT NULL DEFAULT 0, pricing TEXT, details TEXT,
  org_id TEXT REFERENCES organizations);
CREATE TABLE IF NOT EXISTS custom_targets (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, org_id TEXT NOT NULL REFERENCES organizations,
  name TEXT NOT NULL, product_id TEXT NOT NULL, sequence TEXT, pdb_id TEXT,
  status TEXT NOT NULL, reason TEXT, target_id TEXT, created_at TEXT NOT NULL, updated_at TEXT NOT NULL, UNIQUE (org_id, product_id));
CREATE TABLE IF NOT EXISTS feedback (
  id TEXT PRIMARY KEY, org_id TEXT NOT NULL REFERENCES organizations, created_at TEXT NOT NULL,
  content TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS experiments (
  seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, org_id TEXT NOT NULL REFERENCES organizations,
  code TEXT UNIQUE NOT NULL, name TEXT, description TEXT, status TEXT NOT NULL, results_status TEXT NOT NULL,
  experiment_type TEXT NOT NULL, payment_method TEXT, webhook_url TEXT, webhook_secret TEXT, created_at TEXT NOT NULL,
  work_started_at TEXT, eta TEXT, portal_key TEXT UNIQUE NOT NULL, spec TEXT NOT NULL, shown_spec TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS experiments_by_org ON experiments (org_id, created_at, seq);
CREATE TABLE IF NOT EXISTS sequences (
  seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, experiment_id TEXT NOT NULL, name TEXT,
  aa_string TEXT NOT NULL, is_control INTEGER NOT NULL, metadata TEXT, created_at TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS sequences_by_experiment ON sequences (experiment_id, seq);
CREATE TABLE IF NOT EXISTS quotes (
  seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, org_id TEXT NOT NULL,
  experiment_id TEXT NOT NULL, quote_number TEXT NOT NULL, status TEXT NOT NULL, line_items TEXT NOT NULL,
  subtotal_cents INTEGER NOT NULL, total_cents INTEGER NOT NULL, currency TEXT NOT NULL, valid_until TEXT NOT NULL,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL, purchase_order_number TEXT, notes TEXT, reject_reason TEXT,
  reject_feedback TEXT, portal_key TEXT UNIQUE NOT NULL);
CREATE INDEX IF NOT EXISTS quotes_by_experiment ON quotes (experiment_id, seq);
CREATE TABLE IF NOT EXISTS invoices (
  seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, org_id TEXT NOT NULL,
  experiment_id TEXT NOT NULL, quote_id TEXT NOT NULL, provider_invoice_id TEXT UNIQUE NOT NULL,
  status TEXT NOT NULL, amount_cents INTEGER NOT NULL, currency TEXT NOT NULL, payment_method TEXT NOT NULL,
  created_at TEXT NOT NULL, paid_at TEXT, portal_key TEXT UNIQUE NOT NULL);
CREATE INDEX IF NOT EXISTS invoices_by_experiment ON invoices (experiment_id, seq);
CREATE TABLE IF NOT EXISTS settlements (
  id INTEGER PRIMARY KEY AUTOINCREMENT, invoice_id TEXT NOT NULL, experiment_id TEXT NOT NULL,
  payment_method TEXT NOT NULL, amount_cents INTEGER NOT NULL, payer TEXT, nonce TEXT, reference TEXT,
  settled_at TEXT NOT NULL, UNIQUE (payer, nonce));
CREATE TABLE IF NOT EXISTS updates (
  seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, org_id TEXT NOT NULL,
  experiment_id TEXT NOT NULL, type TEXT NOT NULL, name TEXT NOT NULL, description TEXT NOT NULL,
  created_at TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS updates_by_org ON updates (org_id, created_at, seq);
CREATE INDEX IF NOT EXISTS updates_by_experiment ON updates (experiment_id, seq);
CREATE TABLE IF NOT EXISTS results (
  seq INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, org_id TEXT NOT NULL,
  experiment_id TEXT NOT NULL, position INTEGER NOT NULL, result_type TEXT NOT NULL, title TEXT NOT NULL,
  summary TEXT NOT NULL, metadata TEXT NOT NULL, package_key TEXT, size_bytes INTEGER, created_at TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS results_by_experiment ON results (experiment_id, position);
CREATE TABLE IF NOT EXISTS packages (
  id TEXT PRIMARY KEY, file_name TEXT NOT NULL, request TEXT NOT NULL, content BLOB);
CREATE TABLE IF NOT EXISTS due (
  id INTEGER PRIMARY KEY, org_id TEXT NOT NULL, experiment_id TEXT NOT NULL, due_at TEXT NOT NULL,
  kind TEXT NOT NULL, detail TEXT, passive INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS due_by_time ON due (org_id, due_at, id);
CREATE INDEX IF NOT EXISTS due_by_experiment ON due (experiment_id);
CREATE TABLE IF NOT EXISTS webhooks (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, org_id TEXT NOT NULL REFERENCES organizations,
  url TEXT NOT NULL, secret TEXT, replaced_secret TEXT, headers TEXT NOT NULL, enabled INTEGER NOT NULL,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS plans (
  id TEXT PRIMARY KEY, org_id TEXT NOT NULL, quote_minutes REAL, review_minutes REAL, window_days REAL,
  hold_review INTEGER);
CREATE TABLE IF NOT EXISTS outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT, org_id TEXT NOT NULL, experiment_id TEXT NOT NULL,
  update_id TEXT NOT NULL, webhook_id TEXT, due_at TEXT NOT NULL, due_real REAL NOT NULL,
  attempts INTEGER NOT NULL, held TEXT NOT NULL DEFAULT '', was_held INTEGER NOT NULL DEFAULT 0, replay_of INTEGER);
CREATE INDEX IF NOT EXISTS outbox_by_time ON outbox (org_id, due_at, id);
CREATE INDEX IF NOT EXISTS outbox_by_lane ON outbox (experiment_id, id);
CREATE TABLE IF NOT EXISTS deliveries (
  id INTEGER PRIMARY KEY AUTOINCREMENT, delivery_id TEXT NOT NULL, org_id TEXT NOT NULL,
  experiment_id TEXT NOT NULL, update_id TEXT NOT NULL, webhook_id TEXT, url TEXT NOT NULL,
  attempt INTEGER NOT NULL, sent_at TEXT NOT NULL, fault TEXT, headers TEXT NOT NULL, body TEXT NOT NULL,
  signed_with TEXT NOT NULL, status INTEGER, error TEXT, outcome TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS deliveries_by_experiment ON deliveries (experiment_id, id);
