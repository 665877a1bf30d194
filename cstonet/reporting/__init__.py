"""What a fit says: inference, tables, summary, diagnostics."""
