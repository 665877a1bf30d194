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
# # Three arms
#
# *Which of several treatments works, and for whom, when nobody was randomised?* A placebo and two
# doses are compared here. The data are simulated, so every answer can be held against the truth.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import cstonet as cs

# %% [markdown]
# ## The data
#
# Five of fifty covariates matter: x1 and x3 decide who gets which dose *and* how they fare. Against
# placebo the low dose raises the outcome by 1 on average, the high dose by 2. The raw means of the
# arms tell another story.

# %%
sim = cs.datasets.three_arms(n=2000, p=50, seed=0)
raw = sim.data.groupby("treat", observed=True)["y"].mean()
pd.DataFrame(
    {
        "truth": list(sim.contrasts.values()),
        "difference of the arms' means": (raw - raw["placebo"])[1:].to_numpy(),
    },
    index=list(sim.contrasts),
).round(3)

# %% [markdown]
# ## One call
#
# The call is that of two arms; more levels are found in the column. `reference` names the level
# that the others are compared with. Here it could be left out, because `treat` is a category whose
# first level is the placebo; levels of a text column are sorted.

# %%
res = cs.fit("y ~ treat | .", data=sim.data, reference="placebo", seed=1)
res.summary()

# %% [markdown]
# The table has one line per arm (how many units; how likely the arm was for those who received it
# and for the others), a contrast `ATE[b-a]` for each dose, and the mean outcome had everybody been
# in each arm. How far are the contrasts from the truth, and how far is an estimate that knows every
# expected outcome and every treatment probability?

# %%
names = list(sim.contrasts)
oracle = sim.oracle()
pd.DataFrame(
    {
        "truth": pd.Series(sim.contrasts),
        "fit": res.params[names],
        "std err": res.bse[names],
        "oracle": oracle.estimates[:2],
        "oracle std err": oracle.standard_errors[:2],
    }
).round(3)

# %% [markdown]
# ## Is there any difference at all?
#
# Two contrasts tested one by one have two chances of a false alarm. `test_equal_arms` tests them
# together, and simultaneous intervals cover all contrasts at once with the stated probability.

# %%
print(res.test_equal_arms())

# %%
res.conf_int(simultaneous=True).loc[names].round(3)

# %% [markdown]
# ## Any two arms, and for whom
#
# The doses can be compared with each other, too. And the average over everybody is not the only
# average: `ATT[high-placebo]` is the effect among those who received the high dose, `ATC` among
# those who received placebo, `ATO` among those who could well have received either.

# %%
tau = sim.mu[:, 2] - sim.mu[:, 0]
p = sim.propensity
populations = {
    "ATE": np.ones(len(tau)),
    "ATT": sim.treatment == 2,
    "ATC": sim.treatment == 0,
    "ATO": p[:, 0] * p[:, 2] / (p[:, 0] + p[:, 2]),
}
rows = {}
for name, weights in populations.items():
    effect = res.effect(f"{name}[high-placebo]")
    truth = np.average(tau, weights=weights)
    rows[effect.name] = {"truth, these rows": truth, "fit": effect.estimate, "std err": effect.se}
pd.DataFrame(rows).T.round(3)

# %%
print(res.effect("ATE[high-low]"))

# %% [markdown]
# The high dose does more for units with large x4, and these received it more often: that is why
# the effect among them is larger.

# %%
fig, ax = plt.subplots(figsize=(6, 3.5))
x4 = sim.data["x4"]
ax.plot(x4, res.cate(contrast=("high", "placebo")), ".", markersize=3, label="fit")
order = np.argsort(x4.to_numpy())
ax.plot(x4.iloc[order], tau[order], color="black", label="truth")
ax.set(xlabel="x4", ylabel="effect of the high dose")
ax.legend()

# %% [markdown]
# ## Can the arms be compared?
#
# With three arms, every unit must have had a chance of each. `overlap` shows the probabilities of
# each arm within each arm, `balance` the covariates' differences before and after weighting.

# %%
res.overlap()[["n", "min", "5%", "50%", "95%", "max", "n_clipped"]].round(3)

# %%
res.balance().loc[["x1", "x2", "x3", "x4", "x5"]].round(2)
