"""Mediation: reading mediators, their networks and law, effects, paths and summary."""
