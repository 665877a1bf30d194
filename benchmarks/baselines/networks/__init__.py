"""Neural networks that the paper compares with, as small PyTorch models for the processor."""
