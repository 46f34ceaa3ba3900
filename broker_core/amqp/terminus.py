"""What a consumer's attach asks for, as an engine command and as the source that it is answered with (messaging 3.5, the JMS mapping)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from broker_core.engine.address import is_topic
from broker_core.engine.commands import Attach as EngineAttach
from broker_core.engine.commands import Browse, CreateTemporary, Lookup
from broker_core.engine.eligibility import PRIORITY_MAX
from broker_core.engine.outputs import Found
from broker_core.engine.selector import SelectorError, compile_selector
from broker_core.engine.subscription import EVERYTHING, Filter

from .addresses import CAPABILITY_OF, check_own, kind_of, pattern_of, written
from .performatives import COPY, LINK_DETACH, MOVE, NEVER, Attach, SenderSettleMode, Source, Target
from .refusals import INVALID_FIELD, NOT_ALLOWED, LinkFault, quoted
from .types import Described, Symbol, ULong

JMS_SELECTOR, NO_LOCAL = "jms-selector", "no-local"
SELECTORS = (0x0000468C00000004, "apache.org:selector-filter:string")
"""What describes a selector: Apache's registered code, or its name."""
NO_LOCALS = (0x0000468C00000003, "apache.org:no-local-filter:list")
OUTCOMES = ("amqp:accepted:list", "amqp:rejected:list", "amqp:released:list", "amqp:modified:list")
NAME_MAX = 255
"""Characters of a subscription's name."""
VOLATILE = "|volatile"
"""Behind the name of a shared subscription that is not durable: JMS 2.0 (8.3.2) keeps their names apart from those of durable ones."""
PARENTHESIS_EFFORT = 10
"""Of one in a selector, besides a microsecond for each octet of it."""
LIFETIME = "lifetime-policy"


@dataclass(slots=True)
class Consumer:
    """What is answered, and what is to be done when the link closes."""

    source: Source
    presettled: bool = False
    browses: bool = False
    subscription: str = ""
    """The durable subscription's name; empty: there is none."""
    of_any_client: bool = False
    made: str = ""
    """The temporary destination that the link has made."""
    offered: tuple[str, ...] = ()
    effort: int = 0
    """What it has taken to read its selector, about, in microseconds."""
    commands: list[Any] = field(default_factory=list)
    """The last of them opens the link."""

    def found(self, found: Found) -> None:
        """The stored source of a durable subscription."""
        capabilities = [CAPABILITY_OF["topic"], *(["shared"] if found.shared else []), *(["global"] if self.of_any_client else [])]
        filters: dict[str, Any] = {}
        if found.wanted.selector is not None:
            filters[JMS_SELECTOR] = Described(ULong(SELECTORS[0]), found.wanted.selector.text)
        if found.wanted.sender:
            filters[NO_LOCAL] = Described(ULong(NO_LOCALS[0]), "NoLocalFilter{}")
        self.source = Source(
            written(found.address), 2, NEVER, distribution_mode=COPY, filter=filters or None, outcomes=OUTCOMES, capabilities=tuple(capabilities)
        )  # fmt: skip


def consumer_of(attach: Attach, peer: int, link: int, client_id: str, session: str, temporary: str) -> Consumer:
    """`session`: what the names of the connection's temporary destinations begin with; `temporary`: a name for a new one. Raises LinkFault."""
    source = attach.source
    if source is None or (source.address is None and not source.dynamic):
        return _lookup(attach, source, peer)
    if attach.target is not None and not isinstance(attach.target, Target):
        raise LinkFault(INVALID_FIELD, "a coordinator is no target of what the broker sends")
    kind = kind_of(source.capabilities)
    presettled = attach.snd_settle_mode == SenderSettleMode.SETTLED
    wanted, understood = _filter(source.filter or {}, client_id)
    priority = _priority(attach.properties or {})
    if source.dynamic:
        address = f"{temporary_kind(source.capabilities)}/{temporary}"
        answer = _answer(source, address, understood, durable=False, copies=False)
        answer.dynamic, answer.dynamic_node_properties = True, lifetime()
        made = Consumer(answer, presettled, made=address)
        made.commands = [
            CreateTemporary(peer, address),
            EngineAttach(peer, link, address, replenish=False, settled_by_peer=presettled, wanted=wanted, priority=priority),
        ]
        return made
    assert source.address is not None
    address = pattern_of(source.address, kind)
    check_own(address, session)
    on_topic = is_topic(address)
    durable = on_topic and (source.durable > 0 or source.expiry_policy == NEVER)
    if source.distribution_mode == COPY and not on_topic:
        return _browser(source, address, peer, link, understood, wanted)
    shared = "shared" in source.capabilities
    if shared and not on_topic:
        raise LinkFault(NOT_ALLOWED, "the capability shared is for topics: the consumers of a queue share it anyway")
    of_any_client = shared and "global" in source.capabilities
    name = _name(attach.name, shared=shared, durable=durable)
    consumer = Consumer(_answer(source, address, understood, durable=durable, copies=on_topic), presettled, of_any_client=of_any_client)
    consumer.subscription = name if durable else ""
    consumer.effort = _effort(wanted)
    consumer.offered = _offered(attach)
    consumer.commands = [
        EngineAttach(
            peer, link, address, replenish=False, settled_by_peer=presettled, name=name, durable=durable, shared=shared, wanted=wanted,
            priority=priority, of_any_client=of_any_client, steals=durable and not shared,
        )
    ]  # fmt: skip
    return consumer


