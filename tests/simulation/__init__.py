"""Seeded histories: the real engine, STOMP machines, peers and host over the memory store, on a loop whose time is virtual."""
