"""The structure search: score tests, working networks, supports, the selection table."""
