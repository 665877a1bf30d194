# The one list of kernels, levels and compiler flags. setup.py reads it, tests/cpp/Makefile includes
# it: every line is a comment or `NAME := words`, without make's variables or functions.

STANDARD := -std=c++20
OPTIMIZE := -O3 -fno-math-errno -fno-trapping-math

# Sources of csrc/kernels that are compiled once per level; dispatch.cpp is compiled once.
KERNELS := multiply pointwise update random standardise peak table
# Without contraction of a*b+c the random numbers have the same bits at every level.
FLAGS_random := -ffp-contract=off

LEVELS_x86 := v1 v3 v4
FLAGS_v1 := -march=x86-64
FLAGS_v3 := -march=x86-64-v3
FLAGS_v4 := -march=x86-64-v4 -mprefer-vector-width=512
LEVELS_other := portable