def _browser(source: Source, address: str, peer: int, link: int, understood: dict[str, Any], wanted: Filter) -> Consumer:
    if wanted.sender:
        raise LinkFault(NOT_ALLOWED, "the filter no-local is for consumers, not for browsers")
    consumer = Consumer(_answer(source, address, understood, durable=False, copies=True), presettled=True, browses=True)
    consumer.commands = [Browse(peer, link, address, wanted=wanted, credit=0)]
    return consumer


def _lookup(attach: Attach, source: Source | None, peer: int) -> Consumer:
    """No source: the peer wants that of its durable subscription of this name, to close it for good or to see it."""
    capabilities = (*attach.desired_capabilities, *(source.capabilities if source is not None else ()))
    shared = "shared" in capabilities
    of_any_client = "global" in capabilities
    name = _name(attach.name, shared=shared or of_any_client, durable=True)
    consumer = Consumer(Source(), subscription=name, of_any_client=of_any_client, offered=_offered(attach))
    consumer.commands = [Lookup(peer, name, None, of_any_client)]
    return consumer


def _answer(source: Source, address: str, understood: dict[str, Any], *, durable: bool, copies: bool) -> Source:
    """What it is."""
    kind = address.partition("/")[0]
    capabilities = [CAPABILITY_OF[kind], *(each for each in source.capabilities if each in ("shared", "global"))]
    return replace(
        source,
        address=source.address if source.address is not None else written(address),
        durable=source.durable or 2 if durable else 0,
        expiry_policy=NEVER if durable else LINK_DETACH,
        timeout=0,
        distribution_mode=COPY if copies else MOVE,
        filter=understood or None,
        outcomes=OUTCOMES,
        capabilities=tuple(capabilities),
    )


def _offered(attach: Attach) -> tuple[str, ...]:
    return tuple(each for each in attach.desired_capabilities if each.upper() == "SHARED-SUBS")


def _name(link: str, *, shared: bool, durable: bool) -> str:
    """Of the subscription, by the name of its link: consumers of a shared one are told apart behind a bar. Empty: it has none. Raises LinkFault."""
    if not (shared or durable):
        return ""
    name = link.partition("|")[0] if shared else link
    if not 0 < len(name) <= NAME_MAX:
        raise LinkFault(INVALID_FIELD, f"a link's name, which names its subscription, must have 1 to {NAME_MAX} characters")
    return name if durable else name + VOLATILE


def _filter(filters: dict[str, Any], client_id: str) -> tuple[Filter, dict[str, Any]]:
    """What the engine filters by, and the filters that were understood. Raises LinkFault."""
    selector, sender, understood = None, "", {}
    for name, value in filters.items():
        if not isinstance(value, Described):
            continue
        if value.descriptor in SELECTORS:
            if not isinstance(value.value, str) or isinstance(value.value, Symbol):
                raise LinkFault(INVALID_FIELD, "the selector is not a string")
            if value.value.strip():
                try:
                    selector = compile_selector(value.value)
                except SelectorError as error:
                    raise LinkFault(INVALID_FIELD, f"the selector is not valid: {error}", {"invalid-field": Symbol("filter")}) from None
            understood[name] = value
        elif value.descriptor in NO_LOCALS:
            sender = client_id
            understood[name] = value
    return (Filter(selector, sender) if selector is not None or sender else EVERYTHING), understood


def _effort(wanted: Filter) -> int:
    return wanted.octets + PARENTHESIS_EFFORT * wanted.selector.text.count("(") if wanted.selector is not None else 0


def _priority(properties: dict[str, Any]) -> int:
    priority = properties.get("priority", 0)
    if isinstance(priority, bool) or not isinstance(priority, int) or abs(priority) > PRIORITY_MAX:
        raise LinkFault(INVALID_FIELD, f"the link's property priority is {quoted(str(priority))}, not a whole number from -{PRIORITY_MAX} to {PRIORITY_MAX}")
    return priority


def temporary_kind(capabilities: Sequence[str]) -> str:
    """Of the node that a dynamic target makes."""
    return "temp-topic" if kind_of(capabilities) in ("topic", "temp-topic") else "temp-queue"


def lifetime() -> dict[str, Any]:
    """Properties of dynamic nodes, whatever was asked for: they end with the link that made them."""
    return {LIFETIME: Described(ULong(0x2B), [])}
