"""Surety's broker core: the pure engine, its protocols, its store and the node that hosts them. No Django in here."""

__version__ = "0.1.0"
