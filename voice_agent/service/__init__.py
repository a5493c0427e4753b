"""Composition: configuration → engines → agent → calls and texts, with warm-up, readiness and drain."""
