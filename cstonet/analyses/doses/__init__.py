"""Continuous treatments: reading doses, their networks, effect, curve and summary."""
