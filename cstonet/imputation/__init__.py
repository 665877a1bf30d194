"""Missing covariates: where they are, models that impute them, and imputations at every step."""
