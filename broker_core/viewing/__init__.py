"""What operators see of messages: pages of a queue or a subscription, put together from what the node says of it and the rows of the store, and one message
in a form that people read. Whoever asks brings how the node is asked and how the database is read; nothing here knows of either."""
