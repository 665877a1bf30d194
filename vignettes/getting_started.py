# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # Getting started
#
# *What does a treatment do, when many covariates might explain both who was treated and how they
# fared?* This page takes one data set from a formula to a table, and then asks of the fit what a
# careful reader would ask: which covariates mattered, whether the arms can be compared at all, for
# whom the treatment works, and whether the answer can be reproduced. The data are simulated, so
# every answer can be held against the truth.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import cstonet as cs

# %% [markdown]
# ## The data
#
# `cs.datasets.simulation2` is an example of the Causal-StoNet paper. Its hundred covariates are
# correlated; only five of them matter, in ways that no linear model captures. Treated units differ
# from controls before anything is done to them.

# %%
sim = cs.datasets.simulation2(n=3000, seed=1)
sim.data.iloc[:5, :8].round(2)

# %% [markdown]
# A data set of this module carries its truths. The treatment raises the outcome by about 3.16 in
# the population; comparing the arms as they are does not say so, because the arms differ.

# %%
y, treat = sim.data["y"], sim.data["treat"]
pd.Series(
    {
        "true effect, population": sim.ate,
        "true effect, mean over these rows": sim.sample_ate,
        "difference of the arms' means": y[treat == 1].mean() - y[treat == 0].mean(),
    }
).round(3)

# %% [markdown]
# ## One call
#
# The formula reads: outcome `~` treatment `|` covariates. The dot stands for every column that was
# not named yet. Terms such as `C(region)`, `np.log(income)` or `age:sex` are welcome as well.

# %%
res = cs.fit("y ~ treat | .", data=sim.data, seed=1)
print(res.summary())

# %% [markdown]
# ## Reading the summary, line by line
#
# **The header** says what was compared, and how.
#
# * *Estimand*: the effect that leads the table, and its direction.
# * *Outcome*, *Treatment*: the family of the outcome (inferred here, see the notes) and the two
#   levels; the second is "treated".
# * *Estimator*: AIPW, a doubly robust estimator. *k-fold cross-fit* means that each unit's expected
#   outcomes and treatment probability come from networks that never saw this unit; *2 x*, that all
#   of it is done twice with other folds, and averaged.
# * *Observations*: with the sizes of the two arms.
# * *Units clipped*: how many estimated treatment probabilities were too close to 0 or 1 and were
#   moved to the bound, by default 0.02 times an arm's share of the units. More than a few ask for a
#   look at the overlap below.
# * *Network* and *Non-zero weights*: the layers, and how few of their weights a network uses on
#   average.
# * *Starts x folds, seed*: how many networks were trained in all, and the number that makes the
#   whole fit reproducible.
#
# **The effects.** `ATE` is the average treatment effect, `POM[0]` and `POM[1]` the potential
# outcomes' means: the mean outcome had nobody, or everybody, been treated. `ATE` is their
# difference, and its standard error accounts for their correlation, and for what the repetitions of
# the cross-fitting differ by. The other columns are those of any regression table.
#
# **The selection.** The covariates that were found to explain the treatment or the outcome in at
# least three quarters of the supports, one per fold and repetition; in brackets, in how many. Both
# models adjust for the outcome's covariates. In the weights, those found for the treatment alone
# would cost precision and remove hardly any bias, so they are there only if they may matter to the
# outcome. All covariates of the formula, found or not, have slopes in the estimator where rows
# allow: what they do linearly is adjusted for, and the note on balance shows it.
#
# **The notes** say what the reader must know to trust the numbers above, warnings first. How all of
# it was done is in `res.methods()`, as text for a paper's methods section:

# %%
print(res.methods())

# %% [markdown]
# The numbers themselves, under the names that statsmodels uses:

# %%
interval = res.conf_int()
pd.DataFrame({"estimate": res.params, "std err": res.bse, "low": interval[0], "high": interval[1]})

# %% [markdown]
# How good is this? An oracle that knows the true expected outcomes and the true treatment
# probabilities still faces the noise of the data. Its estimate is the yardstick:

# %%
oracle, oracle_error = sim.oracle_ate()
pd.DataFrame(
    {"estimate": [res.params["ATE"], oracle], "std err": [res.bse["ATE"], oracle_error]},
    index=["cstonet", "oracle"],
).assign(error=lambda table: table["estimate"] - sim.sample_ate).round(4)

# %% [markdown]
# ## Which covariates mattered?
#
# `res.selection` has a row for every covariate; here are the strongest. Confounders are those that
# are selected for both models. Being found is a matter of yes or no in every support; how probable
# it is that a covariate belongs to the model, `treatment_probability` and `outcome_probability`
# say, and `res.expected_false_selections` adds up what is missing to one among those selected.

