"""Treatments with two or more levels: reading, estimation, results and summary."""
