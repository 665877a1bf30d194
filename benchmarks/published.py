"""Figures of the paper (Fang and Liang, ICLR 2024), by table, as printed there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """A printed value, with the number in brackets behind it if there is one."""

    value: float
    spread: float | None = None

    def text(self) -> str:
        """As the paper prints it."""
        if self.spread is None:
            return f"{self.value:.4f}"
        return f"{self.value:.4f} ({self.spread:.4f})"


CAUSAL_STONET = "Causal-StoNet"

# Table 1: mean absolute error of the ATE over ten data sets, in and out of sample.
ACIC_ATE = {
    CAUSAL_STONET: (Figure(0.0501, 0.0118), Figure(0.0542, 0.0132)),
    "DSE": (Figure(0.0776, 0.0193), Figure(0.1632, 0.0251)),
    "ARBE": (Figure(0.0729, 0.0166), Figure(0.1335, 0.0179)),
    "TMLE(Lasso)": (Figure(0.0869, 0.0164), Figure(0.0867, 0.0165)),
    "TMLE(ensemble)": (Figure(0.1140, 0.0394), Figure(0.1316, 0.0429)),
    "DONUT": (Figure(0.5294, 0.2640), Figure(0.5290, 0.2642)),
}

# Table 2: root of PEHE, and absolute error of the ATE, on one data set.
ACIC_CATE = {
    CAUSAL_STONET: (Figure(0.0893), Figure(0.0118)),
    "CMDE": (Figure(0.0823), Figure(0.0444)),
    "CMGP": (Figure(0.2156), Figure(0.0258)),
    "CEVAE": (Figure(0.0867), Figure(0.0358)),
    "GANITE": (Figure(0.1913), Figure(0.0485)),
    "X-Learner-RF": (Figure(0.1877), Figure(0.0203)),
    "X-Learner-BART": (Figure(0.0873), Figure(0.0720)),
    "CFRNet-Wass": (Figure(0.1182), Figure(0.0421)),
    "CFRNet-MMD": (Figure(0.1158), Figure(0.0849)),
}

# Table 3: estimates on Twins, where the truth is -0.0248, with the spread of their mean.
TWINS = {
    CAUSAL_STONET: Figure(-0.0232, 0.0042),
    "DSE": Figure(-0.0405, 0.0176),
    "ARBE": Figure(-0.0096, 0.0201),
    "TMLE(Lasso)": Figure(-0.1103, 0.0599),
    "TMLE(ensemble)": Figure(-0.1290, 0.0779),
    "DONUT": Figure(-0.0738, 0.0128),
}

# Table A1: mean absolute error of the ATE out of sample; FSR and NSR are zero throughout.
MISSING = {
    "complete": Figure(0.0103, 0.0024),
    "mar": Figure(0.0797, 0.0134),
    "mnar": Figure(0.1687, 0.0284),
}

# Table A2: in how many of three folds a covariate was selected, by model.
_ALWAYS = (
    *("mager8", "ormoth", "mrace", "meduc6", "mpre5", "adequacy", "frace", "birmon", "gestat10"),
    *("cigar6", "crace", "data_year", "nprevistq", "dfageq", "feduc6", "dlivord_min"),
    *("dtotord_min", "brstate_reg", "stoccfipb_reg", "mplbir_reg", "bord"),
)
TWINS_COVARIATES = {
    "treatment": dict.fromkeys(_ALWAYS, 3)
    | {"pldel": 1, "birattnd": 1, "dmar": 1, "csex": 1, "incervix": 2},
    "outcome": dict.fromkeys(_ALWAYS, 3)
    | {"pldel": 3, "birattnd": 3, "dmar": 2, "csex": 3, "hydra": 2, "incervix": 3},
}

# Table A3: estimates on TCGA-BRCA, no truth known, with the spread of their mean.
TCGA = {
    CAUSAL_STONET: Figure(-0.1243, 0.0058),
    "DSE": Figure(-0.0378, 0.0243),
    "ARBE": Figure(-0.1497, 0.1021),
    "TMLE(Lasso)": Figure(-0.0509, 0.0172),
    "TMLE(ensemble)": Figure(-0.0468, 0.0153),
    "DONUT": Figure(-0.0129, 0.0088),
}

# What the paper calls the methods of the benchmarks.
NAMES = {
    "dse": "DSE",
    "arbe": "ARBE",
    "tmle-lasso": "TMLE(Lasso)",
    "tmle-ensemble": "TMLE(ensemble)",
    "donut": "DONUT",
    "cevae": "CEVAE",
    "ganite": "GANITE",
    "x-learner-forest": "X-Learner-RF",
    "x-learner-bart": "X-Learner-BART",
    "cfrnet-wass": "CFRNet-Wass",
    "cfrnet-mmd": "CFRNet-MMD",
}
# Methods of the paper that are not run here, and why.
NOT_RUN = {
    "CMDE": "deep ensembles of multi-task networks; their published code asks for a GPU and tunes "
    "each of them, more than these tables can spend",
    "CMGP": "a Gaussian process over all rows and both arms, cubic in the rows; no kept package",
}


def paper_name(method: str) -> str:
    """What the paper calls a method of the benchmarks; all presets are its Causal-StoNet."""
    name = method.partition("/")[0].partition(" (")[0].partition(":")[0]
    return CAUSAL_STONET if name in ("calibrated", "stonet", "paper") else NAMES.get(name, method)
