"""How outputs appear whole or not at all: staging, locks and leases, the ledger, the commit."""
