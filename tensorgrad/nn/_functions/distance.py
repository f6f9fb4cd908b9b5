"""Distances and similarities. https://pytorch.org/docs/stable/nn.functional.html#distance-functions"""
from ... import api as tg

__all__ = ["cosine_similarity", "pairwise_distance", "pdist"]

cosine_similarity, pairwise_distance, pdist = tg.cosine_similarity, tg.pairwise_distance, tg.pdist
