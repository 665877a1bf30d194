"""What a fit is told: options with their defaults and ranges, presets, and the resolved plan."""
