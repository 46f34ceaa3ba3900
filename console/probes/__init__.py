"""What machines ask: is it alive, is it ready, what does it count."""
