"""Composite values of every type, as the table has them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from broker_core.amqp import performatives
from broker_core.amqp.composite import BY_CLASS, BY_CODE, Kind
from broker_core.amqp.types import Symbol
from tests.amqp.values import SIMPLE, simple

symbols = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=12).map(Symbol)
fields = st.dictionaries(symbols, simple, max_size=3)
STATES = ("received", "accepted", "rejected", "released", "modified", "declared", "transactional-state")
OUTCOMES = ("accepted", "rejected", "released", "modified")
COMPOSED = {
    "an error": ("error",), "an outcome": OUTCOMES, "a delivery state": STATES, "a source": ("source",), "a target": ("target", "coordinator"),
}  # fmt: skip
CHOICES = {
    "snd_settle_mode": st.integers(0, 2), "rcv_settle_mode": st.integers(0, 1), "durable": st.integers(0, 2), "code": st.integers(0, 4),
    "expiry_policy": st.sampled_from(performatives.EXPIRY_POLICIES),
}  # fmt: skip


def _value(name: str, kind: Kind) -> st.SearchStrategy[Any]:
    if kind.name in COMPOSED:
        return st.one_of([st.deferred(lambda each=each: composite(each)) for each in COMPOSED[kind.name]])
    if name in CHOICES and kind is not performatives.BOOLEAN:
        return CHOICES[name]
    if kind.classes == (dict,):
        return fields
    if kind in (performatives.DELIVERY_TAG, performatives.TRANSACTION_ID):
        return st.binary(max_size=32)
    if kind is performatives.SYMBOL:
        return symbols
    return st.one_of([SIMPLE[each] for each in kind.classes]) if kind.classes else simple


def composite(name: str) -> st.SearchStrategy[Any]:
    of = next(each for each in BY_CODE.values() if each.name == name)
    arguments = {}
    for each in of.fields:
        value = _value(each.name, each.kind)
        if each.multiple:
            arguments[each.name] = st.lists(value, min_size=int(each.mandatory), max_size=3).map(tuple)
        else:
            arguments[each.name] = value if each.mandatory or each.default is not None else st.none() | value
    return st.builds(of.kind, **arguments)


composites = st.one_of([composite(of.name) for of in BY_CLASS.values()])
