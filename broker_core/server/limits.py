"""The bounds of the configuration as those have them who are bounded: the engine, the protocols, the store."""

from __future__ import annotations

from broker_core.amqp.limits import Limits as AmqpLimits
from broker_core.config import BrokerConfig
from broker_core.engine import Limits
from broker_core.engine.settings import Settings
from broker_core.stomp.limits import Limits as StompLimits
from broker_core.store.lease import Times


def stomp_limits_of(config: BrokerConfig) -> StompLimits:
    return StompLimits(
        **_sending(config),
        prefetch_max=min(StompLimits().prefetch_max, config.link_unsettled_max),
        outstanding_octets_max=config.link_outstanding_octets_max,
        header_octets_max=config.header_octets_max,
        headers_max=config.headers_max,
        connect_ms_max=config.login_seconds * 1000,
        heart_beat_ms_min=config.heartbeat_ms,
    )


def amqp_limits_of(config: BrokerConfig) -> AmqpLimits:
    return AmqpLimits(
        **_sending(config),
        frame_octets_max=config.amqp_frame_octets_max,
        channels_max=config.amqp_sessions_max,
        section_octets_max=config.header_octets_max,
        waiting_octets_max=config.send_buffer_octets_max,
        login_ms_max=config.login_seconds * 1000,
        idle_ms=config.amqp_idle_ms,
    )


def _sending(config: BrokerConfig) -> dict[str, int]:
    """Of what a client sends, whatever it speaks."""
    return {
        "body_octets_max": config.message_octets_max,
        "large_body_octets": config.large_body_octets,
        "part_octets_max": config.body_chunk_octets,
        "unconfirmed_max": config.unconfirmed_sends_max,
        "unconfirmed_octets_max": config.unconfirmed_octets_max,
    }


def times_of(config: BrokerConfig) -> Times:
    return Times(config.lease_heartbeat_ms / 1000, config.lease_stale_ms / 1000, config.outputs_stop_ms / 1000)


def limits_of(config: BrokerConfig) -> Limits:
    return Limits(
        page_rows=config.page_rows_max,
        page_octets=config.page_octets_max,
        window_rows=config.window_rows_max,
        window_octets=config.window_octets_max,
        memory_octets=config.body_memory_octets_max,
        link_octets=config.link_outstanding_octets_max,
        link_unsettled=config.link_unsettled_max,
        segment_rows=config.segment_rows_max,
        segment_octets=config.segment_octets_max,
        dead_retention_ms=config.dead_retention_days * 86_400_000,
        dead_truncate_body=config.dead_truncate_body,
        dead_log=config.dead_log,
        reap_ms=config.reap_after_seconds * 1000,
        auto_create=config.auto_create_queues,
        destinations_max=config.destinations_max,
        subscriptions_max=config.subscriptions_max,
        topic_subscriptions_max=config.topic_subscriptions_max,
        patterns_max=config.patterns_max,
        account_subscriptions_max=config.account_subscriptions_max,
        account_selector_octets_max=config.account_selector_octets_max,
        subscription_inactive_ms=config.subscription_inactive_days_max * 86_400_000,
        transactions_max=config.transactions_max,
        transaction_messages_max=config.transaction_messages_max,
        transaction_octets_max=config.transaction_octets_max,
        transaction_ms_max=config.transaction_ms_max,
        prepared_max=config.prepared_max,
        account_prepared_max=config.account_prepared_max,
        prepared_octets_max=config.prepared_octets_max,
        temporaries_max=config.connection_temporaries_max,
        message_octets_max=config.message_octets_max,
        undo_ms=config.undo_seconds * 1000,
        settings=Settings(
            redelivery_max=config.redelivery_max,
            redelivery_delay_ms=config.redelivery_delay_ms,
            redelivery_multiplier=float(config.redelivery_multiplier),
            redelivery_delay_max_ms=config.redelivery_delay_max_ms,
        ),
    )


def ledger_cap(config: BrokerConfig) -> int:
    """Octets of the ledger. It counts towards the database's cap, and of all that does it is what need not wait for consumers."""
    cap = config.database_octets_max
    return min(config.ledger_octets_max, cap // 2) if cap else config.ledger_octets_max
