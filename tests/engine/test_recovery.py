"""What a new term knows is what was durable: the engine of before, less what is volatile."""

from __future__ import annotations

from tests.engine.rig import EXPRESS, Bench


def test_octets_of_volatile_messages_are_gone_after_a_crash() -> None:
    bench = Bench()
    bench.send("stored", size=100)
    bench.send("volatile", level=EXPRESS, size=1000)
    bench.flush(report=True)
    bench.start()
    assert bench.destination().octets == 100


def test_message_ids_of_volatile_messages_are_not_given_out_again_after_a_crash() -> None:
    bench = Bench()
    bench.send("stored")
    bench.send("volatile", level=EXPRESS)
    before = bench.engine.shard.sequence
    bench.start()
    bench.send("another", level=EXPRESS)
    assert bench.cursor(lane=14).ready[0].sequence > before
