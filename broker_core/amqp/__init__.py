"""AMQP 1.0 without a socket: octets to frames to engine commands, and the engine's outputs back. Pure; it never meets STOMP."""
