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
# # From a CSV file to a report: quitting smoking and body weight
#
# *How much weight do people gain because they stop smoking?* The question is the running example of
# Hernán and Robins' *Causal Inference: What If*: 1566 smokers were seen in 1971 and again in 1982,
# in between 403 of them had stopped, and nobody had told them to. This page does what an analyst does
# with such a file, from reading it to the page that goes to the co-authors. The book's own answers,
# 3.4 to 3.5 kg, stand beside ours at the end.

# %%
import os
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import cstonet as cs

# %% [markdown]
# The data come with the Python package `causaldata` (`pip install causaldata`), or from the file
# `nhefs/NHEFS.csv.gz` in a folder that the environment variable `CSTONET_DATA` names. Either way we
# begin as most analyses do, with a CSV file.

# %%
folder = Path(tempfile.mkdtemp())
given = Path(os.environ.get("CSTONET_DATA", "")) / "nhefs" / "NHEFS.csv.gz"
if given.is_file():
    people = pd.read_csv(given)
else:
    try:
        from causaldata import nhefs
    except ImportError:
        sys.exit(
            "This page needs the NHEFS data: pip install causaldata, or set CSTONET_DATA to a "
            "folder that holds nhefs/NHEFS.csv.gz."
        )
    people = nhefs.load_pandas().data
people.dropna(subset=["wt82_71"]).to_csv(folder / "nhefs.csv", index=False)

people = pd.read_csv(folder / "nhefs.csv")
people["sex"] = people["sex"].map({0: "male", 1: "female"})
people.groupby("qsmk")[["wt82_71", "age", "wt71", "smokeintensity", "smokeyrs"]].mean().round(1)

# %% [markdown]
# Those who stopped gained about 2.5 kg more than the others. They are also older, heavier, and had
# smoked less: all of which bear on how much weight people gain.
#
# ## One call
#
# The book adjusts for nine variables. Here the formula names them, categories as `C(...)`; squares
# and interactions need no mention. `sex` and `age` stay in both models, whatever the search says.

# %%
formula = (
    "wt82_71 ~ qsmk | age + wt71 + smokeintensity + smokeyrs + C(sex) + C(race) + C(education)"
    " + C(exercise) + C(active)"
)
res = cs.fit(formula, people, keep=["age", "C(sex)"], seed=1)
print(res.summary())

# %% [markdown]
# ## Can the arms be compared?
#
# The table says that nobody had to be clipped. Two pictures say the same: both groups have
# members at nearly all propensities, and after weighting nothing differs between them.

# %%
fig, axes = plt.subplots(1, 2, figsize=(10, 3.6))
res.plot.overlap(ax=axes[0])
res.plot.balance(ax=axes[1])
fig.tight_layout()
plt.show()

# %% [markdown]
# ## For whom?
#
# Effects by sex, and by how much people smoked, each with an interval of its own and one that holds
# for all groups together. The test asks whether they could be the same.

# %%
print(res.gate("sex"))

# %%
print(res.gate("smokeintensity", cuts=[10, 20, 30]))

# %% [markdown]
# The best linear projection is a regression table of the effect itself. The last question is whether
# units for which the models predict more did gain more.

# %%
print(res.projection("age + smokeintensity + C(sex)"))
print()
print(res.heterogeneity())

# %%
ax = res.plot.cate()
plt.show()

# %% [markdown]
# ## What if something was not measured?
#
# Diet was not. An omitted confounder would have to explain as much of both models as the robustness
# value says to take the whole effect away. The table measures that against what the covariates do
# that *are* there.

# %%
print(res.sensitivity())

# %%
ax = res.plot.sensitivity()
plt.show()

# %% [markdown]
# ## Beside the published answers

# %%
effect = res.effect("ATE")
pd.DataFrame(
    {
        "kg": [effect.estimate, 3.44, 3.5],
        "lower": [effect.lower, 2.41, 2.6],
        "upper": [effect.upper, 4.47, 4.5],
    },
    index=["cstonet", "What If: weighting (chapter 12)", "What If: standardization (chapter 13)"],
).round(2)

# %% [markdown]
# ## What goes to the co-authors
#
# One page with everything above in it, which opens in any browser without a network; a table for the
# paper; and the fit itself, without a single row of data inside.

# %%
res.report(folder / "smoking.html")
(folder / "table.tex").write_text(
    res.summary().as_latex(caption="Smoking cessation and weight gain", label="tab:nhefs")
)
res.save(folder / "smoking.cst")
again = cs.load(folder / "smoking.cst")
print(f"{(folder / 'smoking.html').stat().st_size / 1e3:.0f} kB of page,", end=" ")
print(f"{(folder / 'smoking.cst').stat().st_size / 1e3:.0f} kB of fit; loaded: {again}")

# %% [markdown]
# The same from a shell, in one command:
#
# ```
# cstonet fit nhefs.csv "wt82_71 ~ qsmk | age + wt71 + smokeintensity + smokeyrs + C(sex) + C(race)
#   + C(education) + C(exercise) + C(active)" --keep age --by sex --report smoking.html
# ```
