"""Cross-fitting: splits, folds side by side, progress."""
