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
# # How much goes through the mediator
#
# *A treatment works. Does it work because it changes something in between?* A drug may lower the
# risk of a stroke by lowering blood pressure, and by other routes. The total effect is split here
# into what goes through measured mediators and what does not. The data are simulated, so every
# answer can be held against the truth.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import cstonet as cs

# %% [markdown]
# ## The data
#
# Nobody was randomised: x1, x2 and x3 decide who is treated, and each of them also moves the
# mediators or the outcome. The treatment changes three mediators, whose residuals are correlated.
# The first two act on the outcome, the third does nothing to it. Forty-five of fifty covariates are
# noise.

# %%
sim = cs.datasets.three_mediators(n=2000, p=50, seed=1)
sim.data.iloc[:4, :8].round(2)

# %% [markdown]
# Comparing the arms, and regressing the outcome on treatment and mediators without covariates,
# would both be wrong:

# %%
raw = sim.data.groupby("treat")["y"].mean()
X = np.column_stack([np.ones(len(sim.data)), sim.data[["treat", "m1", "m2", "m3"]]])
slope = np.linalg.lstsq(X, sim.data["y"], rcond=None)[0][1]
pd.DataFrame(
    {"truth": [sim.effects["TE"], sim.effects["NDE"]], "naive": [raw[1] - raw[0], slope]},
    index=["total effect", "direct effect"],
).round(3)

# %% [markdown]
# ## One call
#
# Mediators are the third part of the formula. `.` among the covariates leaves them out.

# %%
res = cs.fit("y ~ treat | . | m1 + m2 + m3", data=sim.data, seed=1)
res.summary()

# %% [markdown]
# Let Y(a, M(b)) be the outcome under treatment a with the mediators as they would be under
# treatment b. Then
#
# - **TE**, the total effect, is the mean of Y(1, M(1)) - Y(0, M(0));
# - **NDE**, the natural direct effect, is the mean of Y(1, M(0)) - Y(0, M(0)): what the treatment
#   would do if it left the mediators alone;
# - **NIE**, the natural indirect effect, is the mean of Y(1, M(1)) - Y(1, M(0)): what the change of
#   the mediators adds.
#
# TE = NDE + NIE, exactly, also in the estimates.

# %%
oracle = sim.oracle()
table = pd.DataFrame(
    {
        "truth": pd.Series(sim.effects),
        "fit": res.params,
        "std err": res.bse,
        "oracle": oracle.estimates,
        "oracle std err": oracle.standard_errors,
    }
)
table.round(3)

# %%
fig, ax = plt.subplots(figsize=(6, 2.6))
place = np.arange(3)
for shift, estimate, error, label, color in (
    (0.12, res.params, res.bse, "fit", "C0"),
    (-0.12, oracle.estimates, oracle.standard_errors, "oracle", "0.6"),
):
    ax.errorbar(estimate, place + shift, xerr=1.96 * error, fmt="o", color=color, label=label)
ax.plot(list(sim.effects.values()), place, "|", color="black", markersize=22, label="truth")
ax.set(yticks=place, yticklabels=list(sim.effects), xlabel="effect on y", ylim=(2.5, -0.5))
ax.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), frameon=False)
fig.tight_layout()

# %% [markdown]
# ## The share that is mediated
#
# NIE/TE has a standard error by the delta method. Where the total effect is close to zero, a share
# of it means nothing, and the method warns.

# %%
print(res.proportion_mediated())

# %%
print(res.wald_test("NDE = 0"))
print(res.wald_test("NDE = 0, NIE = 0"))

# %% [markdown]
# ## Mediator by mediator
#
# `effect` is what the treatment does to a mediator, estimated as an average treatment effect with
# the mediator as its outcome. `indirect` is the interventional indirect effect through it: how the
# mean outcome under treatment would change if this mediator alone were drawn from its law under
# treatment instead of control. It needs no knowledge of how the mediators act on each other. The
# paths need not add up to the NIE. The third mediator is changed by the treatment, but nothing goes
# through it.

# %%
columns = ["outcome_count", "effect", "effect_se", "indirect", "indirect_se", "indirect_pvalue"]
res.mediators[columns].round(3)

# %% [markdown]
# With up to five mediators all are held in the outcome model. Of more, those are held that pass a
# score test, as covariates are; the others have no path.
#
# ## Which covariates matter to which model
#
# Three models are searched for covariates: who is treated, what the mediators are, how units fare.

# %%
res.selection.loc[["x1", "x2", "x3", "x4", "x5"], ["treatment", "mediator", "outcome"]]

# %% [markdown]
# The truth: the treatment depends on x1, x2 and x3, the mediators on x1, x2 and x4, the outcome on
# x1, x3 and x5.
#
# ## What is assumed
#
# More than for a total effect. Given the covariates, nothing unmeasured may move treatment and
# outcome, treatment and mediators, *or mediators and outcome*. Randomising the treatment makes the
# first two true, never the third. And no common cause of mediators and outcome may itself be
# changed by the treatment: if there is one, it belongs among the mediators, not the covariates.
# No data can confirm these assumptions.
#
# The estimator is the efficient one and multiply robust: its mean is right if two of the three
# models (treatment, mediators, outcome) are. It weights units by a ratio of mediator densities. Where
# treatment shifts a mediator so far that the arms hardly overlap in it, the ratio is bounded, and
# `res.methods()` counts for how many units.

# %%
print(res.estimated.n_bounded, "of", res.nobs, "units bounded")