# %%
selection = res.selection
selected = selection[selection["treatment"] | selection["outcome"]]
selected.sort_values("strength", ascending=False).head(12).round(2)

# %% [markdown]
# In a simulation we can count: how many of the true covariates were found, how many others came
# along?

# %%
truth = {"treatment": sim.treatment_support, "outcome": sim.outcome_support}
pd.DataFrame(
    {
        model: {
            "true": len(support),
            "found": int(selection.loc[list(support), model].sum()),
            "false": int(selection.drop(index=list(support))[model].sum()),
        }
        for model, support in truth.items()
    }
).T

# %% [markdown]
# ## Can the arms be compared?
#
# An effect can only be estimated where both treated and untreated units occur. `overlap` shows the
# distribution of the estimated treatment probability in each arm: the ranges should share most of
# their length, and nothing should sit at 0 or 1. `res.lost_share` is the share of units that, given
# all covariates, have no counterpart in the other arm; beyond a tenth `res.estimable` is False, and
# `res.support()` describes where the effect can be estimated.

# %%
res.overlap().round(3)

# %% [markdown]
# `balance` compares the arms' covariate means, in standard deviations, before and after weighting
# with the total weights of the estimator: inverse probabilities of the treatment received, and what
# slopes take from them. Covariates with slopes are balanced by construction, which here are all of
# them; those zeros say nothing about overlap. Without slopes for all, as with many covariates for
# the rows, 0.1 is a common rule of thumb.

# %%
balance = res.balance()
balance.loc[list(sim.treatment_support)].round(3)

# %%
fig, ax = plt.subplots(figsize=(6, 3))
limit = 1.1 * balance["smd_before"].abs().max()
ax.scatter(balance["smd_before"], balance["smd_after"], s=12, color="tab:blue")
ax.axhspan(-0.1, 0.1, color="0.9", zorder=0)
ax.set(xlim=(-limit, limit), xlabel="difference before weighting", ylabel="after weighting")
ax.set_title("Standardised differences of the 100 covariates")
fig.tight_layout()

# %% [markdown]
# ## For whom does it work?
#
# `cate` gives each unit's effect given its covariates, predicted out of fold for the rows of the
# fit. The truth is known here, so it can be plotted against it.

# %%
cate = res.cate()
fig, ax = plt.subplots(figsize=(4.5, 4.5))
ax.scatter(sim.tau, cate, s=4, alpha=0.3)
ends = np.array([sim.tau.min(), sim.tau.max()])
ax.plot(ends, ends, color="black", linewidth=1)
ax.set(xlabel="true effect of the unit", ylabel="estimated effect")
fig.tight_layout()

# %% [markdown]
# The root mean squared distance from the diagonal is known as PEHE; the standard deviation of the
# true effects is what a constant guess would score.

# %%
pd.Series(
    {"PEHE": np.sqrt(np.mean((cate - sim.tau) ** 2)), "sd of the true effects": sim.tau.std()}
).round(3)

# %% [markdown]
# ## New units
#
# The fit predicts for units it has never seen, from a frame with the same covariates: the expected
# outcome under each treatment, the effect, and the probability of being treated.

# %%
new = cs.datasets.simulation2(n=4, seed=2)
res.potential_outcomes(new.data).assign(
    cate=res.cate(new.data), true_effect=new.tau, propensity=res.propensity(new.data)
).round(3)

# %% [markdown]
# ## Without a formula
#
# Arrays do as well. Columns are called x1, x2, … unless `names` says otherwise.

# %%
X = sim.data.drop(columns=["y", "treat"]).to_numpy()
again = cs.CausalStoNet(y.to_numpy(), treat.to_numpy(), X).fit(seed=1)
again.params.round(4)

# %% [markdown]
# ## Reproducibility
#
# One seed governs everything that is random: the folds, the starting weights, the batches, the
# sampling. The number of threads does not matter. So the fit by formula and the fit by arrays, with
# the same data and the same seed, agree to the last bit:

# %%
bool((res.params == again.params).all())

# %% [markdown]
# Another seed means other folds and other starting weights, and so a slightly different estimate.
# The difference should be a fraction of the standard error. If it is larger, more repetitions of the
# cross-fitting (`repeats=…`) make the fit steadier.

# %%
other = cs.fit("y ~ treat | .", data=sim.data, seed=2)
pd.Series(
    {
        "seed 1": res.params["ATE"],
        "seed 2": other.params["ATE"],
        "difference / std err": (other.params["ATE"] - res.params["ATE"]) / res.bse["ATE"],
    }
).round(3)
