"""Networks: their layers and masks, standardised data, trained parameters, predictions."""
