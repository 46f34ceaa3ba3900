"""Links to other brokers, over STOMP 1.2 (items 119 to 121): what an operator says of one, how a message is said over there, and the machine that carries
messages from one broker to another. Pure: octets and instants come in as arguments.

A `Carrier` is a client of two brokers, the *source* and the *target*: it takes messages from the one with individual acknowledgement, sends them to the
other with a receipt, and acknowledges each when its RECEIPT has come. Outbound the source is this node, inbound the target is; it is one machine, and the
node is to it a broker as any: the driver gives it a connection that is the node's own.
"""
