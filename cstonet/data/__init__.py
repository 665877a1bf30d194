"""The user's data: formula, columns, checks, and the design that a fit works on."""
