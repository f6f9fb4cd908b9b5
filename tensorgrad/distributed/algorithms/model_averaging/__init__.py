"""Averages of parameters over processes.

https://pytorch.org/docs/stable/distributed.optim.html → PostLocalSGDOptimizer
"""
