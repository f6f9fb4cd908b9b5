"""Spoken digits: sounds that a small synthesizer makes, and a network that tells them apart."""
