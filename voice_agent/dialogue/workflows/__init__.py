"""Workflows: how the model is led through the part of a turn that code does not decide."""
