"""Training judges and encoders: rated responses as examples, recipes that fit a judge to them, models in PyTorch."""
