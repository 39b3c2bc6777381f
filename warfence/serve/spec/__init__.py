"""Speculative decoding: what an algorithm promises, what it adds to a program, and the registry."""

from warfence.serve.model.drafting import Drafting
from warfence.serve.spec.algorithm import NO_SPEC, SpecAlgorithm
from warfence.serve.spec.draft import Draft
from warfence.serve.spec.registry import DFLASH, EAGLE, NGRAM, get, names, register

__all__ = ["DFLASH", "EAGLE", "NGRAM", "NO_SPEC", "Draft", "Drafting", "SpecAlgorithm", "get", "names", "register"]
