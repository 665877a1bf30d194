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
# # Dose and response
#
# *How does the outcome change with the amount of a treatment, when the amount was not randomised?*
# The treatment here is a dose, a number for every unit. The data are simulated, so every answer can
# be held against the truth.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import cstonet as cs

# %% [markdown]
# ## The data
#
# Five of fifty covariates matter: x1 and x3 decide how large the dose is *and* how the unit fares.
# More of the treatment helps at first, then does nothing, and at last harms. Units with large x1
# fare better anyway and receive more, so that the raw data overstate what the dose does.

# %%
sim = cs.datasets.dose_curve(n=2000, p=50, seed=0)
line = np.polyfit(sim.data["dose"], sim.data["y"], 1)
print(f"slope of a line through the raw data {line[0]:.3f}")
print(f"average slope of the true effect     {sim.ame:.3f}")

# %% [markdown]
# ## One call
#
# A numeric treatment with many values is taken as a dose; `treatment="continuous"` says so where
# there are few, and `treatment="multilevel"` compares numbers as levels instead.

# %%
res = cs.fit("y ~ dose | .", data=sim.data, seed=1)
res.summary()

# %% [markdown]
# One number sums up a dose: the average marginal effect, the mean slope of the outcome in the dose.
# It is what would change, per unit of dose, if everybody received a little more. The estimate is
# doubly robust: right if either the outcome model or the model of the dose is. How far is it from
# the truth, and how far is an estimate that knows both models?

# %%
oracle = sim.oracle()
pd.DataFrame(
    {
        "truth": sim.ame,
        "fit": res.params,
        "std err": res.bse,
        "oracle": oracle.estimates,
        "oracle std err": oracle.standard_errors,
    }
).round(3)

# %% [markdown]
# ## The curve
#
# An average slope hides that the effect levels off. `dose_response` estimates the mean outcome had
# *everybody* received a dose, for a range of doses. The dark band covers each point with 95 %
# probability, the light one the whole curve. The grey line is what a regression on the dose alone
# would show.

# %%
curve = res.dose_response()
fig, ax = plt.subplots(figsize=(7, 4.5))
curve.plot(ax)
doses = curve.table["dose"].to_numpy()
ax.plot(doses, sim.curve(doses), color="black", linestyle="--", label="truth")
raw = np.polyval(np.polyfit(sim.data["dose"], sim.data["y"], 4), doses)
ax.plot(doses, raw, color="grey", label="without adjustment")
ax.legend()

# %% [markdown]
# Doses of your choice come as a table. The data end somewhere: doses beyond which fewer than 2.5 %
# of the units lie are left out, with a warning that names them; `trim=` moves that end.

# %%
res.dose_response([2, 4, 6, 8]).table.round(3)

# %% [markdown]
# ## For whom?
#
# `cate` is each unit's own slope, at the dose it received or at one that you name. In these data the
# slope grows with x4.

# %%
fig, ax = plt.subplots(figsize=(6, 3.5))
x4 = sim.data["x4"].to_numpy()
ax.plot(x4, res.cate(dose=5.0), ".", markersize=3, label="fit, at dose 5")
order = np.argsort(x4)
truth = (2 + 0.5 * x4) / 2
ax.plot(x4[order], truth[order], color="black", label="truth")
ax.set(xlabel="x4", ylabel="slope")
ax.legend()

# %% [markdown]
# Two doses can be compared for each unit, and new units need no dose of their own:

# %%
new = sim.data.drop(columns=["y", "dose"]).head(3)
pd.concat(
    [
        res.potential_outcomes(new, dose=[4, 6]),
        res.cate(new, contrast=(6, 4)).rename("6 against 4"),
    ],
    axis=1,
).round(2)

# %% [markdown]
# ## Can the doses be compared?
#
# A curve asks what *everybody* would do at a dose, also those who hardly ever receive it. Units that
# received an unlikely dose stand for them and count more. `overlap` shows how much, and how many
# equally weighted units that leaves; `balance` shows how weighting removes the correlation of dose
# and covariates.

# %%
res.overlap().round(2)

# %%
res.balance().loc[["x1", "x2", "x3", "x4", "x5"]].round(2)

# %% [markdown]
# Towards the ends of the doses fewer units carry the curve, and its band opens. At the very ends
# those who received a dose are mostly those for whom it was likely: what the others would do there
# rests on the outcome model, and no band can know that. The average marginal effect does not suffer
# from this: it asks about small changes of the doses that were given.
